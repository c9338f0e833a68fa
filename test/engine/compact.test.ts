import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { deltaDraft, putDeltaChain } from "../../src/contract/delta-fixtures.ts";
import { DeltaSaver, type Storage } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { emptySchema, openStorage } from "../support/postgres.ts";
import { folder, LONG, nextId, path, scratchFolderForEach, thread } from "../support/scratch-file.ts";
import { override } from "../support/shared-memory.ts";

scratchFolderForEach();

const NULL_TASK = "00000000-0000-0000-0000-000000000000";

const STORAGES: Record<string, () => Promise<{ storage: Storage; leave?: () => Promise<void> }>> = {
	memory: async () => ({ storage: new MemoryStorage() }),
	SQLite: async () => ({ storage: new SqliteStorage(fileSource(path)) }),
	PostgreSQL: async () => {
		const { pool, schema, leave } = await emptySchema();
		return { storage: openStorage(pool, schema), leave };
	},
};

for (const [name, setup] of Object.entries(STORAGES))
	describe(`a compaction, in ${name},`, () => {
		it("drops old writes whose checkpoint never came, and no others", async () => {
			const { storage, leave } = await setup();
			const saver = new DeltaSaver(storage);
			const ids = await thread(saver).chain(3);
			await thread(saver).write(ids[1] as string, [["a", "of a checkpoint"]]);
			await thread(saver).write(nextId(), [["a", LONG]]);
			await thread(saver).write(uuid6(1), [["a", "just written"]]);
			const { writes, blobs, bytes } = await saver.compact();
			expect({ writes, blobs }).toEqual({ writes: 1, blobs: 1 });
			expect(bytes).toBeGreaterThan(LONG.length / 2);
			const { writes: left } = await storage.readThread("thread");
			expect(left.map(({ id }) => id)).toContain(ids[1]);
			expect(left).toHaveLength(2);
			expect(await saver.verify()).toMatchObject({ unreachable: 0, damage: [] });
			await saver.close();
			await leave?.();
		});

		it("keeps the first input of a history, whose checkpoint is never stored", async () => {
			const { storage, leave } = await setup();
			const saver = new DeltaSaver(storage);
			const config = { configurable: { thread_id: "thread" }, metadata: { run_id: "run" } };
			await thread(saver).write(nextId(), [["log", "first"]], NULL_TASK, config);
			const root = await thread(saver).put({ ...deltaDraft(0), config });
			const before = await thread(saver).replay(root, "log");
			await saver.compact();
			expect(await thread(saver).replay(root, "log")).toEqual(before);
			expect((await storage.readThread("thread")).writes).toHaveLength(1);
			await saver.close();
			await leave?.();
		});

		it("drops what a put replaced and what lost its thread, and says how far it is", async () => {
			const { storage, leave } = await setup();
			const saver = new DeltaSaver(storage);
			const id = await thread(saver).put({ values: { a: LONG } });
			await thread(saver).put({ id, values: { a: `${LONG}!` }, versions: { a: 2 } });
			await thread(saver, "gone").put({ values: { a: `${LONG}?` } });
			await storage.removeThread("gone");
			const progress: { threads: number; blobs: number }[] = [];
			const { blobs } = await saver.compact({ onProgress: (done) => progress.push(done) });
			expect(blobs).toBeGreaterThanOrEqual(1);
			expect(progress.at(-1)).toMatchObject({ threads: 1, blobs });
			expect(await thread(saver).values(id)).toEqual({ a: `${LONG}!` });
			expect(await saver.verify()).toMatchObject({ unreachable: 0, damage: [] });
			expect(await saver.compact()).toEqual({ writes: 0, blobs: 0, bytes: 0 });
			await saver.close();
			await leave?.();
		});
	});

describe("a compaction of a file", () => {
	it("gives its space back, and that of its log", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver, "kept").put({ values: { a: LONG } });
		for (let n = 0; n < 20; n++) await thread(saver, "gone").put({ values: { a: `${n} ${LONG}`.repeat(50) } });
		await saver.deleteThread("gone");
		await saver.compact();
		expect(statSync(`${path}-wal`).size).toBe(0);
		expect(statSync(path).size).toBeLessThan(150_000);
		expect(await thread(saver, "kept").values()).toEqual({ a: LONG });
		await saver.close();
	});
});

