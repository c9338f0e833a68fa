import { HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Command, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const MODES = ["values", "updates", "messages", "checkpoints", "tasks", "debug", "custom"];

/** A subgraph that asks, a node beside it, and one after both. */
function nested(bench: Bench) {
	const inner = new StateGraph(LogState)
		.addNode("one", say("inner one"))
		.addNode("two", () => ({ log: [`inner ${interrupt("well?")}`] }))
		.addEdge(START, "one")
		.addEdge("one", "two")
		.compile();
	return new StateGraph(LogState)
		.addNode("inner", inner)
		.addNode("outer", (state, config) => {
			config.writer?.({ "on the side": state.log.length });
			return say("outer")(state);
		})
		.addEdge(START, "inner")
		.addEdge("inner", "outer")
		.compile({ checkpointer: bench.saver });
}

export default [
	...MODES.map((streamMode) =>
		scenario(
			`a run is streamed as ${streamMode}, asked and resumed, with its subgraph and without`,
			async (bench) => {
				for (const subgraphs of [true, false]) {
					const [graph, config] = [nested(bench), { ...thread(`${subgraphs}`), streamMode, subgraphs }];
					await bench.stream(graph, { log: ["in"] }, config);
					await bench.stream(graph, new Command({ resume: "yes" }), config);
				}
			},
			{ durabilities: ["async"] },
		),
	),

	scenario("a run is streamed in several modes at once", async (bench) => {
		const graph = nested(bench);
		const config = { ...thread("t"), streamMode: ["values", "updates", "checkpoints", "tasks"], subgraphs: true };
		await bench.stream(graph, { log: ["in"] }, config);
		await bench.stream(graph, new Command({ resume: "yes" }), config);
		await bench.survey(graph, thread("t"));
	}),

	scenario("the words of a model are streamed while the thread is kept", async (bench) => {
		const model = new FakeListChatModel({ responses: ["Hello there", "Good bye"] });
		const graph = new StateGraph(MessagesAnnotation)
			.addNode("reply", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
			.addEdge(START, "reply")
			.compile({ checkpointer: bench.saver });
		for (const [id, content] of Object.entries({ a: "Hi", b: "Bye" })) {
			const input = { messages: [new HumanMessage({ id, content })] };
			await bench.stream(graph, input, { ...thread("t"), streamMode: ["messages", "values"] });
		}
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"a stream is left before its end",
		async (bench) => {
			const graph = nested(bench);
			for await (const chunk of await graph.stream(
				{ log: ["in"] },
				{ ...thread("t"), streamMode: "updates", durability: "sync" },
			)) {
				bench.note("first", chunk);
				break;
			}
			await bench.run(graph, { log: ["again"] }, thread("t"));
			bench.fact("waits", (await bench.state(graph, thread("t"))).next);
		},
		{ racy: true, durabilities: ["sync"] },
	),
];
