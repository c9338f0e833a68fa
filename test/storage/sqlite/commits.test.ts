import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { blob, key, row, write } from "../../../src/contract/storage/storage-scene.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
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
	const open = () => {
		source.open().close();
		return new Database(path, { timeout: 0, verbose: (sql) => log.push(String(sql)) });
	};
	const commits = () => log.filter((sql) => sql === "COMMIT").length;
	return { storage: new SqliteStorage({ ...source, open }, 2000), commits, log };
}

function batch(n: number, fields: Partial<PutBatch> = {}): PutBatch {
	const threadId = `thread ${n}`;
	return { threadId, fresh: n + 1000, now: n, blobs: [], writes: [], checkpoint: row("a", { threadId }), ...fields };
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
		for (const n of [1, 2, 4, 5]) expect(await storage.getCheckpoint(key("a", "", `thread ${n}`))).toBeDefined();
		expect(await storage.getThread("thread 3")).toBeUndefined();
		await storage.close();
	});

	describe("on a thread that this connection has stored last", () => {
		const next = (n: number, fields: Partial<PutBatch> = {}) =>
			batch(0, { now: n, checkpoint: row(`${n}`, { threadId: "thread 0", parentId: `${n - 1}` }), ...fields });

		async function start() {
			const { storage, log } = watched();
			const other = new SqliteStorage(fileSource(path));
			for (let n = 1; n < 4; n++) await storage.put(next(n));
			log.length = 0;
			return { storage, other, log };
		}

		it("read nothing before", async () => {
			const { storage, other, log } = await start();
			await storage.put(next(4));
			expect(log.map((sql) => sql.trim().split(" ")[0])).toEqual(["BEGIN", "INSERT", "INSERT", "UPDATE", "COMMIT"]);
			expect(await other.getThread("thread 0")).toMatchObject({ checkpoints: 4, head: "4" });
			for (const one of [storage, other]) await one.close();
		});

		it.each<[what: string, change: (other: SqliteStorage) => Promise<unknown>, checkpoints: number]>([
			["put another checkpoint", (other) => other.put(next(5)), 6],
			["put the next checkpoint", (other) => other.put(next(6)), 5],
			[
				"put one of another namespace",
				(other) => other.put(next(4, { checkpoint: row("4", { threadId: "thread 0", ns: "sub" }) })),
				6,
			],
			[
				"put writes alone",
				(other) =>
					other.put(batch(0, { checkpoint: undefined, writes: [write("3", "task", 0, { threadId: "thread 0" })] })),
				5,
			],
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
			const { storage, other } = await start();
			await change(other);
			// Together and alone.
			await Promise.all([storage.put(next(6)), storage.put(batch(1))]);
			await storage.put(next(7));
			expect(await storage.getThread("thread 0")).toMatchObject({ checkpoints, head: "7" });
			for (const one of [storage, other]) {
				expect(await one.check()).toEqual([]);
				expect((await one.getLatest("thread 0", ""))?.id).toBe("7");
			}
			expect(await other.getThread("thread 1")).toBeDefined();
			for (const one of [storage, other]) await one.close();
		});

		it("are refused if it has another stamp, or its row is damaged", async () => {
			const { storage, other } = await start();
			const stamp = (await storage.getThread("thread 0"))?.stamp as number;
			await other.removeThread("thread 0");
			await other.put(batch(0, { fresh: 7 }));
			expect(await storage.put(next(5, { stamp }))).toBeUndefined();
			await storage.put(next(6));
			const db = new Database(path);
			db.exec("UPDATE delta_key SET checkpoints = checkpoints + 1, totals_sum = totals_sum + 1 WHERE row_pk = 0");
			db.close();
			await expect(storage.put(next(7))).rejects.toMatchObject({ code: "CORRUPT" });
			for (const one of [storage, other]) await one.close();
		});
	});

	it("happen in the order of the calls", async () => {
		const { storage } = watched();
		const writes = Array.from({ length: 20 }, (_, n) =>
			storage.put(
				batch(0, {
					checkpoint: undefined,
					writes: [write("a", "task", 0, { threadId: "thread 0", conflict: "add", actor: n })],
				}),
			),
		);
		await Promise.all(writes);
		const stored = await storage.getThreadWrites("thread 0");
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

describe("durability", () => {
	it.each([
		["process", 1],
		["power", 2],
	] as const)("%s is SQLite's synchronous %i", (durability, level) => {
		const db = fileSource(path, durability).open();
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
