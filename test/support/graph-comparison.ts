import { isDeepStrictEqual } from "node:util";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { Bench, type Durability, FACT } from "./graph-bench.ts";
import { differencesBetween } from "./graph-canonical.ts";
import { Reference } from "./graph-reference.ts";
import type { Comparison, Scenario } from "./graph-scenario.ts";
import { type Difference, TeeSaver } from "./graph-tee.ts";
import { type Transcript, withoutIds } from "./graph-transcript.ts";

/** A saver opened for one run. */
export interface OpenSaver {
	saver: BaseCheckpointSaver;
	/** Another instance on the same data, where there is such a thing. */
	reopen(): Promise<BaseCheckpointSaver>;
	close(): Promise<void>;
}

/** A kind of saver that scenarios can run on. */
export interface Candidate {
	name: string;
	open(): Promise<OpenSaver>;
}

/** What a comparison found. */
export interface Findings {
	differences: Difference[];
	/** Answers in a form that core could not rely on. */
	faults: string[];
	/** How many answers were compared. */
	compared: number;
}

/** A saver that lives as long as a run and has nothing to close. */
export const inMemory = (name: string, create: () => BaseCheckpointSaver): Candidate => ({
	name,
	async open() {
		const saver = create();
		return { saver, reopen: async () => saver, close: async () => {} };
	},
});

const reference = inMemory("the reference", () => new Reference());

/** Runs the scenario once, each call going to the reference and to the candidate, and compares every answer. */
async function compareCalls(story: Scenario, durability: Durability, candidate: Candidate): Promise<Findings> {
	const opened = await candidate.open();
	try {
		const tee = new TeeSaver(new Reference(), opened.saver);
		const reopen = async () => {
			await tee.replaceCandidate(opened.reopen);
			return tee;
		};
		await story.run(new Bench(tee, { durability, reopen, record: false }));
		await tee.audit();
		return { differences: tee.differences, faults: tee.faults, compared: tee.reads };
	} finally {
		await opened.close();
	}
}

/** Runs the scenario on the candidate alone and compares what it saw with a run on the reference alone. */
async function compareRuns(story: Scenario, durability: Durability, candidate: Candidate): Promise<Findings> {
	const [expected, actual] = [await referenceRun(story, durability), await runAlone(story, durability, candidate)];
	if (isDeepStrictEqual(expected, actual)) return { differences: [], faults: [], compared: expected.length };
	const longer = Array.from({ length: Math.max(expected.length, actual.length) });
	const differences = longer.flatMap((_, at) => entryDifferences(at, expected[at], actual[at]));
	return { differences, faults: [], compared: expected.length };
}

type Entry = Transcript[number];

function entryDifferences(at: number, entry: Entry | undefined, other: Entry | undefined): Difference[] {
	const where = `run ${at}: ${(entry ?? other)?.[0]}`;
	if (entry === undefined || other === undefined || entry[0] !== other[0])
		return [{ where, expected: entry, actual: other }];
	return differencesBetween(entry[1], other[1]).map(({ path, expected, actual }) => ({
		where: `${where} ${path}`,
		expected,
		actual,
	}));
}

const referenceRuns = new Map<string, Promise<Transcript>>();

function referenceRun(story: Scenario, durability: Durability): Promise<Transcript> {
	const key = `${story.name}, ${durability}`;
	const run = referenceRuns.get(key) ?? runAlone(story, durability, reference);
	referenceRuns.set(key, run);
	return run;
}

async function runAlone(story: Scenario, durability: Durability, { open }: Candidate): Promise<Transcript> {
	const { saver, reopen, close } = await open();
	try {
		const bench = new Bench(saver, { durability, reopen, record: true });
		await story.run(bench);
		const seen = story.racy ? bench.transcript.filter(([label]) => label.startsWith(FACT)) : bench.transcript;
		return withoutIds(seen);
	} finally {
		await close();
	}
}

const comparisons = { calls: compareCalls, runs: compareRuns } as const;

/** Compares in one way, and sorts what was found into differences nobody expects and expectations that nothing met. */
export async function compare(by: Comparison, story: Scenario, durability: Durability, candidate: Candidate) {
	const findings = await comparisons[by](story, durability, candidate);
	const expected = story.differences.filter(
		(one) => (one.durability?.includes(durability) ?? true) && (one.only ?? by) === by,
	);
	return {
		...findings,
		unexpected: findings.differences.filter(({ where }) => !expected.some((one) => one.where.test(where))),
		unmet: expected.filter((one) => !findings.differences.some(({ where }) => one.where.test(where))),
	};
}
