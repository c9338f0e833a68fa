import { Annotation, Send, START, StateGraph } from "@langchain/langgraph";
import { timeReads } from "../measure.ts";
import { Random } from "../random.ts";
import { timeTurns } from "../reference-saver.ts";
import { writeText } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { check, EQUAL_TURN, type Saver, type Workload } from "../workload.ts";

/** Several threads, so that there are more turns to tell the time by and none of them is longer. */
const threads = ["first", "second"].map((name) => ({ configurable: { thread_id: name } }));

const State = Annotation.Root({
	topics: Annotation<string[]>,
	topic: Annotation<string>,
	findings: Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
});

function compileResearch(checkpointer: Saver) {
	return new StateGraph(State)
		.addNode("research", ({ topic }: typeof State.State) => ({ findings: [`${topic}: ${topic.repeat(4)}`] }))
		.addConditionalEdges(START, ({ topics }) => topics.map((topic) => new Send("research", { topic })), ["research"])
		.compile({ checkpointer });
}

/** A hundred tasks at once, each of which stores its own writes. */
export const fanOut: Workload = {
	name: "fan-out",
	title: "Send to 100 tasks",
	rounds: { sqlite: 1, memory: 3, postgres: 2 },
	warmUpMs: 1500,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		saver: { title: "time per turn spent in the saver" },
		turn: { title: "whole turn", target: EQUAL_TURN },
		get: { title: "getState" },
		bytes: { title: "bytes" },
	},
	async run(stage) {
		const [tasks, turns] = stage.quick ? [100, 2] : [100, 20];
		const random = new Random(51);
		const topics = Array.from({ length: tasks }, () => writeText(random, 80));
		return measureOn(
			stage,
			(saver) =>
				timeTurns(saver, turns * threads.length, (saver) => {
					const graph = compileResearch(saver);
					return (turn) => graph.invoke({ topics }, threads[Math.floor(turn / turns)]);
				}),
			async (saver) => {
				const graph = compileResearch(saver);
				const [first] = threads as [(typeof threads)[0]];
				for (const thread of threads) {
					const { findings } = (await graph.getState(thread)).values as typeof State.State;
					check(findings.length === tasks * turns, `${findings.length} findings of ${tasks * turns}`);
				}
				return { get: await timeReads(() => graph.getState(first)) };
			},
		);
	},
};
