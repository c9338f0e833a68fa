import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import type { Bench, Graph } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { type Scenario, scenario, thread } from "../support/graph-scenario.ts";

/** Numbers from 0 to 1 that look random and are the same for the same seed (the generator named mulberry32). */
function random(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

const State = Annotation.Root({
	...LogState.spec,
	pages: Annotation<{ n: number; text: string }[]>({ reducer: (_, pages) => pages, default: () => [] }),
});

/** Edits a list in a way that depends on its length alone. */
const edit = ({ pages, log }: typeof State.State) => {
	const n = log.length;
	const added = { n, text: `page ${n} `.repeat(n % 4) };
	const edits = [
		[...pages, added],
		pages.slice(1),
		pages.map((page) => (page.n % 2 ? { ...page, text: `${n}` } : page)),
		[added, ...pages],
	];
	return { pages: edits[n % edits.length], log: [`edit ${n}`] };
};

/** A graph with something of everything: siblings, a question, a subgraph, tasks sent out and a loop. */
function everything(bench: Bench) {
	const inner = new StateGraph(State)
		.addNode("one", say("one"))
		.addNode("two", ({ log }) => ({ log: [log.length % 3 ? "two" : `two ${interrupt("inside?")}`] }))
		.addEdge(START, "one")
		.addEdge("one", "two")
		.compile();
	return new StateGraph(State)
		.addNode("edit", edit)
		.addNode("ask", ({ log }) => ({ log: [log.length % 2 ? "no question" : `ask ${interrupt({ at: log.length })}`] }))
		.addNode("inner", inner)
		.addNode("sent", ((input: { n: number }) => ({
			log: [`sent ${input.n}`],
			facts: { [`sent ${input.n}`]: true },
		})) as never)
		.addNode("join", say("join"))
		.addEdge(START, "edit")
		.addEdge("edit", "ask")
		.addEdge("edit", "inner")
		.addConditionalEdges(
			"edit",
			({ log }) => (log.length % 5 ? [] : [new Send("sent", { n: 1 }), new Send("sent", { n: 2 })]),
			["sent"],
		)
		.addEdge(["ask", "inner"], "join")
		.addConditionalEdges("join", ({ log }) => (log.length % 4 === 1 ? "edit" : END))
		.compile({ checkpointer: bench.saver });
}

type Step = (bench: Bench, graph: Graph, config: RunnableConfig, n: number) => Promise<unknown>;

/** What a user may do next, at the head or at any older checkpoint. */
const STEPS: readonly Step[] = [
	(bench, graph, config, n) => bench.run(graph, { log: [`input ${n}`] }, config),
	(bench, graph, config) => bench.run(graph, null, config),
	(bench, graph, config, n) => bench.run(graph, new Command({ resume: `answer ${n}` }), config),
	(bench, graph, config, n) =>
		bench.run(graph, new Command({ update: { log: [`command ${n}`] }, goto: "edit" }), config),
	(bench, graph, config, n) => bench.run(graph, { facts: { n } }, { ...config, interruptBefore: ["inner", "join"] }),
	(bench, graph, config, n) => bench.update(graph, config, { log: [`as edit ${n}`] }, "edit"),
	(bench, graph, config, n) => bench.update(graph, config, { facts: { [`as ask ${n % 3}`]: n } }, "ask"),
	(bench, graph, config, n) => bench.update(graph, config, { log: [`as input ${n}`] }, "__input__"),
	(bench, graph, config) => bench.update(graph, config, null, "__copy__"),
	(bench, graph, config) => bench.update(graph, config, null, END),
	(bench, graph, config) => bench.update(graph, config, null),
];

/** Does so many things, each chosen by chance, half of them at a checkpoint chosen by chance. */
export const walk = (seed: number, length: number): Scenario =>
	scenario(`a thread is used in ${length} ways chosen by chance (seed ${seed})`, async (bench) => {
		const [graph, next] = [everything(bench), random(seed)];
		for (let n = 0; n < length; n++) {
			const step = STEPS[Math.floor(next() * STEPS.length)] as Step;
			const past = next() < 0.5 ? await bench.history(graph, thread("t")) : [];
			const chosen = past[Math.floor(next() * past.length)]?.config ?? thread("t");
			await step(bench, graph, chosen, n);
		}
		await bench.state(graph, thread("t"), { subgraphs: true });
		await bench.history(graph, thread("t"));
		await bench.dump(thread("t"));
	});

export default [1, 2].map((seed) => walk(seed, 12));
