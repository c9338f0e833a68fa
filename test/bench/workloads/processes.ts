import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import type { Job } from "../job.ts";
import { writeMessages } from "../samples.ts";
import { diskBytes, openSaver } from "../savers.ts";
import { check, type Stage, type Workload } from "../workload.ts";

const PROCESSES = 4;
const stepsOf = ({ quick }: Stage) => (quick ? 10 : 200);
const nameOf = (index: number) => `process-${index}`;

/** Several processes that store to one file at the same time, each on a thread of its own. */
export const processes: Workload = {
	name: "processes",
	title: "four processes on one file",
	rounds: 3,
	backends: ["sqlite"],
	measures: { put: { title: "put + putWrites" }, bytes: { title: "bytes" } },
	async run(stage) {
		const steps = stepsOf(stage);
		const { saver, close } = openSaver(stage);
		await saver.getTuple({ configurable: { thread_id: "none" } });
		const parts = Array.from({ length: PROCESSES }, (_, index) => startPart(stage, index));
		await Promise.all(parts.map((part) => once(part, "message")));
		const start = performance.now();
		for (const part of parts) part.send("go");
		await Promise.all(parts.map(finish));
		const elapsed = performance.now() - start;
		for (let index = 0; index < PROCESSES; index++) {
			const tuple = await saver.getTuple({ configurable: { thread_id: nameOf(index) } });
			const found = tuple?.checkpoint.channel_values.messages as BaseMessage[];
			check(found?.length === steps, `${found?.length} messages instead of ${steps}`);
		}
		await close();
		return { put: elapsed / (PROCESSES * steps), bytes: diskBytes(stage) };
	},
	async part(stage, index) {
		const messages = writeMessages(stepsOf(stage) + 1);
		const { saver, close } = openSaver(stage);
		await saver.getTuple({ configurable: { thread_id: "none" } });
		const thread = new DirectThread(saver, nameOf(index), index);
		process.send?.("ready");
		await once(process, "message");
		for (let length = 1; length < messages.length; length++)
			await thread.step(oneChannelStep("messages", messages.slice(0, length), [messages[length]]));
		await close();
		process.disconnect();
	},
};

function startPart(stage: Stage, index: number): ChildProcess {
	const job: Job = { workload: "processes", phase: "part", part: index, stage };
	return fork(process.argv[1] as string, [JSON.stringify(job)], { execArgv: ["--expose-gc"] });
}

async function finish(part: ChildProcess): Promise<void> {
	const [code] = await once(part, "exit");
	check(code === 0, "one of the processes failed");
}
