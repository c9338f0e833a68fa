import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { putDeltaChain } from "../../src/contract/delta-fixtures.ts";
import { TASK } from "../../src/contract/thread.ts";
import { DeltaSaver, MemorySaver, type Storage } from "../../src/index.ts";
import { SqliteSaver, type SqliteSaverOptions } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import type { WriteRow } from "../../src/storage/storage.ts";
import { pendingCheckpoints, setPendingWrites, spreadWrites } from "../support/pending.ts";
import { emptySchema, openStorage } from "../support/postgres.ts";
import { resum } from "../support/resum.ts";
import { folder, LONG, path, thread } from "../support/scratch-file.ts";

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
			const [blob] = await storage.listBlobs(family);
			await storage.removeBlobs(family, [blob?.id as number]);
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
			change((db) => db.exec("UPDATE delta_blob SET data = damage(data) WHERE id = (SELECT min(id) FROM delta_blob)"));
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

		it.each([
			["in the row of its checkpoint", false],
			["in a row of its own", true],
		])("loses a write that has a changed byte %s, and keeps its checkpoint", async (_, isSpread) => {
			change((db) => {
				if (isSpread) spreadWrites(db);
				damageWrites(db, () => true);
			});
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

		it("lists no checkpoints of all threads if one belongs to none", async () => {
			change((db) => {
				db.prepare("UPDATE delta_checkpoint SET thread = 99 WHERE id = ?").run(ids[1]);
				db.prepare("UPDATE delta_key SET thread_pk = 99 WHERE key_id = ?").run(ids[1]);
				resum(db);
			});
			await withSaver(async (saver) => {
				const listAll = async () => {
					for await (const _ of saver.list({}));
				};
				await expect(listAll()).rejects.toMatchObject({
					code: "CORRUPT",
					message: expect.stringContaining("no thread"),
				});
			});
		});

		it("loses a checkpoint whose row has a changed byte", async () => {
			change((db) =>
				db.prepare("UPDATE delta_checkpoint SET head = damage(head) WHERE thread = 1 AND id = ?").run(ids[2]),
			);
			await withSaver(async (saver) => {
				const { removed } = await saver.repair();
				expect(removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[2] }]);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it.each([1, 3])("misses the row of checkpoint %i in whatever asks for it", async (n) => {
			change((db) => db.prepare("DELETE FROM delta_checkpoint WHERE thread = 1 AND id = ?").run(ids[n]));
			const lost = { code: "CORRUPT", place: { threadId: "hurt" } };
			const list = async (saver: SqliteSaver, configurable: object, filter?: object) => {
				for await (const _ of saver.list({ configurable }, { filter: filter as Record<string, unknown> }));
			};
			await withSaver(async (saver) => {
				const hurt = { thread_id: "hurt" };
				await expect(thread(saver, "hurt").read(ids[n])).rejects.toMatchObject(lost);
				await expect(list(saver, hurt)).rejects.toMatchObject(lost);
				await expect(list(saver, hurt, { source: "fork" })).rejects.toMatchObject(lost);
				await expect(list(saver, {})).rejects.toMatchObject({ code: "CORRUPT" });
				await expect(list(saver, {}, { source: "fork" })).rejects.toMatchObject({ code: "CORRUPT" });
				await expect(saver.copyThread("hurt", "copy")).rejects.toMatchObject(lost);
				await expect(saver.prune(["hurt"], { strategy: "keep_latest" })).rejects.toMatchObject(lost);
				await expect(thread(saver, "hurt").write(ids[n] as string, [["n", 9]])).rejects.toMatchObject(lost);
				expect((await saver.verify()).damage).toContainEqual(expect.objectContaining({ threadId: "hurt" }));
				await saver.repair();
				const rest = ids.filter((_, i) => i !== n);
				expect(await thread(saver, "hurt").ids()).toEqual(rest.toReversed());
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it.each([
			["leads to a row of another thread", "UPDATE delta_key SET row_pk = 6 WHERE key_id = ?"],
			["leads to another row of its thread", "UPDATE delta_key SET row_pk = 1 WHERE key_id = ?"],
			["leads to a row with another id", "UPDATE delta_checkpoint SET id = 'x' || substr(id, 2) WHERE id = ?"],
			["leads to a row with another namespace", "UPDATE delta_checkpoint SET ns = 'child:1' WHERE id = ?"],
		])("is left alone where a key %s, until it is repaired", async (_, damage) => {
			const before = rowsOf("sound");
			change((db) => db.prepare(damage).run(ids[3]));
			await withSaver(async (saver) => {
				const hurt = thread(saver, "hurt");
				const lost = { code: "CORRUPT", place: { threadId: "hurt" } };
				await expect(hurt.read(ids[3])).rejects.toMatchObject(lost);
				await expect(hurt.write(ids[3] as string, [["n", 9]])).rejects.toMatchObject(lost);
				await expect(saver.copyThread("hurt", "copy")).rejects.toMatchObject(lost);
				await expect(saver.prune(["hurt"], { strategy: "keep_latest" })).rejects.toMatchObject(lost);
				expect((await saver.verify()).damage).toContainEqual(expect.objectContaining({ threadId: "hurt" }));
			});
			expect(rowsOf("sound")).toEqual(before);
			await withSaver(async (saver) => {
				await saver.repair();
				expect((await saver.verify()).damage).toEqual([]);
				await saver.deleteThread("hurt");
				expect(await thread(saver, "sound").ids()).toHaveLength(3);
			});
		});

		it("takes no writes at a checkpoint whose key is lost, and gets it back", async () => {
			change((db) => db.prepare("DELETE FROM delta_key WHERE key_id = ?").run(ids[3]));
			await withSaver(async (saver) => {
				const hurt = thread(saver, "hurt");
				await expect(hurt.write(ids[3] as string, [["n", 9]])).rejects.toMatchObject({ code: "CORRUPT" });
				await saver.repair();
				expect(await hurt.pending(ids[3])).toMatchObject([[TASK, "n", 4]]);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("has nothing left of a thread that was deleted while a key or a row was lost", async () => {
			for (const table of ["delta_key", "delta_checkpoint"]) {
				const id = table === "delta_key" ? "key_id" : "id";
				change((db) => db.prepare(`DELETE FROM ${table} WHERE ${id} = ?`).run(ids[1]));
				await withSaver(async (saver) => {
					await saver.deleteThread("hurt");
					await saver.repair();
					expect(await saver.verify()).toMatchObject({ threads: 1, checkpoints: 3, damage: [] });
					for await (const { config } of saver.list({}, { filter: { source: "loop" } }))
						expect(config.configurable?.thread_id).toBe("sound");
					await saver.clear();
					ids = await fill(saver);
				});
			}
		});

		it("is written anew from what is sound if a page is damaged, which is kept", async () => {
			const page = change((db) => db.prepare("SELECT pageno FROM dbstat WHERE name = 'delta_key'").pluck().get());
			const bytes = readFileSync(path);
			bytes.fill(0, ((page as number) - 1) * 4096, (page as number) * 4096);
			writeFileSync(path, bytes);
			await withSaver(async (saver) => {
				await expect(thread(saver, "hurt").read()).rejects.toMatchObject({ code: "CORRUPT" });
				expect((await saver.verify()).damage.length).toBeGreaterThan(0);
				const { damage, removed } = await saver.repair();
				expect(damage.at(-1)?.problem).toContain("test.db.damaged");
				expect(removed).toEqual([]);
				expect(await saver.verify()).toMatchObject({ threads: 2, checkpoints: 7, writes: 1, damage: [] });
				expect(await thread(saver, "hurt").ids()).toEqual(ids.toReversed());
				await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
			});
			expect(readdirSync(folder)).toEqual(["test.db", "test.db.damaged"]);
		});

		it("keeps what a truncated file still has", async () => {
			truncateSync(path, readFileSync(path).length - 2 * 4096);
			await withSaver(async (saver) => {
				await saver.repair();
				expect((await saver.verify()).damage).toEqual([]);
				await thread(saver, "new").put({ values: { n: 1 } });
			});
		});

		it("loses a value whose row is damaged beside it, and leaves nothing of it behind", async () => {
			change((db) => db.exec("UPDATE delta_blob SET sum = sum + 1 WHERE id = (SELECT min(id) FROM delta_blob)"));
			await withSaver(async (saver) => {
				expect((await saver.verify()).damage).toContainEqual(
					expect.objectContaining({ threadId: "hurt", checkpointId: ids[1], channel: "note" }),
				);
				expect((await saver.repair()).removed).toEqual([{ threadId: "hurt", ns: "", checkpointId: ids[1] }]);
				expect(await saver.verify()).toMatchObject({ checkpoints: 6, unreachable: 0, damage: [] });
			});
		});

		it("answers no page of threads if one may be missing there", async () => {
			change((db) =>
				db.exec(
					"UPDATE delta_key SET updated_at = updated_at - 1 WHERE thread_pk = (SELECT pk FROM delta_thread WHERE thread_id = 'sound')",
				),
			);
			await withSaver(async (saver) => {
				await expect(saver.listThreads({ limit: 1 })).rejects.toMatchObject({ code: "CORRUPT" });
				await saver.repair();
				expect((await saver.listThreads()).threads.map(({ threadId }) => threadId).sort()).toEqual(["hurt", "sound"]);
				expect((await saver.verify()).damage).toEqual([]);
			});
		});

		it("is not written anew while another process has it open", async () => {
			change((db) => db.exec("UPDATE delta_format SET sum = sum + 1"));
			const other = new Database(path);
			other.pragma("journal_mode");
			other.prepare("SELECT count(*) FROM delta_thread").get();
			await withSaver(async (saver) => {
				await expect(saver.repair()).rejects.toMatchObject({ code: "BUSY" });
				other.close();
				await saver.repair();
				await thread(saver, "hurt").put({ parent: ids[3], values: { n: 5 } });
			});
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
	it("that was interrupted before the new file was complete leaves the old one", async () => {
		const saver = new SqliteSaver(path);
		await fill(saver);
		await saver.close();
		writeFileSync(`${path}.repairing`, "half of a database");
		const again = new SqliteSaver(path);
		expect((await again.verify()).checkpoints).toBe(7);
		await again.close();
	});

	it("that was interrupted with the new file complete is finished by the next to open it", async () => {
		const saver = new SqliteSaver(path);
		await fill(saver);
		await saver.close();
		change((db) => db.exec("VACUUM INTO 'unused'".replace("unused", `${path}.repaired`)));
		writeFileSync(path, "damaged beyond all help");
		const again = new SqliteSaver(path);
		expect((await again.verify()).checkpoints).toBe(7);
		await again.close();
		expect(existsSync(`${path}.repaired`)).toBe(false);
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

	it("of a file that never was a database leaves it alone", async () => {
		writeFileSync(path, "Dear diary, this is not a database. ".repeat(300));
		const before = readFileSync(path);
		const saver = new SqliteSaver(path);
		await expect(saver.repair()).rejects.toMatchObject({ code: "CORRUPT" });
		await saver.close();
		expect(readFileSync(path)).toEqual(before);
	});

	it("keeps the histories of delta channels as far as they are left", async () => {
		const saver = new SqliteSaver(path);
		const log = thread(saver, "log");
		const ids = await putDeltaChain(log, 8, [4]);
		await saver.close();
		change((db) => db.prepare("UPDATE delta_checkpoint SET head = damage(head) WHERE id = ?").run(ids[5]));
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
			damageWrites(db, ({ channel }) => channel === "note");
			db.exec("UPDATE delta_blob SET data = damage(data)");
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

/** Damages the values of writes, wherever they stand. */
function damageWrites(db: Database.Database, isChosen: (row: WriteRow) => boolean): void {
	const spread = db.prepare("SELECT channel, value FROM delta_write").all() as WriteRow[];
	const set = db.prepare("UPDATE delta_write SET value = ? WHERE value = ?");
	for (const row of spread.filter(isChosen)) set.run(damaged(row.value as Buffer), row.value);
	for (const checkpoint of pendingCheckpoints(db)) {
		const damage = (row: WriteRow) => ({ ...row, value: damaged(row.value as Buffer) });
		setPendingWrites(db, {
			...checkpoint,
			writes: checkpoint.writes.map((row) => (isChosen(row) ? damage(row) : row)),
		});
	}
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

/** All rows of a thread, as they are stored. */
function rowsOf(threadId: string): unknown[] {
	return change((db) => {
		const { pk, family } = db.prepare("SELECT * FROM delta_thread WHERE thread_id = ?").get(threadId) as {
			pk: number;
			family: number;
		};
		return [
			db.prepare("SELECT * FROM delta_thread WHERE pk = ?").all(pk),
			db.prepare("SELECT * FROM delta_key WHERE thread_pk = ?").all(pk),
			db.prepare("SELECT * FROM delta_checkpoint WHERE thread = ?").all(pk),
			db.prepare("SELECT * FROM delta_blob WHERE family = ?").all(family),
		];
	});
}
