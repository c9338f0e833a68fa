import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, type Step } from "../direct-thread.ts";
import { measureLimit } from "../limit.ts";
import { timeEach } from "../measure.ts";
import { plainMessage, writeMessages } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Saver, type Stage, type Workload } from "../workload.ts";

/** Checkpoints of each thread. */
export const STEPS = 5;
const MESSAGE_CHARACTERS = 80;

const threadsOf = ({ quick }: Stage) => (quick ? 20 : 1000);

/** A thread of a few short messages: one for each step, and one that the last step's task writes. */
export interface Conversation {
	readonly thread: number;
	readonly config: { readonly configurable: { readonly thread_id: string } };
	readonly messages: readonly BaseMessage[];
}

/** @param first the number of the first thread, where others were written before */
export function writeConversations(count: number, first = 0): Conversation[] {
	return Array.from({ length: count }, (_, i) => ({
		thread: first + i,
		config: { configurable: { thread_id: `customer-${first + i}` } },
		messages: writeMessages(STEPS + 1, 100 + first + i, MESSAGE_CHARACTERS),
	}));
}

/** Puts one step of every conversation, then the next of every one. Returns how long all puts took together. */
export async function putConversations(saver: Saver, conversations: readonly Conversation[]): Promise<number> {
	const threads = conversations.map(({ thread, config }) => {
		return new DirectThread(saver, config.configurable.thread_id, thread);
	});
	let total = 0;
	for (let done = 1; done <= STEPS; done++)
		await forEachInTurns(threads, async (thread, i) => {
			total += await thread.step(writeStep((conversations[i] as Conversation).messages, done));
		});
	return total;
}

/** Reads the newest checkpoint of a conversation whose steps have all been put. */
export async function readConversation(saver: Saver, { config, messages }: Conversation): Promise<void> {
	const found = (await saver.getTuple(config))?.checkpoint.channel_values.messages as BaseMessage[];
	const thread = config.configurable.thread_id;
	check(found.at(-1)?.id === messages[STEPS - 1]?.id, `${thread} has another last message`);
}

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
		const conversations = writeConversations(threadsOf(stage));
		return measureOn(
			stage,
			async (saver) => ({ put: (await putConversations(saver, conversations)) / (conversations.length * STEPS) }),
			async (saver) => {
				const get = await timeEach(conversations, (conversation) => readConversation(saver, conversation));
				const list = await timeEach(conversations, async ({ config }) => {
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
