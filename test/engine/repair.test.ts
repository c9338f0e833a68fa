import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { putDeltaChain } from "../../src/contract/delta-fixtures.ts";
import { collect, TASK } from "../../src/contract/thread.ts";
import { DeltaSaver, MemorySaver, type Storage } from "../../src/index.ts";
import { SqliteSaver, type SqliteSaverOptions } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { emptySchema, openStorage } from "../support/postgres.ts";
import { folder, LONG, path, scratchFolderForEach, thread } from "../support/scratch-file.ts";

scratchFolderForEach();

/** A thread whose second checkpoint has a blob of its own, and one beside it. */
async function fill(saver: DeltaSaver): Promise<string[]> {
	const ids = await thread(saver, "hurt").chain(4, (n) => ({
		values: n === 1 ? { note: LONG, n } : { n, short: "short" },
	}));
	await thread(saver, "hurt").write(ids[3] as string, [["n", 4]]);
	await thread(saver, "sound").chain(3, (n) => ({ values: { note: LONG + n } }));
	return ids;
}

const STORAGES: Record<string, () => Promise<{ storage: Storage; leave?: () => Promise<void> }>> = {
	memory: async () => ({ storage: new MemoryStorage() }),
	SQLite: async () => ({ storage: new SqliteStorage(fileSource(path)) }),
	PostgreSQL: async () => {
		const { pool, schema, leave } = await emptySchema();
		return { storage: openStorage(pool, schema), leave };
	},
};

for (const [name, setup] of Object.entries(STORAGES))
	describe(`a blob that is lost, in ${name},`, () => {
		it("is named by thread, checkpoint and channel, and its checkpoint removed", async () => {
			const { storage, leave } = await setup();
			const saver = new DeltaSaver(storage);
			const ids = await fill(saver);
			expect(await saver.verify()).toEqual({ threads: 2, checkpoints: 7, writes: 1, unreachable: 0, damage: [] });

			const { family = -1 } = (await storage.getThread("hurt")) ?? {};
			const { blobs } = await storage.readFamily(family);
			await storage.removeBlobs(family, [blobs[0]?.id as number]);
			const place = { threadId: "hurt", ns: "", checkpointId: ids[1], channel: "note" };
			const { damage, unreachable } = await saver.verify();
			expect(damage).toEqual([{ ...place, taskId: undefined, problem: expect.stringContaining("missing") }]);
			expect(unreachable).toBeUndefined();
			await expect(thread(saver, "hurt").read(ids[1])).rejects.toMatchObject({ code: "CORRUPT", place });
			for (const id of [ids[0], ids[2], ids[3]]) await thread(saver, "hurt").read(id);

			const report = await saver.repair();
			expect(report.removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[1] }]);
			expect(await thread(saver, "hurt").ids()).toEqual([ids[3], ids[2], ids[0]]);
			expect(await thread(saver, "hurt").parentOf(ids[2] as string)).toBe(ids[0]);
			expect(await saver.verify()).toMatchObject({ threads: 2, checkpoints: 6, damage: [] });
			expect(await saver.repair()).toEqual({ damage: [], removed: [] });
			await saver.close();
			await leave?.();
		});
	});

