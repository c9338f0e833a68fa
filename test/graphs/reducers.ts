import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const Notebook = Annotation.Root({
	round: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
	pages: Annotation<{ id: number; text: string; tags: string[] }[]>({
		reducer: (_, pages) => pages,
		default: () => [],
	}),
	tree: Annotation<Record<string, unknown>>({ reducer: (_, tree) => tree, default: () => ({}) }),
	text: Annotation<string>({ reducer: (_, text) => text, default: () => "" }),
	any: Annotation<unknown>(),
});

type Pages = (typeof Notebook.State)["pages"];

/** Edits of every kind that happen to lists in practice, one per round. */
const EDITS: ((pages: Pages, round: number) => Pages)[] = [
	(pages, round) => [...pages, page(round), page(round + 1000)],
	(pages, round) => pages.map((one, at) => (at === pages.length - 1 ? { ...one, text: `last ${round}` } : one)),
	(pages, round) => [page(round), ...pages],
	(pages, round) => pages.toSpliced(Math.floor(pages.length / 2), 1, page(round), page(-round)),
	(pages) => pages.slice(1),
	(pages) => pages.slice(0, -1),
	(pages, round) => pages.map((one, at) => (at % 5 === round % 5 ? { ...one, tags: [...one.tags, `t${round}`] } : one)),
	(pages) => pages.toReversed(),
	(pages) => pages,
	(pages, round) => (round % 27 === 9 ? [] : [...pages, ...pages.slice(0, 2)]),
];

const page = (id: number) => ({
	id,
	text: `page ${id} ${"lorem ipsum ".repeat(Math.abs(id) % 7)}`,
	tags: [] as string[],
});

/** Values of a different kind each round, so that nothing can be a patch on the one before. */
const KINDS: unknown[] = [
	[1, 2],
	{ a: 1 },
	"text",
	7,
	null,
	true,
	[],
	{},
	"",
	[null, undefined, [[]]],
	{ a: undefined },
	0,
];

const editTree = (tree: Record<string, unknown>, round: number): Record<string, unknown> => {
	const { [`k${round - 3}`]: _, ...rest } = tree;
	const deep = { list: [round, { of: { of: { of: round % 4 } } }], text: "x".repeat(round * 3), "a.b": `${round}` };
	return { ...rest, [`k${round}`]: { round, deep }, same: { never: ["changes", { at: "all" }] } };
};

function editNotebook({ round, pages, tree, text }: typeof Notebook.State) {
	const edit = EDITS[round % EDITS.length] as (typeof EDITS)[number];
	return {
		round: 1,
		pages: edit(pages, round),
		tree: editTree(tree, round),
		text:
			round % 11 === 10 ? text.slice(0, 40) : `${text}Line ${round} of a growing document, ünïcode 🙂 ${round * 7}.\n`,
		any: KINDS[round % KINDS.length],
	};
}

export default [
	scenario("a list, a last value and a merged object grow over three runs", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("a", say("a"))
			.addNode("b", say("b"))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", END)
			.compile({ checkpointer: bench.saver });
		for (const word of ["one", "two", "three"]) await bench.run(graph, { log: [word] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"lists, trees and texts are edited in every way over forty steps",
		async (bench) => {
			const graph = new StateGraph(Notebook)
				.addNode("edit", editNotebook)
				.addEdge(START, "edit")
				.addConditionalEdges("edit", ({ round }) => (round < 40 ? "edit" : END))
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { pages: [page(0)] }, thread("t", {}));
			await bench.run(graph, { pages: [page(0)], text: "again" }, { ...thread("t"), recursionLimit: 60 });
			await bench.state(graph, thread("t"));
			await bench.history(graph, thread("t"), { limit: 10 });
			await bench.dump(thread("t"));
		},
		{ durabilities: ["async"] },
	),

	scenario(
		"a node changes the state it was given in place and returns it",
		async (bench) => {
			const graph = new StateGraph(Notebook)
				.addNode("mutate", ({ round, pages, tree }) => {
					pages.push(page(round));
					tree[`round ${round}`] = { pages: pages.length };
					for (const one of pages) one.tags.push(`seen in ${round}`);
					return { round: 1, pages, tree };
				})
				.addNode("look", ({ pages }) => ({ any: { count: pages.length } }))
				.addEdge(START, "mutate")
				.addEdge("mutate", "look")
				.addConditionalEdges("look", ({ round }) => (round < 4 ? "mutate" : END))
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { pages: [page(7)], tree: { start: true } }, thread("t"));
			await bench.run(graph, { any: "again" }, thread("t"));
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["sync", "exit"] },
	),

	scenario(
		"a node changes the state it was given in place and does not return it",
		async (bench) => {
			const graph = new StateGraph(Notebook)
				.addNode("mutate", ({ round, pages }) => {
					pages.push(page(round));
					return { round: 1 };
				})
				.addEdge(START, "mutate")
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { pages: [page(7)] }, thread("t"));
			await bench.run(graph, { any: "again" }, thread("t"));
			await bench.survey(graph, thread("t"));
		},
		{
			durabilities: ["sync", "exit"],
			differences: [
				{
					where: /\bpages\b/,
					reason:
						"no node wrote the channel, so its version is that of the parent and its value is the parent's; the official saver happens to keep such a change because it stores everything again",
				},
			],
		},
	),

	scenario(
		"a reducer changes its left argument in place",
		async (bench) => {
			const State = Annotation.Root({
				items: Annotation<string[]>({
					reducer: (items, more) => {
						items.push(...more);
						return items;
					},
					default: () => [],
				}),
			});
			const graph = new StateGraph(State)
				.addNode("a", ({ items }) => ({ items: [`a${items.length}`] }))
				.addNode("b", ({ items }) => ({ items: [`b${items.length}`] }))
				.addEdge(START, "a")
				.addEdge("a", "b")
				.compile({ checkpointer: bench.saver });
			for (const word of ["one", "two"]) await bench.run(graph, { items: [word] }, thread("t"));
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["sync", "exit"] },
	),

	scenario("a channel returns to a value it had before, and is set to what it already is", async (bench) => {
		const values = [["x"], ["x", "y"], ["x"], ["x"], [], ["x"], null, ["x"]];
		const State = Annotation.Root({ turn: Annotation<number>(), held: Annotation<unknown>() });
		const graph = new StateGraph(State)
			.addNode("set", ({ turn = 0 }) => ({ turn: turn + 1, held: values[turn] }))
			.addEdge(START, "set")
			.addConditionalEdges("set", ({ turn }) => (turn < values.length ? "set" : END))
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { turn: 0 }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
