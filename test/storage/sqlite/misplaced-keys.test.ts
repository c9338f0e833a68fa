import { readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { CheckpointError } from "../../../src/index.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { fileSource } from "../../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { path, thread } from "../../support/scratch-file.ts";

/** So many that a search among all entries meets one in the middle of a thread, and then one of a thread further on. */
const THREADS = Array.from({ length: 7 }, (_, n) => `thread ${n}`);
const PAGE_SIZE = 4096;
/** The type of a number that takes one byte, in the header of a row. */
const BYTE = 1;

/** Checkpoints of each thread: two at its root, the first of which has three forks, and two in a subgraph. */
async function fill(): Promise<Map<string, string[]>> {
	const saver = new SqliteSaver(path);
	const ids = new Map<string, string[]>();
	for (const threadId of THREADS) {
		const root = thread(saver, threadId);
		const [first = "", second = ""] = await root.chain(2);
		for (const parent of [first, first, second, first]) await root.put({ parent });
		await root.within("child").chain(2);
		ids.set(threadId, [first, second]);
	}
	await saver.close();
	return ids;
}

/** Where the entries of an index have the numbers of their threads, and keys those of their rows, if each is a byte. */
function findNumbers(index: string, file: Buffer): { threads: number[]; rows: number[] } {
	const db = new Database(path, { readonly: true });
	const pages = db.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'").pluck().all(index);
	db.close();
	const threads: number[] = [];
	const rows: number[] = [];
	for (const page of pages as number[]) {
		const start = (page - 1) * PAGE_SIZE;
		for (let n = 0; n < file.readUInt16BE(start + 3); n++) {
			const cell = start + file.readUInt16BE(start + 8 + 2 * n);
			// Its length, that of its header, the types of its columns, their values.
			const [, header = 0, ofThread, ofNs = 0, ofId = 0, ofRow] = file.subarray(cell);
			const values = cell + 1 + header;
			if (ofThread === BYTE) threads.push(values);
			if (ofThread === BYTE && ofRow === BYTE) rows.push(values + 1 + lengthOf(ofNs) + lengthOf(ofId));
		}
	}
	return { threads, rows };
}

/** Bytes of a text by its type. */
function lengthOf(type: number): number {
	return (type - 12) >> 1;
}

/** What the file answers. What it reports as damaged is left out. */
async function ask(ids: Map<string, string[]>): Promise<Map<string, unknown>> {
	const saver = new SqliteSaver(path);
	const storage = new SqliteStorage(fileSource(path));
	const answers = new Map<string, unknown>();
	const add = async (name: string, answer: Promise<unknown>) => {
		try {
			answers.set(name, await answer);
		} catch (error) {
			if (!(error instanceof CheckpointError)) throw error;
			expect(error.code).toBe("CORRUPT");
		}
	};
	for (const threadId of THREADS) {
		const root = thread(saver, threadId);
		const child = root.within("child");
		for (const id of ids.get(threadId) ?? []) {
			await add(`${threadId}, ${id}`, root.has(id));
			const children = storage.getChildren(threadId, "", [id]);
			await add(
				`${threadId}, children of ${id}`,
				children.then((rows) => rows.map((row) => row.id)),
			);
		}
		const newest = saver.getTuple(child.config()).then((tuple) => tuple?.checkpoint.id);
		await add(`${threadId}, the newest of its subgraph`, newest);
		await add(`${threadId}, list`, root.ids());
		await add(`${threadId}, list of its subgraph`, child.ids());
	}
	await storage.close();
	await saver.close();
	return answers;
}

describe("an entry of an index", () => {
	/** Changes one byte at a time. */
	async function expectNothingWrong(places: number[], changed: number, file: Buffer, ids: Map<string, string[]>) {
		const sound = await ask(ids);
		expect(places.length).toBeGreaterThan(20);
		for (const place of places) {
			const damaged = Buffer.from(file);
			damaged[place] = changed;
			writeFileSync(path, damaged);
			const answers = await ask(ids);
			expect(answers.size).toBeLessThan(sound.size);
			for (const [name, answer] of answers) expect([name, answer]).toEqual([name, sound.get(name)]);
		}
	}

	it.each([
		["delta_key", "before", 0],
		["delta_key", "behind", 127],
		["delta_checkpoint_fork", "before", 0],
		["delta_checkpoint_fork", "behind", 127],
	])("of %s that stands for one %s all others misleads no search unnoticed", async (index, _, changed) => {
		const ids = await fill();
		const file = readFileSync(path);
		await expectNothingWrong(findNumbers(index, file).threads, changed, file, ids);
	});

	it("of delta_key that leads to no row is noticed", async () => {
		const ids = await fill();
		const file = readFileSync(path);
		await expectNothingWrong(findNumbers("delta_key", file).rows, 0, file, ids);
	});
});
