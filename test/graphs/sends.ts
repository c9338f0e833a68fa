import { HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, END, Send, START, StateGraph } from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const MapReduce = Annotation.Root({
	topics: Annotation<string[]>(),
	jokes: Annotation<string[]>({ reducer: (jokes, more) => jokes.concat(more), default: () => [] }),
	best: Annotation<string>(),
});

function mapReduce(bench: Bench, write: (input: { topic: string }) => Partial<typeof MapReduce.State>) {
	return new StateGraph(MapReduce)
		.addNode("plan", ({ topics }) => ({ topics: topics.map((topic) => `${topic}!`) }))
		.addNode("write", write as never)
		.addNode("choose", ({ jokes }) => ({ best: jokes.join("|") }))
		.addEdge(START, "plan")
		.addConditionalEdges("plan", ({ topics }) => topics.map((topic) => new Send("write", { topic })), ["write"])
		.addEdge("write", "choose")
		.addEdge("choose", END)
		.compile({ checkpointer: bench.saver });
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `topic ${at}`);

export default [
	scenario("twenty tasks are sent out and their results gathered", async (bench) => {
		const graph = mapReduce(bench, ({ topic }) => ({ jokes: [`about ${topic}`] }));
		await bench.run(graph, { topics: numbered(20) }, thread("t"));
		await bench.run(graph, { topics: numbered(3) }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("some of the tasks sent out fail and are run again when resumed", async (bench) => {
		const runs: string[] = [];
		const graph = mapReduce(bench, ({ topic }) => {
			runs.push(topic);
			const failing = topic.includes("2") && runs.filter((one) => one === topic).length === 1;
			if (failing) throw new Error(`no joke about ${topic}`);
			return { jokes: [`about ${topic}`] };
		});
		await bench.run(graph, { topics: numbered(4) }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		bench.note("runs", runs);
		await bench.survey(graph, thread("t"));
	}),

	scenario("a task sent out sends out more, with messages as arguments", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("start", say("start"))
			.addNode(
				"fan",
				() => new Command({ update: { log: ["fan"] }, goto: [1, 2, 3].map((n) => new Send("leaf", { n })) }),
				{
					ends: ["leaf"],
				},
			)
			.addNode(
				"leaf",
				((input: { n: number; said?: HumanMessage }) => {
					const log = [`leaf ${input.n} ${input.said?.content ?? ""}`];
					const said = new HumanMessage({ id: `m${input.n}`, content: "from a leaf" });
					return input.n < 3
						? new Command({ update: { log }, goto: new Send("leaf", { n: input.n + 2, said }) })
						: { log };
				}) as never,
				{ ends: ["leaf"] },
			)
			.addEdge(START, "start")
			.addEdge("start", "fan")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("tasks sent out stop before they run and go on later", async (bench) => {
		const graph = mapReduce(bench, ({ topic }) => ({ jokes: [`about ${topic}`] }));
		await bench.run(graph, { topics: numbered(3) }, { ...thread("t"), interruptBefore: ["write"] });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("tasks are sent out from the start, beside an ordinary node", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("plain", say("plain"))
			.addNode("sent", ((input: { words: string }) => ({ log: [input.words] })) as never)
			.addConditionalEdges(START, () => ["plain", new Send("sent", { words: "x" }), new Send("sent", { words: "y" })], [
				"plain",
				"sent",
			])
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, { log: ["again"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
