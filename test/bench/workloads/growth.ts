import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { median, timeReads } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { openSaver, storedBytes } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Measures, type Stage, type Workload } from "../workload.ts";

/** Lengths at which a thread is looked at. */
const LENGTHS = [125, 250, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000];
const QUICK_LENGTHS = [10, 20, 30];
/** Official savers take one step in so many, see `chat.ts`; the size is reckoned from it. */
const SAMPLE = 16;
/** The time of a step is that of the last few before the length. */
const TIMED_STEPS = 50;

/** A chat looked at while it grows. Measures `bytes 250`, `put 250`, `get 250`, `bytes 500`, ... */
export const growth: Workload = {
	name: "growth",
	title: "growth of a chat",
	backends: ["sqlite", "memory"],
	measures: {},
	async run(stage) {
		const lengths = stage.quick ? QUICK_LENGTHS : LENGTHS;
		const messages = writeMessages(Math.max(...lengths) + 1);
		const measures: Measures = {};
		const before = await storedBytes(stage);
		const { saver, close } = openSaver(stage);
		const chat = new DirectThread(saver, "chat");
		let reached = 0;
		let stored = 0;
		let bytes = 0;
		for (const length of lengths) {
			const stops = planStops(stage, reached, length);
			measures[`put ${length}`] = await grow(chat, messages, stops);
			measures[`get ${length}`] = await timeReads(async () => {
				const found = (await saver.getTuple(chat.config))?.checkpoint.channel_values.messages as BaseMessage[];
				check(found.length === length, `${found.length} messages instead of ${length}`);
			});
			const now = (await storedBytes(stage)) - before;
			bytes += ((now - stored) * (length - reached)) / stops.length;
			measures[`bytes ${length}`] = bytes;
			stored = now;
			reached = length;
		}
		await close();
		return measures;
	},
};

/** The lengths between two at which a step is taken. */
function planStops({ side, full }: Stage, from: number, to: number): number[] {
	const sample = side === "official" && to >= 1000 && !full ? SAMPLE : 1;
	const stops: number[] = [];
	for (let length = from + 1; length <= to; length++) if (length % sample === 0 || length === to) stops.push(length);
	return stops;
}

async function grow(chat: DirectThread, messages: readonly BaseMessage[], stops: readonly number[]): Promise<number> {
	const times: number[] = [];
	await forEachInTurns(stops, async (length) => {
		times.push(await chat.step(oneChannelStep("messages", messages.slice(0, length), [messages[length]])));
	});
	return median(times.slice(-TIMED_STEPS));
}
