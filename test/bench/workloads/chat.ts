import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { measureLimit } from "../limit.ts";
import { countSlowly, percentile, timeAndBlock, timeReads } from "../measure.ts";
import { plainMessage, writeMessages } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Measures, type Saver, type Stage, type Workload } from "../workload.ts";

const thread = { configurable: { thread_id: "chat" } };
/** As many steps at the end are never left out, so that a listing finds what it would find. */
const LISTED = 50;
/**
 * Official savers store the whole state at each step, whatever was stored before, so that one step in 32 tells what
 * the others cost. All 4,000 would take them five minutes and as many gigabytes.
 */
const SAMPLE = 32;
const SAMPLED_FROM = 4000;

/** Savers that are filled alike, by length, where one takes little more than what is measured besides. */
const ALIKE = new Map([
	[250, 8],
	[1000, 4],
]);
/** One more tells what official ones take, beside which what V8 does is nothing. */
const OFFICIAL_ALIKE = 2;

/** How many messages there are before the step, and how many steps it stands for. */
interface Stop {
	readonly length: number;
	readonly weight: number;
}

function planStops({ side, full }: Stage, messages: number): Stop[] {
	const sample = side === "official" && messages >= SAMPLED_FROM && !full ? SAMPLE : 1;
	const stops: Stop[] = [];
	for (let length = 1; length <= messages; length++) {
		if (length > messages - LISTED) stops.push({ length, weight: 1 });
		else if (length % sample === 0) stops.push({ length, weight: sample });
	}
	return stops;
}

/** Appends one message per step. Returns the mean time of a step and that of the slowest in a hundred. */
export async function fillChat(saver: Saver, messages: readonly BaseMessage[], stops: readonly Stop[]) {
	const chat = new DirectThread(saver, "chat");
	const times: number[] = [];
	let total = 0;
	await forEachInTurns(stops, async ({ length, weight }) => {
		const elapsed = await chat.step(oneChannelStep("messages", messages.slice(0, length), [messages[length]]));
		total += elapsed * weight;
		times.push(elapsed);
	});
	return { put: total / stops.reduce((sum, { weight }) => sum + weight, 0), slow: percentile(times, 99) };
}

export async function checkHead(saver: Saver, messages: readonly BaseMessage[]): Promise<void> {
	const found = (await saver.getTuple(thread))?.checkpoint.channel_values.messages as BaseMessage[];
	check(found?.length === messages.length, `${found?.length} messages instead of ${messages.length}`);
	check(found.at(-1)?.id === messages.at(-1)?.id, "the last message is another one");
	check(found[0]?.content === messages[0]?.content, "the first message has other content");
}

async function readChat(saver: Saver, messages: readonly BaseMessage[]): Promise<Measures> {
	await checkHead(saver, messages);
	const get = await timeReads(() => saver.getTuple(thread));
	const blocks: number[] = [];
	const list = await timeReads(async () => {
		const limit = Math.min(LISTED, messages.length);
		const { block } = await timeAndBlock(async () => {
			const count = await countSlowly(saver.list(thread, { limit }));
			check(count === limit, `${count} checkpoints were listed instead of ${limit}`);
		});
		blocks.push(block);
	});
	return { get, list, block: Math.min(...blocks) };
}

function chat(size: number, quickSize: number, rounds: number, isTargeted = false): Workload {
	const sizeOf = ({ quick }: Stage) => (quick ? quickSize : size);
	return {
		name: `chat-${size}`,
		title: `chat, ${size.toLocaleString("en")} messages`,
		rounds,
		warmUpMs: 500,
		backends: ["sqlite", "memory", "postgres"],
		measures: {
			bytes: { title: "bytes", target: isTargeted ? { sqlite: 240, memory: 100, postgres: 50 } : {} },
			put: { title: "put + putWrites", target: isTargeted ? { sqlite: 7, memory: 6, postgres: 3 } : {} },
			get: { title: "getTuple of the head", target: isTargeted ? { sqlite: 20, memory: 20, postgres: 5 } : {} },
			list: { title: "list 50", target: isTargeted ? { sqlite: 25, memory: 25, postgres: 5 } : {} },
			slow: { title: "put + putWrites, the slowest of 100" },
			block: { title: "longest block by list 50" },
		},
		async run(stage) {
			const messages = writeMessages(sizeOf(stage) + 1);
			const stored = messages.slice(0, -1);
			const stops = planStops(stage, stored.length);
			const alike = ALIKE.get(size);
			const measures = await measureOn(
				stage,
				(saver) => fillChat(saver, messages, stops),
				(saver) => readChat(saver, stored),
				alike && (stage.side === "official" ? OFFICIAL_ALIKE : alike),
			);
			return { ...measures, bytes: (measures.bytes as number) * inflation(stops) };
		},
		async limit(stage) {
			const messages = writeMessages(sizeOf(stage)).map(plainMessage);
			return measureLimit(stage, messages, messages);
		},
	};
}

/** How much larger the store would be with the steps that were left out, each as large as its state. */
function inflation(stops: readonly Stop[]): number {
	const sum = (weigh: (stop: Stop) => number) => stops.reduce((total, stop) => total + weigh(stop), 0);
	return sum(({ length, weight }) => length * weight) / sum(({ length }) => length);
}

export const chats = [chat(250, 20, 1), chat(1000, 40, 1, true), chat(4000, 60, 1)];
