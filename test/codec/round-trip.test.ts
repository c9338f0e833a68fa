import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CheckpointError, type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { assertSame } from "./same.ts";
import { CHANGED, LARGE, LOSSLESS } from "./values.ts";

const SAVERS: Record<string, () => DeltaSaver> = {
	MemorySaver: () => new MemorySaver(),
	SqliteSaver: () => new SqliteSaver(":memory:"),
};

/** Every place that a value can have: alone, inside others, with neighbours that must not take its place. */
const PLACES: Record<string, (value: unknown) => unknown> = {
	alone: (value) => value,
	element: (value) => ["before", value, { after: [1] }],
	property: (value) => ({ before: {}, value, after: [{}] }),
	deep: (value) => ({ a: [{ b: [[value]] }, { c: { value: null } }] }),
	inMap: (value) => new Map([["key", { value }]]),
	twice: (value) => [value, { again: value }],
};

async function store(saver: DeltaSaver, value: unknown) {
	const places = Object.entries(PLACES);
	const checkpoint = {
		...emptyCheckpoint(),
		channel_values: Object.fromEntries(places.map(([place, put]) => [place, put(value)])),
		channel_versions: Object.fromEntries(places.map(([place]) => [place, 1])),
	};
	const metadata = { source: "loop" as const, step: 1, parents: {}, value, list: [value, "after"] };
	const config = { configurable: { thread_id: "t" } };
	const stored = await saver.put(config, checkpoint, metadata, checkpoint.channel_versions);
	const writes = places.map(([place, put]): [string, unknown] => [place, put(value)]);
	await saver.putWrites(stored, writes, "task");
	return { config, metadata };
}

async function assertComesBack(saver: DeltaSaver, given: unknown, expected: unknown): Promise<void> {
	const { config, metadata } = await store(saver, given);
	const tuple = (await saver.getTuple(config))!;
	for (const [i, [place, put]] of Object.entries(PLACES).entries()) {
		assertSame(tuple.checkpoint.channel_values[place], put(expected));
		const [task, channel, written] = tuple.pendingWrites![i]!;
		assertSame([task, channel, written], ["task", place, put(expected)]);
	}
	assertSame(tuple.metadata, { ...metadata, value: expected, list: [expected, "after"] });
}

describe.each(Object.entries(SAVERS))("%s", (_, make) => {
	let saver: DeltaSaver;
	beforeEach(() => {
		saver = make();
	});
	afterEach(() => saver.close());

	it.each(Object.entries(LOSSLESS))("gives back as it was, in every place: %s", async (_, create) => {
		const value = create();
		await assertComesBack(saver, value, value);
		expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
	});

	it.each(Object.entries(CHANGED).filter(([name]) => !name.includes("alone")))(
		"stores in every place: %s",
		async (_, [given, stored]) => {
			await assertComesBack(saver, given(), stored());
		},
	);
});

