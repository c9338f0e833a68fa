import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { DirectThread } from "../direct-thread.ts";
import { middleMean, timeAndBlock, timeReads } from "../measure.ts";
import { databasePath, measureOn, openSaver } from "../savers.ts";
import { forEachInTurns, pass } from "../turns.ts";
import { check, type Saver, type Stage, type Workload } from "../workload.ts";

/** One checkpoint in this many is about the rare topic. */
const RARE = 1000;
/** How often all checkpoints with the rare topic are looked for. */
const SEARCHES = 5;

/**
 * @returns how many threads there are, how many checkpoints each has, and how many threads come later: some to get warm
 * again after all the reading, and those that are timed
 */
function sizesOf({ quick }: Stage): [threads: number, checkpoints: number, warm: number, later: number] {
	return quick ? [10, 20, 1, 2] : [1000, 100, 50, 200];
}

/** A put takes so little that a tenth of them is over before the machine does anything else. */
const PARTS = 50;

/** Returns how long a put takes. */
async function fill(saver: Saver, stage: Stage, from: number, threads: number): Promise<number> {
	const [, checkpoints] = sizesOf(stage);
	let total = 0;
	await forEachInTurns(
		Array.from({ length: threads }),
		async (_, index) => {
			const t = from + index;
			const thread = new DirectThread(saver, `thread-${t}`, t);
			for (let i = 0; i < checkpoints; i++) {
				const nth = t * checkpoints + i;
				const metadata = { topic: nth % RARE === 0 ? "rare" : `topic-${nth % 7}`, user: `user-${t % 50}` };
				total += await thread.step({ values: { count: i }, changed: ["count"], writes: [], metadata });
			}
		},
		PARTS,
	);
	return total / (threads * checkpoints);
}

async function count(saver: Saver, threadId: string | undefined, filter: object, limit?: number): Promise<number> {
	const configurable = threadId === undefined ? {} : { thread_id: threadId };
	let found = 0;
	for await (const _ of saver.list({ configurable }, { filter: filter as Record<string, unknown>, limit })) found++;
	return found;
}

/** Looking for checkpoints by what their metadata says. */
export const filter: Workload = {
	name: "filter",
	title: "list by metadata in 100,000 checkpoints",
	rounds: { sqlite: 5, memory: 2 },
	warmUpMs: 1000,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		rare: { title: "all with a rare value, in all threads" },
		common: { title: "20 with a common value, in all threads" },
		thread: { title: "all with one value, in one thread" },
		block: { title: "longest block by the first of these" },
		// The smallest put of all: fixed costs decide, and both sides count as equal from here.
		put: { title: "put", target: { sqlite: 0.8, memory: 0.8 } },
		bytes: { title: "bytes" },
	},
	/** A file is made once for all rounds. */
	async prepare(stage) {
		if (stage.backend !== "sqlite") return;
		const made = join(stage.shared as string, `filter-${stage.side}.db`);
		if (!existsSync(made)) {
			const { saver, close } = openSaver(stage);
			await fill(saver, stage, 0, sizesOf(stage)[0]);
			await close();
			copyFileSync(databasePath(stage), made);
		} else copyFileSync(made, databasePath(stage));
	},
	async run(stage) {
		const [threads, checkpoints, warm, later] = sizesOf(stage);
		const isFilled = existsSync(databasePath(stage));
		return measureOn(
			stage,
			async (saver) => {
				if (!isFilled) await fill(saver, stage, 0, threads);
				return {};
			},
			async (saver) => {
				const expected = Math.ceil((threads * checkpoints) / RARE);
				const searches: Awaited<ReturnType<typeof timeAndBlock>>[] = [];
				for (let i = 0; i < SEARCHES; i++) {
					await pass();
					searches.push(
						await timeAndBlock(async () => {
							const found = await count(saver, undefined, { topic: "rare" });
							check(found === expected, `${found} checkpoints with the rare value instead of ${expected}`);
						}),
					);
				}
				const common = await timeReads(async () => {
					const found = await count(saver, undefined, { topic: "topic-3" }, 20);
					check(found === 20, `${found} checkpoints with a common value instead of 20`);
				});
				const thread = await timeReads(async () => {
					const found = await count(saver, "thread-5", { step: 7 });
					check(found === 1, `${found} checkpoints with step 7 instead of 1`);
				});
				await fill(saver, stage, threads, warm);
				return {
					rare: middleMean(searches.map(({ elapsed }) => elapsed)),
					block: middleMean(searches.map(({ block }) => block)),
					common,
					thread,
					put: await fill(saver, stage, threads + warm, later),
				};
			},
		);
	},
};
