import Database from "better-sqlite3";
import fc from "fast-check";
import { packId, unpackId } from "../../../src/storage/sqlite/ids.ts";
import { compareWrites, packWrites, type SummedWrite, unpackWrites } from "../../../src/storage/sqlite/pending.ts";
import { fileSource, sharedSource } from "../../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { sumOfWrite } from "../../../src/storage/sqlite/writes.ts";
import type { NewWrite, WriteRow } from "../../../src/storage/storage.ts";
import { path } from "../../support/scratch-file.ts";

const RUN = "9b2f6c1e-1111-4222-8333-444455556666";
const key = { threadId: "thread", ns: "child:1", id: "1f0a0000-0000-6000-8000-000000000001" };

const anyWrite = fc.record({
	taskId: fc.oneof(fc.uuid(), fc.string()),
	generation: fc.nat(3),
	idx: fc.integer({ min: -4, max: 1000 }),
	channel: fc.string({ unit: "binary" }),
	runId: fc.constantFrom(undefined, RUN),
	taskPath: fc.option(fc.string(), { nil: undefined }),
	actor: fc.option(fc.maxSafeNat(), { nil: undefined }),
	type: fc.option(fc.string(), { nil: undefined }),
	value: fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.maxSafeNat()),
});

function summed(writes: readonly Omit<WriteRow, "threadId" | "ns" | "id">[]): SummedWrite[] {
	return writes.map((write) => ({ row: { ...key, ...write }, sum: sumOfWrite({ ...key, ...write }) }));
}

const unpacked = (packed: Uint8Array) => [...unpackWrites(packed, key, RUN)];
const plain = ({ row, sum }: SummedWrite) => ({
	...row,
	value: typeof row.value === "number" ? row.value : Buffer.from(row.value),
	sum,
});

test("writes that were packed are unpacked as they were", () => {
	fc.assert(
		fc.property(fc.array(anyWrite, { minLength: 1, maxLength: 16 }), (some) => {
			const writes = summed(some);
			const packed = packWrites(writes, RUN) as Uint8Array;
			expect(unpacked(packed).map(plain)).toEqual(writes.map(plain));
		}),
	);
});

test("a byte that has changed is told by a sum, by how many there are, or is in a value, which has a checksum of its own", () => {
	fc.assert(
		fc.property(
			fc.array(anyWrite, { minLength: 1, maxLength: 4 }),
			fc.nat(),
			fc.integer({ min: 1, max: 255 }),
			(some, at, change) => {
				const writes = summed(some);
				const packed = Uint8Array.from(packWrites(writes, RUN) as Uint8Array);
				const place = at % packed.length;
				// SQLite alone reads these.
				fc.pre(place !== 1 && place !== 2);
				packed[place] = (packed[place] as number) ^ change;
				const found = unpacked(packed);
				const isSound = found.length === writes.length && found.every(({ row, sum }) => sum === sumOfWrite(row));
				const withoutBytes = ({ row: { value, ...row } }: SummedWrite) => ({
					...row,
					value: typeof value === "number" ? value : "bytes",
				});
				if (isSound) expect(found.map(withoutBytes)).toEqual(writes.map(withoutBytes));
			},
		),
		{ numRuns: 2000 },
	);
});

test("too many, too large ones and those of another run are not packed", () => {
	const task = { taskId: "task", taskPath: "~__pregel_pull, a", generation: 0, idx: 0 };
	const write = { ...task, channel: "a", actor: 1, type: undefined, runId: undefined };
	const small = { ...write, value: new Uint8Array(10) };
	expect(packWrites(summed(Array(17).fill(small)), undefined)).toBeUndefined();
	expect(packWrites(summed([{ ...write, value: new Uint8Array(2000) }]), undefined)).toBeUndefined();
	expect(packWrites(summed([{ ...small, channel: "long".repeat(5000) }]), undefined)).toBeUndefined();
	expect(packWrites(summed([{ ...small, runId: RUN }]), undefined)).toBeUndefined();
	expect(packWrites(summed([small]), RUN)).toBeDefined();
});

