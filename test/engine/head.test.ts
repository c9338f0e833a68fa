import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Encoded } from "../../src/codec/codec.ts";
import { type Cell, packFields, unpackFields } from "../../src/engine/cells.ts";
import { type Head, packHead, unpackHead } from "../../src/engine/head.ts";
import { noise } from "../support/byte-samples.ts";

const SEED = 20261116;

/** Names that an object, a pattern or an encoder may take for something else. */
const NAMES = [
	"messages",
	"",
	" ",
	"0",
	"-1",
	"__proto__",
	"constructor",
	"hasOwnProperty",
	"toString",
	"toJSON",
	"length",
	"branch:to:node",
	"__pregel_tasks",
	"a\u0000b",
	"é",
	"🧵",
	"half \uD83D",
	"x".repeat(70_000),
];

describe("a head", () => {
	it("comes back as it was packed", () => {
		const head = make({
			manifest: new Map<string, Cell>([
				["number", 7],
				["inline", inline(noise(40, 1))],
				["empty", inline(new Uint8Array(0))],
			]),
		});
		expect(unpackHead(packHead(head))).toEqual(head);
	});

	it("without channels, versions or nodes comes back", () => {
		const head = make({ versions: {}, seen: {}, manifest: new Map() });
		expect(unpackHead(packHead(head))).toEqual(head);
	});

	it("keeps the order of its channels, also of those that look like numbers", () => {
		const manifest = new Map<string, Cell>(["b", "2", "a", "1", "10"].map((name, n) => [name, n]));
		expect([...unpackHead(packHead(make({ manifest }))).manifest.keys()]).toEqual(["b", "2", "a", "1", "10"]);
	});

	it.each(NAMES.map((name) => [JSON.stringify(name).slice(0, 30), name]))(
		"keeps a channel and a node called %s",
		(_, name) => {
			const versions = own<string | number>([
				[name, 3],
				["other", "00000000000000000000000000000004.5"],
			]);
			const seen = own([
				[name, versions],
				["node", own<string | number>([[name, 1]])],
			]);
			const manifest = new Map<string, Cell>([
				[name, 5],
				["other", inline(noise(3, 1))],
			]);
			const found = unpackHead(packHead(make({ versions, seen, manifest })));
			expect(Object.entries(found.versions)).toEqual(Object.entries(versions));
			expect(Object.hasOwn(found.versions, name)).toBe(true);
			expect(Object.getPrototypeOf(found.versions)).toBe(Object.prototype);
			expect(Object.entries(found.seen).map(([node, at]) => [node, Object.entries(at)])).toEqual([
				...Object.entries(seen).map(([node, at]) => [node, Object.entries(at)]),
			]);
			expect([...found.manifest]).toEqual([...manifest]);
		},
	);

	it("keeps the tag that a custom serializer gave", () => {
		for (const type of ["json", "", "bjson", "__proto__", "🧵", "x".repeat(300)]) {
			const cell: Cell = { type, bytes: noise(10, 1) };
			const found = unpackHead(packHead(make({ metadata: cell, manifest: new Map([["channel", cell]]) })));
			expect(found.metadata).toEqual(cell);
			expect(found.manifest.get("channel")).toEqual(cell);
		}
	});

	it("keeps how it came to be", () => {
		for (const again of [[], [9], [9, 2 ** 40]])
			for (const absorbed of [true, false]) {
				const resumedAt = again.length > 0 ? { log: 3, other: "v" } : undefined;
				const origin = {
					actor: 7,
					absorbed,
					copyOf: absorbed ? undefined : "original",
					again,
					resumedAt,
					firstVersions: resumedAt,
				};
				expect(unpackHead(packHead(make({ origin }))).origin).toEqual(origin);
			}
		expect(unpackHead(packHead(make())).origin).toBe(undefined);
	});

	it("names blobs of any number", () => {
		for (const id of [0, 1, 127, 128, 65_536, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER])
			expect(unpackHead(packHead(make({ manifest: new Map([["channel", id]]) }))).manifest.get("channel")).toBe(id);
	});

	it("packs to the same bytes whatever class its bytes came in, and when it is packed again", () => {
		const manifest = (bytes: Uint8Array) =>
			new Map<string, Cell>([
				["inline", inline(bytes)],
				["tagged", { type: "json", bytes }],
				["again", inline(bytes.slice())],
			]);
		const packed = packHead(make({ manifest: manifest(noise(50, 1)) }));
		const fromBuffer = packHead(make({ manifest: manifest(Buffer.from(noise(50, 1))) }));
		expect(unpackHead(fromBuffer)).toEqual(unpackHead(packed));
		expect(fromBuffer).toEqual(packed);
		expect(packHead(unpackHead(packed))).toEqual(packed);
		expect(packHead(unpackHead(Buffer.from(packed)))).toEqual(packed);
	});

	it("can name the very same bytes twice", () => {
		const cell = inline(noise(30, 1));
		const head = make({
			metadata: cell,
			manifest: new Map([
				["a", cell],
				["b", cell],
			]),
		});
		expect(unpackHead(packHead(head))).toEqual(head);
	});

	it("that is unpacked does not hang on the bytes it came from", () => {
		const head = make({ manifest: new Map([["channel", inline(noise(40, 1))]]) });
		const packed = packHead(head);
		const found = unpackHead(packed);
		packed.fill(0);
		expect(found).toEqual(head);
	});

	it("comes back whatever is in it", () => {
		fc.assert(
			fc.property(heads, (head) => {
				expect(unpackHead(packHead(head))).toEqual(head);
			}),
			{ seed: SEED, numRuns: 300 },
		);
	});

	it("without a version of its format or a time comes back without them", () => {
		const head = make({ v: undefined as never, ts: undefined as never });
		expect(unpackHead(packHead(head))).toEqual(head);
	});

	it("keeps versions that JSON has words for, and refuses others", () => {
		const versions = { none: null, both: [1, { a: "b" }] } as unknown as Head["versions"];
		expect(unpackHead(packHead(make({ versions })))).toEqual(make({ versions }));
		const circular: unknown[] = [];
		circular.push(circular);
		for (const odd of [circular, 2n])
			expect(codeOf(() => packHead(make({ versions: { odd } as never })))).toBe("UNSERIALIZABLE");
	});

	it("packs the same twice", () => {
		fc.assert(
			fc.property(heads, (head) => {
				expect(packHead(head)).toEqual(packHead({ ...head }));
			}),
			{ seed: SEED, numRuns: 100 },
		);
	});
});

