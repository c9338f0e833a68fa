/**
 * What compression gains in bytes and costs in time, by kind and size of value, by level, and by the size that it
 * starts from: the measurements behind the constants of `src/storage/sealed/sealer.ts`.
 *
 * Usage: tsx test/bench/compression.ts
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import Database from "better-sqlite3";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { DeltaSaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import type { PutBatch } from "../../src/storage/storage.ts";

const root = resolve(import.meta.dirname, "../..");
const codec = new DeltaCodec();
const LEVELS = [1, 3, 6];
const SIZES = [256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 524_288];
const THRESHOLDS = [256, 512, 1024, 2048, 4096, 8192, 16_384, Number.POSITIVE_INFINITY];
const WORTH_IT = 0.7;

/** Numbers from 0 to 1, the same each time. */
function createRandom(seed: number): () => number {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state / 2 ** 32;
	};
}

const random = createRandom(20261116);

/** The text of all files under a folder whose names end like this, up to a size. */
function readText(folder: string, ending: string, size: number): string {
	let text = "";
	for (const entry of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).sort())
		if (entry.endsWith(ending) && text.length < size) text += readFileSync(join(root, folder, entry), "utf8");
	return text;
}

const prose = readText("node_modules", ".md", 3_000_000);
const source = readText("src", ".ts", 3_000_000);

/** A piece of a text that is as good as any other. */
function piece(text: string, size: number): string {
	const start = Math.floor(random() * Math.max(1, text.length - size));
	return text.slice(start, start + size);
}

function randomBytes(size: number): Uint8Array {
	return Uint8Array.from({ length: size }, () => random() * 256);
}

function chat(size: number): unknown {
	const messages: unknown[] = [];
	for (let length = 0; length < size; ) {
		const text = piece(prose, 40 + random() * 600);
		const id = Buffer.from(randomBytes(12)).toString("hex");
		messages.push(
			messages.length % 2 === 0 ? new HumanMessage({ content: text, id }) : new AIMessage({ content: text, id }),
		);
		length += text.length + 60;
	}
	return messages;
}

function records(size: number): unknown {
	return Array.from({ length: Math.ceil(size / 70) }, (_, i) => ({
		id: i,
		name: piece(prose, 12),
		price: Math.round(random() * 1e4) / 100,
		inStock: random() > 0.5,
	}));
}

/** Values of about a size, by kind. */
const KINDS: Record<string, (size: number) => unknown> = {
	"chat messages": chat,
	prose: (size) => piece(prose, size),
	"source files": (size) => ({ "src/main.ts": piece(source, size) }),
	records: records,
	Base64: (size) => Buffer.from(randomBytes(size * 0.75)).toString("base64"),
	embeddings: (size) => Float32Array.from({ length: size / 4 }, () => random() - 0.5),
	"random bytes": randomBytes,
};

/** Microseconds of processor time per call: the best of several rounds, since other programs only ever make it slower. */
function timeOf(run: () => void): number {
	run();
	let best = Number.POSITIVE_INFINITY;
	for (let round = 0; round < 5; round++) {
		const [start, end] = [process.cpuUsage(), Date.now() + 10];
		let calls = 0;
		do {
			run();
			calls++;
		} while (Date.now() < end);
		best = Math.min(best, microseconds(process.cpuUsage(start)) / calls);
	}
	return best;
}

function microseconds({ user, system }: NodeJS.CpuUsage): number {
	return user + system;
}

