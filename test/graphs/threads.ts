import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

const afterTurns = (turns: number, words: string) => async (state: typeof LogState.State) => {
	for (let at = 0; at < turns; at++) await turn();
	return say(words)(state);
};

/** Three steps that let others run in between. */
const yielding = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("a", afterTurns(1, "a"))
		.addNode("b", afterTurns(2, "b"))
		.addNode("c", say("c"))
		.addEdge(START, "a")
		.addEdge("a", "b")
		.addEdge("b", "c")
		.compile({ checkpointer: bench.saver });

const logOf = (tuple: CheckpointTuple) => (tuple.checkpoint.channel_values.log ?? []) as string[];

/** Whether each checkpoint goes on exactly where its parent stopped, whatever ran beside it. */
function chainsAreWhole(tuples: CheckpointTuple[]): boolean {
	const byId = new Map(tuples.map((tuple) => [tuple.checkpoint.id, tuple]));
	return tuples.every((tuple) => {
		const parent = byId.get(tuple.parentConfig?.configurable?.checkpoint_id);
		return (
			tuple.parentConfig === undefined || (parent !== undefined && logOf(tuple).join().startsWith(logOf(parent).join()))
		);
	});
}

const ODD_IDS = [
	"a",
	"ab",
	"A",
	"a%",
	"a_",
	"x'; drop table checkpoints; --",
	'"quoted"',
	"🙂",
	"a|b:c",
	"null",
	"0",
	" ",
	"é",
	"e\u0301",
	"l".repeat(10_000),
];

