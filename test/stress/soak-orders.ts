/** What one of several processes on a file is told. */
export interface SoakOrders {
	readonly path: string;
	readonly seed: number;
	/** Its own, and those of the others. */
	readonly prefix: string;
	readonly peers: readonly string[];
	readonly seconds: number;
}

/** What it has to say in the end. */
export interface SoakAccount {
	/** Happenings of its story. */
	readonly done: number;
	/** Checkpoints that it put in the thread of all, by id, and what each says. */
	readonly shared: readonly (readonly [string, string])[];
	readonly reads: number;
}

/** The thread in which all processes put. */
export const SHARED = "shared";
