import { spawn } from "node:child_process";
import { createCipheriv } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, DeltaChannel, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import type { Checkpoint, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { CheckpointError } from "../../../src/index.ts";
import { type EncryptionOptions, SqliteSaver, type SqliteSaverOptions } from "../../../src/sqlite.ts";
import { MemoryStorage } from "../../../src/storage/memory/storage.ts";
import { Sealer } from "../../../src/storage/sealed/sealer.ts";
import { SealedStorage } from "../../../src/storage/sealed/storage.ts";
import type { Replacement } from "../../../src/storage/storage.ts";
import { inTemporaryFolder, root, typescript } from "../../support/run-node.ts";
import { isAll } from "../../support/share.ts";

const k1 = new Uint8Array(32).fill(1);
const k2 = new Uint8Array(32).fill(2);
const key = k1;

/** Where the sealed bytes are, and how their rows are told apart. Every other column can be read by anyone. */
const TABLES = {
	delta_checkpoints: { sealed: "head", key: ["thread_id", "ns", "checkpoint_id"] },
	delta_writes: { sealed: "value", key: ["thread_id", "ns", "checkpoint_id", "task_id", "generation", "idx"] },
	delta_bases: { sealed: "data", key: ["thread_id", "ns", "checkpoint_id", "channel"] },
	delta_blobs: { sealed: "data", key: ["id"] },
} as const;

type Table = keyof typeof TABLES;

/** The sealed bytes of a row of the database. */
interface SealedRow {
	readonly table: Table;
	readonly key: Record<string, unknown>;
	readonly bytes: Buffer;
}

function sealedRows(db: Database.Database, table?: Table): SealedRow[] {
	const tables = table === undefined ? (Object.keys(TABLES) as Table[]) : [table];
	return tables.flatMap((table) => {
		const { sealed, key } = TABLES[table];
		const from = isOfCheckpoint(table) ? `${table} JOIN delta_checkpoints ON pk = checkpoint_pk` : table;
		const rows = db.prepare(`SELECT ${key}, ${sealed} AS bytes FROM ${from} WHERE bytes NOTNULL ORDER BY ${key}`).all();
		return (rows as (Record<string, unknown> & { bytes: Buffer })[]).map(({ bytes, ...key }) => ({
			table,
			key,
			bytes,
		}));
	});
}

/** Whether its rows belong to a checkpoint, which they name by number. */
function isOfCheckpoint(table: Table): boolean {
	return table === "delta_writes" || table === "delta_bases";
}

/** Puts other bytes into a row, behind the back of the saver. */
function tamper(db: Database.Database, { table, key }: SealedRow, bytes: unknown): void {
	const where = Object.keys(key).map((column) => `${column} = ?`);
	const from = isOfCheckpoint(table) ? "FROM delta_checkpoints WHERE pk = checkpoint_pk AND" : "WHERE";
	const { changes } = db
		.prepare(`UPDATE ${table} SET ${TABLES[table].sealed} = ? ${from} ${where.join(" AND ")}`)
		.run(bytes, ...Object.values(key));
	expect(changes).toBe(1);
}

/** Which key a row is encrypted with; `undefined` for none. */
function keyName({ bytes }: SealedRow): string | undefined {
	if ((bytes[0]! & 2) === 0) return undefined;
	return bytes.subarray(2, 2 + bytes[1]!).toString();
}

function keyNames(db: Database.Database): Set<string | undefined> {
	return new Set(sealedRows(db).map(keyName));
}

function at(thread: string, id?: string, ns = "") {
	return { configurable: { thread_id: thread, checkpoint_ns: ns, ...(id && { checkpoint_id: id }) } };
}

async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
	const all: T[] = [];
	for await (const item of items) all.push(item);
	return all;
}

function noise(size: number): Buffer {
	return createCipheriv("aes-256-ctr", k2, new Uint8Array(16)).update(new Uint8Array(size));
}

/** Stores a checkpoint of which all channels are new. */
async function put(
	saver: SqliteSaver,
	{ thread, ns, id, parent, values }: { thread: string; ns?: string; id: string; parent?: string; values: object },
): Promise<void> {
	const step = Number(/\d+$/.exec(id)?.[0] ?? 0);
	const versions = Object.fromEntries([...Object.keys(values), "delta", "tally"].map((channel) => [channel, step + 1]));
	const checkpoint: Checkpoint = {
		v: 4,
		id,
		ts: new Date(step).toISOString(),
		channel_values: { ...values },
		channel_versions: versions,
		versions_seen: {},
	};
	const metadata = { source: "loop" as const, step, parents: {}, note: `metadata of ${thread} ${id}` };
	await saver.put(at(thread, parent, ns), checkpoint, metadata, versions);
}

/**
 * Rows of every kind, with the same ids in neighbouring threads: heads in two namespaces, whole blobs and patches,
 * writes in their rows and in blobs, and in threads `p` and `q` what prune records of delta channels.
 */
async function fill(saver: SqliteSaver): Promise<void> {
	for (const thread of ["a", "b", "p", "q"]) {
		let lines: string[] = [`${thread} has something to say. `.repeat(60)];
		for (const id of ["c1", "c2", "c3"]) {
			const parent = { c2: "c1", c3: "c2" }[id];
			lines = [...lines, `${thread} ${id}`];
			await put(saver, { thread, id, ...(parent && { parent }), values: { lines, small: `${thread} ${id}` } });
			for (const task of ["task-1", "task-2"])
				await saver.putWrites(
					at(thread, id),
					[
						["delta", `${thread} ${id} ${task}`],
						["tally", `${thread} ${id} ${task} `.repeat(50)],
					],
					task,
				);
		}
		await put(saver, { thread, ns: "child:1", id: "c1", values: { picture: noise(1000), small: thread } });
	}
	await saver.prune(["p", "q"]);
}