describe("a checkpoint with writes", () => {
	const tasks = ["b", "a", "1f0a0000-0000-6000-8000-00000000000b", "1f0a0000-0000-6000-8000-00000000000a"];

	function write(taskId: string, idx: number, more: Partial<NewWrite> = {}): NewWrite {
		const value = new Uint8Array([idx, taskId.length]);
		return {
			...{ ...key, ns: "", taskId, taskPath: undefined, idx, channel: `channel ${idx}` },
			...{ runId: undefined, actor: 3, type: undefined, value },
			...{ conflict: "add", ...more },
		};
	}

	async function open() {
		const db = new Database(":memory:");
		const storage = new SqliteStorage(sharedSource(db));
		const row = { ...key, ns: "", parentId: undefined, runId: RUN, source: "loop", step: 1, head: new Uint8Array([1]) };
		const put = (writes: NewWrite[]) => storage.put({ threadId: "thread", fresh: 1, now: 1, blobs: [], writes });
		await storage.put({ threadId: "thread", fresh: 1, now: 1, checkpoint: row, blobs: [], writes: [] });
		const count = () => ({
			inRow: db.prepare("SELECT count(*) FROM delta_checkpoint WHERE pending IS NOT NULL").pluck().get(),
			ofTheirOwn: db.prepare("SELECT count(*) FROM delta_write").pluck().get(),
		});
		const read = async () => (await storage.getWrites([{ ...key, ns: "" }])).map(({ taskId, idx }) => [taskId, idx]);
		return { storage, put, count, read, row };
	}

	it("answers them in the same order, in its row and in rows of their own", async () => {
		const { storage, put, count, read } = await open();
		for (const task of tasks) await put([write(task, 1), write(task, 0)]);
		expect(count()).toEqual({ inRow: 1, ofTheirOwn: 0 });
		const before = await read();
		expect(before).toHaveLength(8);
		await put([write("z", 0, { value: new Uint8Array(2000) })]);
		expect(count()).toEqual({ inRow: 0, ofTheirOwn: 9 });
		expect((await read()).filter(([task]) => task !== "z")).toEqual(before);
		expect(await storage.check()).toEqual([]);
		expect((await storage.totals()).writes).toBe(9);
	});

	it("replaces and drops those of the same task and index, wherever they are", async () => {
		const { storage, put, count } = await open();
		const values = async () =>
			(await storage.getWrites([{ ...key, ns: "" }])).map(({ value }) => [...(value as Buffer)]);
		const again = async (value: number) => {
			await put([write("a", -1, { conflict: "replace", value: new Uint8Array([value]) })]);
			await put([write("a", -2, { conflict: "drop", value: new Uint8Array([value]) })]);
		};
		await again(1);
		await again(2);
		expect(await values()).toEqual([[1], [2]]);
		await put([write("b", 0, { value: new Uint8Array(2000) })]);
		await again(3);
		expect(count()).toEqual({ inRow: 0, ofTheirOwn: 3 });
		expect((await values()).slice(0, 2)).toEqual([[1], [3]]);
		expect(await storage.check()).toEqual([]);
	});

	it("that gets another run leaves its writes to the first", async () => {
		const { storage, put, count, row } = await open();
		await put([write("a", 0, { runId: RUN })]);
		expect((await storage.findRuns([RUN])).writes).toMatchObject([{ taskId: "a", idx: 0 }]);
		const checkpoint = { ...row, runId: "another" };
		await storage.put({ threadId: "thread", fresh: 2, now: 2, checkpoint, blobs: [], writes: [] });
		expect(count()).toEqual({ inRow: 0, ofTheirOwn: 1 });
		expect((await storage.findRuns([RUN])).writes).toMatchObject([{ taskId: "a", idx: 0, runId: RUN }]);
		expect(await storage.check()).toEqual([]);
	});

	it("counts those that are removed and copied with it", async () => {
		const { storage, put } = await open();
		await put([write("a", 0), write("a", 1)]);
		const counts = { checkpoints: 1, writes: 2, bytes: 5 };
		const now = 5;
		const all = { source: "thread", stamp: 1, fresh: 5, now, checkpoints: undefined, deltaBases: [] };
		expect(await storage.copy({ ...all, target: "all" })).toEqual(counts);
		const checkpoints = [{ key: { ...key, ns: "" }, parentId: undefined }];
		expect(await storage.copy({ ...all, fresh: 6, target: "some", checkpoints })).toEqual(counts);
		expect(await storage.getThreadWrites("some")).toMatchObject([{ idx: 0 }, { idx: 1 }]);
		expect(await storage.removeThread("all")).toEqual(counts);
		expect(await storage.check()).toEqual([]);
	});
});

