import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver as OfficialSqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";
import { blob, key, row, write } from "../../../src/contract/storage/storage-scene.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { limitLog } from "../../../src/storage/sqlite/driver.ts";
import { fileSource } from "../../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import type { PutBatch } from "../../../src/storage/storage.ts";

let folder = "";
let path = "";

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "commits-"));
	path = join(folder, "test.db");
});
afterEach(() => rm(folder, { recursive: true }));

/** A storage, and what it told SQLite to do. */
function watched(durability?: "process" | "power") {
	const log: string[] = [];
	const source = fileSource(path, durability);
	const open = async () => new Database(path, { timeout: 0, verbose: (sql) => log.push(String(sql)) });
	const commits = () => log.filter((sql) => sql === "COMMIT").length;
	return { storage: new SqliteStorage({ ...source, open }, 2000), commits, log };
}

function batch(n: number, fields: Partial<PutBatch> = {}): PutBatch {
	const threadId = `thread ${n}`;
	const checkpoint = row("a", { threadId });
	return { threadId, fresh: n + 1000, now: n, blobs: [], writes: [], deltaBases: [], checkpoint, ...fields };
}

describe("commits", () => {
	it.each(["process", "power"] as const)(
		"are shared by the calls of one moment, with durability %s",
		async (durability) => {
			const { storage, commits } = watched(durability);
			await storage.reserveIds(1);
			const before = commits();
			const results = await Promise.all(Array.from({ length: 50 }, (_, n) => storage.put(batch(n))));
			expect(results.map((result) => result?.stamp)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1000));
			expect(commits() - before).toBe(1);
			await storage.close();
		},
	);

	it("with durability power are shared by calls of callbacks that run one after the other", async () => {
		const { storage, commits } = watched("power");
		await storage.reserveIds(1);
		const before = commits();
		await Promise.all(
			[1, 2, 3].map((n) => new Promise((done) => setImmediate(done)).then(() => storage.put(batch(n)))),
		);
		expect(commits() - before).toBe(1);
		await storage.close();
	});

	it("of calls one after the other are one each, and none is late", async () => {
		const { storage, commits } = watched();
		await storage.reserveIds(1);
		const before = commits();
		const other = new SqliteStorage(fileSource(path));
		for (let n = 0; n < 3; n++) {
			await storage.put(batch(n));
			expect(await other.getThread(`thread ${n}`)).toBeDefined();
		}
		expect(commits() - before).toBe(3);
		await Promise.all([storage.close(), other.close()]);
	});

	it("are kept from those that succeed when one of them fails", async () => {
		const { storage } = watched();
		const [taken] = [await storage.reserveIds(1)];
		await storage.put(batch(0, { blobs: [blob(taken, "value")] }));
		const calls = [1, 2, 3, 4, 5].map((n) => storage.put(batch(n, n === 3 ? { blobs: [blob(taken, "again")] } : {})));
		const results = await Promise.allSettled(calls);
		expect(results.map(({ status }) => status)).toEqual([
			"fulfilled",
			"fulfilled",
			"rejected",
			"fulfilled",
			"fulfilled",
		]);
		expect(results[2]).toMatchObject({ reason: { code: "STORAGE" } });
		for (const n of [1, 2, 4, 5]) {
			const { checkpoints } = await storage.read([key("a", "", `thread ${n}`)], "rows");
			expect(checkpoints).toHaveLength(1);
		}
		expect(await storage.getThread("thread 3")).toBeUndefined();
		await storage.close();
	});

	describe("of a small put", () => {
		const next = (n: number, fields: Partial<PutBatch> = {}) =>
			batch(0, { now: n, checkpoint: row(`${n}`, { threadId: "thread 0", parentId: `${n - 1}` }), ...fields });

		it("are one look, one update, one insert", async () => {
			const { storage, log } = watched();
			await storage.put(next(1));
			log.length = 0;
			await storage.put(next(2));
			expect(log.map((sql) => sql.trim().split(" ")[0])).toEqual(["BEGIN", "SELECT", "UPDATE", "INSERT", "COMMIT"]);
			await storage.close();
		});

		it.each<[what: string, change: (other: SqliteStorage) => Promise<unknown>, checkpoints: number]>([
			["put another checkpoint", (other) => other.put(next(5)), 6],
			["put the next checkpoint", (other) => other.put(next(6)), 5],
			["removed the thread", (other) => other.removeThread("thread 0"), 2],
			[
				"removed the thread and made it again",
				async (other) => {
					await other.removeThread("thread 0");
					await other.put(next(1, { fresh: 7 }));
				},
				3,
			],
		])("go on with what is there after somebody else has %s", async (_, change, checkpoints) => {
			const { storage } = watched();
			const other = new SqliteStorage(fileSource(path));
			for (let n = 1; n < 4; n++) await storage.put(next(n));
			await change(other);
			// Together and alone.
			await Promise.all([storage.put(next(6)), storage.put(batch(1))]);
			await storage.put(next(7));
			for (const one of [storage, other]) {
				expect(await one.getThread("thread 0")).toMatchObject({ checkpoints, newest: "7" });
				expect(await one.check()).toEqual([]);
			}
			expect(await other.getThread("thread 1")).toBeDefined();
			for (const one of [storage, other]) await one.close();
		});
	});

	describe("of writes of many tasks", () => {
		const taskWrite = (n: number) =>
			batch(0, { checkpoint: undefined, writes: [write("a", `task ${n}`, 0, { threadId: "thread 0" })] });

		it("wait for the end of the turn once there are many, and come to few", async () => {
			const { storage, commits } = watched();
			await storage.put(batch(0));
			const before = commits();
			let done = 0;
			// Each task ends in a tick of its own, as those of LangGraph do.
			for (let n = 0; n < 100; n++) {
				void storage.put(taskWrite(n)).then(() => done++);
				await Promise.resolve();
				await Promise.resolve();
			}
			expect(done).toBeLessThan(20);
			await new Promise((resolve) => setImmediate(resolve));
			expect(done).toBe(100);
			expect(commits() - before).toBeLessThan(20);
			await storage.close();
		});

		it("come before what is read, and before the next checkpoint", async () => {
			for (const next of ["read", "put"] as const) {
				const { storage } = watched();
				await storage.put(batch(0));
				for (let n = 0; n < 30; n++) {
					void storage.put(taskWrite(n));
					await Promise.resolve();
				}
				if (next === "put") await storage.put(batch(0, { checkpoint: row("b", { threadId: "thread 0" }) }));
				expect((await storage.readThread("thread 0")).writes).toHaveLength(30);
				await storage.close();
			}
		});
	});

	it("happen in the order of the calls", async () => {
		const { storage } = watched();
		const calls = Array.from({ length: 20 }, (_, n) =>
			storage.put(
				batch(0, {
					checkpoint: undefined,
					writes: [write("a", "task", 0, { threadId: "thread 0", conflict: "add", actor: n })],
				}),
			),
		);
		await Promise.all(calls);
		const { writes: stored } = await storage.readThread("thread 0");
		expect(
			stored.map(({ generation, actor }) => [generation, actor]).sort((a, b) => Number(a[0]) - Number(b[0])),
		).toEqual(Array.from({ length: 20 }, (_, n) => [n, n]));
		await storage.close();
	});

	it("that were accepted are done before close is", async () => {
		const { storage } = watched();
		const calls = [1, 2, 3].map((n) => storage.put(batch(n)));
		await storage.close();
		await Promise.all(calls);
		await expect(storage.put(batch(4))).rejects.toMatchObject({ code: "CLOSED" });
		const again = new SqliteStorage(fileSource(path));
		expect(await again.listThreads(10, undefined)).toHaveLength(3);
		await again.close();
	});

	it("wait for another process without stopping this one", async () => {
		const { storage } = watched();
		await storage.reserveIds(1);
		const other = new Database(path);
		other.exec("BEGIN IMMEDIATE");
		const waiting = [1, 2].map((n) => storage.put(batch(n)));
		// If the wait stopped the process, this would never be reached and the calls would fail.
		await sleep(100);
		expect(await storage.getThread("thread 1")).toBeUndefined();
		other.exec("COMMIT");
		other.close();
		await Promise.all(waiting);
		expect(await storage.getThread("thread 2")).toBeDefined();
		await storage.close();
	});

	it("that wait too long are refused one by one, as each one's time is over", async () => {
		const source = fileSource(path);
		const storage = new SqliteStorage(source, 100);
		await storage.reserveIds(1);
		const other = new Database(path);
		other.exec("BEGIN IMMEDIATE");
		const first = storage.put(batch(1));
		await sleep(80);
		const second = storage.put(batch(2));
		await expect(first).rejects.toMatchObject({ code: "BUSY" });
		other.exec("COMMIT");
		other.close();
		await second;
		expect(await storage.getThread("thread 1")).toBeUndefined();
		await storage.close();
	});
});

