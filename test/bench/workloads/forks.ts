import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { timeEach, timeReads } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Stage, type Workload } from "../workload.ts";

const TRUNK = 60;
const BRANCH = 3;
const branchesOf = ({ quick }: Stage) => (quick ? 10 : 200);

/** Someone who goes back in time and tries again and again. */
export const forks: Workload = {
	name: "forks",
	title: "one thread with 200 branches",
	warmUpMs: 1000,
	backends: ["sqlite", "memory"],
	measures: {
		bytes: { title: "bytes" },
		put: { title: "put + putWrites" },
		get: { title: "getTuple of each tip" },
		list: { title: "list 50" },
	},
	async run(stage) {
		const trunk = writeMessages(TRUNK);
		const branches = Array.from({ length: branchesOf(stage) }, (_, i) => writeMessages(BRANCH + 1, 1000 + i));
		const tips: RunnableConfig[] = [];
		return measureOn(
			stage,
			async (saver) => {
				const thread = new DirectThread(saver, "tree");
				const joints: RunnableConfig[] = [];
				for (let length = 1; length <= TRUNK; length++) {
					await thread.step(oneChannelStep("messages", trunk.slice(0, length), [trunk[length] ?? branches[0]?.[0]]));
					joints.push(thread.config);
				}
				let total = 0;
				await forEachInTurns(branches, async (branch, i) => {
					const at = jointOf(i);
					thread.goBackTo(joints[at] as RunnableConfig, at);
					for (let length = 1; length <= BRANCH; length++) {
						const messages = [...trunk.slice(0, at + 1), ...branch.slice(0, length)];
						total += await thread.step(oneChannelStep("messages", messages, [branch[length]]));
					}
					tips.push(thread.config);
				});
				return { put: total / (branches.length * BRANCH) };
			},
			async (saver) => {
				const get = await timeEach(tips, async (tip, i) => {
					const found = (await saver.getTuple(tip))?.checkpoint.channel_values.messages as BaseMessage[];
					check(found.length === jointOf(i) + 1 + BRANCH, `branch ${i} has ${found.length} messages`);
					check(found.at(-1)?.id === branches[i]?.[BRANCH - 1]?.id, `branch ${i} ends in another message`);
				});
				const list = await timeReads(async () => {
					let found = 0;
					for await (const _ of saver.list({ configurable: { thread_id: "tree" } }, { limit: 50 })) found++;
					check(found === 50, `${found} checkpoints were listed instead of 50`);
				});
				return { get, list };
			},
		);
	},
};

/** Where in the trunk a branch begins: mostly near its end. */
function jointOf(branch: number): number {
	return TRUNK - 1 - (branch % 20);
}
