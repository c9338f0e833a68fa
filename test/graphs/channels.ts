import { Annotation, END, ReducedValue, START, StateGraph, StateSchema, UntrackedValue } from "@langchain/langgraph";
import { EphemeralValue, Topic } from "@langchain/langgraph/channels";
import { z } from "zod";
import { scenario, thread } from "../support/graph-scenario.ts";

export default [
	scenario("an untracked value is there during a run and gone after it", async (bench) => {
		const State = new StateSchema({
			kept: z.string().default("nothing"),
			secret: new UntrackedValue(z.string()),
			seen: new ReducedValue(z.array(z.string()).default([]), {
				inputSchema: z.string(),
				reducer: (seen, one) => [...seen, one],
			}),
		});
		const graph = new StateGraph(State)
			.addNode("set", () => ({ secret: "token", seen: "set" }))
			.addNode("only", () => ({ secret: "other token" }))
			.addNode("use", (state) => ({ kept: `used ${state.secret}`, seen: "use" }))
			.addEdge(START, "set")
			.addEdge("set", "only")
			.addEdge("only", "use")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { kept: "in" }, thread("t"));
		await bench.run(graph, { kept: "again", secret: "given" }, { ...thread("t"), interruptBefore: ["use"] });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("an ephemeral value lives one step, a topic collects or starts over", async (bench) => {
		const State = Annotation.Root({
			brief: () => new EphemeralValue<string>(),
			turn: () => new Topic<string>(),
			all: () => new Topic<string>({ accumulate: true }),
			unique: () => new Topic<string>({ accumulate: true, unique: true }),
		});
		const graph = new StateGraph(State)
			.addNode("a", () => ({ brief: "from a", turn: "a1", all: ["a1", "a2"], unique: ["x", "y"] }))
			.addNode("b", ({ brief, turn }) => ({ turn: `b saw ${brief} and ${turn}`, all: "b1", unique: ["y", "z"] }))
			.addNode("c", () => ({ all: "c1" }))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", "c")
			.addEdge("c", END)
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { brief: "in", all: "in" }, thread("t"));
		await bench.run(graph, { turn: "again" }, { ...thread("t"), interruptBefore: ["b"] });
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a state schema with defaults keeps channels that nobody writes", async (bench) => {
		const State = Annotation.Root({
			never: Annotation<string>(),
			filled: Annotation<number[]>({ reducer: (a, b) => [...a, ...b], default: () => [1, 2, 3] }),
			"odd name: ünïcode.and.dots": Annotation<string>(),
			count: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
		});
		const graph = new StateGraph(State)
			.addNode("step", ({ count }) => ({ count: 1, "odd name: ünïcode.and.dots": `step ${count}` }))
			.addEdge(START, "step")
			.addConditionalEdges("step", ({ count }) => (count % 3 ? "step" : END))
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { count: 0 }, thread("t"));
		await bench.run(graph, { filled: [4] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a graph is changed between two runs: channels and nodes come and go", async (bench) => {
		const before = new StateGraph(Annotation.Root({ old: Annotation<string>(), both: Annotation<string[]>() }))
			.addNode("a", ({ both }) => ({ old: "set", both: [...both, "a"] }))
			.addNode("wait", () => ({}))
			.addEdge(START, "a")
			.addEdge("a", "wait")
			.compile({ checkpointer: bench.saver });
		await bench.run(before, { both: ["in"] }, { ...thread("t"), interruptBefore: ["wait"] });
		const after = new StateGraph(Annotation.Root({ both: Annotation<string[]>(), fresh: Annotation<{ n: number }>() }))
			.addNode("b", ({ both, fresh }) => ({ both: [...both, "b"], fresh: { n: (fresh?.n ?? 0) + 1 } }))
			.addEdge(START, "b")
			.compile({ checkpointer: bench.saver });
		await bench.peek(after, thread("t"));
		await bench.run(after, null, thread("t"));
		await bench.run(after, { both: ["new"] }, thread("t"));
		await bench.peek(after, thread("t"));
		await bench.survey(before, thread("t"));
	}),
];