describe("the codec", () => {
	const codec = new DeltaCodec();

	it.each(Object.entries(LOSSLESS))("gives the same bytes again for what it gave back: %s", (_, create) => {
		const { bytes } = codec.encode(create());
		const decoded = codec.decode({ type: undefined, bytes });
		const again = new DeltaCodec().encode(decoded).bytes;
		expect(Buffer.compare(again, bytes)).toBe(0);
	});

	it.each(Object.entries(LARGE))("gives back as it was: %s", (_, create) => {
		const value = create();
		assertSame(codec.decode(codec.encode(value)), value);
		assertSame(codec.decode(codec.encode({ value: [value] })), { value: [value] });
	});

	it.each(Object.entries(CHANGED))("stores: %s", (_, [given, stored]) => {
		assertSame(codec.decode(codec.encode(given())), stored());
	});

	it("gives the same bytes whatever NaN it is given", () => {
		const odd = new Float64Array(new BigUint64Array([0xfff8_0000_0000_0123n]).buffer)[0];
		const nans = [Number.NaN, Math.sqrt(-1), Number.POSITIVE_INFINITY - Number.POSITIVE_INFINITY, odd];
		const all = nans.map((nan) => Buffer.from(codec.encode([nan, new Date(nan!)]).bytes).toString("hex"));
		expect(new Set(all).size).toBe(1);
	});

	it("stores the bytes of another realm's arrays as bytes", async () => {
		const { runInNewContext } = await import("node:vm");
		const given = runInNewContext("[new Uint8Array([1, 2]), new Int16Array([3]), { plain: [1] }]");
		assertSame(codec.decode(codec.encode(given)), [new Uint8Array([1, 2]), new Int16Array([3]), { plain: [1] }]);
	});

	it("gives back a fresh value each time, that shares no bytes with the stored ones", () => {
		const { bytes } = codec.encode({ list: [new Uint8Array([1, 2, 3]), Buffer.from("abc")], map: new Map([[1, {}]]) });
		const before = bytes.slice();
		const first = codec.decode({ type: undefined, bytes }) as any;
		first.list[0].fill(0);
		first.list[1].fill(0);
		first.map.get(1).changed = true;
		expect(bytes).toEqual(before);
		const second = codec.decode({ type: undefined, bytes });
		assertSame(second, { list: [new Uint8Array([1, 2, 3]), Buffer.from("abc")], map: new Map([[1, {}]]) });
	});

	it("does not depend on bytes that it decoded before", () => {
		const bytes = Buffer.from(codec.encode({ "the old name": 1 }).bytes);
		assertSame(codec.decode({ type: undefined, bytes }), { "the old name": 1 });
		bytes.set(Buffer.from("tee"), bytes.indexOf("the"));
		assertSame(codec.decode({ type: undefined, bytes }), { "tee old name": 1 });
	});

	it("can be called by what it encodes and decodes", () => {
		const inner = new DeltaCodec({ classes: { Nested: { class: Nested, encode: pack, decode: unpack } } });
		function pack(value: Nested): Uint8Array {
			return inner.encode({ ...value }).bytes;
		}
		function unpack(bytes: Uint8Array): Nested {
			return Object.assign(new Nested(), inner.decode({ type: undefined, bytes }));
		}
		const value = [1, Object.assign(new Nested(), { child: Object.assign(new Nested(), { n: [2] }) }), "end"];
		assertSame(inner.decode(inner.encode(value)), value);
	});

	it("stores an error whose stack can't be put into words without it", () => {
		const before = Error.prepareStackTrace;
		Error.prepareStackTrace = () => {
			throw new TypeError("no words");
		};
		let back: Error[];
		try {
			back = codec.decode(codec.encode([new Error("x")])) as Error[];
		} finally {
			Error.prepareStackTrace = before;
		}
		expect([back[0]!.message, back[0]!.stack]).toEqual(["x", undefined]);
	});

	it("refuses what is nested too deeply to be read again, and works on", () => {
		const nest = (levels: number, wrap: (inner: unknown) => unknown) =>
			Array.from({ length: levels }).reduce<unknown>((inner) => wrap(inner), 1);
		const wraps: ((inner: unknown) => unknown)[] = [
			(inner) => [inner],
			(inner) => ({ inner }),
			(inner) => new Map([[1, inner]]),
			(inner) => new Error("", { cause: inner }),
		];
		for (const wrap of wraps) {
			const deepest = nest(499, wrap);
			const decoded = codec.decode(codec.encode([deepest]));
			expect(Buffer.from(codec.encode(decoded).bytes).equals(codec.encode([deepest]).bytes)).toBe(true);
			for (const levels of [501, 5000, 20_000])
				expect(() => codec.encode([nest(levels, wrap)])).toThrow(expect.objectContaining({ code: "UNSERIALIZABLE" }));
		}
		assertSame(codec.decode(codec.encode({ fine: [1] })), { fine: [1] });
	});

	it("says what is wrong when a value can't be looked at", () => {
		const bad = {
			get a(): never {
				throw new RangeError("not now");
			},
		};
		expect(() => codec.encode([bad])).toThrow(CheckpointError);
		expect(() => codec.encode([bad])).toThrow(/not now/);
		const endless = (): unknown => ({ toJSON: () => [endless()] });
		expect(() => codec.encode(endless())).toThrow(/nested too deeply/);
		const odd = {
			toJSON() {
				throw null;
			},
		};
		expect(() => codec.encode(odd)).toThrow(expect.objectContaining({ code: "UNSERIALIZABLE" }));
		assertSame(codec.decode(codec.encode([1])), [1]);
	});
});

class Nested {
	child?: Nested;
	n?: number[];
}
