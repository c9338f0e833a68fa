import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, type Step } from "../direct-thread.ts";
import { measureLimit } from "../limit.ts";
import { timeEach } from "../measure.ts";
import { plainMessage, writeMessages } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Stage, type Workload } from "../workload.ts";

const STEPS = 5;
const MESSAGE_CHARACTERS = 80;

const threadsOf = ({ quick }: Stage) => (quick ? 20 : 1000);
const nameOf = (thread: number) => `customer-${thread}`;

/** What a short conversation holds after so many steps. */
function writeStep(messages: readonly BaseMessage[], done: number): Step {
	const values = { messages: messages.slice(0, done), topic: "returns", attempts: done };
	return {
		values,
		changed: ["messages", "attempts"],
		writes: [
			["messages", [messages[done]]],
			["attempts", done + 1],
		],
	};
}

/** The most usual thing of all: a few short messages, on many threads that take turns. */
export const small: Workload = {
	name: "small",
	title: "small states, 1,000 threads of 5 checkpoints",
	rounds: { sqlite: 2, postgres: 2 },
	warmUpMs: 2000,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		bytes: { title: "bytes", target: { sqlite: 1.7, postgres: 1.2 } },
		put: { title: "put + putWrites", target: { sqlite: 0.95, memory: 1.1, postgres: 1.2 } },
		get: { title: "getTuple of each head", target: { sqlite: 1.1, memory: 1.7, postgres: 1.2 } },
		list: { title: "list of each thread" },
	},
	async run(stage) {
		const count = threadsOf(stage);
		const chats = Array.from({ length: count }, (_, i) => writeMessages(STEPS + 1, 100 + i, MESSAGE_CHARACTERS));
		const configs = chats.map((_, i) => ({ configurable: { thread_id: nameOf(i) } }));
		return measureOn(
			stage,
			async (saver) => {
				const threads = chats.map((_, i) => new DirectThread(saver, nameOf(i), i));
				let total = 0;
				for (let done = 1; done <= STEPS; done++)
					await forEachInTurns(threads, async (thread, i) => {
						total += await thread.step(writeStep(chats[i] as BaseMessage[], done));
					});
				return { put: total / (count * STEPS) };
			},
			async (saver) => {
				const get = await timeEach(configs, async (config, i) => {
					const found = (await saver.getTuple(config))?.checkpoint.channel_values.messages as BaseMessage[];
					check(found.at(-1)?.id === chats[i]?.[STEPS - 1]?.id, `thread ${nameOf(i)} has another last message`);
				});
				const list = await timeEach(configs, async (config) => {
					let listed = 0;
					for await (const _ of saver.list(config)) listed++;
					check(listed === STEPS, `${listed} checkpoints were listed instead of ${STEPS}`);
				});
				return { get, list };
			},
		);
	},
	async limit(stage) {
		const chats = Array.from({ length: threadsOf(stage) }, (_, i) => writeMessages(STEPS, 100 + i, MESSAGE_CHARACTERS));
		const news = chats.flat().map((message) => ({ messages: [plainMessage(message)], attempts: 1 }));
		return measureLimit(stage, news, chats[0]?.map(plainMessage));
	},
};
