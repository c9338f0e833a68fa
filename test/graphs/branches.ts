import { END, START, StateGraph } from "@langchain/langgraph";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

export default [
	scenario("conditional edges choose by the state, from the start on", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("even", say("even"))
			.addNode("odd", say("odd"))
			.addNode("rest", say("rest"))
			.addConditionalEdges(START, ({ log }) => (log.length % 2 ? "odd" : "even"))
			.addConditionalEdges("even", () => "go", { go: "rest", stop: END })
			.addConditionalEdges("odd", ({ log }) => (log.length > 3 ? ["rest", "even"] : [END]))
			.compile({ checkpointer: bench.saver });
		for (const words of [["a"], ["b"], ["c", "d"], ["e"]]) await bench.run(graph, { log: words }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a loop meets the recursion limit and goes on from there", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("step", say("step"))
			.addNode("check", say("check"))
			.addEdge(START, "step")
			.addEdge("step", "check")
			.addConditionalEdges("check", ({ log }) => (log.length < 8 ? "step" : END))
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: [] }, { ...thread("t"), recursionLimit: 4 });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a node waits for two others that finish at different steps", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("short", say("short"))
			.addNode("long1", say("long1"))
			.addNode("long2", say("long2"))
			.addNode("join", say("join"))
			.addEdge(START, "short")
			.addEdge(START, "long1")
			.addEdge("long1", "long2")
			.addEdge(["short", "long2"], "join")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["one"] }, thread("t"));
		await bench.run(graph, { log: ["two"] }, { ...thread("t"), interruptBefore: ["long2"] });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a deferred node runs when everything else is done", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("a", say("a"))
			.addNode("b", say("b"))
			.addNode("b2", say("b2"))
			.addNode("final", say("final"), { defer: true })
			.addEdge(START, "a")
			.addEdge(START, "b")
			.addEdge("b", "b2")
			.addEdge("a", "final")
			.addEdge("b2", "final")
			.addEdge("final", END)
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["one"] }, thread("t"));
		await bench.run(graph, { log: ["two"] }, { ...thread("t"), interruptBefore: ["final"] });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a deferred node waits for a join, with several sources", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("a", say("a"))
			.addNode("b", say("b"))
			.addNode("slow", say("slow"))
			.addNode("join", say("join"), { defer: true })
			.addEdge(START, "a")
			.addEdge(START, "b")
			.addEdge("b", "slow")
			.addEdge(["a", "b"], "join")
			.compile({ checkpointer: bench.saver });
		for (const word of ["one", "two"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a run with nothing to do and a run with an empty input leave the thread readable", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("a", say("a"))
			.addEdge(START, "a")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, null, thread("t"));
		await bench.run(graph, { log: ["one"] }, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.run(graph, {}, thread("t"));
		await bench.run(graph, { unknown: 1 }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
