import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import type { Bench, Graph, Snapshot } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

/** Two nodes, the second of which may ask first. */
const child = (name: string, question?: string) =>
	new StateGraph(LogState)
		.addNode("one", say(`${name} one`))
		.addNode("two", () => ({ log: [question === undefined ? `${name} two` : `${name} ${interrupt(question)}`] }))
		.addEdge(START, "one")
		.addEdge("one", "two");

/** A node before, the subgraph, a node after. */
function around(bench: Bench, inner: ReturnType<ReturnType<typeof child>["compile"]>) {
	return new StateGraph(LogState)
		.addNode("before", say("before"))
		.addNode("inner", inner)
		.addNode("after", say("after"))
		.addEdge(START, "before")
		.addEdge("before", "inner")
		.addEdge("inner", "after")
		.compile({ checkpointer: bench.saver });
}

/** The config of the first subgraph that waits in the thread. */
async function waiting(bench: Bench, graph: Graph, config: RunnableConfig): Promise<RunnableConfig> {
	const { tasks } = await bench.state(graph, config, { subgraphs: true });
	const states = tasks.map(({ state }) => state as Snapshot | undefined);
	const found = states.find((state) => state?.config?.configurable !== undefined);
	if (found === undefined) throw new Error("no subgraph waits");
	return found.config;
}

/** Notes the history of every namespace of the thread as the graph shows it, the namespace used first comes first. */
async function histories(bench: Bench, graph: Graph, config: RunnableConfig): Promise<void> {
	const found: { id: string; ns: string }[] = [];
	for await (const { config: one, checkpoint } of bench.saver.list(config)) {
		found.push({ id: checkpoint.id, ns: one.configurable?.checkpoint_ns });
	}
	const inOrder = found.sort((left, right) => (left.id < right.id ? -1 : 1));
	for (const ns of new Set(inOrder.map((one) => one.ns))) {
		const inside = { configurable: { ...config.configurable, checkpoint_ns: ns } };
		await bench.history(graph, inside);
		await bench.state(graph, inside, { subgraphs: true });
	}
}