describe("stored bytes that are no head", () => {
	const packed = packHead(
		make({
			manifest: new Map<string, Cell>([
				["channel", 5],
				["other", inline(noise(20, 1))],
			]),
		}),
	);

	it("are refused as corrupt, wherever they are cut off or extended", () => {
		for (let length = 0; length < packed.length; length++)
			expect(codeOf(() => unpackHead(packed.subarray(0, length)))).toBe("CORRUPT");
		expect(codeOf(() => unpackHead(Buffer.concat([packed, packed])))).toBe("CORRUPT");
	});

	it("are refused as corrupt if they are another row", () => {
		const cell = inline(noise(1, 1));
		const rows: [unknown[], Cell[]][] = [
			[[], []],
			[[4, "ts", {}, {}, null, []], []],
			[[4, "ts", {}, {}, null, []], [1]],
			[
				[4, "ts", {}, {}, null, []],
				[cell, cell],
			],
			[
				[4, "ts", {}, {}, null, ["a", "b"]],
				[cell, cell],
			],
			[
				[4, "ts", {}, {}, null, "a"],
				[cell, cell],
			],
			[[4, "ts", [], {}, null, []], [cell]],
			[[4, "ts", {}, null, null, []], [cell]],
			[[null, [1]], [cell]],
		];
		for (const [fields, cells] of rows)
			expect(
				codeOf(() => unpackHead(packFields(fields, cells))),
				JSON.stringify(fields),
			).toBe("CORRUPT");
	});

	it("are refused as corrupt if they are no row", () => {
		const cells = [
			[[]],
			[["1"]],
			[[-1]],
			[[0.5]],
			[[0, 7]],
			[[1]],
			[null],
			["text"],
			[{}],
			[true],
			5,
			null,
			"text",
			{},
		];
		const texts = ["", "5", "null", "{}", "[]", "[", "\ufeff[[]]", ...cells.map((list) => JSON.stringify([list]))];
		for (const text of texts) {
			const bytes = new TextEncoder().encode(text);
			expect(
				codeOf(() => unpackFields(Uint8Array.of(...bytes, 0))),
				text,
			).toBe("CORRUPT");
		}
	});

	it("whatever they are, are read or refused as corrupt", () => {
		fc.assert(
			fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
				expect([undefined, "CORRUPT"]).toContain(codeOf(() => unpackHead(bytes)));
			}),
			{ seed: SEED, numRuns: 1_500 },
		);
	});
});