describe("a checkpoint that two processes write to", () => {
	async function open() {
		const [ours, theirs] = [fileSource(path), fileSource(path)].map((source) => new SqliteStorage(source)) as [
			SqliteStorage,
			SqliteStorage,
		];
		const checkpoint = {
			...place,
			parentId: undefined,
			runId: undefined,
			source: "loop",
			step: 1,
			head: new Uint8Array(9),
		};
		const put = (storage: SqliteStorage, more: { checkpoint?: typeof checkpoint; writes?: NewWrite[] }) =>
			storage.put({ threadId: "thread", fresh: 1, now: 1, blobs: [], writes: [], ...more });
		await put(ours, { checkpoint });
		const tasks = async (storage: SqliteStorage) => (await storage.getWrites([place])).map(({ taskId }) => taskId);
		const close = async () => {
			expect(await ours.check()).toEqual([]);
			await Promise.all([ours.close(), theirs.close()]);
		};
		return { ours, theirs, put, tasks, close, checkpoint };
	}

	const place = { ...key, ns: "" };
	const writeOf = (taskId: string): NewWrite => ({
		...{ ...place, taskId, taskPath: undefined, idx: 0, channel: "a" },
		...{ runId: undefined, actor: undefined, type: undefined },
		...{ value: new Uint8Array([1]), conflict: "add" },
	});

	it("has the writes of both", async () => {
		const { ours, theirs, put, tasks, close } = await open();
		await put(ours, { writes: [writeOf("a")] });
		await put(theirs, { writes: [writeOf("b")] });
		await put(ours, { writes: [writeOf("c")] });
		expect(await tasks(ours)).toEqual(["a", "b", "c"]);
		expect(await tasks(theirs)).toEqual(["a", "b", "c"]);
		await close();
	});

	it("has only later ones, if the other has deleted the thread meanwhile and made it again", async () => {
		const { ours, theirs, put, tasks, close, checkpoint } = await open();
		await put(ours, { writes: [writeOf("a")] });
		await theirs.removeThread("thread");
		await theirs.put({ threadId: "thread", fresh: 2, now: 2, blobs: [], writes: [], checkpoint });
		await put(ours, { writes: [writeOf("b")] });
		expect(await tasks(theirs)).toEqual(["b"]);
		await theirs.removeThread("thread");
		await put(ours, { writes: [writeOf("c")] });
		expect(await tasks(ours)).toEqual(["c"]);
		await close();
	});
});

test("the order of writes is that of SQLite", () => {
	const db = new Database(":memory:");
	db.exec(
		"CREATE TABLE t (task ANY, generation INTEGER, idx INTEGER, PRIMARY KEY (task, generation, idx)) STRICT, WITHOUT ROWID",
	);
	fc.assert(
		fc.property(
			fc.uniqueArray(anyWrite, { selector: ({ taskId, generation, idx }) => `${taskId} ${generation} ${idx}` }),
			(some) => {
				db.exec("DELETE FROM t");
				const insert = db.prepare("INSERT INTO t VALUES (?, ?, ?)");
				for (const { taskId, generation, idx } of some) insert.run(packId(taskId), generation, idx);
				const ordered = summed(some).sort(compareWrites);
				const rows = db.prepare("SELECT * FROM t ORDER BY task, generation, idx").all() as any[];
				expect(rows.map(({ task, generation, idx }) => [unpackId(task), generation, idx])).toEqual(
					ordered.map(({ row }) => [row.taskId, row.generation, row.idx]),
				);
			},
		),
	);
});