const KEYS = [
	...["a", "b"].flatMap((thread) => ["c1", "c2", "c3"].map((id) => at(thread, id))),
	...["p", "q"].map((thread) => at(thread, "c3")),
	...["a", "b", "p", "q"].map((thread) => at(thread, "c1", "child:1")),
];

/** Everything that {@link fill} left, or the errors that reading it gives. */
async function readAll(saver: SqliteSaver): Promise<unknown[]> {
	const found: unknown[] = [];
	for (const config of KEYS)
		try {
			const tuple = await saver.getTuple(config);
			const history = await saver.getDeltaChannelHistory({ config, channels: ["delta", "tally"] });
			found.push({ tuple, history });
		} catch (error) {
			found.push(error);
		}
	return found;
}

/** The errors among what was read. All the rest must be as it was stored. */
function expectOnlyErrors(found: readonly unknown[], expected: readonly unknown[]): CheckpointError[] {
	const errors = found.filter((item) => item instanceof Error) as CheckpointError[];
	for (const error of errors) {
		expect(error).toBeInstanceOf(CheckpointError);
		expect(error.code).toMatch(/^(CORRUPT|WRONG_KEY)$/);
		expect(error.message).toMatch(/Row \["(checkpoint|write|delta base|blob)",/);
	}
	const isRight = (item: unknown, i: number) => item instanceof Error || isDeepStrictEqual(item, expected[i]);
	expect(found.findIndex((item, i) => !isRight(item, i))).toBe(-1);
	return errors;
}

interface Scene {
	readonly db: Database.Database;
	/** Reads the rows each time anew. */
	readonly saver: SqliteSaver;
	readonly expected: readonly unknown[];
	/** Reads everything, expects errors and nothing else that is new. */
	expectDetected(what?: string): Promise<CheckpointError[]>;
	expectWhole(): Promise<void>;
}

async function filled(options: SqliteSaverOptions): Promise<Scene> {
	const db = new Database(":memory:");
	const saver = new SqliteSaver(db, { cacheBytes: 0, ...options });
	await fill(saver);
	const expected = await readAll(saver);
	expect(expected.filter((item) => item instanceof Error)).toEqual([]);
	return {
		db,
		saver,
		expected,
		expectDetected: async (what) => {
			const errors = expectOnlyErrors(await readAll(saver), expected);
			expect(errors.length, what).toBeGreaterThan(0);
			return errors;
		},
		expectWhole: async () => expect(await readAll(saver)).toEqual(expected),
	};
}

function pairs<T>(items: readonly T[]): [T, T][] {
	return items.flatMap((a, i) => items.slice(i + 1).map((b): [T, T] => [a, b]));
}

/** Error texts name the row in the words of its table. */
const KINDS: Record<Table, string> = {
	delta_checkpoints: "checkpoint",
	delta_writes: "write",
	delta_bases: "delta base",
	delta_blobs: "blob",
};

describe("the database file", () => {
	const Graph = Annotation.Root({
		small: Annotation<string>(),
		list: Annotation<unknown[]>({ reducer: (list, more) => list.concat(more), default: () => [] }),
		big: Annotation<string>(),
		bytes: Annotation<Uint8Array>(),
		delta: () => new DeltaChannel<string[], string[]>((items, writes) => [...items, ...writes.flat()]),
	});
	const Child = Annotation.Root({ inner: Annotation<string>(), list: Graph.spec.list });
	const run_id = "0badcafe-0000-4000-8000-000000000001";
	const inThread = (thread: string) => ({ configurable: { thread_id: thread, run_id } });

	/** Threads that hold marks, each in another kind of place. */
	async function runGraphs(saver: SqliteSaver, mark: (place: string) => string): Promise<void> {
		// A node that is interrupted runs again, when what it says then is not stored.
		const question = mark("interrupt");
		const child = new StateGraph(Child)
			.addNode("inside", () => ({ inner: mark("state of a subgraph"), list: [mark("item of a subgraph")] }))
			.addNode("ask", () => ({ inner: String(interrupt({ question })) }))
			.addEdge(START, "inside")
			.addEdge("inside", "ask")
			.compile();
		const graph = new StateGraph(Graph)
			.addNode("work", ({ list }) => ({
				small: mark("short value"),
				list: [
					new HumanMessage({ content: mark("message"), id: mark("id of a message") }),
					{ at: new Date(list.length) },
				],
				big: `${"some text around it ".repeat(200)}${mark("long value")}`,
				bytes: Buffer.from(`${"-".repeat(2000)}${mark("bytes")}`),
				delta: [mark("item of a delta channel"), mark("another item of a delta channel").repeat(30)],
			}))
			.addNode("each", (sent: unknown) => ({ list: [sent] }))
			.addNode("child", child)
			.addEdge(START, "work")
			.addConditionalEdges("work", () => [new Send("each", { to: mark("argument of a Send") }), "child"])
			.addEdge("child", END)
			.compile({ checkpointer: saver });
		await graph.invoke({ list: [mark("input")] }, inThread("talk"));
		await graph.invoke(new Command({ resume: mark("answer") }), inThread("talk"));
		await graph.invoke({ list: [mark("second input")] }, at("talk"));
		await graph.updateState(inThread("talk"), { list: [mark("update")] }, "each");
		const failing = new StateGraph(Graph)
			.addNode("fail", () => {
				throw new Error(mark("error"));
			})
			.addEdge(START, "fail")
			.compile({ checkpointer: saver });
		await expect(failing.invoke({ small: mark("input of a failing run") }, inThread("failed"))).rejects.toThrow();
		const { checkpoint, metadata } = (await saver.getTuple(at("talk")))!;
		const id = `${checkpoint.id}+`;
		const about = { ...metadata!, customer: mark("metadata"), [mark("key of metadata")]: 1 };
		await saver.put(at("talk", checkpoint.id), { ...checkpoint, id }, about, {});
		await saver.putWrites(
			at("talk", id),
			[
				["small", mark("short write")],
				["big", mark("long write").repeat(100)],
				["__error__", mark("special write").repeat(100)],
			],
			"task",
		);
	}

	/** Marks are found as they are in memory: as UTF-8, or with two bytes per character. */
	function findMarks(path: string, marks: readonly string[]): string[] {
		const files = [path, `${path}-wal`].filter(existsSync).map((file) => readFileSync(file));
		const isThere = (text: string) =>
			files.some((file) => file.includes(text) || file.includes(Buffer.from(text, "utf16le")));
		return marks.filter(isThere);
	}

	function createMarks() {
		const marks: string[] = [];
		const mark = (place: string) => {
			marks.push(`SECRET ${marks.length}: ${place}!`);
			return marks.at(-1) as string;
		};
		return { marks, mark };
	}

	const json: SerializerProtocol = {
		dumpsTyped: async (value) => ["json", new TextEncoder().encode(JSON.stringify(value) ?? "null")],
		loadsTyped: async (_, data) => JSON.parse(typeof data === "string" ? data : new TextDecoder().decode(data)),
	};

	it.each<[string, SqliteSaverOptions]>([
		["the built-in codec", {}],
		["a custom serializer", { serde: json }],
	])("shows all that is stored without encryption, with %s", async (_, options) => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "plain.db");
			const saver = new SqliteSaver(path, { ...options, compression: false });
			const { marks, mark } = createMarks();
			await runGraphs(saver, mark);
			// JSON has numbers for bytes. All else is there: a search that finds nothing elsewhere has a meaning.
			const expected = options.serde ? marks.filter((text) => !text.includes(": bytes")) : marks;
			expect(findMarks(path, marks)).toEqual(expected);
			await saver.close();
		});
	});

	it.each<[string, SqliteSaverOptions]>([
		["the built-in codec", {}],
		["compression turned off", { compression: false }],
		["a custom serializer", { serde: json, compression: false }],
	])("shows nothing of what is stored with encryption, with %s", async (_, options) => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "encrypted.db");
			const saver = new SqliteSaver(path, { ...options, encryption: { key } });
			const { marks, mark } = createMarks();
			await runGraphs(saver, mark);
			expect(marks.length).toBeGreaterThan(25);
			expect(findMarks(path, marks)).toEqual([]);
			const { blobs } = await saver.stats();
			expect(Math.min(blobs.whole, blobs.patched)).toBeGreaterThan(0);

			const middle = (await toArray(saver.list(at("talk"))))[2]!.checkpoint.id;
			await saver.copyThread("talk", "copy");
			await saver.copyThread("talk", "copy up to", { upTo: middle });
			await saver.copyThread("talk", "copy of the latest", { latestOnly: true });
			expect(findMarks(path, marks)).toEqual([]);
			expect((await saver.prune(["talk", "copy"], { keepLast: 2 })).checkpoints).toBeGreaterThan(0);
			expect((await saver.deleteForRuns([run_id])).checkpoints).toBeGreaterThan(0);
			expect(findMarks(path, marks)).toEqual([]);
			await runGraphs(saver, mark);
			expect(existsSync(`${path}-wal`)).toBe(true);
			expect(findMarks(path, marks)).toEqual([]);
			await saver.close();
			expect(existsSync(`${path}-wal`)).toBe(false);
			expect(findMarks(path, marks)).toEqual([]);
		});
	});

	it("leaves readable which rows there are, who made them and when, and how large they are", async () => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "encrypted.db");
			const saver = new SqliteSaver(path, { encryption: { key } });
			await runGraphs(saver, (place) => place);
			const { config, checkpoint } = (await saver.getTuple(at("talk")))!;
			await saver.copyThread("talk", "latest", { latestOnly: true });
			await saver.close();
			const readable = ["talk", checkpoint.id, run_id, "child:", "delta", "__interrupt__"];
			expect(config.configurable!.checkpoint_id).toBe(checkpoint.id);
			expect(findMarks(path, readable)).toEqual(readable);

			const db = new Database(path);
			expect(readableColumns(db)).toEqual({
				delta_threads: [
					...["thread_id", "family", "stamp", "created_at", "updated_at", "updated_minute", "checkpoints", "newest"],
				],
				delta_checkpoints: [
					...["pk", "thread_id", "ns", "checkpoint_id", "parent_id", "run_id", "source", "step", "labels", "blobs"],
				],
				delta_writes: [
					...["checkpoint_pk", "task_id", "generation", "idx", "task_path", "channel"],
					...["run_id", "actor", "type", "blob"],
				],
				delta_bases: ["checkpoint_pk", "channel"],
				delta_blobs: ["id", "family", "base", "source", "type"],
				delta_format: ["version", "next_id"],
			});
			// Metadata is content.
			expect(db.prepare("SELECT DISTINCT labels FROM delta_checkpoints").pluck().all()).toEqual([null]);
			// The others hold envelopes, each under the key.
			expect(keyNames(db)).toEqual(new Set([""]));
			for (const table of Object.keys(TABLES) as Table[]) expect(sealedRows(db, table)).not.toEqual([]);
			db.close();
		});
	});

	function readableColumns(db: Database.Database): Record<string, string[]> {
		const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
		const columns = db.prepare("SELECT name FROM pragma_table_info(?)").pluck();
		const isSealed = (table: string, column: unknown) => TABLES[table as Table]?.sealed === column;
		return Object.fromEntries(
			tables.map((table) => [table, columns.all(table).filter((column) => !isSealed(table, column)) as string[]]),
		);
	}

	it("has no nonce twice", async () => {
		const { db, saver } = await filled({ encryption: { keys: { k1 }, current: "k1" } });
		await saver.copyThread("a", "copy");
		const rotated = new SqliteSaver(db, { encryption: { keys: { k1, k2 }, current: "k2" } });
		const before = sealedRows(db);
		await rotated.rotateKeys();
		const envelopes = [...before, ...sealedRows(db)].map(({ bytes }) => bytes);
		const nonces = new Set(envelopes.map((bytes) => bytes.subarray(8, 20).toString("hex")));
		expect(nonces.size).toBe(envelopes.length);
	});
});