describe("fields and cells", () => {
	it("come back as they were packed", () => {
		const cells: Cell[] = [0, 5, inline(noise(10, 1)), { type: "json", bytes: new Uint8Array(0) }];
		expect(unpackFields(packFields(["task", 7, null], cells))).toEqual({ fields: ["task", 7, null], cells });
		expect(unpackFields(packFields([], []))).toEqual({ fields: [], cells: [] });
	});
});

const name = fc.oneof(
	fc.string({ maxLength: 20 }),
	fc.string({ unit: "binary", maxLength: 5 }),
	fc.constantFrom(...NAMES.slice(0, 17)),
);
const version = fc.oneof(
	fc.maxSafeNat(),
	fc.string({ maxLength: 40 }),
	fc.double({ noNaN: true, noDefaultInfinity: true, min: 0.5 }),
);
const versions = fc.array(fc.tuple(name, version), { maxLength: 6 }).map(own);
const encoded = fc.record({
	type: fc.option(fc.string({ maxLength: 8 }), { nil: undefined }),
	bytes: fc.uint8Array({ maxLength: 100 }),
});
const heads: fc.Arbitrary<Head> = fc.record({
	v: fc.nat(10),
	ts: fc.string(),
	versions,
	seen: fc.array(fc.tuple(name, versions), { maxLength: 4 }).map(own),
	metadata: encoded,
	origin: fc.option(
		fc.record({
			actor: fc.option(fc.maxSafeNat(), { nil: undefined }),
			absorbed: fc.boolean(),
			copyOf: fc.option(fc.string(), { nil: undefined }),
			again: fc.array(fc.maxSafeNat(), { maxLength: 3 }),
			resumedAt: fc.option(versions, { nil: undefined }),
		}),
		{
			nil: undefined,
		},
	),
	manifest: fc
		.array(fc.tuple(name, fc.oneof(fc.maxSafeNat(), encoded)), { maxLength: 6 })
		.map((cells) => new Map<string, Cell>(cells)),
});

function make(parts: Partial<Head> = {}): Head {
	const versions = { messages: 3, "branch:to:agent": "00000000000000000000000000000002.0" };
	const metadata = inline(new TextEncoder().encode('{"source":"loop"}'));
	const seen = { agent: { messages: 2 }, __input__: {} };
	return {
		v: 4,
		ts: "2026-11-16T00:00:00.000Z",
		versions,
		seen,
		metadata,
		origin: undefined,
		manifest: new Map(),
		...parts,
	};
}

function inline(bytes: Uint8Array): Encoded {
	return { type: undefined, bytes };
}

/** An object of these entries, also one called `__proto__`. */
function own<T>(entries: [string, T][]): Record<string, T> {
	return Object.fromEntries(entries);
}

function codeOf(call: () => unknown): unknown {
	try {
		call();
		return undefined;
	} catch (error) {
		return (error as { code?: unknown }).code ?? error;
	}
}