export default [
	scenario(
		"two runs go on at once on one thread",
		async (bench) => {
			const graph = yielding(bench);
			const run = (log: string[]) => graph.invoke({ log }, { ...thread("t"), durability: bench.durability });
			bench.fact("start", await run(["start"]));
			const results = await Promise.all([run(["left"]), run(["right"])]);
			bench.fact(
				"each run keeps its own input",
				results.map(({ log }, at) => log.includes(["left", "right"][at] ?? "")),
			);
			bench.fact(
				"each run finishes",
				results.map(({ last }) => last),
			);
			const tuples: CheckpointTuple[] = [];
			for await (const tuple of bench.saver.list(thread("t"))) tuples.push(tuple);
			bench.fact("number of checkpoints", tuples.length);
			bench.fact("each checkpoint goes on from its parent", chainsAreWhole(tuples));
			await bench.peek(graph, thread("t"));
			bench.fact("the thread goes on", await run(["then"]).then(({ log }) => log.slice(-4)));
			await bench.survey(graph, thread("t"));
		},
		{ racy: true },
	),

	scenario(
		"two runs go on at once on one thread with a state that nodes change in place",
		async (bench) => {
			const State = Annotation.Root({
				items: Annotation<{ n: number; by: string[] }[]>({ reducer: (_, items) => items, default: () => [] }),
			});
			const graph = new StateGraph(State)
				.addNode("grow", async ({ items }) => {
					items.push({ n: items.length, by: [] });
					await turn();
					for (const item of items) item.by.push("grow");
					return { items };
				})
				.addEdge(START, "grow")
				.addConditionalEdges("grow", ({ items }) => (items.length < 4 ? "grow" : END))
				.compile({ checkpointer: bench.saver });
			const run = () => graph.invoke({ items: [] }, { ...thread("t"), durability: bench.durability });
			const results = await Promise.all([run(), run()]);
			bench.fact(
				"lengths",
				results.map(({ items }) => items.length),
			);
			await bench.survey(graph, thread("t"));
		},
		{ racy: true },
	),

	scenario("many threads run at once", async (bench) => {
		const graph = yielding(bench);
		const names = Array.from({ length: 6 }, (_, at) => `thread ${at}`);
		for (const word of ["one", "two"]) {
			const runs = names.map((name) =>
				graph.invoke({ log: [`${word} in ${name}`] }, { ...thread(name), durability: bench.durability }),
			);
			bench.note("results", await Promise.all(runs));
		}
		for (const name of names) {
			await bench.history(graph, thread(name));
			await bench.dump(thread(name));
		}
	}),

	scenario(
		"threads with odd names stay apart",
		async (bench) => {
			const graph = new StateGraph(LogState)
				.addNode("a", say("a"))
				.addEdge(START, "a")
				.compile({ checkpointer: bench.saver });
			for (const name of ODD_IDS) await bench.run(graph, { log: [`in ${name.slice(0, 40)}`] }, thread(name));
			for (const name of ODD_IDS) {
				await bench.history(graph, thread(name), { limit: 3 });
				await bench.dump(thread(name));
			}
			await bench.saver.deleteThread("a");
			for (const name of ODD_IDS) await bench.state(graph, thread(name));
		},
		{ durabilities: ["async"] },
	),

	scenario("a thread is deleted and begun again", async (bench) => {
		const inner = new StateGraph(LogState)
			.addNode("ask", () => ({ log: [`answer ${interrupt("well?")}`] }))
			.addEdge(START, "ask")
			.compile({ checkpointer: true });
		const graph = new StateGraph(LogState)
			.addNode("inner", inner)
			.addEdge(START, "inner")
			.compile({ checkpointer: bench.saver });
		for (const name of ["gone", "stays"]) await bench.run(graph, { log: ["in"] }, thread(name));
		await bench.saver.deleteThread("gone");
		await bench.saver.deleteThread("never was");
		for (const name of ["gone", "stays"]) await bench.peek(graph, thread(name));
		await bench.run(graph, { log: ["new life"] }, thread("gone"));
		for (const name of ["gone", "stays"]) await bench.run(graph, new Command({ resume: name }), thread(name));
		for (const name of ["gone", "stays"]) await bench.survey(graph, thread(name));
	}),

	scenario("a thread is gone on with by another saver on the same data", async (bench) => {
		const builder = new StateGraph(LogState)
			.addNode("plan", say("plan"))
			.addNode("ask", () => ({ log: [`answer ${interrupt("well?")}`] }))
			.addNode("act", say("act"))
			.addEdge(START, "plan")
			.addEdge("plan", "ask")
			.addEdge("ask", "act");
		const first = builder.compile({ checkpointer: bench.saver });
		await bench.run(first, { log: ["in"] }, thread("t"));
		const second = builder.compile({ checkpointer: await bench.reopen() });
		await bench.peek(second, thread("t"));
		await bench.run(second, new Command({ resume: "yes" }), thread("t"));
		await bench.peek(first, thread("t"));
		await bench.run(first, { log: ["more"] }, thread("t"));
		const third = builder.compile({ checkpointer: await bench.reopen() });
		await bench.run(third, new Command({ resume: "also yes" }), thread("t"));
		const { config } = await bench.before(third, thread("t"), "ask");
		await bench.update(third, config, { log: ["by hand"] }, "ask");
		await bench.survey(third, thread("t"));
	}),

	scenario("runs carry metadata, tags and run ids of their own", async (bench) => {
		const graph = yielding(bench);
		const runId = "11111111-1111-4111-8111-111111111111";
		const config = { ...thread("t", { user_id: "u1", run_id: "r1" }), runId, runName: "named", tags: ["x"] };
		await bench.run(graph, { log: ["in"] }, { ...config, metadata: { run_id: "r1", topic: "cats", "a.b": 1 } });
		await bench.run(graph, { log: ["same run id"] }, { ...config, metadata: { run_id: "r1", topic: "dogs" } });
		await bench.update(graph, { ...thread("t"), metadata: { by: "hand" } }, { log: ["update"] }, "a");
		await bench.update(graph, { ...thread("t"), metadata: { by: "hand", nested: { deep: [1] } } }, null, END);
		await bench.survey(graph, thread("t"));
		for (const filter of [{ topic: "cats" }, { by: "hand" }, { source: "update", by: "hand" }, { by: "nobody" }, {}]) {
			await bench.history(graph, thread("t"), { filter });
		}
	}),

	scenario(
		"a thread is named by a number",
		async (bench) => {
			const graph = yielding(bench);
			await bench.run(graph, { log: ["in"] }, thread(42 as never));
			await bench.run(graph, { log: ["again"] }, thread(42 as never));
			bench.fact("the log", (await bench.attempt("state", async () => bench.state(graph, thread("42"))))?.values?.log);
		},
		{
			durabilities: ["async"],
			racy: true,
			differences: [
				{
					where: /outcome|getTuple|list/,
					only: "calls",
					reason: "the official saver refuses thread ids that are not strings, other than its SQL siblings",
				},
				{
					where: /fact: the log/,
					only: "runs",
					reason: "with a number accepted, the number and its text name one thread",
				},
			],
		},
	),

	scenario(
		"a thread is named like a property of every object",
		async (bench) => {
			const graph = yielding(bench);
			for (const name of ["__proto__", "constructor", "prototype"]) {
				await bench.run(graph, { log: ["in"] }, thread(name));
				await bench.run(graph, { log: ["again"] }, thread(name));
				bench.fact(name, (await bench.attempt("state", async () => bench.state(graph, thread(name))))?.values?.log);
			}
			bench.fact("no prototype was touched", Object.keys(Object.prototype));
		},
		{
			durabilities: ["async"],
			racy: true,
			differences: [
				{
					where: /outcome|getTuple|list/,
					only: "calls",
					reason: "the official saver keeps threads in plain objects and so has to refuse these names",
				},
				{
					where: /fact: (__proto__|constructor|prototype)/,
					only: "runs",
					reason: "here they are names like any other",
				},
			],
		},
	),
];