describe("with encryption", () => {
	it.each(Object.keys(TABLES) as Table[])("swapped rows of %s are found out", async (table) => {
		const scene = await filled({ encryption: { key } });
		const all = pairs(sealedRows(scene.db, table));
		// Too many to read everything after each, so those are spread.
		const some = all.filter((_, i) => i % Math.ceil(all.length / 15) === 0);
		expect(some.length).toBeGreaterThan(5);
		for (const [one, other] of some) {
			tamper(scene.db, one, other.bytes);
			tamper(scene.db, other, one.bytes);
			const errors = await scene.expectDetected(`${JSON.stringify(one.key)} and ${JSON.stringify(other.key)}`);
			for (const { message } of errors) expect(message).toContain(`Row ["${KINDS[table]}",`);
			tamper(scene.db, one, one.bytes);
			tamper(scene.db, other, other.bytes);
		}
		await scene.expectWhole();
	});

	it.each([
		["between threads", (a: SealedRow, b: SealedRow) => differ(a, b, ["thread_id"])],
		["between tasks", (a: SealedRow, b: SealedRow) => differ(a, b, ["task_id"])],
		["between indices and channels", (a: SealedRow, b: SealedRow) => differ(a, b, ["idx"])],
		["between checkpoints", (a: SealedRow, b: SealedRow) => differ(a, b, ["checkpoint_id"])],
	])("writes swapped %s are found out, in their rows and in blobs", async (_, isPair) => {
		const { db, expectDetected, expectWhole } = await filled({ encryption: { key } });
		const found = pairs(sealedRows(db, "delta_writes")).filter(([a, b]) => isPair(a, b));
		expect(found.length).toBeGreaterThan(3);
		for (const [one, other] of found.filter((_, i) => i % Math.ceil(found.length / 8) === 0)) {
			tamper(db, one, other.bytes);
			tamper(db, other, one.bytes);
			await expectDetected();
			tamper(db, one, one.bytes);
			tamper(db, other, other.bytes);
		}
		await expectWhole();
	});

	function differ(a: SealedRow, b: SealedRow, columns: string[]): boolean {
		const different = Object.keys(a.key).filter((column) => String(a.key[column]) !== String(b.key[column]));
		return different.join() === columns.join();
	}

	it("a row that is replayed elsewhere is found out", async () => {
		const { db, saver, expectDetected, expectWhole } = await filled({ encryption: { key } });
		for (const table of Object.keys(TABLES) as Table[]) {
			const [first, ...rest] = sealedRows(db, table) as [SealedRow, ...SealedRow[]];
			for (const other of rest.filter((_, i) => i % 3 === 0)) {
				tamper(db, other, first.bytes);
				await expectDetected();
				tamper(db, other, other.bytes);
			}
		}
		await expectWhole();
		db.exec(
			`INSERT INTO delta_checkpoints (thread_id, ns, checkpoint_id, parent_id, run_id, source, step, blobs, head)
			SELECT 'p', ns, checkpoint_id, parent_id, run_id, source, step, blobs, head FROM delta_checkpoints
			WHERE thread_id = 'a' AND ns = '' AND checkpoint_id = 'c2'`,
		);
		await expect(saver.getTuple(at("p", "c2"))).rejects.toMatchObject({
			code: "CORRUPT",
			message: expect.stringContaining('["checkpoint","p","","c2",'),
		});
	});

	it.each([
		["another tag of a blob", "UPDATE delta_blobs SET type = 'tjson'"],
		["another base of a blob", "UPDATE delta_blobs SET base = (SELECT max(id) FROM delta_blobs WHERE base IS NULL)"],
		[
			"another source of a blob",
			"UPDATE delta_blobs SET source = (SELECT max(id) FROM delta_blobs WHERE base IS NULL)",
		],
		["bytes that are no envelope", "UPDATE delta_writes SET value = CAST('text' AS BLOB)"],
	])("%s is found out", async (_, change) => {
		const { db, expectDetected, expectWhole } = await filled({ encryption: { key } });
		db.exec(`BEGIN; ${change}`);
		await expectDetected();
		db.exec("ROLLBACK");
		await expectWhole();
	});

	it("rows that were moved are found out where they are now", async () => {
		const { db, saver, expectWhole } = await filled({ encryption: { key } });
		db.exec("BEGIN; UPDATE delta_checkpoints SET ns = 'child:2' WHERE ns = 'child:1'");
		db.exec("UPDATE delta_bases SET channel = 'log' WHERE channel = 'delta'");
		for (const table of ["delta_threads", "delta_checkpoints"])
			db.exec(`UPDATE ${table} SET thread_id = 'z' WHERE thread_id = 'b'`);
		const reads = [
			saver.getTuple(at("a", "c1", "child:2")),
			saver.getDeltaChannelHistory({ config: at("p", "c3"), channels: ["log"] }),
			saver.getTuple(at("z", "c3")),
		];
		for (const read of reads) await expect(read).rejects.toMatchObject({ code: "CORRUPT" });
		db.exec("ROLLBACK");
		await expectWhole();
	});

	it("rows in clear are found out, though their checksums are right", async () => {
		const scene = await filled({ encryption: { key } });
		const twin = await filled({});
		const plain = sealedRows(twin.db);
		for (const [i, row] of sealedRows(scene.db).entries()) {
			expect(plain[i]?.key).toEqual(row.key);
			tamper(scene.db, row, plain[i]?.bytes);
			for (const { message } of await scene.expectDetected(JSON.stringify(row.key)))
				expect(message).toContain("encrypted");
			tamper(scene.db, row, row.bytes);
		}
		await scene.expectWhole();
	});

	it("all is read again after a time without the option, and meanwhile nothing but an error", async () => {
		const { db, expected, expectWhole } = await filled({ encryption: { key } });
		const without = new SqliteSaver(db);
		const found = await readAll(without);
		for (const [i, error] of found.entries()) {
			expect(error).toMatchObject({ code: "WRONG_KEY", message: expect.stringContaining("encryption") });
			const { thread_id, checkpoint_ns, checkpoint_id } = KEYS[i]!.configurable;
			expect((error as Error).message).toContain(
				JSON.stringify([thread_id, checkpoint_ns, checkpoint_id]).slice(1, -1),
			);
		}
		expect(found).toHaveLength(expected.length);
		await expect(without.copyThread("a", "copy")).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(without.copyThread("a", "copy", { latestOnly: true })).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(without.prune(["a"])).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(toArray(without.list(at("a")))).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(without.rotateKeys()).rejects.toMatchObject({ code: "INVALID_OPTION" });
		await expect(put(without, { thread: "new", id: "c1", values: {} })).rejects.toMatchObject({ code: "WRONG_KEY" });
		expect(await without.getTuple(at("new"))).toBeUndefined();
		await expectWhole();
	});

	it.each<[string, EncryptionOptions, RegExp]>([
		["a wrong key", { key: k2 }, /another key/],
		["a wrong key under the same name", { keys: { "": k2 }, current: "" }, /another key/],
		["a missing key", { keys: { k2 }, current: "k2" }, /not given/],
	])("%s is told from damage", async (_, encryption, reason) => {
		const { db, expectWhole } = await filled({ encryption: { key } });
		const wrong = new SqliteSaver(db, { encryption });
		for (const error of await readAll(wrong))
			expect(error).toMatchObject({ code: "WRONG_KEY", message: expect.stringMatching(reason) });
		await expect(wrong.getTuple(at("a", "c2"))).rejects.toThrow('["checkpoint","a","","c2",');
		await expect(wrong.copyThread("a", "copy")).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(wrong.rotateKeys()).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(put(wrong, { thread: "new", id: "c1", values: {} })).rejects.toMatchObject({ code: "WRONG_KEY" });
		expect(await wrong.getTuple(at("new"))).toBeUndefined();
		await expectWhole();
	});

	it.each<[string, unknown]>([
		["null", null],
		["a key of 16 bytes", { key: new Uint8Array(16) }],
		["a passphrase", { key: "correct horse battery staple" }],
		["a current key that is not there", { keys: { k1 }, current: "k2" }],
	])("the saver does not take %s", (_, encryption) => {
		const make = () => new SqliteSaver(":memory:", { encryption: encryption as EncryptionOptions });
		expect(make).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});
});

