import { now } from "../clock.ts";
import { time } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { type OpenSaver, openSaver } from "../savers.ts";
import type { Measures, Stage, Workload } from "../workload.ts";
import { checkAgent, startAgent } from "./agent.ts";
import { checkHead, fillChat } from "./chat.ts";
import { putConversations, readConversation, STEPS, writeConversations } from "./small.ts";

const COLD = { isCold: true, repetitions: 7, backends: ["sqlite", "memory"] } as const;

/** As often the newest checkpoint of a long thread is read: few enough that V8 has not optimized what reads it. */
const CHAT_READS = 10;

/** Opens a saver and makes its first call, which creates the tables. */
async function openCold(stage: Stage): Promise<OpenSaver & { opening: number }> {
	const start = now();
	const opened = openSaver(stage);
	await opened.saver.getTuple({ configurable: { thread_id: "none" } });
	return { ...opened, opening: now() - start };
}

/** @param repetitions the longer a process runs, the less its start varies the result */
function coldSmall(puts: number, quickPuts: number, repetitions: number): Workload {
	return {
		...COLD,
		repetitions,
		name: `cold-small-${puts}`,
		title: `cold, small states, first ${puts.toLocaleString("en")}`,
		measures: { put: { title: "put + putWrites, with opening" }, get: { title: "getTuple of a head" } },
		async run(stage): Promise<Measures> {
			const count = stage.quick ? quickPuts : puts;
			const conversations = writeConversations(count / STEPS);
			const { saver, close, opening } = await openCold(stage);
			const putting = await putConversations(saver, conversations);
			const reading = await time(async () => {
				for (let i = 0; i < STEPS; i++) for (const one of conversations) await readConversation(saver, one);
			});
			await close();
			return { put: (opening + putting) / count, get: reading / count };
		},
	};
}

const coldChat: Workload = {
	...COLD,
	name: "cold-chat-250",
	title: "cold, chat of 250 messages",
	measures: {
		put: { title: "put + putWrites, with opening" },
		get: { title: `getTuple of the head, first ${CHAT_READS}` },
	},
	async run(stage): Promise<Measures> {
		const count = stage.quick ? 20 : 250;
		const messages = writeMessages(count + 1);
		const stops = Array.from({ length: count }, (_, i) => ({ length: i + 1, weight: 1 }));
		const { saver, close, opening } = await openCold(stage);
		const { put } = await fillChat(saver, messages, stops);
		const reading = await time(async () => {
			for (let i = 0; i < CHAT_READS; i++) await checkHead(saver, messages.slice(0, count));
		});
		await close();
		return { put: put + opening / count, get: reading / CHAT_READS };
	},
};

const coldAgent: Workload = {
	...COLD,
	name: "cold-agent",
	title: "cold, agent of 20 turns",
	measures: { run: { title: "whole run" } },
	async run(stage): Promise<Measures> {
		const turns = stage.quick ? 2 : 20;
		const start = now();
		const { saver, close } = openSaver(stage);
		const takeTurn = startAgent(saver);
		for (let turn = 0; turn < turns; turn++) await takeTurn();
		const run = now() - start;
		await checkAgent(saver, turns);
		await close();
		return { run };
	},
};

/** What a script, a function or a test does in a process that has just started: nothing is compiled or cached yet. */
export const coldCalls = [coldSmall(300, 25, 7), coldSmall(2000, 50, 5), coldChat, coldAgent];
