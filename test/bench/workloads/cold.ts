import { now } from "../clock.ts";
import { writeMessages } from "../samples.ts";
import { openSaver } from "../savers.ts";
import type { Stage, Workload } from "../workload.ts";
import { checkHead, fillChat } from "./chat.ts";

const sizeOf = ({ quick }: Stage) => (quick ? 30 : 1000);

/** A process that opens the file of a long thread and goes on with it. */
export const cold: Workload = {
	name: "cold",
	title: "cold start, 1,000 messages",
	rounds: 3,
	backends: ["sqlite"],
	measures: { open: { title: "open the file and getTuple of the head" } },
	isCold: true,
	async prepare(stage) {
		const messages = writeMessages(sizeOf(stage) + 1);
		const { saver, close } = openSaver(stage);
		// What official savers stored before makes no difference to reading the head.
		const step = stage.side === "official" ? 10 : 1;
		const stops = messages.map((_, length) => ({ length, weight: 1 })).filter(({ length }) => length % step === 0);
		await fillChat(saver, messages, stops.slice(1));
		await close();
	},
	async run(stage) {
		const messages = writeMessages(sizeOf(stage));
		const start = now();
		const { saver, close } = openSaver(stage);
		await saver.getTuple({ configurable: { thread_id: "chat" } });
		const open = now() - start;
		await checkHead(saver, messages);
		await close();
		return { open };
	},
};