describe.each<[string, SqliteSaverOptions]>([
	["with encryption", { encryption: { keys: { k1 }, current: "k1" } }],
	["without encryption", {}],
])("%s", (_, options) => {
	it.each(Object.keys(TABLES) as Table[])("flipped bits and cuts in %s are found out", async (table) => {
		const { db, saver, expected, expectWhole } = await filled(options);
		const rows = sealedRows(db, table).sort((a, b) => a.bytes.length - b.bytes.length);
		const smallest = rows[0] as SealedRow;
		// Reading what is damaged is enough, once it is known where that is.
		tamper(db, smallest, smallest.bytes.subarray(1));
		const victim = (await readAll(saver)).findIndex((item) => item instanceof Error);
		const isDetected = async (bytes: Buffer) => {
			tamper(db, smallest, bytes);
			const config = KEYS[victim]!;
			const found = await Promise.allSettled([
				saver.getTuple(config),
				saver.getDeltaChannelHistory({ config, channels: ["delta", "tally"] }),
			]);
			const errors = found.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
			expectOnlyErrors(errors, expected);
			return errors.length > 0;
		};
		for (let i = 0; i < smallest.bytes.length; i += isAll ? 1 : 3) {
			const bytes = Buffer.from(smallest.bytes);
			bytes[i]! ^= 1 << (i & 7);
			expect(await isDetected(bytes), `bit ${i & 7} of byte ${i}`).toBe(true);
		}
		for (let length = 0; length < smallest.bytes.length; length += isAll ? 3 : 9)
			expect(await isDetected(smallest.bytes.subarray(0, length)), `${length} bytes`).toBe(true);
		tamper(db, smallest, smallest.bytes);
		await expectWhole();
	});

	it.each(Object.keys(TABLES) as Table[])("a damaged byte in any row of %s is found out", async (table) => {
		const { db, expectDetected, expectWhole } = await filled(options);
		for (const [i, row] of sealedRows(db, table).entries()) {
			const bytes = Buffer.from(row.bytes);
			bytes[(i * 7919) % bytes.length]! ^= 0x10;
			tamper(db, row, bytes);
			for (const { message } of await expectDetected()) expect(message).toContain(`Row ["${KINDS[table]}",`);
			tamper(db, row, row.bytes);
		}
		await expectWhole();
	});

	it("the rest of a thread with a damaged row is read, goes on and can be deleted", async () => {
		const { db, saver } = await filled(options);
		const damaged = sealedRows(db, "delta_checkpoints").find(
			({ key }) => key.thread_id === "a" && key.checkpoint_id === "c2",
		)!;
		tamper(db, damaged, damaged.bytes.subarray(0, -1));
		const message = expect.stringContaining('["checkpoint","a","","c2",');
		await expect(saver.getTuple(at("a", "c2"))).rejects.toMatchObject({ code: "CORRUPT", message });
		await expect(toArray(saver.list(at("a")))).rejects.toMatchObject({ code: "CORRUPT", message });
		for (const id of ["c1", "c3"]) {
			const tuple = (await saver.getTuple(at("a", id)))!;
			expect(tuple.checkpoint.channel_values.small).toBe(`a ${id}`);
			expect(tuple.pendingWrites).toHaveLength(4);
		}
		await put(saver, { thread: "a", id: "c4", parent: "c3", values: { small: "next" } });
		expect((await saver.getTuple(at("a")))?.checkpoint.channel_values).toEqual({ small: "next" });
		expect(await toArray(saver.list(at("a"), { limit: 2 }))).toHaveLength(2);
		await saver.deleteThread("a");
		expect(await saver.getTuple(at("a"))).toBeUndefined();
		expect((await saver.getTuple(at("b")))?.checkpoint.channel_values.small).toBe("b c3");
	});
});

