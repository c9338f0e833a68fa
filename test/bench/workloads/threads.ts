import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { timeEach } from "../measure.ts";
import { writeMessages } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { check, EQUAL_TURN, type Workload } from "../workload.ts";

/** A server that answers many people at the same time, in one process. */
export const threads: Workload = {
	name: "threads",
	title: "64 threads at once",
	rounds: { memory: 2, postgres: 2 },
	warmUpMs: 1000,
	backends: ["sqlite", "memory", "postgres"],
	measures: { turn: { title: "turn", target: EQUAL_TURN }, bytes: { title: "bytes" } },
	async run(stage) {
		const [count, turns] = stage.quick ? [8, 2] : [64, 12];
		const texts = writeMessages(2 * turns).map(({ content }) => content as string);
		const configs = Array.from({ length: count }, (_, i) => ({ configurable: { thread_id: `person-${i}` } }));
		return measureOn(
			stage,
			async (saver) => {
				const graph = new StateGraph(MessagesAnnotation)
					.addNode("model", ({ messages }) => ({ messages: [new AIMessage(texts[messages.length] as string)] }))
					.addEdge(START, "model")
					.compile({ checkpointer: saver });
				const turn = await timeEach(Array.from({ length: turns }), (_, turn) => {
					const question = texts[2 * turn] as string;
					return Promise.all(configs.map((config) => graph.invoke({ messages: [new HumanMessage(question)] }, config)));
				});
				return { turn: turn / count };
			},
			async (saver) => {
				for (const config of configs) {
					const found = (await saver.getTuple(config))?.checkpoint.channel_values.messages as BaseMessage[];
					check(found.length === 2 * turns, `${found.length} messages instead of ${2 * turns}`);
					check(found.at(-1)?.content === texts.at(-1), "the last message is another one");
				}
				return {};
			},
		);
	},
};
