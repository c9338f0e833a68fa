import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { applyPatches } from "../../src/engine/blobs/byte-delta.ts";
import { unpackHistory } from "../../src/engine/delta-channels/raw-history.ts";
import { unpackHead } from "../../src/engine/head.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { Sealer } from "../../src/storage/sealed/sealer.ts";
import { CLASSES } from "./arbitraries.ts";
import { CLASS_NAMES, nameOfArgument, readEnvelope, readFields, readPatch, readValue, Tagged } from "./reader.ts";
import { assertSame } from "./same.ts";
import { BASES, ENVELOPES, fromHex, HEADS, hex, identityOf, makeVectors, PATCHES, VALUES } from "./vector-inputs.ts";
import vectors from "./vectors.json" with { type: "json" };

type Table = keyof typeof vectors;
const made = makeVectors();
const stored = (table: Table, name: string) => fromHex((vectors[table] as Record<string, string>)[name]!);
const isExact = (table: Table, name: string) => table !== "envelopes" || ENVELOPES[name]!.isExact;

describe("the stored bytes", () => {
	for (const table of Object.keys(vectors) as Table[]) {
		it(`are written down for each of the ${table}`, () => {
			expect(Object.keys(vectors[table])).toEqual(Object.keys(made[table]));
		});

		it.each(Object.keys(made[table]).filter((name) => isExact(table, name)))(`of ${table} are as ever: %s`, (name) => {
			expect(made[table][name]).toBe((vectors[table] as Record<string, string>)[name]);
		});
	}

	it.each(Object.entries(VALUES))("of values are read as ever: %s", async (name, create) => {
		const codec = new DeltaCodec({ classes: CLASSES });
		const back = await codec.decode({ type: undefined, bytes: stored("values", name) });
		if (name === "an object for LangChain's loader") expect(JSON.stringify(back)).toBe(JSON.stringify(create()));
		else assertSame(back, create());
	});

	it.each(Object.entries(HEADS))("of heads are read as ever: %s", (name, head) => {
		expect(unpackHead(stored("heads", name))).toEqual(head);
	});

	it.each(Object.entries(BASES))("of delta bases are read as ever: %s", (name, base) => {
		expect(unpackHistory(stored("bases", name))).toEqual(base);
	});

	it.each(Object.entries(PATCHES))("of patches are read as ever: %s", (name, [base, next]) => {
		const [from, patch] = [new TextEncoder().encode(base), stored("patches", name)];
		for (const result of [applyPatches(from, [{ patch }]), readPatch(from, patch)])
			expect(Buffer.from(result).toString()).toBe(next);
	});

	it.each(Object.entries(ENVELOPES))("of envelopes are read as ever: %s", (name, envelope) => {
		const content = new Sealer(envelope.options).open(stored("envelopes", name), identityOf(envelope));
		expect(hex(content)).toBe(hex(envelope.content));
	});
});

/** A value without the classes that the reader tells apart by tags. */
function plainOf(value: unknown): unknown {
	if (value instanceof Tagged) return { tag: value.tag, fields: value.fields.map(plainOf) };
	if (Array.isArray(value)) return value.map(plainOf);
	if (typeof value !== "object" || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainOf(item)]));
}

