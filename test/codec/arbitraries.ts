import assert from "node:assert/strict";
import { Document } from "@langchain/core/documents";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import type { Classes } from "../../src/index.ts";

/** Stored by its properties. */
export class Plain {
	[key: string]: unknown;
}

/** Stored by what its hooks make of it. */
export class Hooked {
	name: string;
	held: unknown;
	constructor(name: string, held: unknown) {
		this.name = name;
		this.held = held;
	}
}

export const CLASSES: Classes = {
	Plain,
	Hooked: {
		class: Hooked,
		encode: ({ name, held }: Hooked) => [name, held],
		decode: ([name, held]: [string, unknown]) => new Hooked(name, held),
	},
};

const text = fc.oneof(
	fc.string({ unit: "binary", maxLength: 40 }),
	fc.string({ unit: "grapheme", maxLength: 12 }),
	fc.string({ unit: fc.integer({ min: 0xd7ff, max: 0xe001 }).map((unit) => String.fromCharCode(unit)), maxLength: 5 }),
	fc.constantFrom("", "\0", "\ud800", "x".repeat(24), "é".repeat(16), "x".repeat(300)),
);

const key = fc.oneof(
	{ weight: 4, arbitrary: fc.constantFrom("a", "b", "c", "id", "0", "1", "7") },
	{ weight: 2, arbitrary: text },
	fc.constantFrom("__proto__", "constructor", "toString", "length", "lc", "then", "stack", "name", "cause", "lg_name"),
);

const primitive = fc.oneof(
	fc.integer(),
	fc.integer({ min: -40, max: 300 }),
	fc.double(),
	fc.constantFrom(-0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53, undefined, null),
	fc.bigInt(),
	fc.bigInt({ min: -(2n ** 300n), max: 2n ** 300n }),
	fc.boolean(),
	text,
);

const bytes = fc.uint8Array({ maxLength: 24 });

/** Objects without anything in them that could be changed. */
const sealed = fc.oneof(
	fc.date({ noInvalidDate: false }),
	fc.constantFrom("https://example.com/?q=é#x", "file:///tmp/a b", "data:,x").map((href) => new URL(href)),
	fc
		.tuple(fc.constantFrom("a+", "(?<x>.)", "\\d|\n", "é/"), fc.constantFrom("", "g", "iu", "dgimsy"))
		.map(([source, flags]) => new RegExp(source, flags)),
	bytes,
	bytes.map((part) => Buffer.from(part)),
	bytes.map((part) => part.slice().buffer),
	bytes.map((part) => new DataView(part.slice().buffer)),
	fc.int8Array({ maxLength: 4 }),
	fc.uint8ClampedArray({ maxLength: 4 }),
	fc.int16Array({ maxLength: 4 }),
	fc.uint16Array({ maxLength: 4 }),
	fc.int32Array({ maxLength: 4 }),
	fc.uint32Array({ maxLength: 4 }),
	fc.float32Array({ maxLength: 4 }),
	fc.float64Array({ maxLength: 4 }),
	fc.bigInt64Array({ maxLength: 4 }),
	fc.bigUint64Array({ maxLength: 4 }),
);

type Entries = [key: string, value: unknown][];

