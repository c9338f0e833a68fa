import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

/** Whose saver is measured; `limit` does by hand what no saver can do without. */
export type Side = "ours" | "official" | "limit";
export type Backend = "sqlite" | "memory" | "postgres";

/** Where and on what a workload runs. */
export interface Stage {
	readonly side: Side;
	readonly backend: Backend;
	/** A folder of its own, where the database is. */
	readonly folder: string;
	/** One that all processes of the benchmark have in common, for what takes long to make. */
	readonly shared?: string | undefined;
	/** Of an application that has the compiled package installed, for workloads that need it. */
	readonly application?: string | undefined;
	/** Of the PostgreSQL server, where that is the backend. */
	readonly url?: string | undefined;
	/** Small sizes: to see that everything runs, and to warm up before the real ones. */
	readonly quick: boolean;
	/** Nobody will look at what is measured. */
	readonly isWarmUp?: boolean;
	/** Official savers take every step of the longest threads, not a sample of them. */
	readonly full: boolean;
}

/** What was measured, by name: milliseconds, or bytes if the name begins so. */
export type Measures = Record<string, number>;

/** How a measure is called in the tables. A target is the least ratio, official ÷ ours; 1 if nothing is said. */
export interface MeasureInfo {
	readonly title: string;
	readonly target?: Partial<Record<Backend, number>>;
	/** Instead of a target: the bytes that ours may take more than the official saver. */
	readonly allowance?: number;
	/** The one backend on which savers are compared by it. */
	readonly only?: Backend;
}

/** From this ratio on, a whole turn counts as equally fast: most of it is LangGraph's own time, which varies by that much. */
export const EQUAL_TURN = { sqlite: 0.95, memory: 0.95 } as const;

/** One thing that applications do with savers. Every one runs in a process of its own. */
export interface Workload {
	readonly name: string;
	readonly title: string;
	/** How often it is measured on each saver, or on those of some backends; once if nothing is said. */
	readonly rounds?: number | Readonly<Partial<Record<Backend, number>>>;
	readonly backends: readonly Backend[];
	readonly measures: Readonly<Record<string, MeasureInfo>>;
	/** Done in an earlier process, on the same folder. */
	prepare?(stage: Stage): Promise<void>;
	/** Throws if what was read is not what was put. */
	run(stage: Stage): Promise<Measures>;
	/** The same content with nothing but raw commits and msgpack. */
	limit?(stage: Stage): Promise<Measures>;
	/** One of several processes that work at the same time. */
	part?(stage: Stage, index: number): Promise<void>;
	/** How long it is run at small sizes before, where a call takes so little that the compiler would be measured. */
	readonly warmUpMs?: number;
	/** Without warm-up, and without pauses for the other side, in which V8 would go on compiling. */
	readonly isCold?: boolean;
	/** How many fresh processes on each side make up one round; one if nothing is said. */
	readonly repetitions?: number;
	/** Whether it runs the package as it is published, see {@link Stage.application}. */
	readonly needsApplication?: boolean;
}

export type Saver = BaseCheckpointSaver<number>;

export function check(condition: boolean, what: string): asserts condition {
	if (!condition) throw new Error(`The saver is wrong: ${what}.`);
}
