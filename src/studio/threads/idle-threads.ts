import { Lru } from "../../lru.ts";
import type { FoundThread } from "./threads.ts";

/** How many threads are remembered. An entry takes about 200 bytes. */
const MOST = 50_000;

/**
 * Threads that were found idle, and the version of them that was. As long as nothing is stored in a thread it stays
 * idle: whoever searches for threads that wait for a person need not read all those that don't, each time.
 */
export class IdleThreads {
	readonly #versions = new Lru<string, string>(MOST);

	has({ threadId, info }: FoundThread): boolean {
		return this.#versions.get(threadId) === versionOf(info);
	}

	add({ threadId, info }: FoundThread): void {
		this.#versions.set(threadId, versionOf(info), 1);
	}
}

/** Two checkpoints may be stored within a millisecond, but then there is one more of them. */
function versionOf({ head, updatedAt, checkpoints }: FoundThread["info"]): string {
	return `${head} ${updatedAt.getTime()} ${checkpoints}`;
}
