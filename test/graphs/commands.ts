import { Command, END, interrupt, Overwrite, Send, START, StateGraph } from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const routed = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode(
			"route",
			({ log }) => new Command({ update: { log: ["routed"] }, goto: log.length % 2 ? "odd" : ["even", "odd"] }),
			{
				ends: ["odd", "even"],
			},
		)
		.addNode("odd", say("odd"))
		.addNode("even", say("even"))
		.addEdge(START, "route")
		.compile({ checkpointer: bench.saver });

export default [
	scenario("a node updates the state and chooses what comes next in one", async (bench) => {
		const graph = routed(bench);
		for (const word of ["one", "two", "three"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a thread is sent on by a command from outside", async (bench) => {
		const graph = routed(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(
			graph,
			new Command({ goto: "even", update: { log: ["by command"], facts: { by: "command" } } }),
			thread("t"),
		);
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ goto: [new Send("odd", { log: ["only me"] }), "even"] }), thread("t"));
		await bench.run(graph, new Command({ update: { log: ["just an update"] } }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a thread begins with a command", async (bench) => {
		const graph = routed(bench);
		await bench.run(graph, new Command({ update: { log: ["first"] } }), thread("update"));
		await bench.survey(graph, thread("update"));
		await bench.run(graph, new Command({ goto: "even", update: { log: ["first"] } }), thread("goto"));
		await bench.peek(graph, thread("goto"));
		await bench.run(graph, { log: ["then"] }, thread("goto"));
		await bench.survey(graph, thread("goto"));
		await bench.run(graph, new Command({ resume: "nobody asked" }), thread("resume"));
		await bench.peek(graph, thread("resume"));
		await bench.run(graph, { log: ["then"] }, thread("resume"));
		await bench.survey(graph, thread("resume"));
	}),

	scenario("a waiting node is answered, updated and sent elsewhere by one command", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("ask", () => ({ log: [`answer ${interrupt("well?")}`] }), { ends: ["extra"] })
			.addNode("extra", say("extra"))
			.addEdge(START, "ask")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, new Command({ resume: "yes", update: { log: ["meanwhile"] }, goto: "extra" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a value is overwritten past its reducer", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("add", say("add"))
			.addNode("reset", () => ({ log: new Overwrite(["reset"]), facts: new Overwrite({ only: true }) }))
			.addNode("more", say("more"))
			.addEdge(START, "add")
			.addEdge("add", "reset")
			.addEdge("reset", "more")
			.compile({ checkpointer: bench.saver });
		for (const word of ["in", "again"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.update(graph, thread("t"), { log: new Overwrite(["from outside"]) }, "add");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, { ...thread("t"), interruptBefore: ["more"] });
		await bench.survey(graph, thread("t"));
	}),

	scenario("commands, sends and overwrites are kept as plain state", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("hold", () => ({ facts: { send: new Send("x", { deep: [1] }), text: "ok" } }))
			.addNode("look", ({ facts }) => ({ log: [Object.keys(facts).join()] }))
			.addEdge(START, "hold")
			.addEdge("hold", "look")
			.addEdge("look", END)
			.compile({ checkpointer: bench.saver });
		for (const word of ["in", "again"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
