import { ThreadFeed } from "./thread-feed.ts";

/** The feeds of threads that have a reader, or a run whose events somebody may still ask for. */
export class Feeds {
	readonly #held = new Map<string, { readonly feed: ThreadFeed; holders: number }>();

	#isClosed = false;

	/** The feed of a thread, which is there until all who hold it have released it. */
	hold(threadId: string): ThreadFeed {
		const held = this.#held.get(threadId) ?? { feed: new ThreadFeed(), holders: 0 };
		held.holders++;
		if (this.#isClosed) held.feed.close();
		this.#held.set(threadId, held);
		return held.feed;
	}

	release(threadId: string): void {
		const held = this.#held.get(threadId);
		if (held !== undefined && --held.holders === 0) this.#held.delete(threadId);
	}

	get(threadId: string): ThreadFeed | undefined {
		return this.#held.get(threadId)?.feed;
	}

	close(): void {
		this.#isClosed = true;
		for (const { feed } of this.#held.values()) feed.close();
	}
}
