import { Document } from "@langchain/core/documents";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { ARGUMENTS } from "../../src/codec/format.ts";
import { diffBytes } from "../../src/engine/blobs/byte-delta.ts";
import { packHistory, type RawHistory } from "../../src/engine/delta-channels/raw-history.ts";
import { type Head, packHead } from "../../src/engine/head.ts";
import { Sealer } from "../../src/storage/sealed/sealer.ts";
import { CLASSES, Hooked, Plain } from "./arbitraries.ts";

const codec = new DeltaCodec({ classes: CLASSES });
const bytes = (text: string) => new TextEncoder().encode(text);

function shared(): unknown {
	const object: Record<string, unknown> = { list: [new Date(0)] };
	object.self = object;
	return [object, object.list, new Uint8Array([1]), "\ud800", new Map([[object, 1]])];
}

function sparse(): unknown[] {
	const array: unknown[] = [];
	array[3] = "d";
	array.length = 5;
	return array;
}

/** Values and what is special about them. */
export const VALUES: Record<string, () => unknown> = {
	null: () => null,
	undefined: () => undefined,
	booleans: () => [false, true],
	"positive integers": () => [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31 - 1],
	"an integer of 32 bits": () => 2 ** 32 - 1,
	"negative integers": () => [-1, -32, -33, -128, -129, -(2 ** 31)],
	"integers that are floats": () => [2 ** 31, 2 ** 32, -(2 ** 31) - 1, 2 ** 53],
	floats: () => [0.5, -1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
	"negative zero": () => -0,
	bigints: () => [0n, 1n, -1n, 255n, 256n, -(2n ** 64n)],
	"a bigint of 256 bytes": () => 2n ** 2040n,
	"an empty string": () => "",
	"a string": () => "é中🧵\0",
	"strings of 31 and 32 bytes": () => ["x".repeat(31), "x".repeat(32), "é".repeat(15), "é".repeat(16)],
	"a string of 256 bytes": () => "x".repeat(256),
	"a string with half a pair": () => "a\ud83e",
	"an empty array": () => [],
	"an array of arrays": () => [[], [1, [2]], [null]],
	"an array of 16": () => [Array.from({ length: 16 }, (_, n) => n)],
	"an empty object": () => ({}),
	"an object": () => ({ b: 1, a: { c: undefined, d: null } }),
	"an object with odd keys": () => JSON.parse('{"": 1, "__proto__": {"constructor": 2}, "\\ud800": 3}'),
	"an object of 16": () => [Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k${n}`, n]))],
	"arguments that have numbers": () =>
		// A message decides on its type itself.
		new HumanMessage(
			Object.fromEntries(ARGUMENTS.filter((name) => name !== "type").map((name) => [name, name])) as never,
		),
	"an array that begins with undefined": () => [[undefined, 1], [undefined]],
	"text that begins with a byte order mark": () => "\ufeffx",
	bytes: () => new Uint8Array([0, 127, 255]),
	"256 bytes": () => new Uint8Array(256).fill(7),
	dates: () => [new Date(0), new Date("2026-11-16T01:02:03.004Z"), new Date(Number.NaN)],
	"a map": () =>
		new Map<unknown, unknown>([
			["a", 1],
			[{ k: 1 }, new Map()],
		]),
	"a set": () => new Set<unknown>([1, "1", [1]]),
	"an error": () => Object.assign(new TypeError("no"), { stack: "TypeError: no", code: "E_NO" }),
	"an error with a cause": () => Object.assign(new Error("no", { cause: "why" }), { stack: "Error: no" }),
	"an error of several": () => Object.assign(new AggregateError([1], "all"), { stack: "AggregateError: all" }),
	"a pattern": () => Object.assign(/a\/b/gi, { lastIndex: 2 }),
	"a URL": () => new URL("https://example.com/a?b#c"),
	"typed arrays": () => [
		new Int8Array([-1]),
		new Uint8ClampedArray([255]),
		new Int16Array([-2]),
		new Uint16Array([258]),
		new Int32Array([-3]),
		new Uint32Array([16_909_060]),
		new Float32Array([0.5]),
		new Float64Array([0.1]),
		new BigInt64Array([-1n]),
		new BigUint64Array([1n]),
		new DataView(new Uint8Array([1, 2]).buffer),
	],
	buffers: () => [new Uint8Array([1, 2]).buffer, Buffer.from([3])],
	"an array with holes": () => sparse(),
	"shared and circular objects": () => shared(),
	"a message": () => new HumanMessage({ content: "hi", id: "1" }),
	"a message with a tool call": () =>
		new AIMessage({ content: "", tool_calls: [{ id: "c", name: "t", args: { a: 1 }, type: "tool_call" }] }),
	"a document": () => new Document({ pageContent: "text", metadata: { a: 1 }, id: "d" }),
	"a snapshot of a delta channel": () => new DeltaSnapshot(["a"]),
	"instances of registered classes": () => [Object.assign(new Plain(), { a: 1 }), new Hooked("n", null)],
	"an object for LangChain's loader": () => new StringOutputParser(),
	"what looks like LangChain's own": () => ({ lc: 1, type: "constructor", id: ["x"], kwargs: {} }),
};

const plainHead: Head = {
	v: 4,
	ts: "2026-11-16T01:02:03.004Z",
	versions: {},
	seen: {},
	metadata: { type: undefined, bytes: codec.encode({ source: "input", step: -1 }).bytes },
	origin: undefined,
	manifest: new Map(),
};

export const HEADS: Record<string, Head> = {
	"an empty checkpoint": plainHead,
	"values in blobs, in place, and of a custom serializer": {
		...plainHead,
		versions: { messages: 3, "branch:to:a": "00000002.5" },
		seen: { a: { messages: 2 }, __input__: {} },
		manifest: new Map<string, number | { type: string | undefined; bytes: Uint8Array }>([
			["messages", 300],
			["count", { type: undefined, bytes: codec.encode(7).bytes }],
			["custom", { type: "tjson", bytes: bytes("{}") }],
		]),
	},
	"an origin": { ...plainHead, origin: { actor: 1_763_254_923_004, absorbed: true, copyOf: "1ef", again: [5] } },
	"an origin that knows little": {
		...plainHead,
		origin: { actor: undefined, absorbed: false, copyOf: undefined, again: [] },
	},
};

export const BASES: Record<string, RawHistory> = {
	"nothing before the writes": { seed: undefined, writes: [] },
	"a seed and writes": {
		seed: 12,
		writes: [
			{ taskId: "task", cell: { type: undefined, bytes: codec.encode("x").bytes } },
			{ taskId: "task", cell: 13 },
		],
	},
};

const alphabet = "abcdefghijklmnopqrstuvwxyz 0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** A base and what it becomes. */
export const PATCHES: Record<string, [base: string, next: string]> = {
	"nothing changes": [alphabet, alphabet],
	"something is appended": [alphabet, `${alphabet}!`],
	"something is put before": [alphabet, `new ${alphabet}`],
	"something is put in": [alphabet, alphabet.replace("0", "a long insertion 0")],
	"something is cut out": [alphabet, alphabet.replace("0123456789", "")],
	"everything is new": ["old", "entirely new"],
	"nothing is left": [alphabet, ""],
	"300 bytes are kept": ["x".repeat(300), `${"x".repeat(300)}y`],
};

const KEY = Uint8Array.from({ length: 32 }, (_, n) => n);

interface Envelope {
	readonly content: Uint8Array;
	/** As it is with and without encryption. */
	readonly identity: { bound: unknown[]; free: unknown[] };
	readonly options: ConstructorParameters<typeof Sealer>[0];
	/** Whether the same envelope is made each time. */
	readonly isExact: boolean;
}

const blob = (id: number, base: number | null, type: string | null) => {
	const identity = ["blob", id, base, null, type];
	return { bound: identity, free: identity };
};
const row = (kind: string, ...rest: unknown[]) => ({ bound: [kind, "thread", ...rest], free: [kind, null, ...rest] });
const checkpoint = row("checkpoint", "ns", "1ef", "1ee", "run", "loop", 3, [7, 8]);
const plain = { compression: false };
const encryption = { keys: { k1: KEY }, current: "k1" };

export const ENVELOPES: Record<string, Envelope> = {
	"a blob": { content: bytes("content"), identity: blob(7, null, null), options: plain, isExact: true },
	"a blob that is a patch": { content: bytes("patch"), identity: blob(8, 7, "tjson"), options: plain, isExact: true },
	"an empty blob": { content: new Uint8Array(), identity: blob(9, null, null), options: plain, isExact: true },
	"a checkpoint": { content: bytes("head"), identity: checkpoint, options: plain, isExact: true },
	"a write": {
		content: bytes("value"),
		identity: row("write", "", "1ef", "task", -3, "~path", "__interrupt__", "run", 7, null, null),
		options: plain,
		isExact: true,
	},
	"a delta base": {
		content: bytes("base"),
		identity: row("delta base", "", "1ef", "é"),
		options: plain,
		isExact: true,
	},
	"a compressed blob": {
		content: bytes("compress me ".repeat(100)),
		identity: blob(10, null, null),
		options: { compression: true },
		isExact: false,
	},
	"an encrypted checkpoint": {
		content: bytes("secret"),
		identity: checkpoint,
		options: { ...plain, encryption },
		isExact: false,
	},
	"an encrypted write whose value is a blob": {
		content: new Uint8Array(),
		identity: row("write", "", "1ef", "task", 0, null, "messages", null, null, null, 258),
		options: { ...plain, encryption },
		isExact: false,
	},
	"an encrypted blob, compressed, under a key without a name": {
		content: bytes("compress me ".repeat(100)),
		identity: blob(11, null, null),
		options: { compression: true, encryption: { key: KEY } },
		isExact: false,
	},
};

export const hex = (data: Uint8Array) => Buffer.from(data).toString("hex");
export const fromHex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
export const identityOf =
	({ identity }: Envelope) =>
	(isBound: boolean) =>
		JSON.stringify(isBound ? identity.bound : identity.free);

const mapValues = <T>(table: Record<string, T>, make: (item: T) => Uint8Array) =>
	Object.fromEntries(Object.entries(table).map(([name, item]) => [name, hex(make(item))]));

/** All vectors as they are made now. */
export function makeVectors(): Record<"values" | "heads" | "bases" | "patches" | "envelopes", Record<string, string>> {
	return {
		values: mapValues(VALUES, (create) => codec.encode(create()).bytes),
		heads: mapValues(HEADS, packHead),
		bases: mapValues(BASES, packHistory),
		patches: mapValues(PATCHES, ([base, next]) => diffBytes(bytes(base), bytes(next)).patch),
		envelopes: mapValues(ENVELOPES, (envelope) => {
			const sealer = new Sealer(envelope.options);
			return sealer.seal(envelope.content, identityOf(envelope));
		}),
	};
}
