import { Annotation, END, GraphDrained, RunControl, START, StateGraph } from "@langchain/langgraph";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

class PaymentError extends Error {
	override name = "PaymentError";
	code = 402;
}

/** A node that throws as often as told before it works. */
function failing(times: number, error: () => Error = () => new Error("not yet")) {
	let left = times;
	return () => {
		if (left-- > 0) throw error();
		return { log: ["worked"] };
	};
}

export default [
	scenario("a node throws, and the run is resumed until it works", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("before", say("before"))
			.addNode(
				"shaky",
				failing(2, () => new PaymentError("card refused", { cause: new Error("bank is closed") })),
			)
			.addNode("after", say("after"))
			.addEdge(START, "before")
			.addEdge("before", "shaky")
			.addEdge("shaky", "after")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a node is retried by its policy", async (bench) => {
		const retryPolicy = { maxAttempts: 3, initialInterval: 1, jitter: false, retryOn: () => true, logWarning: false };
		const graph = new StateGraph(LogState)
			.addNode("shaky", failing(2), { retryPolicy })
			.addNode("hopeless", failing(9), { retryPolicy })
			.addEdge(START, "shaky")
			.addEdge("shaky", "hopeless")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("one of three siblings throws, and only it is run again", async (bench) => {
		const runs: string[] = [];
		const counted = (name: string) => (state: typeof LogState.State) => {
			runs.push(name);
			return say(name)(state);
		};
		const shaky = failing(1);
		const graph = new StateGraph(LogState)
			.addNode("left", counted("left"))
			.addNode("shaky", async () => {
				runs.push("shaky");
				await new Promise((resolve) => setImmediate(resolve));
				return shaky();
			})
			.addNode("right", counted("right"))
			.addNode("join", say("join"))
			.addEdge(START, "left")
			.addEdge(START, "shaky")
			.addEdge(START, "right")
			.addEdge(["left", "shaky", "right"], "join")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		bench.note("runs", runs);
		await bench.survey(graph, thread("t"));
	}),

	scenario("a failed thread is updated past the failure, or given new input", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("hopeless", failing(99))
			.addNode("after", say("after"))
			.addEdge(START, "hopeless")
			.addEdge("hopeless", "after")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, { log: ["again"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.update(graph, thread("t"), { log: ["by hand"] }, "hopeless");
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a conditional edge throws after its node has written", async (bench) => {
		const route = failing(1, () => new TypeError("no route"));
		const graph = new StateGraph(LogState)
			.addNode("write", say("write"))
			.addNode("after", say("after"))
			.addEdge(START, "write")
			.addConditionalEdges("write", () => {
				route();
				return "after";
			})
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("two nodes write a channel that takes one value", async (bench) => {
		const State = Annotation.Root({ one: Annotation<string>(), step: Annotation<number>() });
		const graph = new StateGraph(State)
			.addNode("start", () => ({ step: 1 }))
			.addNode("left", () => ({ one: "left" }))
			.addNode("right", () => ({ one: "right" }))
			.addEdge(START, "start")
			.addEdge("start", "left")
			.addEdge("start", "right")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { one: "in" }, thread("t"));
		await bench.history(graph, thread("t"));
		await bench.dump(thread("t"));
	}),

	scenario("a node inside a subgraph throws and is resumed", async (bench) => {
		const inner = new StateGraph(LogState)
			.addNode("first", say("first"))
			.addNode("shaky", failing(1))
			.addEdge(START, "first")
			.addEdge("first", "shaky")
			.compile();
		const graph = new StateGraph(LogState)
			.addNode("before", say("before"))
			.addNode("inner", inner)
			.addEdge(START, "before")
			.addEdge("before", "inner")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a run is drained at a step and goes on later", async (bench) => {
		const control = new RunControl();
		const graph = new StateGraph(LogState)
			.addNode("a", (state) => {
				control.requestDrain("shutting down");
				return say("a")(state);
			})
			.addNode("b", say("b"))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", END)
			.compile({ checkpointer: bench.saver });
		const drained = await graph
			.invoke({ log: ["in"] }, { ...thread("t"), durability: bench.durability, control })
			.catch((error) => error);
		bench.note("drained", drained instanceof GraphDrained);
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
