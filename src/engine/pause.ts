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
