import { DirectThread } from "../direct-thread.ts";
import { timeAndBlock, timeReads } from "../measure.ts";
import { measureOn } from "../savers.ts";
import { check, type Saver, type Stage, type Workload } from "../workload.ts";

/** One checkpoint in this many is about the rare topic. */
const RARE = 1000;

const sizesOf = ({ quick }: Stage) => (quick ? [10, 20] : [1000, 100]) as [threads: number, checkpoints: number];

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
	rounds: 1,
	warmUpMs: 1000,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		rare: { title: "all with a rare value, in all threads" },
		common: { title: "20 with a common value, in all threads" },
		thread: { title: "all with one value, in one thread" },
		block: { title: "longest block by the first of these" },
		put: { title: "put" },
		bytes: { title: "bytes" },
	},
	async run(stage) {
		const [threads, checkpoints] = sizesOf(stage);
		return measureOn(
			stage,
			async (saver) => {
				let total = 0;
				for (let t = 0; t < threads; t++) {
					const thread = new DirectThread(saver, `thread-${t}`, t);
					for (let i = 0; i < checkpoints; i++) {
						const nth = t * checkpoints + i;
						const metadata = { topic: nth % RARE === 0 ? "rare" : `topic-${nth % 7}`, user: `user-${t % 50}` };
						total += await thread.step({ values: { count: i }, changed: ["count"], writes: [], metadata });
					}
				}
				return { put: total / (threads * checkpoints) };
			},
			async (saver) => {
				const expected = Math.ceil((threads * checkpoints) / RARE);
				const { elapsed: rare, block } = await timeAndBlock(async () => {
					const found = await count(saver, undefined, { topic: "rare" });
					check(found === expected, `${found} checkpoints with the rare value instead of ${expected}`);
				});
				const common = await timeReads(async () => {
					const found = await count(saver, undefined, { topic: "topic-3" }, 20);
					check(found === 20, `${found} checkpoints with a common value instead of 20`);
				});
				const thread = await timeReads(async () => {
					const found = await count(saver, "thread-5", { step: 7 });
					check(found === 1, `${found} checkpoints with step 7 instead of 1`);
				});
				return { rare, common, thread, block };
			},
		);
	},
};
