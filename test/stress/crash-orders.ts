import type { Kind } from "./story.ts";

/** What a process is told: which story to go on with, from where, and where to die. */
export interface CrashOrders {
	readonly path: string;
	readonly seed: number;
	/** Happenings that are in the file. */
	readonly done: number;
	/** After so many it ends by itself. */
	readonly until: number;
	/** The next happening of this kind kills the process at a statement, or at its end if it has not so many. */
	readonly fault?: { readonly kind: Kind; readonly statement: number; readonly isAfter: boolean } | undefined;
}

/** One of them is current, the other was before. */
export const KEYS = { odd: new Uint8Array(32).fill(1), even: new Uint8Array(32).fill(2) };