describe("without encryption", () => {
	it.each(Object.keys(TABLES) as Table[])(
		"rows of %s that stand in each other's place are found out",
		async (table) => {
			const { db, expectDetected, expectWhole } = await filled({});
			// Threads share rows with their copies as they are, so only rows of one thread are told apart.
			const rows = sealedRows(db, table).filter(({ key }) => (key.thread_id ?? "a") === "a");
			for (const [one, other] of pairs(rows.length > 1 ? rows : sealedRows(db, table)).slice(0, 20)) {
				if (table === "delta_bases" && one.key.channel === other.key.channel) continue;
				tamper(db, one, other.bytes);
				tamper(db, other, one.bytes);
				await expectDetected();
				tamper(db, one, one.bytes);
				tamper(db, other, other.bytes);
			}
			await expectWhole();
		},
	);

	it("a name with half of a surrogate pair does not make a row unreadable", async () => {
		for (const encryption of [undefined, { key }]) {
			const saver = new SqliteSaver(":memory:", { encryption });
			await put(saver, { thread: "a", id: "c1", values: {} });
			await saver.putWrites(at("a", "c1"), [["half \ud83e", "value"]], "task \udd14 \ud800\ud800");
			expect((await saver.getTuple(at("a")))?.pendingWrites?.map(([, , value]) => value)).toEqual(["value"]);
		}
	});
});

