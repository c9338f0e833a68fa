import assert from "node:assert/strict";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertBlobs, assertRows, assertWrites, plainKey } from "./plain.ts";
import { findRow, pathIds, scanKeys, writesAt } from "./reads.ts";
import { blob, blobWrite, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** remove and removeThread: rows that go, and what the others are given instead. */
export function removeRules(test: StorageTest): void {
	test("REMOVE-ROW: a checkpoint goes with its writes and delta bases, and is counted", async (scene) => {
		const { storage, remove, counted } = scene;
		await fill(scene);
		const removed = await remove({ checkpoints: [key("a")] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 1, writes: 2, bytes: "head a".length + "12345".length }));
		const { writes, deltaBases } = await storage.readThread("thread");
		assert.deepEqual((await storage.readOutline("thread")).checkpoints.map(plainKey), [key("b"), key("a", "x")]);
		assert.deepEqual([writes.length, deltaBases.length], [2, 2]);
	});

	test("REMOVE-ROW: several checkpoints of several namespaces go at once, what is not there is not counted", async (scene) => {
		const { storage, remove, thread } = scene;
		await fill(scene);
		const { checkpoints, writes } = await remove({
			checkpoints: [key("b"), key("a", "x"), key("never"), key("b", "y")],
			writes: [write("a", "never", 0), write("c", "task", 0, { ns: "z" })],
			orphans: [write("a", "never", 1), write("c", "task", 0)],
		});
		assert.deepEqual([checkpoints, writes], [2, 2]);
		assert.deepEqual(await scanKeys(storage), [key("a")]);
		assert.equal((await thread()).newest, "a");
	});

	test("REMOVE-ROW: the blobs stay, and a thread without checkpoints too", async (scene) => {
		const { storage, remove, thread, putRows } = scene;
		const id = await fill(scene);
		await remove({ checkpoints: [key("a"), key("b"), key("a", "x")] });
		const { checkpoints, newest, family } = await thread();
		assert.deepEqual([checkpoints, newest], [0, undefined]);
		assertBlobs(await storage.getBlobs([id]), [blob(id, "large")]);
		assert.equal((await storage.readFamily(family)).blobs.length, 1);
		await putRows(row("0"));
		assert.equal((await thread()).newest, "0");
	});

	test("REMOVE-ROW: writes and delta bases under an id that has no row go with it", async (scene) => {
		const { put, putWrites, remove, counted } = scene;
		await putWrites(write("gone", "task", 0), write("gone2", "task", 0));
		await put({ deltaBases: [deltaBase("gone", "log", "base")] });
		const removed = await remove({ checkpoints: [key("gone")] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 1, bytes: "task 0".length }));
	});

	test("REMOVE-ROW: an id can be put again, and has nothing of what it had", async (scene) => {
		const { storage, remove, putRows } = scene;
		await fill(scene);
		await remove({ checkpoints: [key("b")] });
		await putRows(row("b", { parentId: "other" }));
		const { path, writes, deltaBases } = await storage.readPath(key("b"), 1);
		assert.deepEqual([path[0]?.parentId, writes, deltaBases], ["other", [], []]);
	});

	test("REMOVE-RUN: of checkpoints in a row what came between them meanwhile stays, and the writes of no checkpoint", async (scene) => {
		const { storage, putRows, putWrites, remove } = scene;
		const id = checkpointId;
		for (const n of [1, 3, 5, 7]) await putRows(row(id(n), { parentId: n === 1 ? undefined : id(n - 2) }));
		for (const n of [1, 3, 4]) await putWrites(write(id(n), "task", 0));
		await remove({ checkpoints: [key(id(3)), key(id(1))] });
		assert.deepEqual(await scanKeys(storage), [key(id(7)), key(id(5))]);
		await putRows(row(id(6)));
		await remove({ checkpoints: [key(id(7)), key(id(5))] });
		assert.deepEqual(await scanKeys(storage), [key(id(6))]);
		assertWrites((await storage.readThread("thread")).writes, [write(id(4), "task", 0)]);
	});

	test("REMOVE-ORPHAN: a write goes if its checkpoint has no row, and stays if it has one", async (scene) => {
		const { storage, putRows, putWrites, remove, counted } = scene;
		await putWrites(write("1", "a", 0), write("2", "a", 0), write("2", "a", 1));
		await putRows(row("1"));
		const removed = await remove({ orphans: [write("1", "a", 0), write("2", "a", 1), write("3", "a", 0)] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 1, bytes: "a 1".length }));
		assertWrites((await storage.readThread("thread")).writes, [write("1", "a", 0), write("2", "a", 0)]);
		await putRows(row("2"));
		assertWrites(await writesAt(storage, key("2")), [write("2", "a", 0)]);
	});

	test("REMOVE-WRITE: a single write goes, its neighbours stay", async (scene) => {
		const { storage, putRows, putWrites, remove } = scene;
		const writes = ["a", "ab"].flatMap((task) => [0, 1, 11, -1].map((idx) => write("1", task, idx)));
		await putRows(row("1"), row("1", { ns: "x" }));
		await putWrites(...writes, write("1", "a", 1, { ns: "x" }));
		const removed = await remove({ writes: [write("1", "a", 1), write("1", "a", 2), write("1", "b", 1)] });
		assert.deepEqual([removed.checkpoints, removed.writes], [0, 1]);
		const left = writes.filter((one) => one.taskId !== "a" || one.idx !== 1);
		assertWrites(await writesAt(storage, key("1")), left);
	});

	test("REMOVE-WRITE: a write that goes with its checkpoint is counted once", async (scene) => {
		await fill(scene);
		const { writes } = await scene.remove({ checkpoints: [key("a")], writes: [write("a", "task", 0)] });
		assert.equal(writes, 2);
	});

	test("REMOVE-LINK: rows that stay get the parents and heads they are given, and the blobs of these", async (scene) => {
		const { storage, put, putRows, remove, fourIds } = scene;
		const [before, after] = await fourIds();
		const c = row("c", { parentId: "b", runId: "run", source: "loop", step: 3, blobs: [before] });
		const blobs = [blob(before, "before"), blob(after, "after")];
		await put({ checkpoint: c, blobs, writes: [write("c", "task", 0)] });
		await putRows(row("a"), row("b", { parentId: "a" }), row("d", { parentId: "b" }));
		await putRows(row("c", { ns: "x", parentId: "b" }), row("e", { parentId: "b" }));
		const relinked = [
			{ ...c, parentId: "a", head: bytes("another"), blobs: [after] },
			row("d", { parentId: undefined, head: bytes("") }),
		];
		await remove({ checkpoints: [key("b")], relinked });
		const reading = await storage.read([key("c"), key("d")], "values");
		assertRows(reading.checkpoints, relinked);
		assertWrites(reading.writes, [write("c", "task", 0)]);
		assertBlobs(reading.blobs, [blob(after, "after")]);
		assert.deepEqual(await pathIds(storage, key("c")), ["c", "a"]);
		assert.equal((await findRow(storage, key("e")))?.parentId, "b");
	});

	test("REMOVE-BASE: delta bases are stored by checkpoint and channel, the newest in place of an older one", async (scene) => {
		const { storage, putRows, remove } = scene;
		await putRows(row("a"), row("b"));
		const bases = [deltaBase("a", "log", "1"), deltaBase("a", "log2", ""), deltaBase("a", "log", "4", { ns: "x" })];
		await remove({ deltaBases: [deltaBase("a", "log", "older, and longer"), deltaBase("b", "log", "3")] });
		await remove({ deltaBases: bases });
		assertBases((await storage.readThread("thread")).deltaBases, [...bases, deltaBase("b", "log", "3")]);
	});

	test("REMOVE-THREAD: a thread goes with all its rows, and is counted", async (scene) => {
		const { storage, putRows, counted } = scene;
		await fill(scene);
		await putRows(row("a", { threadId: "thread2" }), row("a", { threadId: "threa" }));
		const bytes = 3 * "head a".length + "12345".length + 2 * "123".length;
		const removed = await storage.removeThread("thread");
		assert.deepEqual(counted(removed), counted({ checkpoints: 3, writes: 4, bytes }));
		assert.equal(await storage.getThread("thread"), undefined);
		assert.deepEqual(await storage.readOutline("thread"), { checkpoints: [], written: [] });
		assert.deepEqual(await storage.readThread("thread"), { writes: [], deltaBases: [] });
		await putRows(row("a"));
		const { writes, deltaBases } = await storage.readThread("thread");
		assert.deepEqual([writes, deltaBases], [[], []]);
		assert.deepEqual(await storage.removeThread("missing"), { checkpoints: 0, writes: 0, bytes: 0 });
	});
}

/** Rows `a` and `b`, and an `a` in a namespace, with heads of six bytes, writes, one of them in a blob, and delta bases. */
async function fill({ put, fresh }: StorageScene): Promise<number> {
	const id = await fresh();
	const head = (name: string) => ({ head: bytes(`head ${name}`) });
	const writes = [write("a", "task", 0, { value: bytes("12345") }), blobWrite("a", "task", 1, id)];
	await put({ checkpoint: row("a", head("a")), writes, blobs: [blob(id, "large")] });
	const short = write("b", "task", 0, { value: bytes("123") });
	await put({ checkpoint: row("b", { parentId: "a", ...head("b") }), writes: [short] });
	const nested = write("a", "task", 0, { ns: "x", value: bytes("123") });
	await put({ checkpoint: row("a", { ns: "x", ...head("x") }), writes: [nested] });
	const bases = [deltaBase("a", "log", "base of a"), deltaBase("b", "log", "base of b")];
	await put({ deltaBases: [...bases, deltaBase("a", "log", "of x", { ns: "x" })] });
	return id;
}