describe("the log", () => {
	it("may become half as large as the file, from 1,000 to 8,000 pages", async () => {
		const source = fileSource(path);
		const db = await source.open();
		source.configure?.(db);
		const limit = () => {
			limitLog(db);
			return db.pragma("wal_autocheckpoint", { simple: true });
		};
		expect(limit()).toBe(1000);
		db.exec("CREATE TABLE filler (bytes BLOB)");
		const fill = (pages: number) => db.prepare("INSERT INTO filler VALUES (zeroblob(?))").run(pages * 4096);
		fill(5000);
		expect(limit()).toBeGreaterThan(2400);
		expect(limit()).toBeLessThan(2600);
		fill(15_000);
		expect(limit()).toBe(8000);
		db.close();
	});

	it.each([300, 2000])(
		"and the file are no larger than the official saver's and 4 MB, after %i puts",
		async (count) => {
			const bytesOf = async (saver: SqliteSaver | OfficialSqliteSaver, file: string) => {
				let config: RunnableConfig = { configurable: { thread_id: "t", checkpoint_ns: "" } };
				for (let n = 0; n < count; n++) {
					const channels = { channel_values: { n }, channel_versions: { n } };
					const checkpoint = { ...emptyCheckpoint(), id: uuid6(n), ...channels };
					config = await saver.put(config, checkpoint, { source: "loop", step: n, parents: {} }, { n });
				}
				return ["", "-wal"].reduce((sum, end) => sum + statSync(file + end).size, 0);
			};
			const official = OfficialSqliteSaver.fromConnString(join(folder, "official.db"));
			const saver = new SqliteSaver(path);
			const most = (await bytesOf(official, join(folder, "official.db"))) + 4 * 1024 * 1024;
			expect(await bytesOf(saver, path)).toBeLessThan(most);
			await saver.close();
			official.db.close();
		},
	);
});

describe("durability", () => {
	it.each([
		["process", 1],
		["power", 2],
	] as const)("%s is SQLite's synchronous %i", async (durability, level) => {
		const source = fileSource(path, durability);
		const db = await source.open();
		source.configure?.(db);
		expect(db.pragma("synchronous", { simple: true })).toBe(level);
		expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
		db.close();
	});

	it("power stores and reads what process does", async () => {
		const saver = new SqliteSaver(path, { durability: "power" });
		await saver.copyThread("a", "b");
		await saver.close();
	});

	it.each([
		{ durability: "disk" },
		{ durability: 1 },
		{ busyTimeout: -1 },
		{ busyTimeout: "1" },
		{ busyTimeout: Number.NaN },
	])("and the busy timeout must make sense: %j", (options) => {
		expect(() => new SqliteSaver(path, options as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});

	it("of an open Database is the application's", () => {
		const db = new Database(path);
		expect(() => new SqliteSaver(db, { durability: "power" })).toThrow(
			expect.objectContaining({ code: "INVALID_OPTION" }),
		);
		db.close();
	});
});