function print(rows: (string | number)[][]): void {
	const text = rows.map((row) => row.map((cell) => (typeof cell === "number" ? round(cell) : cell)));
	const widths = (text[0] ?? []).map((_, i) => Math.max(...text.map((row) => row[i]?.length ?? 0)));
	for (const row of text)
		console.log(row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  "));
	console.log();
}

function round(number: number): string {
	return number.toLocaleString("en", { maximumFractionDigits: number < 10 ? 2 : 0 });
}

function sizeName(size: number): string {
	return size === Number.POSITIVE_INFINITY ? "never" : size < 1024 ? `${size} B` : `${size / 1024} kB`;
}

/** The row as SQLite writes and reads it: what the time of compression is to be compared with. */
function timeOfRow(bytes: Uint8Array): { write: number; read: number } {
	const db = new Database(":memory:");
	db.exec("CREATE TABLE blob (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT");
	const insert = db.prepare("INSERT OR REPLACE INTO blob VALUES (1, ?)");
	const select = db.prepare("SELECT data FROM blob WHERE id = 1");
	const times = { write: timeOf(() => insert.run(bytes)), read: timeOf(() => select.get()) };
	db.close();
	return times;
}

function measureKinds(): void {
	for (const [kind, make] of Object.entries(KINDS)) {
		console.log(
			`${kind}: bytes left of 100, then microseconds to compress, by level; to inflate; to write and read the row`,
		);
		const rows: (string | number)[][] = [
			[
				"size",
				...LEVELS.map((level) => `left ${level}`),
				...LEVELS.map((level) => `µs ${level}`),
				"inflate",
				"write",
				"read",
			],
		];
		for (const size of SIZES) {
			const { bytes } = codec.encode(make(size));
			const deflated = LEVELS.map((level) => deflateRawSync(bytes, { level }));
			const { write, read } = timeOfRow(bytes);
			rows.push([
				sizeName(size),
				...deflated.map(({ length }) => (length / bytes.length) * 100),
				...LEVELS.map((level) => timeOf(() => deflateRawSync(bytes, { level }))),
				timeOf(() => inflateRawSync(deflated[0]!)),
				write,
				read,
			]);
		}
		print(rows);
	}
}

/** Keeps what is put. */
class RecordingStorage extends MemoryStorage {
	readonly stored: Uint8Array[] = [];

	override put(batch: PutBatch) {
		if (batch.checkpoint) this.stored.push(batch.checkpoint.head);
		this.stored.push(...batch.blobs.map(({ data }) => data));
		for (const { value } of batch.writes) if (typeof value !== "number") this.stored.push(value);
		return super.put(batch);
	}
}

/** A thread of a graph that answers so many times. */
interface Thread {
	readonly turns: number;
	readonly answer: (turn: number) => unknown[];
}

const THREADS: Record<string, Thread> = {
	"a chat of 300 turns": { turns: 300, answer: () => [new AIMessage(piece(prose, 100 + random() * 1500))] },
	"an agent that reads 150 source files": {
		turns: 150,
		answer: (turn) => [
			new AIMessage({
				content: "",
				tool_calls: [{ id: `call-${turn}`, name: "read", args: { path: `src/${turn}.ts` } }],
			}),
			new ToolMessage({ content: piece(source, 1000 + random() * 12_000), tool_call_id: `call-${turn}` }),
		],
	},
	"an agent that looks at 20 pictures of 150 kB": {
		turns: 20,
		answer: () => {
			const data = Buffer.from(randomBytes(112_000)).toString("base64");
			return [new AIMessage({ content: [{ type: "image", data }] as never })];
		},
	},
};

/** Microseconds of processor time that all turns take. */
async function runThread({ turns, answer }: Thread, checkpointer: DeltaSaver): Promise<number> {
	const graph = new StateGraph(MessagesAnnotation)
		.addNode("answer", ({ messages }) => ({ messages: answer(messages.length) as [] }))
		.addEdge("__start__", "answer")
		.compile({ checkpointer });
	const config = { configurable: { thread_id: "thread" } };
	const start = process.cpuUsage();
	for (let turn = 0; turn < turns; turn++)
		await graph.invoke({ messages: [new HumanMessage(piece(prose, 80))] }, config);
	return microseconds(process.cpuUsage(start));
}

async function measureThreads(): Promise<void> {
	for (const [name, thread] of Object.entries(THREADS)) {
		const storage = new RecordingStorage();
		await runThread(thread, new DeltaSaver(storage));
		const rows = storage.stored;
		const total = rows.reduce((sum, { length }) => sum + length, 0);
		const median = rows.map(({ length }) => length).sort((a, b) => a - b)[rows.length >> 1] ?? 0;
		console.log(
			`${name}: ${rows.length} rows, ${round(total / 1024)} kB, median ${median} B; by the size that compression starts from`,
		);
		const table: (string | number)[][] = [
			[
				"from",
				"rows",
				...LEVELS.map((level) => `left ${level}`),
				...LEVELS.map((level) => `µs/row ${level}`),
				"inflate µs/row",
			],
		];
		for (const threshold of THRESHOLDS) {
			const large = rows.filter(({ length }) => length >= threshold);
			const pays = (row: Uint8Array, level: number) => {
				const { length } = deflateRawSync(row, { level });
				return length <= row.length * WORTH_IT ? row.length - length : 0;
			};
			const time = (level: number) =>
				large.length === 0
					? 0
					: timeOf(() => large.forEach((row) => void deflateRawSync(row, { level }))) / rows.length;
			const inflated = large.filter((row) => pays(row, 1) > 0).map((row) => deflateRawSync(row, { level: 1 }));
			table.push([
				sizeName(threshold),
				large.length,
				...LEVELS.map((level) => 100 - (large.reduce((sum, row) => sum + pays(row, level), 0) / total) * 100),
				...LEVELS.map(time),
				timeOf(() => inflated.forEach((row) => void inflateRawSync(row))) / rows.length,
			]);
		}
		print(table);
	}
}

/** The whole saver, with compression and without. */
async function measureSaver(): Promise<void> {
	const table: (string | number)[][] = [["on disk", "compression", "kB", "ms/turn", "ms/read"]];
	for (const [name, thread] of Object.entries(THREADS))
		for (const compression of [false, true]) {
			const folder = mkdtempSync(join(tmpdir(), "compression-"));
			const path = join(folder, "bench.db");
			const saver = new SqliteSaver(path, { compression });
			const spent = await runThread(thread, saver);
			await saver.close();
			const reader = new SqliteSaver(path, { cacheBytes: 0 });
			const read = process.cpuUsage();
			for (let i = 0; i < 20; i++) await reader.getTuple({ configurable: { thread_id: "thread" } });
			const reading = microseconds(process.cpuUsage(read)) / 20;
			await reader.close();
			const size = statSync(path).size / 1024;
			table.push([name, compression ? "yes" : "no", size, spent / thread.turns / 1000, reading / 1000]);
			rmSync(folder, { recursive: true });
		}
	print(table);
}

measureKinds();
await measureThreads();
await measureSaver();
