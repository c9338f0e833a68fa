import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { key, row, write } from "../../../src/contract/storage/storage-scene.ts";
import { fileSource } from "../../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import type { CheckpointRow, NewWrite } from "../../../src/storage/storage.ts";

let folder = "";
let log: string[] = [];
let storage: SqliteStorage;
let other: SqliteStorage;
let fresh = 1000;

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "head-"));
	const path = join(folder, "test.db");
	const source = fileSource(path);
	const open = () => {
		source.open().close();
		return new Database(path, { verbose: (sql) => log.push(String(sql)) });
	};
	storage = new SqliteStorage({ ...source, open });
	other = new SqliteStorage(fileSource(path));
	await put(storage, row("a"));
	await put(storage, row("b", { parentId: "a" }));
	await put(storage, undefined, [write("b", "task", 1), write("b", "task", 0)]);
	log = [];
});
afterEach(async () => {
	await storage.close();
	await other.close();
	await rm(folder, { recursive: true });
});

function put(by: SqliteStorage, checkpoint?: CheckpointRow, writes: NewWrite[] = []) {
	const { threadId } = key("a");
	return by.put({ threadId, fresh: fresh++, now: 1, blobs: [], writes, checkpoint });
}

/** The newest checkpoint with its writes, as a saver asks for them. */
async function readHead(by: SqliteStorage) {
	const { threadId, ns } = key("a");
	const head = await by.getLatest(threadId, ns);
	return head && { head, writes: await by.getWrites([head]) };
}

const reads = () => log.filter((sql) => /^\s*SELECT/.test(sql)).length;

describe("the newest checkpoint of a thread", () => {
	it("is not read by the connection that has stored it, nor are its writes, and both are what is stored", async () => {
		const found = await readHead(storage);
		expect(reads()).toBe(0);
		expect(found).toEqual(await readHead(other));
		expect(found?.writes.map(({ idx }) => idx)).toEqual([0, 1]);
	});

	it.each<[what: string, change: (by: SqliteStorage) => Promise<unknown>]>([
		["another checkpoint", (by) => put(by, row("c", { parentId: "b" }))],
		["another checkpoint in its place", (by) => put(by, row("b", { parentId: "b", head: Buffer.from("other") }))],
		["more writes of its task", (by) => put(by, undefined, [write("b", "task", 2)])],
		["writes of another task", (by) => put(by, undefined, [write("b", "another", 0)])],
		["a thread without it", (by) => by.removeThread(key("a").threadId)],
	])("is read again after another connection, or this one, stored %s", async (_, change) => {
		for (const by of [storage, other]) {
			await readHead(storage);
			await change(by);
			expect(await readHead(storage)).toEqual(await readHead(other));
		}
	});

	it("comes with the writes that it has when they are asked for", async () => {
		for (const [i, by] of [storage, other].entries()) {
			const head = await storage.getLatest(key("a").threadId, "");
			await put(by, undefined, [write("b", "task", 2 + i)]);
			expect((await storage.getWrites([head as CheckpointRow])).map(({ idx }) => idx)).toContain(2 + i);
		}
	});
});
