import type { Bench, Durability } from "./graph-bench.ts";

/** The two ways to compare: every answer to a call, or what two runs of a scenario saw. */
export type Comparison = "calls" | "runs";

/** A difference from the official MemorySaver that is right: the official one is wrong there, for the given reason. */
export interface ExpectedDifference {
	/** Matches the place, as the comparison names it. */
	where: RegExp;
	/** Why the official answer is wrong or loses something. */
	reason: string;
	/** Only in runs of these durabilities. */
	durability?: readonly Durability[];
	/** Only when call by call answers are compared, or only when what two runs saw is compared. */
	only?: Comparison;
}

/** A story told with real graphs: what a user does with them and looks at. */
export interface Scenario {
	/** A sentence about what happens. */
	name: string;
	run: (bench: Bench) => Promise<void>;
	/** The durabilities it is worth running with; all three unless told. */
	durabilities: readonly Durability[];
	/** Where the official saver is wrong. */
	differences: readonly ExpectedDifference[];
	/** Two runs may interleave differently, so that only what the scenario notes itself is compared between runs. */
	racy: boolean;
}

type Options = Partial<Pick<Scenario, "durabilities" | "differences" | "racy">>;

const ALL: readonly Durability[] = ["async", "sync", "exit"];

/** Names a story. */
export function scenario(name: string, run: Scenario["run"], options: Options = {}): Scenario {
	return { name, run, durabilities: ALL, differences: [], racy: false, ...options };
}

/** The config of a thread. */
export const thread = (threadId: string, more: Record<string, unknown> = {}) => ({
	configurable: { thread_id: threadId, ...more },
});
