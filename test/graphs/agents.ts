import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { tool } from "@langchain/core/tools";
import { Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent, ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import type { Bench } from "../support/graph-bench.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const weather = tool(async ({ city }: { city: string }) => `sunny in ${city}`, {
	name: "weather",
	description: "The weather of a city",
	schema: z.object({ city: z.string() }),
});

const pay = tool(
	async ({ sum }: { sum: number }) => {
		const answer = interrupt<unknown, { ok: boolean }>({ action: "pay", sum });
		return answer.ok ? `paid ${sum}` : "refused";
	},
	{ name: "pay", description: "Pays a sum", schema: z.object({ sum: z.number() }) },
);

/** A model that looks up the weather twice at once, pays, and says so; then answers a second question. */
const script = () =>
	fakeModel()
		.respondWithTools([
			{ name: "weather", args: { city: "Rome" }, id: "w1" },
			{ name: "weather", args: { city: "Oslo" }, id: "w2" },
		])
		.respondWithTools([
			{ name: "pay", args: { sum: 5 }, id: "p1" },
			{ name: "weather", args: { city: "Bern" }, id: "w3" },
		])
		.respond(new AIMessage({ id: "done", content: "Paid." }))
		.respond(new AIMessage({ id: "bye", content: "You are welcome." }));

async function converse(bench: Bench, graph: Parameters<Bench["run"]>[0]): Promise<void> {
	await bench.run(graph, { messages: [new HumanMessage({ id: "h1", content: "Pay if it is sunny." })] }, thread("t"));
	await bench.state(graph, thread("t"), { subgraphs: true });
	await bench.run(graph, new Command({ resume: { ok: true } }), thread("t"));
	await bench.run(graph, { messages: [new HumanMessage({ id: "h2", content: "Thanks!" })] }, thread("t"));
	await bench.survey(graph, thread("t"));
}

export default [
	scenario(
		"a prebuilt agent calls tools side by side, one of which asks first",
		async (bench) => {
			await converse(bench, createReactAgent({ llm: script(), tools: [weather, pay], checkpointer: bench.saver }));
		},
		{ durabilities: ["sync", "exit"] },
	),

	scenario(
		"a loop of model and tools written by hand does the same",
		async (bench) => {
			const model = script();
			const graph = new StateGraph(MessagesAnnotation)
				.addNode("model", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
				.addNode("tools", new ToolNode([weather, pay]))
				.addEdge(START, "model")
				.addConditionalEdges("model", toolsCondition, ["tools", END])
				.addEdge("tools", "model")
				.compile({ checkpointer: bench.saver });
			await converse(bench, graph);
		},
		{ durabilities: ["async"] },
	),

	scenario(
		"an agent is a subgraph of another one, which hands over to it",
		async (bench) => {
			const helper = createReactAgent({ llm: script(), tools: [weather, pay], name: "helper" });
			const graph = new StateGraph(MessagesAnnotation)
				.addNode(
					"front",
					() =>
						new Command({ goto: "helper", update: { messages: [new AIMessage({ id: "f", content: "One moment." })] } }),
					{
						ends: ["helper"],
					},
				)
				.addNode("helper", helper)
				.addEdge(START, "front")
				.compile({ checkpointer: bench.saver });
			await converse(bench, graph);
		},
		{ durabilities: ["async", "exit"] },
	),
];
