import { writeMessages } from "../samples.ts";
import { diskBytes, openSaver } from "../savers.ts";
import type { Measures, Workload } from "../workload.ts";
import { checkHead, fillChat } from "./chat.ts";
import { putConversations, readConversation, STEPS, writeConversations } from "./small.ts";

/** The length to which SQLite lets a log grow before it copies the pages into the file: 1,000 pages of 4 kB. */
const ALLOWANCE = 4_000_000;
const PUTS = [300, 2000, 20_000];
const QUICK_PUTS = [25, 50, 100];

const OPEN = { isCold: true, backends: ["sqlite"] } as const;

const openSmall: Workload = {
	...OPEN,
	name: "open-small",
	title: "open, small states",
	measures: Object.fromEntries(
		PUTS.map((puts) => [
			`bytes ${puts}`,
			{ title: `file and log after ${puts.toLocaleString("en")} puts`, allowance: ALLOWANCE },
		]),
	),
	async run(stage): Promise<Measures> {
		const measures: Measures = {};
		const { saver, close } = openSaver(stage);
		let done = 0;
		for (const [i, puts] of PUTS.entries()) {
			const threads = (stage.quick ? (QUICK_PUTS[i] as number) : puts) / STEPS;
			const conversations = writeConversations(threads - done, done);
			await putConversations(saver, conversations);
			measures[`bytes ${puts}`] = diskBytes(stage);
			for (const conversation of conversations) await readConversation(saver, conversation);
			done = threads;
		}
		await close();
		return measures;
	},
};

const openChat: Workload = {
	...OPEN,
	name: "open-chat-1000",
	title: "open, chat of 1,000 messages",
	measures: { bytes: { title: "file and log", target: { sqlite: 50 } } },
	async run(stage): Promise<Measures> {
		const count = stage.quick ? 40 : 1000;
		const messages = writeMessages(count + 1);
		const stops = Array.from({ length: count }, (_, i) => ({ length: i + 1, weight: 1 }));
		const { saver, close } = openSaver(stage);
		await fillChat(saver, messages, stops);
		const bytes = diskBytes(stage);
		await checkHead(saver, messages.slice(0, count));
		await close();
		return { bytes };
	},
};

/** What lies on the disk while the saver is open: the file, its log, and the log's index. */
export const open = [openSmall, openChat];