export default [
	scenario("a subgraph shares the checkpointer of its parent", async (bench) => {
		const graph = around(bench, child("inner").compile());
		for (const word of ["in", "again"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a subgraph asks, is looked at from outside, and is answered", async (bench) => {
		const graph = around(bench, child("inner", "well?").compile());
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await histories(bench, graph, thread("t"));
		await bench.run(graph, new Command({ resume: "yes" }), thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, { log: ["again"] }, thread("t"));
		await bench.run(graph, new Command({ resume: "no" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a subgraph with a memory of its own remembers over runs", async (bench) => {
		const graph = around(bench, child("inner").compile({ checkpointer: true }));
		for (const word of ["in", "again"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
		await histories(bench, graph, thread("t"));
	}),

	scenario("a subgraph with a memory of its own asks in two runs", async (bench) => {
		const graph = around(bench, child("inner", "well?").compile({ checkpointer: true }));
		for (const word of ["in", "again"]) {
			await bench.run(graph, { log: [word] }, thread("t"));
			await bench.run(graph, new Command({ resume: `yes to ${word}` }), thread("t"));
		}
		await bench.survey(graph, thread("t"));
		await histories(bench, graph, thread("t"));
	}),

	scenario("a subgraph within a subgraph asks", async (bench) => {
		const middle = new StateGraph(LogState)
			.addNode("enter", say("enter"))
			.addNode("deep", child("deep", "from below?").compile())
			.addEdge(START, "enter")
			.addEdge("enter", "deep")
			.compile();
		const graph = around(bench, middle as never);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await histories(bench, graph, thread("t"));
		await bench.run(graph, new Command({ resume: "heard" }), thread("t"));
		await bench.survey(graph, thread("t"));
		await histories(bench, graph, thread("t"));
	}),

	scenario("a subgraph is run several times in a loop, asking each time", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("inner", child("inner", "again?").compile())
			.addEdge(START, "inner")
			.addConditionalEdges("inner", ({ log }) => (log.at(-1)?.includes("stop") ? END : "inner"))
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		for (const resume of ["go", "on", "stop"]) await bench.run(graph, new Command({ resume }), thread("t"));
		await bench.survey(graph, thread("t"));
		await histories(bench, graph, thread("t"));
	}),

	scenario("two subgraphs run and ask side by side", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("left", child("left", "left?").compile())
			.addNode("right", child("right", "right?").compile())
			.addNode("quiet", child("quiet").compile())
			.addNode("join", say("join"))
			.addEdge(START, "left")
			.addEdge(START, "right")
			.addEdge(START, "quiet")
			.addEdge(["left", "right", "quiet"], "join")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		const { tasks } = await bench.state(graph, thread("t"));
		const asked = tasks.flatMap(({ interrupts }) => interrupts);
		const resume = Object.fromEntries(asked.map(({ id, value }) => [`${id}`, `re ${value}`]));
		await bench.run(graph, new Command({ resume }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("two subgraphs ask side by side and are answered one by one", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("left", child("left", "left?").compile())
			.addNode("right", child("right", "right?").compile())
			.addEdge(START, "left")
			.addEdge(START, "right")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		for (let at = 0; at < 2; at++) {
			const { tasks } = await bench.state(graph, thread("t"));
			const [asked] = tasks.flatMap(({ interrupts }) => interrupts);
			await bench.run(graph, new Command({ resume: { [`${asked?.id}`]: `answer ${at}` } }), thread("t"));
		}
		await bench.survey(graph, thread("t"));
	}),

	scenario("one subgraph is sent out to three times at once, and one of them asks", async (bench) => {
		const inner = new StateGraph(LogState)
			.addNode("work", ({ last }) => ({ log: [last === "b" ? `b ${interrupt("b?")}` : last] }))
			.addEdge(START, "work")
			.compile();
		const graph = new StateGraph(LogState)
			.addNode("inner", inner)
			.addNode("join", say("join"))
			.addConditionalEdges(START, () => ["a", "b", "c"].map((last) => new Send("inner", { log: [], last })), ["inner"])
			.addEdge("inner", "join")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "fine" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("the state of a waiting subgraph is updated before it goes on", async (bench) => {
		const graph = around(bench, child("inner", "well?").compile());
		await bench.run(graph, { log: ["in"] }, thread("t"));
		const inside = await waiting(bench, graph, thread("t"));
		await bench.update(graph, inside, { log: ["from outside"] }, "one");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "yes" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a waiting subgraph is skipped by an update in its name", async (bench) => {
		const graph = around(bench, child("inner", "well?").compile());
		await bench.run(graph, { log: ["in"] }, thread("t"));
		const inside = await waiting(bench, graph, thread("t"));
		await bench.update(graph, inside, { log: ["two, by hand"] }, "two");
		await bench.run(graph, null, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.update(graph, thread("t"), { log: ["inner, by hand"] }, "inner");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"the parent is taken back to before a subgraph and runs it again",
		async (bench) => {
			const graph = around(bench, child("inner", "well?").compile());
			await bench.run(graph, { log: ["in"] }, thread("t"));
			await bench.run(graph, new Command({ resume: "first" }), thread("t"));
			const { config } = await bench.before(graph, thread("t"), "inner");
			await bench.run(graph, null, config);
			await bench.peek(graph, thread("t"));
			await bench.run(graph, new Command({ resume: "second" }), thread("t"));
			await bench.survey(graph, thread("t"));
			await histories(bench, graph, thread("t"));
		},
		{ durabilities: ["async", "sync"] },
	),

	scenario(
		"a subgraph with a memory of its own is replayed from an older checkpoint of the parent",
		async (bench) => {
			const graph = around(bench, child("inner").compile({ checkpointer: true }));
			for (const word of ["one", "two", "three"]) await bench.run(graph, { log: [word] }, thread("t"));
			const found = (await bench.history(graph, thread("t"))).filter(({ next }) => next.join() === "inner");
			for (const { config } of found) await bench.run(graph, null, config);
			await bench.survey(graph, thread("t"));
			await histories(bench, graph, thread("t"));
		},
		{ durabilities: ["async", "sync"] },
	),

	scenario(
		"a checkpoint within a subgraph is gone back to",
		async (bench) => {
			const graph = around(bench, child("inner", "well?").compile());
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const inside = await waiting(bench, graph, thread("t"));
			const { thread_id, checkpoint_ns } = inside.configurable ?? {};
			const older = await bench.history(graph, { configurable: { thread_id, checkpoint_ns } });
			for (const { config } of older) await bench.state(graph, config, { subgraphs: true });
			const { config } = older.find(({ next }) => next.join() === "one") as Snapshot;
			await bench.run(graph, null, config);
			await bench.survey(graph, thread("t"));
			await histories(bench, graph, thread("t"));
		},
		{ durabilities: ["async", "sync"] },
	),

	scenario("a node calls a subgraph with another state as a function", async (bench) => {
		const Other = Annotation.Root({ text: Annotation<string>(), seen: Annotation<string[]>() });
		const inner = new StateGraph(Other)
			.addNode("upper", ({ text }) => ({ text: text.toUpperCase(), seen: [text] }))
			.addNode("check", ({ text }) => ({ text: `${text} ${interrupt({ ok: text })}` }))
			.addEdge(START, "upper")
			.addEdge("upper", "check")
			.compile();
		const graph = new StateGraph(LogState)
			.addNode("call", async ({ log }, config) => {
				const { text } = await inner.invoke({ text: log.join("-") }, config);
				return { log: [text] };
			})
			.addEdge(START, "call")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "fine" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a node calls two subgraphs one after the other", async (bench) => {
		const [first, second] = [child("first").compile(), child("second", "well?").compile()];
		const graph = new StateGraph(LogState)
			.addNode("call", async (state, config) => {
				const { log } = await first.invoke({ log: [], last: state.last }, config);
				const { log: more } = await second.invoke({ log: [] }, config);
				return { log: [...log, ...more] };
			})
			.addEdge(START, "call")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.dump(thread("t"));
		await bench.run(graph, new Command({ resume: "done" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a node of a subgraph sends its parent on", async (bench) => {
		const inner = new StateGraph(LogState)
			.addNode("leave", () => new Command({ graph: Command.PARENT, goto: "other", update: { log: ["left"] } }))
			.addEdge(START, "leave")
			.compile();
		const graph = new StateGraph(LogState)
			.addNode("inner", inner, { ends: ["other"] })
			.addNode("other", say("other"))
			.addEdge(START, "inner")
			.compile({ checkpointer: bench.saver });
		for (const word of ["in", "again"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
