import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { canonical } from "../support/graph-canonical.ts";
import { type ExpectedDifference, scenario, thread } from "../support/graph-scenario.ts";

const State = Annotation.Root({ held: Annotation<unknown>(), turn: Annotation<number>() });

const same = (left: unknown, right: unknown) => JSON.stringify(canonical(left)) === JSON.stringify(canonical(right));

/** A thread that holds one value over two runs and an update, read back in every way. */
const holding = (kind: string, value: () => unknown, differences: readonly ExpectedDifference[] = []) =>
	scenario(
		`a state holds ${kind}`,
		async (bench) => {
			const graph = new StateGraph(State)
				.addNode("set", () => ({ held: value(), turn: 1 }))
				.addNode("keep", () => ({ turn: 2 }))
				.addEdge(START, "set")
				.addEdge("set", "keep")
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { turn: 0 }, thread("t"));
			await bench.run(graph, { turn: 0, held: { given: value() } }, { ...thread("t"), interruptBefore: ["keep"] });
			const kept = await bench.attempt("read", async () => (await graph.getState(thread("t"))).values.held);
			bench.fact("kept", same(kept, value()));
			await bench.attempt("update", () =>
				graph.updateState(thread("t"), { held: [value(), { deep: value() }] }, "set"),
			);
			const history = await bench.attempt("history", () => bench.history(graph, thread("t")));
			bench.fact("the history can be read", history !== undefined);
			await bench.attempt("survey", () => bench.survey(graph, thread("t")));
		},
		{ durabilities: ["async"], differences },
	);

/** What the official serializer does to a value, seen wherever the value is, while here it comes back as it was. */
const lost = (
	reason: string,
	where = /\.held\b|\.given\b|pendingWrites\[\d+\]\[2\]|: read\b|__start__/,
): ExpectedDifference[] => [
	{ where, reason },
	{ where: /fact: (kept|the history can be read)/, only: "runs", reason: "and here it comes back as it was" },
];

const circular = () => {
	const node: Record<string, unknown> = { name: "root" };
	node.self = node;
	return node;
};

class Money {
	sum = 5;
	currency = "EUR";
}

export default [
	holding("maps and sets", () => ({
		map: new Map<string, unknown[]>([
			["a", [1]],
			["b", []],
		]),
		set: new Set(["x", 1, null]),
	})),
	holding("regular expressions", () => [/a+/g, { deep: /ü/iu }]),
	holding("bytes within objects", () => ({ bytes: new Uint8Array([0, 1, 254, 255]), none: new Uint8Array() })),
	holding("undefined and null beside missing keys", () => ({
		undefined: undefined,
		null: null,
		list: [undefined, null],
	})),
	holding("text with odd characters", () => ["\u0000", "\u2028", "🙂", "\\u0041", '"', "__proto__", "\ud7ff\ue000"]),
	holding("numbers at the edges", () => [0, 1.5, -1, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, 1e300, 0.1 + 0.2]),
	holding("instances of a class nobody told about", () => ({ price: new Money() })),
	holding("functions and symbols, which nothing can store", () => ({ call: () => 1, symbol: Symbol("s"), kept: 1 })),

	holding("dates", () => [new Date(0), { deep: new Date(1.7e12) }], lost("it turns a Date into a string")),
	holding(
		"numbers that JSON has not",
		() => [Number.NaN, Infinity, -Infinity, -0],
		lost("it turns them into null and 0"),
	),
	holding(
		"typed arrays",
		() => ({ floats: new Float64Array([1.5, -2]), ints: new Int16Array([1, -1]) }),
		lost("it turns them into objects with numbers as keys"),
	),
	holding("errors", () => ({ error: new RangeError("too far") }), lost("it keeps the message but forgets the class")),
	holding("references in a circle", circular, lost("it turns the inner one into a text")),
	holding(
		"data that looks like the official serializer's own",
		() => ({ lc: 2, type: "undefined" }),
		lost("it takes the data for one of its own records"),
	),
	holding(
		"a key named __proto__",
		() => JSON.parse('{"__proto__": {"polluted": true}, "plain": 1}'),
		lost(
			"it sets the prototype instead of the key",
			/\.held\b|\.given\b|pendingWrites\[\d+\]\[2\]|: read\b|__start__|reads the same/,
		),
	),
	holding(
		"big integers",
		() => ({ big: 2n ** 80n }),
		lost("it replaces all that is stored with one by a sentence", /./),
	),
	holding(
		"bytes as a whole value",
		() => new Uint8Array([1, 2, 255]),
		lost("it stores them raw and then reads them as JSON", /./),
	),
];