describe("a long call", () => {
	const encryption = { keys: { old: new Uint8Array(32).fill(1), new: new Uint8Array(32).fill(2) }, current: "old" };
	const CALLS: Record<string, (saver: SqliteSaver, signal: AbortSignal) => Promise<unknown>> = {
		compact: (saver, signal) => saver.compact({ signal }),
		prune: (saver, signal) => saver.prune(["a", "b", "c", "d"], { signal }),
		rotateKeys: (saver, signal) => saver.rotateKeys({ signal }),
	};

	async function fill(): Promise<SqliteSaver> {
		const saver = new SqliteSaver(path, { encryption });
		for (const threadId of ["a", "b", "c", "d"]) await putDeltaChain(thread(saver, threadId), 5);
		await saver.close();
		return new SqliteSaver(path, { encryption: { ...encryption, current: "new" } });
	}

	for (const [name, call] of Object.entries(CALLS)) {
		it(`can be stopped by a signal: ${name}`, async () => {
			const saver = await fill();
			await expect(call(saver, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
			const stop = new AbortController();
			const running = call(saver, stop.signal);
			stop.abort(new Error("enough"));
			await expect(running).rejects.toThrow("enough");
			expect((await saver.verify()).damage).toEqual([]);
			await call(saver, new AbortController().signal);
			expect((await saver.verify()).damage).toEqual([]);
			await saver.close();
		});

		it(`is stopped by close: ${name}`, async () => {
			const saver = await fill();
			const running = call(saver, new AbortController().signal);
			await Promise.all([expect(running).rejects.toMatchObject({ code: "CLOSED" }), saver.close()]);
			const again = new SqliteSaver(path, { encryption });
			expect((await again.verify()).damage).toEqual([]);
			await again.close();
		});

		it(`takes nothing else for a signal: ${name}`, async () => {
			const saver = await fill();
			await expect(call(saver, "stop" as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
			await saver.close();
		});
	}

	it("lets others have their turn", async () => {
		const saver = await fill();
		let turns = 0;
		const timer = setInterval(() => turns++, 0);
		await saver.verify();
		clearInterval(timer);
		await saver.close();
		expect(turns).toBeGreaterThan(0);
	});

	it("that removes very many checkpoints does so in steps that are complete each", async () => {
		const storage = new SqliteStorage(fileSource(path));
		const stop = new AbortController();
		let steps = 0;
		const remove: Storage["remove"] = (batch) => {
			if (++steps === 1) stop.abort(new Error("enough"));
			return storage.remove(batch);
		};
		const saver = new DeltaSaver(override(storage, { remove }));
		const ids = await putDeltaChain(thread(saver, "long"), 1100, [1000]);
		const expected = await thread(saver, "long").replay(ids.at(-1) as string, "log");
		await expect(saver.prune(["long"], { signal: stop.signal })).rejects.toThrow("enough");
		expect(await thread(saver, "long").ids()).toHaveLength(100);
		for (const id of ids.slice(-100, -90)) expect((await thread(saver, "long").replay(id, "log")).writes).toBeDefined();
		expect(await saver.prune(["long"])).toMatchObject({ checkpoints: 99 });
		expect(await thread(saver, "long").replay(ids.at(-1) as string, "log")).toEqual(expected);
		await saver.close();
	});
});

describe("a backup", () => {
	const copy = () => join(folder, "backup.db");

	it("is a database with everything that was stored", async () => {
		const saver = new SqliteSaver(path);
		const ids = await thread(saver).chain(20, (n) => ({ values: { a: `${n} ${LONG}` } }));
		await saver.backup(copy());
		await thread(saver).put({ parent: ids.at(-1), values: { a: "later" } });
		const restored = new SqliteSaver(copy());
		expect(await thread(restored).ids()).toEqual(ids.toReversed());
		expect(await restored.verify()).toMatchObject({ checkpoints: 20, damage: [] });
		await thread(restored).put({ parent: ids.at(-1), values: { a: "elsewhere" } });
		await restored.close();
		await saver.backup(copy());
		const newer = new SqliteSaver(copy());
		expect(await thread(newer).values()).toEqual({ a: "later" });
		await newer.close();
		await saver.close();
	});

	it("can be made while this and another connection write", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).chain(200, (n) => ({ values: { a: `${n} ${LONG}`.repeat(20) } }));
		const other = new SqliteSaver(path);
		let isDone = false;
		const stored = { saver: 0, other: 0 };
		const write = async (who: "saver" | "other") => {
			for (; !isDone; stored[who]++) {
				await thread(who === "saver" ? saver : other, who).put({ values: { n: stored[who], text: LONG } });
				await new Promise((resolve) => setImmediate(resolve));
			}
		};
		const writers = [write("saver"), write("other")];
		await saver.backup(copy());
		isDone = true;
		await Promise.all(writers);
		const restored = new SqliteSaver(copy(), { readOnly: true });
		expect(await restored.verify()).toMatchObject({ damage: [] });
		expect(await thread(restored).ids()).toHaveLength(200);
		await restored.close();
		await other.close();
		await saver.close();
	});

	it("is refused where it would replace a database in use", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { a: 1 } });
		const other = new SqliteSaver(copy());
		await thread(other).put({ values: { a: 2 } });
		for (const target of [path, copy(), "", ":memory:"])
			await expect(saver.backup(target)).rejects.toMatchObject({ code: "INVALID_OPTION" });
		expect(await thread(other).values()).toEqual({ a: 2 });
		await other.close();
		await expect(saver.backup(join(folder, "missing", "backup.db"))).rejects.toMatchObject({ code: "CANT_OPEN" });
		await saver.backup(copy());
		await saver.close();
	});

	it("that close has stopped leaves nothing behind, and the older one as it was", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { a: "older" } });
		await saver.backup(copy());
		await thread(saver).chain(300, (n) => ({ values: { a: `${n} ${LONG}`.repeat(20) } }));
		const running = saver.backup(copy());
		await Promise.all([expect(running).rejects.toMatchObject({ code: "CLOSED" }), saver.close()]);
		expect(existsSync(`${copy()}.unfinished`)).toBe(false);
		const older = new SqliteSaver(copy());
		expect(await thread(older).values()).toEqual({ a: "older" });
		await older.close();
	});
});