describe("a reader that was written from the description", () => {
	it("reads every value, and finds the object of every reference", () => {
		const untagged = ["booleans", "floats", "bigints", "a string", "a string with half a pair", "bytes", "dates"];
		const more = [
			"an array of arrays",
			"an object",
			"an object of 16",
			"an array that begins with undefined",
			"text that begins with a byte order mark",
			"negative zero",
			"a string of 256 bytes",
			"256 bytes",
		];
		const integers = Object.keys(VALUES).filter((name) => name.includes("integers"));
		for (const name of [...untagged, ...more, ...integers])
			assertSame(readValue(stored("values", name)), VALUES[name]!());
		const [object, list, , half, map] = readValue(stored("values", "shared and circular objects")) as any[];
		expect([object.self === object, object.list === list, map.fields[0] === object, half]).toEqual([
			true,
			true,
			true,
			"\ud800",
		]);
		expect(plainOf(readValue(stored("values", "a message")))).toEqual({
			tag: 32 + CLASS_NAMES.indexOf("HumanMessage"),
			fields: [1, "hi", 0, "1", 2, {}, 3, {}],
		});
		for (const name of Object.keys(VALUES)) expect(() => readValue(stored("values", name))).not.toThrow();
	});

	const KEY = new Uint8Array(32).fill(5);

	it.each([
		["in clear", undefined],
		["encrypted", KEY],
	])("reads a database, %s", async (_, key) => {
		const db = new Database(":memory:");
		await using saver = new SqliteSaver(db, key && { encryption: { key } });
		let config: object = { configurable: { thread_id: "thread" } };
		const messages: unknown[] = [];
		const ids: string[] = [];
		for (let step = 0; step < 8; step++) {
			messages.push(
				new HumanMessage({ content: `question ${step} `.repeat(40), id: `h${step}` }),
				new AIMessage("yes"),
			);
			const values = { messages: [...messages], step, text: "long text, compressed ".repeat(100) };
			const versions = { messages: step + 1, step: step + 1, text: 1 };
			const checkpoint = { ...emptyCheckpoint(), channel_values: values, channel_versions: versions };
			ids.push(checkpoint.id);
			const metadata = { source: "loop" as const, step, parents: {} };
			config = await saver.put(
				config,
				checkpoint,
				metadata,
				step === 0 ? versions : { messages: step + 1, step: step + 1 },
			);
		}
		await saver.putWrites(
			config,
			[
				["messages", "small"],
				["messages", "large ".repeat(200)],
			],
			"task",
			"~path",
		);

		const thread = key ? "thread" : null;
		const newest = "SELECT *, checkpoint_id AS id FROM delta_checkpoints ORDER BY checkpoint_id DESC LIMIT 1";
		const row = db.prepare(newest).get() as any;
		const open = (data: Uint8Array, ...identity: unknown[]) => readEnvelope(data, identity, key);
		const readBlob = (id: number): Uint8Array => {
			const { base, source, type, data } = db.prepare("SELECT * FROM delta_blobs WHERE id = ?").get(id) as any;
			const content = open(data, "blob", id, base, source, type);
			return base === null ? content : readPatch(readBlob(base), content);
		};
		const readCell = (cell: unknown) => readValue(typeof cell === "number" ? readBlob(cell) : (cell as Uint8Array));

		expect(row.id).toBe(ids.at(-1));
		const { ns, parent_id, run_id, source, step } = row;
		const named = JSON.parse(row.blobs);
		const head = readFields(open(row.head, "checkpoint", thread, ns, row.id, parent_id, run_id, source, step, named));
		const [v, , versions, , , channels] = head.fields as any[];
		const [metadata, ...cells] = head.cells;
		expect([v, versions]).toEqual([4, { messages: 8, step: 8, text: 1 }]);
		expect(readCell(metadata)).toEqual({ source: "loop", step: 7, parents: {} });
		const read = Object.fromEntries(channels.map((channel: string, n: number) => [channel, readCell(cells[n])]));
		expect([read.step, read.text]).toEqual([7, "long text, compressed ".repeat(100)]);
		expect(
			read.messages.map(({ tag, fields }: Tagged) => [
				CLASS_NAMES[tag - 32],
				fields[fields.findIndex((key, i) => i % 2 === 0 && nameOfArgument(key) === "content") + 1],
			]),
		).toEqual(messages.map((message: any) => [message.constructor.name, message.content]));
		expect(db.prepare("SELECT count(*) FROM delta_blobs WHERE base IS NOT NULL").pluck().get()).toBeGreaterThan(0);

		const writes = db.prepare("SELECT * FROM delta_writes ORDER BY idx").all() as any[];
		expect(writes.map(({ task_id, task_path, idx, channel }) => [task_id, task_path, idx, channel])).toEqual([
			["task", "~path", 0, "messages"],
			["task", "~path", 1, "messages"],
		]);
		const values = writes.map(({ task_id, idx, task_path, channel, run_id, actor, type, blob, value }) => {
			const identity = ["write", thread, "", row.id, task_id, idx, task_path, channel, run_id, actor, type, blob];
			const content = open(value, ...identity);
			return readCell(blob ?? content);
		});
		expect(values).toEqual(["small", "large ".repeat(200)]);
		db.close();
	});
});
