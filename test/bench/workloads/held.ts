import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { heldBytes } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { openSaver } from "../savers.ts";
import { check, type Stage, type Workload } from "../workload.ts";

const MESSAGES = 16;
const threadsOf = ({ quick }: Stage) => (quick ? 50 : 10_000);

/** A server that has been up for a long time: what it holds in memory after so many threads. */
export const held: Workload = {
	name: "held",
	title: "10,000 threads in one process",
	backends: ["sqlite", "memory"],
	measures: { bytesHeld: { title: "bytes held", only: "memory" } },
	async run(stage) {
		// The official SqliteSaver has no cache.
		if (stage.side === "official" && stage.backend === "sqlite") return { bytesHeld: 0 };
		const messages = writeMessages(MESSAGES + 1);
		const before = await heldBytes();
		const { saver, close } = openSaver(stage);
		for (let i = 0; i < threadsOf(stage); i++) {
			const thread = new DirectThread(saver, `thread-${i}`, i);
			for (const length of [MESSAGES / 2, MESSAGES])
				await thread.step(oneChannelStep("messages", messages.slice(0, length), [messages[length]]));
			await saver.getTuple(thread.config);
		}
		const bytesHeld = (await heldBytes()) - before;
		const tuple = await saver.getTuple({ configurable: { thread_id: "thread-7" } });
		const found = tuple?.checkpoint.channel_values.messages as BaseMessage[];
		check(found.length === MESSAGES, "a thread has lost messages");
		await close();
		return { bytesHeld };
	},
};