describe("rotateKeys", () => {
	const before: EncryptionOptions = { keys: { k1 }, current: "k1" };
	const both: EncryptionOptions = { keys: { k2, k1 }, current: "k2" };
	const after: EncryptionOptions = { keys: { k2 }, current: "k2" };

	async function expectReadable(db: Database.Database, encryption: EncryptionOptions, expected: readonly unknown[]) {
		expect(await readAll(new SqliteSaver(db, { encryption }))).toEqual(expected);
	}

	it("encrypts everything under the current key, so that the older one is not needed any more", async () => {
		const { db, expected } = await filled({ encryption: before });
		const total = sealedRows(db).length;
		const saver = new SqliteSaver(db, { encryption: both });
		expect(await readAll(saver)).toEqual(expected);
		expect(keyNames(db)).toEqual(new Set(["k1"]));
		await put(saver, { thread: "new", id: "c1", values: { small: "new" } });
		expect(keyNames(db)).toEqual(new Set(["k1", "k2"]));
		expect(await saver.rotateKeys()).toBe(total);
		expect(keyNames(db)).toEqual(new Set(["k2"]));
		await expectReadable(db, after, expected);
		expect(await saver.rotateKeys()).toBe(0);
		const old = new SqliteSaver(db, { encryption: before });
		await expect(old.getTuple(at("a"))).rejects.toMatchObject({ code: "WRONG_KEY" });
	});

	it("goes from one key to another that replaces it, under names that the first had none of", async () => {
		const { db, expected } = await filled({ encryption: { key: k1 } });
		const saver = new SqliteSaver(db, { encryption: both });
		expect(await readAll(saver)).toEqual(expected);
		await saver.rotateKeys();
		expect(keyNames(db)).toEqual(new Set(["k2"]));
		await expectReadable(db, after, expected);
		await expectReadable(db, { key: k2 }, expected);
	});

	it("encrypts what was stored in clear, if migration is asked for", async () => {
		const { db, expected } = await filled({});
		const total = sealedRows(db).length;
		const strict = new SqliteSaver(db, { encryption: { key } });
		for (const error of await readAll(strict)) expect(error).toMatchObject({ code: "CORRUPT" });
		await expect(strict.rotateKeys()).rejects.toMatchObject({ code: "CORRUPT" });
		expect(keyNames(db)).toEqual(new Set([undefined]));

		const migrating = new SqliteSaver(db, { encryption: { key, migrate: true } });
		expect(await readAll(migrating)).toEqual(expected);
		await put(migrating, { thread: "new", id: "c1", values: {} });
		await migrating.copyThread("a", "copy");
		expect(await migrating.rotateKeys()).toBe(total);
		expect(keyNames(db)).toEqual(new Set([""]));
		await expectReadable(db, { key }, expected);
	});

	it("leaves no plaintext in the file, once it is vacuumed", async () => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "migrated.db");
			const plain = new SqliteSaver(path, { compression: false });
			await fill(plain);
			await plain.close();
			const text = "has something to say";
			expect(readFileSync(path).includes(text)).toBe(true);
			const saver = new SqliteSaver(path, { encryption: { key, migrate: true } });
			await saver.rotateKeys();
			await saver.close();
			const db = new Database(path);
			db.exec("VACUUM");
			db.close();
			expect(readFileSync(path).includes(text)).toBe(false);
			const strict = new SqliteSaver(path, { encryption: { key } });
			expect((await readAll(strict)).filter((item) => item instanceof Error)).toEqual([]);
			await strict.close();
		});
	});

	it("tells how far it is, thread by thread", async () => {
		const { db } = await filled({ encryption: before });
		const total = sealedRows(db).length;
		const saver = new SqliteSaver(db, { encryption: both });
		const progress: { threads: number; rows: number }[] = [];
		expect(await saver.rotateKeys({ onProgress: (done) => progress.push(done) })).toBe(total);
		expect(progress.map(({ threads }) => threads)).toEqual([1, 2, 3, 4]);
		expect(progress.at(-1)?.rows).toBe(total);
		const rows = progress.map(({ rows }) => rows);
		expect(rows).toEqual([...rows].sort((a, b) => a - b));
		expect(rows[0]).toBeGreaterThan(0);
	});

	it.each([{ onprogress: () => {} }, { batch: 10 }])("has no option of %o", async (options) => {
		const saver = new SqliteSaver(":memory:", { encryption: both });
		await expect(saver.rotateKeys(options as object)).rejects.toMatchObject({ code: "INVALID_OPTION" });
	});

	it("stops where a callback throws, and goes on from there", async () => {
		const { db, expected } = await filled({ encryption: before });
		const saver = new SqliteSaver(db, { encryption: both });
		const stop = () => {
			throw new Error("Enough for today.");
		};
		await expect(saver.rotateKeys({ onProgress: stop })).rejects.toThrow("Enough");
		expect(keyNames(db)).toEqual(new Set(["k1", "k2"]));
		const left = sealedRows(db).filter((row) => keyName(row) === "k1").length;
		expect(await saver.rotateKeys()).toBe(left);
		await expectReadable(db, after, expected);
	});

	it("does all the rest when a row is damaged, and then says which", async () => {
		const { db, saver } = await filled({ encryption: before });
		const damaged = sealedRows(db, "delta_checkpoints").find(({ key }) => key.thread_id === "a")!;
		const rows = sealedRows(db).length;
		tamper(db, damaged, damaged.bytes.subarray(0, -1));
		const rotating = new SqliteSaver(db, { encryption: both });
		for (let round = 0; round < 2; round++)
			await expect(rotating.rotateKeys()).rejects.toMatchObject({
				code: "CORRUPT",
				message: expect.stringContaining('["checkpoint","a",'),
			});
		expect(sealedRows(db).filter((row) => keyName(row) === "k2")).toHaveLength(rows - 1);
		tamper(db, damaged, damaged.bytes);
		expect(await rotating.rotateKeys()).toBe(1);
		await saver.close();
	});

	it("also reaches threads that others move in the list meanwhile", async () => {
		const db = new Database(":memory:");
		const saver = new SqliteSaver(db, { encryption: before });
		const count = 450;
		for (let i = 0; i < count; i++) await put(saver, { thread: `t${i}`, id: "c1", values: { small: i } });
		const rotating = new SqliteSaver(db, { encryption: both });
		const touch = db.prepare("UPDATE delta_threads SET updated_at = ?, updated_minute = ? WHERE thread_id = ?");
		let moved = 0;
		// The list has the newest first, so each of these goes from its end, not yet seen, to its front.
		const onProgress = () => {
			if (moved === 200) return;
			const time = Date.now() + 1e6 + moved;
			touch.run(time, Math.floor(time / 60_000), `t${moved++}`);
		};
		await rotating.rotateKeys({ onProgress });
		expect(moved).toBe(200);
		expect(keyNames(db)).toEqual(new Set(["k2"]));
	});

	it("lets others work meanwhile, and loses nothing that they store", async () => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "busy.db");
			const saver = new SqliteSaver(path, { encryption: before });
			for (let i = 0; i < 60; i++) {
				await put(saver, { thread: `t${i}`, id: "c1", values: { lines: ["x".repeat(500)] } });
				await saver.putWrites(at(`t${i}`, "c1"), [["lines", "write ".repeat(200)]], "task");
			}
			await saver.close();

			const writer = new SqliteSaver(path, { encryption: both });
			const rotating = new SqliteSaver(path, { encryption: both });
			let isDone = false;
			const rotation = rotating.rotateKeys().finally(() => {
				isDone = true;
			});
			let turns = 0;
			for (; !isDone; turns++) {
				const thread = `t${(turns * 7) % 70}`;
				const parent = (await writer.getTuple(at(thread)))?.checkpoint;
				const lines = [...((parent?.channel_values.lines as string[]) ?? []), `turn ${turns}`];
				const id = `d${String(turns).padStart(5, "0")}`;
				await put(writer, { thread, id, ...(parent && { parent: parent.id }), values: { lines } });
				if (turns % 5 === 0) await writer.copyThread(thread, `copy ${turns}`);
				if (turns % 7 === 0) await writer.prune([thread]);
				if (turns % 11 === 0) await writer.deleteThread(`copy ${turns - 11}`);
				await new Promise((resolve) => setImmediate(resolve));
			}
			expect(turns).toBeGreaterThan(20);
			await rotation;
			await writer.close();
			await rotating.close();

			const db = new Database(path);
			expect(keyNames(db)).toEqual(new Set(["k2"]));
			db.close();
			const reader = new SqliteSaver(path, { encryption: after });
			const read = await toArray(reader.list({}));
			expect(read.length).toBeGreaterThanOrEqual(60);
			await reader.close();
		});
	});

	it("works in batches of a bounded number of rows and bytes", async () => {
		const sizes: { rows: number; bytes: number }[] = [];
		class Recording extends MemoryStorage {
			override replaceBytes(replacements: readonly Replacement[]): Promise<number> {
				const bytes = replacements.reduce((sum, { to }) => sum + to.length, 0);
				sizes.push({ rows: replacements.length, bytes });
				return super.replaceBytes(replacements);
			}
		}
		const inner = new Recording();
		const storage = new SealedStorage(inner, new Sealer({ encryption: before, compression: false }));
		const thread = { threadId: "t", fresh: 1, now: 0 };
		const place = { threadId: "t", ns: "", id: "c" };
		const blobs = Array.from({ length: 12 }, (_, i) => {
			const base = i % 3 === 0 ? undefined : i;
			return { id: i + 1, base, source: undefined, type: undefined, data: new Uint8Array(1_000_000) };
		});
		const writes = Array.from({ length: 450 }, (_, idx) => {
			const task = { taskId: "t", taskPath: undefined, idx, channel: "c", runId: undefined, actor: undefined };
			const content = { type: undefined, blob: undefined, value: new Uint8Array(9) };
			return { ...place, ...task, ...content, conflict: "add" as const };
		});
		await storage.put({ ...thread, blobs, writes, deltaBases: [] });
		const origin = { parentId: undefined, runId: undefined, source: undefined, step: undefined };
		for (let i = 0; i < 450; i++) {
			const checkpoint = { ...place, id: `c${i}`, ...origin, blobs: [], head: new Uint8Array(5) };
			await storage.put({ ...thread, blobs: [], writes: [], deltaBases: [], checkpoint });
		}
		const rotating = new SealedStorage(inner, new Sealer({ encryption: both, compression: false }));
		const done = await toArray(rotating.rotate(async () => {}));
		expect(done).toEqual([{ threadId: "t", rows: 12 + 450 + 450 }]);
		expect(Math.max(...sizes.map(({ rows }) => rows))).toBe(200);
		expect(Math.max(...sizes.map(({ bytes }) => bytes))).toBeLessThan(5_000_000);
	});

	it("killed half-way goes on in another process, and no key but the last is needed then", async () => {
		await inTemporaryFolder(async (folder) => {
			const path = join(folder, "killed.db");
			const saver = new SqliteSaver(path, { encryption: before });
			for (let i = 0; i < 40; i++) {
				const values = { lines: [`${i} `.repeat(500)], small: i };
				await put(saver, { thread: `t${i}`, id: "c1", values });
				await saver.putWrites(at(`t${i}`, "c1"), [["lines", `${i} `.repeat(300)]], "task");
			}
			const read = async (encryption: EncryptionOptions) => {
				const reader = new SqliteSaver(path, { encryption });
				const tuples = await toArray(reader.list({}));
				await reader.close();
				return tuples;
			};
			const expected = await read(before);
			expect(expected).toHaveLength(40);
			await saver.close();

			await rotateUntilKilled(folder, path, 17);
			const db = new Database(path);
			const done = sealedRows(db).filter((row) => keyName(row) === "k2").length;
			const left = sealedRows(db).filter((row) => keyName(row) === "k1").length;
			expect(Math.min(done, left)).toBeGreaterThan(0);
			expect(await read(both)).toEqual(expected);
			await expect(read(after)).rejects.toMatchObject({ code: "WRONG_KEY" });

			const again = new SqliteSaver(path, { encryption: both });
			expect(await again.rotateKeys()).toBe(left);
			await again.close();
			expect(keyNames(db)).toEqual(new Set(["k2"]));
			db.close();
			expect(await read(after)).toEqual(expected);
		});
	});

	/** Another process rotates the keys of so many threads. It says so and is killed, without a chance to tidy up. */
	async function rotateUntilKilled(folder: string, path: string, threads: number): Promise<void> {
		const script = join(folder, "rotate.mjs");
		const source = `
			import { writeSync } from "node:fs";
			import { SqliteSaver } from ${JSON.stringify(join(root, "src/sqlite.ts"))};
			const [k1, k2] = [1, 2].map((byte) => new Uint8Array(32).fill(byte));
			const saver = new SqliteSaver(process.argv[2], { encryption: { keys: { k2, k1 }, current: "k2" } });
			const forever = new Int32Array(new SharedArrayBuffer(4));
			await saver.rotateKeys({
				onProgress: ({ threads }) => {
					if (threads < ${threads}) return;
					writeSync(1, "half-way");
					Atomics.wait(forever, 0, 0);
				},
			});`;
		writeFileSync(script, source);
		const child = spawn(process.execPath, [...typescript, script, path], {
			cwd: root,
			stdio: ["ignore", "pipe", "inherit"],
		});
		const said: string[] = [];
		child.stdout.on("data", (data) => {
			said.push(String(data));
			child.kill("SIGKILL");
		});
		const signal = await new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
		expect([said.join(""), signal]).toEqual(["half-way", "SIGKILL"]);
	}
});

