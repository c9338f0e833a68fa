import { Lru } from "../../lru.ts";

/** What tells that a thread has changed: nothing can change without one of these. */
export interface ThreadState {
	readonly stamp: number;
	readonly checkpoints: number;
	readonly writes: number;
	/** The greatest number of a batch that has writes. */
	readonly batch: number;
}

/** Threads that are kept in mind. */
const MOST_THREADS = 10_000;

/**
 * Tells whether a thread was changed by others: it is in another state than it was seen in last, and than what this
 * process has added since would explain.
 */
export class ThreadEpochs {
	readonly #threads = new Lru<string, { state: ThreadState; epoch: number }>(MOST_THREADS);
	#last = 0;

	/** The number of a thread that is found in this state: the same as before if it was not changed by others. */
	see(threadId: string, state: ThreadState): number {
		const known = this.#threads.get(threadId);
		if (known !== undefined && isSame(known.state, state)) return known.epoch;
		this.#last++;
		this.#threads.set(threadId, { state, epoch: this.#last }, 1);
		return this.#last;
	}

	/** This process has added to a thread. */
	add(threadId: string, added: { checkpoints: number; writes: number; batch: number }): void {
		const known = this.#threads.get(threadId);
		if (known === undefined) return;
		const { stamp, checkpoints, writes, batch } = known.state;
		known.state = {
			stamp,
			checkpoints: checkpoints + added.checkpoints,
			writes: writes + added.writes,
			batch: added.writes > 0 ? Math.max(batch, added.batch) : batch,
		};
	}

	/** This process has changed a thread in another way. */
	forget(threadId: string): void {
		this.#threads.delete(threadId);
	}
}

function isSame(a: ThreadState, b: ThreadState): boolean {
	return a.stamp === b.stamp && a.checkpoints === b.checkpoints && a.writes === b.writes && a.batch === b.batch;
}