/** Sets a key that may be called `__proto__`. */
export function setKey(target: object, name: string, value: unknown): void {
	Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

function withKeys<T extends object>(target: T, entries: Entries): T {
	for (const [name, value] of entries) setKey(target, name, value);
	return target;
}

function sparse(entries: [index: number, value: unknown][]): unknown[] {
	const array: unknown[] = [];
	for (const [index, value] of entries) array[index] = value;
	array.length += entries.length % 3;
	return array;
}

const ERRORS = [Error, TypeError, RangeError, URIError];

/** Values of all kinds inside each other, none of them twice. */
const { tree } = fc.letrec<{ tree: unknown; list: unknown[]; entries: Entries }>((tie) => ({
	list: fc.array(tie("tree"), { maxLength: 5 }),
	entries: fc.array(fc.tuple(key, tie("tree")), { maxLength: 5 }),
	tree: fc.oneof(
		{ maxDepth: 4, withCrossShrink: true },
		{ weight: 6, arbitrary: primitive },
		{ weight: 3, arbitrary: sealed },
		{ weight: 4, arbitrary: tie("list") },
		{ weight: 4, arbitrary: tie("entries").map((entries) => withKeys({}, entries)) },
		tie("entries").map((entries) => withKeys(new Plain(), entries)),
		fc.tuple(text, tie("tree")).map(([name, held]) => new Hooked(name, held)),
		fc.array(fc.tuple(tie("tree"), tie("tree")), { maxLength: 4 }).map((entries) => new Map(entries)),
		tie("list").map((list) => new Set(list)),
		fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), tie("tree")), { maxLength: 4 }).map(sparse),
		fc
			.tuple(fc.constantFrom(...ERRORS), text, tie("entries"), fc.option(tie("tree")))
			.map(([type, message, entries, cause]) => {
				const error = new type(message, cause === null ? {} : { cause });
				// The stack has the name in it, and is made when it is first asked for.
				assert.ok(error.stack);
				return withKeys(error, entries);
			}),
		fc.tuple(tie("list"), text).map(([errors, message]) => new AggregateError(errors, message)),
		fc
			.tuple(text, tie("entries"))
			.map(([content, entries]) => new HumanMessage({ content, additional_kwargs: withKeys({}, entries) })),
		fc.tuple(fc.option(text), tie("entries"), tie("list")).map(([id, args, list]) => {
			const tool_calls = [{ id: "1", name: "t", args: withKeys({}, args), type: "tool_call" as const }];
			return new AIMessage({ id: id ?? undefined, content: list as never, tool_calls });
		}),
		fc.tuple(text, tie("tree")).map(([content, artifact]) => new ToolMessage({ content, tool_call_id: "1", artifact })),
		fc
			.tuple(text, tie("entries"))
			.map(([pageContent, entries]) => new Document({ pageContent, metadata: withKeys({}, entries) })),
		tie("tree").map((value) => new DeltaSnapshot(value)),
	),
}));

export { tree };

/** Every object inside a value that something can be put into, in the order in which they are found. */
export function holdersOf(root: unknown): object[] {
	const found = new Set<object>();
	const visit = (value: unknown): void => {
		if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || found.has(value)) return;
		if (value instanceof ArrayBuffer || value instanceof URL || value instanceof RegExp || value instanceof Date)
			return;
		found.add(value);
		if (value instanceof Map) for (const [name, item] of value) [name, item].forEach(visit);
		else if (value instanceof Set) value.forEach(visit);
		// What is LangChain's own in a message is made anew with it.
		else
			for (const name of Object.keys(value))
				if (!name.startsWith("lc_")) visit((value as Record<string, unknown>)[name]);
		if (value instanceof Error) [value.cause, (value as AggregateError).errors].forEach(visit);
	};
	visit(root);
	return [...found].filter((holder) => !("lc_serializable" in holder) && !(holder instanceof Hooked));
}

/** Puts one object into another, so that it is in two places, or holds itself. */
function link(holder: object, target: unknown, at: number): void {
	if (holder instanceof Map) holder.set(at % 2 ? target : `link ${at}`, target);
	else if (holder instanceof Set) holder.add(target);
	else if (Array.isArray(holder)) holder.push(target);
	else if (holder instanceof DeltaSnapshot) (holder as { value: unknown }).value = target;
	else if (holder instanceof Document) holder.metadata = { ...holder.metadata, link: target };
	else setKey(holder, `link ${at % 3}`, target);
}

const links = fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 6 });

/** Values of all kinds inside each other, also more than once, also inside themselves. */
export const graph = fc.tuple(tree, links).map(([root, pairs]) => {
	const holders = holdersOf(root);
	if (holders.length > 0)
		for (const [at, [from, to]] of pairs.entries())
			link(holders[from % holders.length]!, holders[to % holders.length], at);
	return root;
});