describe("delta storage under encryption", () => {
	it("stores patches as it does in clear, and reads the same after copies, prunes and deletions", async () => {
		const stories = [undefined, { key }].map(async (encryption) => {
			const saver = new SqliteSaver(":memory:", { encryption, compression: false, cacheBytes: 0 });
			await fill(saver);
			let lines = ["a line ".repeat(300)];
			for (let i = 10; i < 40; i++) {
				lines = [...lines, `line ${i}`];
				const parent = i === 10 ? "c3" : `c${i - 1}`;
				await put(saver, { thread: "a", id: `c${i}`, parent, values: { lines } });
				await saver.putWrites(
					{ ...at("a", `c${i}`), metadata: { run_id: `run ${i % 3}` } },
					[["delta", `d${i}`]],
					"task",
				);
			}
			const { blobs } = await saver.stats();
			const copied = [
				await saver.copyThread("a", "all"),
				await saver.copyThread("a", "to c20", { upTo: "c20" }),
				await saver.copyThread("a", "latest", { latestOnly: true }),
			];
			const removed = [await saver.prune(["a"], { keepLast: 3 }), await saver.deleteForRuns(["run 1"])];
			await saver.deleteThread("b");
			const tuples = await toArray(saver.list({}));
			const histories = await Promise.all(
				tuples.map(({ config }) => saver.getDeltaChannelHistory({ config, channels: ["delta", "tally"] })),
			);
			const counts = removed.map(({ bytes: _, ...count }) => count);
			return { blobs, copied, counts, tuples, histories };
		});
		const [inClear, encrypted] = await Promise.all(stories);
		expect(encrypted).toEqual(inClear);
		expect(inClear!.blobs.patched).toBeGreaterThan(20);
		expect(inClear!.tuples.length).toBeGreaterThan(40);
	});
});