for (const [name, options] of [
	["plain", {}],
	["encrypted", { encryption: { key: new Uint8Array(32).fill(7) } }],
] as const)
	describe(`a database that is ${name}`, () => {
		let ids: string[] = [];

		beforeEach(async () => {
			const saver = new SqliteSaver(path, options);
			ids = await fill(saver);
			await saver.close();
		});

		async function withSaver<T>(use: (saver: SqliteSaver) => Promise<T>, more: SqliteSaverOptions = {}): Promise<T> {
			const saver = new SqliteSaver(path, { ...options, ...more });
			try {
				return await use(saver);
			} finally {
				await saver.close();
			}
		}

		it("is read as a whole, with progress after each thread", async () => {
			const progress: unknown[] = [];
			await withSaver(async (saver) => {
				const { damage, ...counts } = await saver.verify({ onProgress: (done) => progress.push(done) });
				expect(damage).toEqual([]);
				expect(counts).toEqual({ threads: 2, checkpoints: 7, writes: 1, unreachable: 0 });
			});
			expect(progress).toEqual([
				{ threads: 1, checkpoints: 3 },
				{ threads: 2, checkpoints: 7 },
			]);
		});

		it("loses a checkpoint whose value has a changed byte, and nothing else", async () => {
			change((db) =>
				db.exec("UPDATE delta_blobs SET data = damage(data) WHERE id = (SELECT min(id) FROM delta_blobs)"),
			);
			const others = () => rowsOf("sound");
			const before = others();
			await withSaver(async (saver) => {
				const { damage } = await saver.verify();
				expect(damage).toMatchObject([{ threadId: "hurt", checkpointId: ids[1], channel: "note" }]);
				const { removed } = await saver.repair();
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[1] }]);
				expect((await saver.verify()).damage).toEqual([]);
				await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
			});
			expect(others()).toEqual(before);
			expect(readdirSync(folder)).toEqual(["test.db"]);
		});

		it("loses a write that has a changed byte, and keeps its checkpoint", async () => {
			change((db) => db.exec("UPDATE delta_writes SET value = damage(value)"));
			await withSaver(async (saver) => {
				await expect(thread(saver, "hurt").read(ids[3])).rejects.toMatchObject({ code: "CORRUPT" });
				const { damage } = await saver.verify();
				expect(damage).toMatchObject([{ threadId: "hurt", checkpointId: ids[3], channel: "n", taskId: TASK }]);
				const { removed } = await saver.repair();
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[3], taskId: TASK }]);
				expect(await thread(saver, "hurt").pending(ids[3])).toEqual([]);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("loses a checkpoint whose row has a changed byte", async () => {
			change((db) =>
				db.prepare("UPDATE delta_checkpoints SET head = damage(head) WHERE checkpoint_id = ?").run(ids[2]),
			);
			await withSaver(async (saver) => {
				const { removed } = await saver.repair();
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[2] }]);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it.each([
			["another parent", "parent_id = 'other'"],
			["another run", "run_id = 'other'"],
			["another step", "step = step + 1"],
		])("loses a checkpoint whose row says %s", async (_, assignment) => {
			change((db) => db.prepare(`UPDATE delta_checkpoints SET ${assignment} WHERE checkpoint_id = ?`).run(ids[2]));
			await withSaver(async (saver) => {
				const { damage, removed } = await saver.repair();
				expect(damage).toMatchObject([{ threadId: "hurt", checkpointId: ids[2] }]);
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[2] }]);
				expect(await thread(saver, "hurt").ids()).toEqual([ids[3], ids[1], ids[0]]);
				expect(await saver.verify()).toMatchObject({ checkpoints: 6, unreachable: 0, damage: [] });
			});
		});

		it("loses a write whose row says another channel", async () => {
			change((db) => db.exec("UPDATE delta_writes SET channel = 'other'"));
			await withSaver(async (saver) => {
				const { removed } = await saver.repair();
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[3], taskId: TASK }]);
				expect(await thread(saver, "hurt").pending(ids[3])).toEqual([]);
				await thread(saver, "hurt").write(ids[3] as string, [["n", 9]]);
				expect(await thread(saver, "hurt").pending(ids[3])).toEqual([[TASK, "n", 9]]);
			});
		});

		it("loses a value whose row says something else, which compact then gives back", async () => {
			change((db) => db.exec("UPDATE delta_blobs SET type = 'other' WHERE id = (SELECT min(id) FROM delta_blobs)"));
			await withSaver(async (saver) => {
				const place = { threadId: "hurt", checkpointId: ids[1], channel: "note" };
				expect((await saver.verify()).damage).toContainEqual(expect.objectContaining(place));
				expect((await saver.repair()).removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[1] }]);
				expect(await saver.compact()).toMatchObject({ blobs: 1 });
				expect(await saver.verify()).toMatchObject({ checkpoints: 6, unreachable: 0, damage: [] });
			});
		});

		it.each([
			["a thread's numbers", "UPDATE delta_threads SET checkpoints = 99, newest = 'other'"],
			["a thread's row", "DELETE FROM delta_threads WHERE thread_id = 'hurt'"],
			["writes of no checkpoint", "UPDATE delta_writes SET checkpoint_pk = 999"],
		])("is put in order where it stands if it is wrong in %s", async (_, damage) => {
			change((db) => db.exec(damage));
			await withSaver(async (saver) => {
				const found = (await saver.verify()).damage;
				expect(found.length).toBeGreaterThan(0);
				const report = await saver.repair();
				expect(report.damage).toEqual(found);
				expect(report.removed).toEqual([]);
				expect(await saver.verify()).toMatchObject({ threads: 2, checkpoints: 7, damage: [] });
				expect(await saver.getThread("hurt")).toMatchObject({ checkpoints: 4, head: ids[3] });
				expect(await thread(saver, "hurt").ids()).toEqual(ids.toReversed());
				await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
			});
			expect(readdirSync(folder)).toEqual(["test.db"]);
		});

		it("says of which thread a checkpoint is missing", async () => {
			change((db) => db.prepare("DELETE FROM delta_checkpoints WHERE checkpoint_id = ?").run(ids[1]));
			await withSaver(async (saver) => {
				expect((await saver.verify()).damage).toContainEqual(expect.objectContaining({ threadId: "hurt" }));
				await saver.repair();
				expect(await thread(saver, "hurt").ids()).toEqual([ids[3], ids[2], ids[0]]);
				expect(await saver.verify()).toMatchObject({ threads: 2, checkpoints: 6, damage: [] });
			});
		});

		it.each([
			["the index over keys", "delta_checkpoints_key"],
			["the index over changes", "delta_threads_updated"],
			["threads", "delta_threads"],
		])("is written anew with all of its rows if a page of %s is damaged, and is kept", async (_, name) => {
			const before = await withSaver(readAll);
			destroyPage(name);
			await withSaver(async (saver) => {
				expect((await saver.verify()).damage.length).toBeGreaterThan(0);
				const { damage, removed } = await saver.repair();
				expect(damage.at(-1)?.problem).toContain("test.db.damaged");
				expect(removed).toEqual([]);
				expect(await readAll(saver)).toEqual(before);
				expect(await saver.verify()).toMatchObject({ threads: 2, checkpoints: 7, writes: 1, damage: [] });
				await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
			});
			expect(readdirSync(folder)).toContain("test.db.damaged");
			expect(readdirSync(folder)).not.toContain("test.db.repairing");
		});

		it("has the threads named that a damaged index hides, though SQLite gives up where it is", async () => {
			await withSaver(async (saver) => {
				for (let n = 0; n < 8; n++) await thread(saver, `thread ${n}`).chain(5, () => ({ values: { n } }));
			});
			const bytes = readFileSync(path);
			// How a row of the index begins: the size of its header, then the types of a thread's name and an empty namespace.
			const row = bytes.indexOf(Buffer.of(6, 29, 13), (findPage("delta_checkpoints_key") - 1) * 4096);
			bytes[row] = 152;
			writeFileSync(path, bytes);
			await withSaver(async (saver) => {
				const { damage } = await saver.verify();
				const problem = "The index over keys lacks a checkpoint.";
				expect(damage).toContainEqual({ threadId: expect.stringMatching(/^thread \d$/), problem });
			});
		});

		it("has the table of writes named, though SQLite gives up where it is damaged", async () => {
			await withSaver((saver) => thread(saver, "sound").write(ids[3] as string, [["n", 1]]));
			const bytes = readFileSync(path);
			const page = (findPage("delta_writes") - 1) * 4096;
			// A cell begins with its length, in two bytes if it is over 127; then comes the size of the header of its row.
			const cell = page + bytes.readUInt16BE(page + 8);
			bytes[cell + ((bytes[cell] as number) > 127 ? 2 : 1)] = 152;
			writeFileSync(path, bytes);
			await withSaver(async (saver) => {
				const { damage } = await saver.verify();
				expect(damage).toContainEqual({ problem: "Pages of delta_writes are damaged." });
				expect(JSON.stringify(damage)).not.toContain("delta_checkpoints are");
				await saver.repair();
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("has the threads named that the index over rows without a head mixes up", async () => {
			await withSaver((saver) => thread(saver, "early").write(ids[0] as string, [["n", 1]]));
			const before = await withSaver(readAll);
			const bytes = readFileSync(path);
			const page = (findPage("delta_checkpoints_headless") - 1) * 4096;
			// Its only cell begins with its length, and ends with the number of its row: the first checkpoint has the number 1.
			const cell = page + bytes.readUInt16BE(page + 8);
			bytes[cell + (bytes[cell] as number)] = 1;
			writeFileSync(path, bytes);
			await withSaver(async (saver) => {
				const { damage } = await saver.verify();
				const problem = "The index over rows without a head has another row, or lacks one.";
				for (const threadId of ["hurt", "early"]) expect(damage).toContainEqual({ threadId, problem });
				await saver.repair();
				expect(await readAll(saver)).toEqual(before);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("loses the checkpoints whose values were in a damaged page, and says so", async () => {
			destroyPage("delta_blobs");
			await withSaver(async (saver) => {
				const { damage, removed } = await saver.repair();
				expect(damage).toContainEqual({ problem: expect.stringMatching(/delta_blobs.*lost/) });
				expect(removed).toContainEqual({ threadId: "hurt", ns: "", checkpointId: ids[1] });
				expect(await thread(saver, "hurt").ids()).toEqual([ids[3], ids[2], ids[0]]);
				expect(await thread(saver, "hurt").values(ids[2])).toEqual({ n: 2, short: "short" });
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("keeps what a truncated file still has", async () => {
			truncateSync(path, readFileSync(path).length - 2 * 4096);
			await withSaver(async (saver) => {
				await saver.repair();
				const { checkpoints, damage } = await saver.verify();
				expect(damage).toEqual([]);
				expect(checkpoints).toBeGreaterThan(0);
				await thread(saver, "new").put({ values: { n: 1 } });
			});
		});

		it("is not written anew while another process has it open", async () => {
			destroyPage("delta_checkpoints_key");
			const other = new Database(path);
			other.prepare("SELECT count(*) FROM delta_threads").get();
			await withSaver(
				async (saver) => {
					await expect(saver.repair()).rejects.toMatchObject({ code: "BUSY" });
					other.close();
					await saver.repair();
					await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
				},
				{ busyTimeout: 200 },
			);
		});

		it("is not repaired by a saver that only reads", async () => {
			await withSaver(
				async (saver) => {
					expect((await saver.verify()).damage).toEqual([]);
					await expect(saver.repair()).rejects.toMatchObject({ code: "READ_ONLY" });
				},
				{ readOnly: true },
			);
		});
	});

describe("a repair", () => {
	it("that was interrupted leaves the file as it was, and can be made again", async () => {
		const saver = new SqliteSaver(path);
		await fill(saver);
		await saver.close();
		destroyPage("delta_checkpoints_key");
		writeFileSync(`${path}.repairing`, "half of a database");
		const again = new SqliteSaver(path);
		expect((await again.verify()).damage.length).toBeGreaterThan(0);
		await again.repair();
		expect(await again.verify()).toMatchObject({ checkpoints: 7, damage: [] });
		await again.close();
		expect(readdirSync(folder)).not.toContain("test.db.repairing");
	});

	it("removes nothing for want of the right key", async () => {
		const right = new SqliteSaver(path, { encryption: { key: new Uint8Array(32).fill(1) } });
		await fill(right);
		const wrong = new SqliteSaver(path, { encryption: { key: new Uint8Array(32).fill(2) } });
		await expect(wrong.verify()).rejects.toMatchObject({ code: "WRONG_KEY" });
		await expect(wrong.repair()).rejects.toMatchObject({ code: "WRONG_KEY" });
		await wrong.close();
		expect(await right.verify()).toMatchObject({ checkpoints: 7, damage: [] });
		await right.close();
	});

	it("removes nothing if nothing can be read, and a whole thread if only that can't", async () => {
		const saver = new SqliteSaver(path);
		await fill(saver);
		const before = await collect(saver.list({}));
		await saver.close();
		// Rows in clear are no rows for a saver that encrypts.
		const other = new SqliteSaver(path, { encryption: { key: new Uint8Array(32).fill(7) } });
		expect((await other.verify()).damage).not.toEqual([]);
		await expect(other.repair()).rejects.toMatchObject({ code: "CORRUPT", message: expect.stringContaining("clear") });
		await other.close();
		const again = new SqliteSaver(path);
		expect(await collect(again.list({}))).toEqual(before);
		const damage = (condition: string) =>
			change((db) => db.exec(`UPDATE delta_checkpoints SET head = damage(head) WHERE ${condition}`));
		damage("thread_id = 'hurt'");
		expect((await again.repair()).removed).toHaveLength(4);
		expect(await thread(again, "sound").ids()).toHaveLength(3);
		damage("true");
		await expect(again.repair()).rejects.toMatchObject({ code: "CORRUPT" });
		await again.clear();
		await fill(again);
		expect((await again.verify()).damage).toEqual([]);
		await again.close();
	});

	it("removes nothing that just the serializer does not understand, beside what is lost", async () => {
		const storage = new MemoryStorage();
		const ids = await fill(new DeltaSaver(storage));
		const { family = -1 } = (await storage.getThread("hurt")) ?? {};
		await storage.removeBlobs(family, [(await storage.readFamily(family)).blobs[0]?.id as number]);
		const refuse = () => {
			throw new Error("not by me");
		};
		const other = new DeltaSaver(storage, { serde: { dumpsTyped: refuse, loadsTyped: refuse } });
		expect((await other.verify()).damage.length).toBeGreaterThan(7);
		expect((await other.repair()).removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[1] }]);
		const saver = new DeltaSaver(storage);
		expect(await saver.verify()).toMatchObject({ checkpoints: 6, writes: 1, damage: [] });
	});

	it("names and removes every checkpoint that has a value which is lost", async () => {
		const storage = new MemoryStorage();
		const saver = new DeltaSaver(storage);
		const hurt = thread(saver, "hurt");
		const first = await hurt.put({ values: { note: LONG } });
		const second = await hurt.put({ parent: first, values: { note: LONG }, newVersions: {} });
		const third = await hurt.put({ parent: second, values: { n: 1 } });
		const { family = -1 } = (await storage.getThread("hurt")) ?? {};
		const { blobs } = await storage.readFamily(family);
		expect(blobs).toHaveLength(1);
		await storage.removeBlobs(family, [blobs[0]?.id as number]);
		const named = (await saver.verify()).damage.map(({ checkpointId, channel }) => [checkpointId, channel]);
		expect(named).toEqual([
			[second, "note"],
			[first, "note"],
		]);
		expect((await saver.repair()).removed).toHaveLength(2);
		expect(await hurt.ids()).toEqual([third]);
		expect((await saver.verify()).damage).toEqual([]);
	});

	it("of a file that never was a database leaves it alone", async () => {
		writeFileSync(path, "Dear diary, this is not a database. ".repeat(300));
		const before = readFileSync(path);
		const saver = new SqliteSaver(path);
		await expect(saver.repair()).rejects.toMatchObject({ code: "FOREIGN_DATABASE" });
		await saver.close();
		expect(readFileSync(path)).toEqual(before);
	});

	it("keeps the histories of delta channels as far as they are left", async () => {
		const saver = new SqliteSaver(path);
		const log = thread(saver, "log");
		const ids = await putDeltaChain(log, 8, [4]);
		await saver.close();
		change((db) => db.prepare("UPDATE delta_checkpoints SET head = damage(head) WHERE checkpoint_id = ?").run(ids[5]));
		const again = new SqliteSaver(path);
		const { removed } = await again.repair();
		expect(removed).toContainEqual({ threadId: "log", ns: "", checkpointId: ids[5] });
		expect((await again.verify()).damage).toEqual([]);
		for (const id of await log.through(again).ids()) await log.through(again).replay(id, "log");
		await again.close();
	});

	it("does not shorten a history for want of a write elsewhere in the thread", async () => {
		const saver = new SqliteSaver(path);
		const log = thread(saver, "log");
		const ids = await putDeltaChain(log, 4);
		const aside = await log.put({ values: { note: LONG } });
		await log.write(aside, [["note", "aside"]], "aside");
		const hurt = await log.put({ parent: ids[3], values: { note: LONG }, versions: { log: 5, note: 1 } });
		const last = await log.put({ parent: hurt, values: { note: "short" }, versions: { log: 6, note: 2 } });
		const before = await log.replay(last, "log");
		await saver.close();
		change((db) => {
			db.exec("UPDATE delta_writes SET value = damage(value) WHERE channel = 'note'");
			db.exec("UPDATE delta_blobs SET data = damage(data)");
		});
		const again = new SqliteSaver(path);
		await again.repair();
		expect((await again.verify()).damage).toEqual([]);
		expect(await log.through(again).ids()).toContain(last);
		expect(await log.through(again).ids()).not.toContain(hurt);
		expect(await log.through(again).replay(last, "log")).toEqual(before);
		await again.close();
	});

	it("has nothing to do for a saver without damage, and takes no options that it does not know", async () => {
		const saver = new MemorySaver();
		await fill(saver);
		const progress: unknown[] = [];
		expect(await saver.repair({ onProgress: (done) => progress.push(done) })).toEqual({ damage: [], removed: [] });
		expect(progress).toHaveLength(2);
		await expect(saver.repair({ force: true } as object)).rejects.toMatchObject({ code: "INVALID_OPTION" });
		await expect(saver.verify({ deep: true } as object)).rejects.toMatchObject({ code: "INVALID_OPTION" });
	});
});

function damaged(bytes: Uint8Array): Buffer {
	const copy = Buffer.from(bytes);
	copy[copy.length >> 1] = (copy[copy.length >> 1] as number) ^ 0x10;
	return copy;
}

/** Changes a file behind the saver's back. SQL can `damage` bytes: one in the middle becomes another. */
function change<T>(work: (db: Database.Database) => T): T {
	const db = new Database(path);
	db.function("damage", (bytes) => damaged(bytes as Buffer));
	try {
		return work(db);
	} finally {
		db.close();
		rmSync(`${path}-shm`, { force: true });
	}
}

/** Fills a page of a table or index with zeros, as a disk may. */
function findPage(name: string): number {
	return change((db) => db.prepare("SELECT pageno FROM dbstat WHERE name = ?").pluck().get(name)) as number;
}

function destroyPage(name: string): void {
	const page = findPage(name);
	const bytes = readFileSync(path);
	bytes.fill(0, (page - 1) * 4096, page * 4096);
	writeFileSync(path, bytes);
}

async function readAll(saver: DeltaSaver): Promise<unknown[]> {
	return collect(saver.list({}));
}

/** All rows of a thread, as they are stored. */
function rowsOf(threadId: string): unknown[] {
	return change((db) => [
		db.prepare("SELECT * FROM delta_threads WHERE thread_id = ?").all(threadId),
		db.prepare("SELECT * FROM delta_checkpoints WHERE thread_id = ?").all(threadId),
		db
			.prepare("SELECT b.* FROM delta_blobs b JOIN delta_threads USING (family) WHERE thread_id = ? ORDER BY id")
			.all(threadId),
	]);
}
