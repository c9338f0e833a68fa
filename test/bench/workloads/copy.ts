import type { BaseMessage } from "@langchain/core/messages";
import type { DeltaSaver } from "../../../src/index.ts";
import { copyByHand, DirectThread, oneChannelStep } from "../direct-thread.ts";
import { median, time, timeAndBlock } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { measureOn, storedBytes } from "../savers.ts";
import { pass } from "../turns.ts";
import { check, type Measures, type Saver, type Stage, type Workload } from "../workload.ts";

/** The agent forgets what is older, or copying would take the official savers a minute. */
const REMEMBERED = 40;
const sizeOf = ({ quick }: Stage) => (quick ? 20 : 1000);
/** How often it is done. Once would tell how long a process takes to get going. */
const COPIES = ["copy 1", "copy 2", "copy 3"];

/**
 * A copy shares blobs with its source, and prune has to find out which ones are still needed; the official savers share
 * none. In SQLite a prune is one transaction, so that its time and its longest block are the same.
 */
const EQUAL_PRUNE = { sqlite: 0.8, memory: 0.8 };

async function copy(stage: Stage, saver: Saver, target: string): Promise<void> {
	if (stage.side === "ours") await (saver as DeltaSaver).copyThread("source", target);
	else await copyByHand(saver, "source", saver, target);
}

/** Official savers have no prune: what stays is read, all is deleted, and it is put back. */
async function prune(stage: Stage, saver: Saver, thread: string): Promise<void> {
	if (stage.side === "ours") return void (await (saver as DeltaSaver).prune([thread]));
	const head = await saver.getTuple({ configurable: { thread_id: thread } });
	check(head !== undefined, "there is no copy");
	await saver.deleteThread(thread);
	const config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
	await saver.put(config, head.checkpoint, head.metadata as never, head.checkpoint.channel_versions);
	for (const [task, channel, value] of head.pendingWrites ?? [])
		await saver.putWrites(head.config, [[channel, value]], task);
}

async function checkThread(saver: Saver, threadId: string, count: number, last: BaseMessage): Promise<void> {
	const config = { configurable: { thread_id: threadId } };
	let found = 0;
	for await (const _ of saver.list(config)) found++;
	check(found === count, `${threadId} has ${found} checkpoints instead of ${count}`);
	const messages = (await saver.getTuple(config))?.checkpoint.channel_values.messages as BaseMessage[];
	check(messages.at(-1)?.id === last.id, `${threadId} has another last message`);
}

/** Without `copyThread`, on our own saver. */
async function timeCopyByHand(saver: Saver): Promise<Measures> {
	return { copyByHand: await time(() => copyByHand(saver, "source", saver, "copy by hand")) };
}

/** A thread is copied, to try something out, and the copy is cut down to its head. */
export const copying: Workload = {
	name: "copy",
	title: "copyThread and prune, 1,000 checkpoints",
	warmUpMs: 1500,
	backends: ["sqlite", "memory"],
	measures: {
		copy: { title: "copy", target: { sqlite: 100, memory: 100 } },
		copyBlock: { title: "longest block by copy" },
		prune: { title: "prune to the head", target: EQUAL_PRUNE },
		pruneBlock: { title: "longest block by prune", target: EQUAL_PRUNE },
	},
	async run(stage) {
		const count = sizeOf(stage);
		const messages = writeMessages(count + 1);
		const last = messages[count - 1] as BaseMessage;
		const before = await storedBytes(stage);
		const { bytes: _, ...measures } = await measureOn(
			stage,
			async (saver) => {
				const thread = new DirectThread(saver, "source");
				for (let i = 1; i <= count; i++)
					await thread.step(oneChannelStep("messages", messages.slice(Math.max(0, i - REMEMBERED), i), [messages[i]]));
				return { bytesSource: (await storedBytes(stage)) - before };
			},
			async (saver) => {
				const bytesBefore = await storedBytes(stage);
				const copied: Awaited<ReturnType<typeof timeAndBlock>>[] = [];
				for (const target of COPIES) {
					await pass();
					copied.push(await timeAndBlock(() => copy(stage, saver, target)));
				}
				const bytesCopy = ((await storedBytes(stage)) - bytesBefore) / COPIES.length;
				await checkThread(saver, COPIES[0] as string, count, last);
				const pruned: Awaited<ReturnType<typeof timeAndBlock>>[] = [];
				for (const target of COPIES) {
					await pass();
					pruned.push(await timeAndBlock(() => prune(stage, saver, target)));
				}
				for (const target of COPIES) await checkThread(saver, target, 1, last);
				await checkThread(saver, "source", count, last);
				const own = stage.side === "ours" ? await timeCopyByHand(saver) : {};
				return {
					copy: median(copied.map(({ elapsed }) => elapsed)),
					copyBlock: median(copied.map(({ block }) => block)),
					prune: median(pruned.map(({ elapsed }) => elapsed)),
					pruneBlock: median(pruned.map(({ block }) => block)),
					bytesCopy,
					...own,
				};
			},
		);
		return measures;
	},
};
