import type { BaseMessage } from "@langchain/core/messages";
import type { DeltaSaver } from "../../../src/index.ts";
import { copyByHand, DirectThread, oneChannelStep } from "../direct-thread.ts";
import { time, timeAndBlock } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { measureOn, storedBytes } from "../savers.ts";
import { check, type Measures, type Saver, type Stage, type Workload } from "../workload.ts";

/** The agent forgets what is older, or copying would take the official savers a minute. */
const REMEMBERED = 40;
const sizeOf = ({ quick }: Stage) => (quick ? 20 : 1000);

async function copy(stage: Stage, saver: Saver): Promise<void> {
	if (stage.side === "ours") await (saver as DeltaSaver).copyThread("source", "copy");
	else await copyByHand(saver, "source", saver, "copy");
}

/** Official savers have no prune: what stays is read, all is deleted, and it is put back. */
async function prune(stage: Stage, saver: Saver): Promise<void> {
	if (stage.side === "ours") return void (await (saver as DeltaSaver).prune(["copy"]));
	const head = await saver.getTuple({ configurable: { thread_id: "copy" } });
	check(head !== undefined, "there is no copy");
	await saver.deleteThread("copy");
	const config = { configurable: { thread_id: "copy", checkpoint_ns: "" } };
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
	warmUpMs: 1000,
	rounds: 1,
	backends: ["sqlite", "memory"],
	measures: {
		copy: { title: "copy", target: { sqlite: 20, memory: 20 } },
		copyBlock: { title: "longest block by copy" },
		prune: { title: "prune to the head" },
		pruneBlock: { title: "longest block by prune" },
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
				const copied = await timeAndBlock(() => copy(stage, saver));
				const bytesCopy = (await storedBytes(stage)) - bytesBefore;
				await checkThread(saver, "copy", count, last);
				const pruned = await timeAndBlock(() => prune(stage, saver));
				await checkThread(saver, "copy", 1, last);
				await checkThread(saver, "source", count, last);
				const own = stage.side === "ours" ? await timeCopyByHand(saver) : {};
				return {
					copy: copied.elapsed,
					copyBlock: copied.block,
					prune: pruned.elapsed,
					pruneBlock: pruned.block,
					bytesCopy,
					...own,
				};
			},
		);
		return measures;
	},
};
