import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import {
	Annotation,
	Command,
	DeltaChannel,
	END,
	interrupt,
	MessagesDeltaValue,
	Overwrite,
	START,
	StateGraph,
	StateSchema,
} from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

/** A state with a delta channel that keeps a snapshot every so many updates, beside an ordinary list of the same. */
const both = (snapshotFrequency: number) =>
	Annotation.Root({
		delta: () =>
			new DeltaChannel<string[], string[]>((items, writes) => [...items, ...writes.flat()], { snapshotFrequency }),
		plain: Annotation<string[]>({ reducer: (items, more) => items.concat(more), default: () => [] }),
	});

const add = (word: string) => (state: { plain: string[] }) => {
	const item = `${word} ${state.plain.length}`;
	return { delta: [item], plain: [item] };
};

/** Runs three nodes in a row, over several turns. */
async function turns(bench: Bench, snapshotFrequency: number, count: number): Promise<void> {
	const graph = new StateGraph(both(snapshotFrequency))
		.addNode("a", add("a"))
		.addNode("quiet", () => ({ plain: ["quiet"] }))
		.addNode("b", add("b"))
		.addEdge(START, "a")
		.addEdge("a", "quiet")
		.addEdge("quiet", "b")
		.compile({ checkpointer: bench.saver });
	for (let turn = 0; turn < count; turn++) await bench.run(graph, { delta: [`turn ${turn}`], plain: [] }, thread("t"));
	await bench.peek(graph, thread("t"));
	await bench.update(graph, thread("t"), { delta: ["by hand"], plain: ["by hand"] }, "b");
	await bench.run(graph, { delta: ["after the update"] }, thread("t"));
	await bench.survey(graph, thread("t"));
}

export default [
	scenario("a delta channel keeps a snapshot at every update", (bench) => turns(bench, 1, 2)),
	scenario("a delta channel keeps a snapshot now and then", (bench) => turns(bench, 3, 4)),
	scenario("a delta channel never comes to a snapshot", (bench) => turns(bench, 1000, 3)),

	scenario("a delta channel is written by several nodes of one step", async (bench) => {
		const graph = new StateGraph(both(4))
			.addNode("left", () => ({ delta: ["same"], plain: ["same"] }))
			.addNode("right", () => ({ delta: ["same"], plain: ["same"] }))
			.addNode("join", add("join"))
			.addEdge(START, "left")
			.addEdge(START, "right")
			.addEdge(["left", "right"], "join")
			.compile({ checkpointer: bench.saver });
		for (const word of ["one", "two"]) await bench.run(graph, { delta: [word], plain: [] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a delta channel is overwritten", async (bench) => {
		const graph = new StateGraph(both(1000))
			.addNode("a", add("a"))
			.addNode("reset", () => ({ delta: new Overwrite(["reset"]), plain: new Overwrite(["reset"]) }))
			.addNode("b", add("b"))
			.addEdge(START, "a")
			.addEdge("a", "reset")
			.addEdge("reset", "b")
			.compile({ checkpointer: bench.saver });
		for (const word of ["one", "two"]) await bench.run(graph, { delta: [word], plain: [] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a delta channel waits with a node that asks and goes on with it", async (bench) => {
		const graph = new StateGraph(both(3))
			.addNode("a", add("a"))
			.addNode("ask", () => ({ delta: [interrupt<string, string>("what?")] }))
			.addNode("b", add("b"))
			.addEdge(START, "a")
			.addEdge("a", "ask")
			.addEdge("ask", "b")
			.compile({ checkpointer: bench.saver });
		for (const word of ["one", "two"]) {
			await bench.run(graph, { delta: [word], plain: [] }, thread("t"));
			await bench.peek(graph, thread("t"));
			await bench.run(graph, new Command({ resume: `answer ${word}` }), thread("t"));
		}
		await bench.survey(graph, thread("t"));
	}),

	scenario("a delta channel of messages is added to, edited and shortened", async (bench) => {
		const updates = [
			[new AIMessage({ id: "a", content: "first" })],
			[new AIMessage({ id: "a", content: "first, edited" }), new AIMessage({ id: "b", content: "second" })],
			[new RemoveMessage({ id: "a" }), new AIMessage({ id: "c", content: "third" })],
		];
		let turn = 0;
		const graph = new StateGraph(new StateSchema({ messages: MessagesDeltaValue }))
			.addNode("reply", () => ({ messages: updates[turn++] ?? [] }))
			.addEdge(START, "reply")
			.addEdge("reply", END)
			.compile({ checkpointer: bench.saver });
		for (const id of ["1", "2", "3"]) {
			await bench.run(graph, { messages: [new HumanMessage({ id, content: `turn ${id}` })] }, thread("t"));
		}
		await bench.survey(graph, thread("t"));
	}),

	scenario("a thread changes over from an ordinary list to a delta channel", async (bench) => {
		const ordinary = new StateGraph(
			Annotation.Root({
				delta: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
				plain: Annotation<string[]>(),
			}),
		)
			.addNode("a", () => ({ delta: ["from before"] }))
			.addEdge(START, "a")
			.compile({ checkpointer: bench.saver });
		await bench.run(ordinary, { delta: ["one"], plain: [] }, thread("t"));
		const graph = new StateGraph(both(1000))
			.addNode("a", add("a"))
			.addEdge(START, "a")
			.compile({ checkpointer: bench.saver });
		for (const word of ["two", "three"]) await bench.run(graph, { delta: [word], plain: [] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
