import { HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { END, interrupt, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const chain = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("a", say("a"))
		.addNode("b", say("b"))
		.addNode("c", say("c"))
		.addEdge(START, "a")
		.addEdge("a", "b")
		.addEdge("b", "c")
		.compile({ checkpointer: bench.saver });

/** Siblings in one superstep, one of which asks: the others finish, the superstep does not. */
const halfway = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("done", say("done"))
		.addNode("asks", () => ({ log: [`asked ${interrupt("well?")}`] }))
		.addNode("also", say("also"))
		.addNode("next", say("next"))
		.addEdge(START, "done")
		.addEdge(START, "asks")
		.addEdge(START, "also")
		.addEdge("done", "next")
		.addEdge("asks", "next")
		.compile({ checkpointer: bench.saver });

export default [
	scenario("the state is updated as the last node and as another one, and the run goes on", async (bench) => {
		const graph = chain(bench);
		await bench.run(graph, { log: ["in"] }, { ...thread("t"), interruptBefore: ["b"] });
		await bench.update(graph, thread("t"), { log: ["as the last"], facts: { by: ["hand"] } });
		await bench.peek(graph, thread("t"));
		await bench.update(graph, thread("t"), { log: ["as b"] }, "b");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.update(graph, thread("t"), { log: ["after the end"] }, "a");
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"updates that can't be applied change nothing",
		async (bench) => {
			const graph = chain(bench);
			await bench.update(graph, thread("t"), { log: ["nobody"] });
			await bench.update(graph, thread("t"), null, "__copy__");
			await bench.run(graph, { log: ["in"] }, thread("t"));
			await bench.update(graph, thread("t"), { log: ["unknown"] }, "no such node");
			await bench.update(graph, thread("t"), {}, "__input__");
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async"] },
	),

	scenario("a thread begins with an update", async (bench) => {
		const graph = chain(bench);
		await bench.update(graph, thread("as a"), { log: ["first"] }, "a");
		await bench.peek(graph, thread("as a"));
		await bench.run(graph, null, thread("as a"));
		await bench.survey(graph, thread("as a"));
		await bench.update(graph, thread("as start"), { log: ["first"] }, START);
		await bench.run(graph, null, thread("as start"));
		await bench.survey(graph, thread("as start"));
		await bench.update(graph, thread("as nothing"), null);
		await bench.run(graph, { log: ["in"] }, thread("as nothing"));
		await bench.survey(graph, thread("as nothing"));
	}),

	scenario("an update of null makes a checkpoint of the same state", async (bench) => {
		const graph = chain(bench);
		await bench.run(graph, { log: ["in"] }, { ...thread("t"), interruptAfter: ["a"] });
		await bench.update(graph, thread("t"), null);
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.update(graph, thread("t"), null);
		await bench.survey(graph, thread("t"));
	}),

	scenario("a waiting thread is ended by an update as the end", async (bench) => {
		const graph = halfway(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.update(graph, { ...thread("t"), metadata: { reason: "gave up", score: 3 } }, null, END);
		await bench.peek(graph, thread("t"));
		await bench.history(graph, thread("t"), { filter: { reason: "gave up" } });
		await bench.history(graph, thread("t"), { filter: { score: 3, source: "update" } });
		await bench.run(graph, { log: ["again"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"a checkpoint is copied, and the copy runs on",
		async (bench) => {
			const graph = chain(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const { config } = await bench.before(graph, thread("t"), "b");
			const copy = await bench.update(graph, config, null, "__copy__");
			await bench.state(graph, copy);
			await bench.peek(graph, thread("t"));
			await bench.run(graph, null, copy);
			await bench.peek(graph, thread("t"));
			const first = (await bench.history(graph, thread("t"))).at(-1);
			await bench.update(graph, first?.config ?? {}, null, "__copy__");
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async", "sync"] },
	),

	scenario("a checkpoint is copied together with new results for its tasks", async (bench) => {
		const graph = halfway(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		const { config } = await bench.state(graph, thread("t"));
		const updates = [
			[{ log: ["done, by hand"] }, "done"],
			[{ log: ["answered, by hand"] }, "asks"],
		];
		await bench.update(graph, config, updates, "__copy__");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("an update as input starts the graph over", async (bench) => {
		const graph = chain(bench);
		await bench.update(graph, thread("t"), { log: ["input"] }, "__input__");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.update(graph, thread("t"), { log: ["more input"], facts: { x: 1 } }, "__input__");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a thread is built from a list of supersteps", async (bench) => {
		const graph = halfway(bench);
		await bench.attempt("bulkUpdateState", () =>
			graph.bulkUpdateState(thread("t"), [
				{ updates: [{ values: { log: ["in"] }, asNode: "__input__" }] },
				{
					updates: [
						{ values: { log: ["done 1"] }, asNode: "done" },
						{ values: { log: ["asks 1"] }, asNode: "asks" },
					],
				},
				{ updates: [{ values: { log: ["next 1"] }, asNode: "next" }] },
				{ updates: [{ values: null }] },
			]),
		);
		await bench.peek(graph, thread("t"));
		await bench.run(graph, { log: ["on"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a half-finished superstep is updated without naming the checkpoint", async (bench) => {
		const graph = halfway(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.update(graph, thread("t"), { log: ["by hand"] }, "asks");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a half-finished superstep is updated as a node of another superstep", async (bench) => {
		const graph = halfway(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.update(graph, thread("t"), { log: ["skipped"] }, "next");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a half-finished superstep is updated at its checkpoint", async (bench) => {
		const graph = halfway(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		const { config } = await bench.state(graph, thread("t"));
		await bench.update(graph, config, { log: ["by hand"] }, "asks");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("an update whose node sends out tasks leaves them to be run", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("plan", say("plan"))
			.addNode("work", ((input: { words: string }) => ({ log: [input.words] })) as never)
			.addEdge(START, "plan")
			.addConditionalEdges("plan", ({ log }) => log.map((words) => new Send("work", { words: `did ${words}` })), [
				"work",
			])
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, { ...thread("t"), interruptBefore: ["plan"] });
		await bench.update(graph, thread("t"), { log: ["planned by hand"] }, "plan");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"messages are added, edited and removed by updates",
		async (bench) => {
			const graph = new StateGraph(MessagesAnnotation)
				.addNode("reply", ({ messages }) => ({ messages: [{ role: "ai", content: `${messages.length}`, id: "r" }] }))
				.addEdge(START, "reply")
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { messages: [new HumanMessage({ id: "h", content: "hi" })] }, thread("t"));
			await bench.update(graph, thread("t"), { messages: [new HumanMessage({ id: "h", content: "hi, edited" })] });
			await bench.update(graph, thread("t"), { messages: [new HumanMessage({ content: "no id" })] });
			await bench.update(graph, thread("t"), { messages: [new RemoveMessage({ id: "r" })] });
			await bench.peek(graph, thread("t"));
			await bench.run(graph, { messages: [new HumanMessage({ id: "h2", content: "bye" })] }, thread("t"));
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async"] },
	),

	scenario(
		"a checkpoint is named without its namespace",
		async (bench) => {
			const graph = chain(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const { config } = await bench.before(graph, thread("t"), "b");
			const named = thread("t", { checkpoint_id: config.configurable?.checkpoint_id });
			await bench.state(graph, named);
			await bench.update(graph, named, { log: ["by hand"] }, "a");
			await bench.survey(graph, thread("t"));
		},
		{
			durabilities: ["async"],
		},
	),
];
