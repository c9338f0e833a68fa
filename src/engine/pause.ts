/**
 * To be awaited between the steps of something that takes long. Lets others have their turn, since a storage may answer
 * without ever waiting, and throws if the work is to stop.
 */
export type Pause = () => Promise<void>;

/** As it is now: tests may put a clock of their own in its place. Browsers have no setImmediate. */
const { setImmediate: soon = setTimeout } = globalThis as { setImmediate?: (run: () => void) => unknown };

/** Resolves once everything else that is due has had its turn. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => soon(resolve));
}

/** Calls that may follow each other without a turn of the event loop. */
const CALLS_IN_A_ROW = 64;

/**
 * Gives the event loop its turn in a loop over many calls, whose storage may answer without ever waiting. Others would get
 * none until its end, and all that was named by a weak reference would be held that long.
 */
export class CallsInARow {
	#count = 0;

	/** Counts a call. Answers whether a turn is due now. */
	add(): boolean {
		this.#count = (this.#count + 1) % CALLS_IN_A_ROW;
		return this.#count === 0;
	}
}
