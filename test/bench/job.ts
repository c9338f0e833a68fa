import type { Stage } from "./workload.ts";

/** What one process is to do. */
export interface Job {
	readonly workload: string;
	readonly phase: "prepare" | "run" | "part";
	readonly part?: number;
	readonly stage: Stage;
}
