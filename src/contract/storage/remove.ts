import assert from "node:assert/strict";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, assertWrites, plainBase, plainBlob, plainKey, plainRow } from "./plain.ts";
import { blob, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** remove and removeThread: rows that go, and what the others are given instead. */
export function removeRules(test: StorageTest): void {
	test("REMOVE-ROW: a checkpoint goes with its writes and delta bases, and is counted", async (scene) => {
		const { storage, remove, counted } = scene;
		await fill(scene);
		const removed = await remove({ checkpoints: [key("a")] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 1, writes: 2, bytes: "head a".length + "12345".length }));
		assert.deepEqual((await storage.scan({ limit: 10 })).map(plainKey), [key("b"), key("a", "x")]);
		assert.deepEqual(await storage.getWrites([key("a")]), []);
		assert.deepEqual(await storage.getDeltaBases([key("a")]), []);
		assert.equal((await storage.getWrites([key("b"), key("a", "x")])).length, 2);
		assert.equal((await storage.getDeltaBases([key("b"), key("a", "x")])).length, 2);
	});

	test("REMOVE-ROW: several checkpoints of several namespaces go at once", async (scene) => {
		const { storage, remove, thread } = scene;
		await fill(scene);
		const { checkpoints, writes } = await remove({ checkpoints: [key("b"), key("a", "x"), key("never")] });
		assert.deepEqual([checkpoints, writes], [2, 2]);
		assert.deepEqual((await storage.scan({ limit: 10 })).map(plainKey), [key("a")]);
		assert.equal((await thread()).head, "a");
	});

	test("REMOVE-ROW: blobs stay, also those that the writes named", async (scene) => {
		const { storage, remove, thread } = scene;
		const id = await fill(scene);
		await remove({ checkpoints: [key("a"), key("b"), key("a", "x")] });
		assert.deepEqual((await storage.getBlobs([id])).map(plainBlob), [blob(id, "large")]);
		assert.equal((await storage.listBlobs((await thread()).family)).length, 1);
	});

	test("REMOVE-ROW: a thread that has lost all its checkpoints is still there", async (scene) => {
		const { storage, remove, thread, putRows } = scene;
		await fill(scene);
		await remove({ checkpoints: [key("a"), key("b"), key("a", "x")] });
		const { checkpoints, head } = await thread();
		assert.deepEqual([checkpoints, head], [0, undefined]);
		assert.equal(await storage.getLatest("thread", ""), undefined);
		await putRows(row("0"));
		assert.equal((await thread()).head, "0");
	});

	test("REMOVE-ROW: other threads stay as they are", async (scene) => {
		const { storage, remove, copy } = scene;
		await fill(scene);
		await copy("copy");
		await remove({ checkpoints: [key("a"), key("b")] });
		assert.equal((await storage.scan({ threadId: "copy", limit: 10 })).length, 3);
		assert.equal((await storage.getThreadWrites("copy")).length, 4);
		assert.equal((await storage.getThreadDeltaBases("copy")).length, 3);
	});

	test("REMOVE-ROW: the writes under an id that has no row go with it", async ({
		storage,
		putWrites,
		remove,
		counted,
	}) => {
		await putWrites(write("gone", "task", 0), write("gone2", "task", 0));
		const removed = await remove({ checkpoints: [key("gone")] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 1, bytes: "task 0".length }));
		assert.equal((await storage.getThreadWrites("thread")).length, 1);
	});

	test("REMOVE-ROW: what is not there is not counted", async ({ putRows, remove, counted }) => {
		await putRows(row("a"));
		const removed = await remove({
			checkpoints: [key("b"), key("a", "x"), key("b", "y")],
			writes: [write("a", "task", 0), write("c", "task", 0, { ns: "z" })],
			relink: [
				{ key: key("b"), parentId: "a" },
				{ key: key("b", "y"), parentId: "a" },
			],
		});
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 0, bytes: 0 }));
	});

	test("REMOVE-ROW: an id can be put again, and has nothing of what it had", async (scene) => {
		const { storage, remove, putRows } = scene;
		await fill(scene);
		await remove({ checkpoints: [key("b")] });
		await putRows(row("b", { parentId: "other" }));
		assert.equal((await storage.getCheckpoint(key("b")))?.parentId, "other");
		assert.deepEqual(await storage.getWrites([key("b")]), []);
		assert.deepEqual(await storage.getDeltaBases([key("b")]), []);
	});

	test("REMOVE-RUN: of checkpoints in a row what came between them meanwhile stays, and the writes of no checkpoint", async ({
		storage,
		putRows,
		putWrites,
		remove,
	}) => {
		const id = checkpointId;
		for (const n of [1, 3, 5, 7]) await putRows(row(id(n), { parentId: n === 1 ? undefined : id(n - 2) }));
		for (const n of [1, 3, 4]) await putWrites(write(id(n), "task", 0));
		await remove({ checkpoints: [key(id(3)), key(id(1))] });
		assert.deepEqual((await storage.scan({ limit: 10 })).map(plainKey), [key(id(7)), key(id(5))]);
		assertWrites(await storage.getThreadWrites("thread"), [write(id(4), "task", 0)]);
		await putRows(row(id(6)));
		await remove({ checkpoints: [key(id(7)), key(id(5))] });
		assert.deepEqual((await storage.scan({ limit: 10 })).map(plainKey), [key(id(6))]);
		assertWrites(await storage.getThreadWrites("thread"), [write(id(4), "task", 0)]);
	});

	test("REMOVE-TWINS: rows have no twins if other threads do not name all their blobs", async (scene) => {
		const { storage, put, remove, copy, chain, fresh } = scene;
		const changes: Record<string, (ids: string[]) => Promise<unknown>> = {
			gone: () => storage.removeThread("copy"),
			"without a row": ([id = ""]) => remove({ threadId: "copy", checkpoints: [key(id, "", "copy")] }),
			"with another head": ([id = ""]) =>
				put({ checkpoint: row(id, { threadId: "copy", head: bytes("other") }), threadId: "copy" }),
			"with another value": async ([id = ""]) =>
				put({ writes: [write(id, "task", 0, { threadId: "copy", value: await fresh(), conflict: "replace" })] }),
			"without what was recorded": ([id = ""]) => remove({ deltaBases: [deltaBase(id, "log", "base")] }),
		};
		for (const [name, change] of Object.entries(changes)) {
			const ids = await chain(3);
			const value = await fresh();
			await put({ writes: [write(ids[0] as string, "task", 0, { value })], blobs: [blob(value, "large")] });
			await copy("copy");
			await change(ids);
			const { hasTwins } = await remove({ checkpoints: ids.map((id) => key(id)) });
			assert.notEqual(hasTwins, true, `of a copy that is ${name}`);
			for (const threadId of ["thread", "copy"]) await storage.removeThread(threadId);
		}
	});

	test("REMOVE-ORPHAN: a write goes if its checkpoint has no row, and stays if it has one", async ({
		storage,
		putRows,
		putWrites,
		remove,
		counted,
	}) => {
		await putWrites(write("1", "a", 0));
		await putWrites(write("2", "a", 0), write("2", "a", 1));
		await putRows(row("1"));
		const removed = await remove({ orphans: [write("1", "a", 0), write("2", "a", 1), write("3", "a", 0)] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 1, bytes: "a 1".length }));
		assertWrites(await storage.getThreadWrites("thread"), [write("1", "a", 0), write("2", "a", 0)]);
		await putRows(row("2"));
		assertWrites(await storage.getWrites([key("2")]), [write("2", "a", 0)]);
	});

	test("REMOVE-WRITE: a single write goes, its neighbours stay", async ({
		storage,
		putRows,
		putWrites,
		remove,
		counted,
	}) => {
		const writes = ["a", "ab"].flatMap((task) => [0, 1, 11, -1].map((idx) => write("1", task, idx)));
		await putRows(row("1"));
		await putWrites(...writes, write("1", "a", 1, { ns: "x" }));
		const removed = await remove({ writes: [write("1", "a", 1), write("1", "a", 2), write("1", "b", 1)] });
		assert.deepEqual(counted(removed), counted({ checkpoints: 0, writes: 1, bytes: "a 1".length }));
		assertWrites(
			await storage.getWrites([key("1")]),
			writes.filter((one) => one.taskId !== "a" || one.idx !== 1),
		);
		assert.equal((await storage.getWrites([key("1", "x")])).length, 1);
	});

	test("REMOVE-WRITE: a write that goes with its checkpoint is counted once", async (scene) => {
		await fill(scene);
		const { writes } = await scene.remove({ checkpoints: [key("a")], writes: [write("a", "task", 0)] });
		assert.equal(writes, 2);
	});

	test("REMOVE-LINK: rows that stay get the parents they are given, and keep the rest", async ({
		storage,
		putRows,
		remove,
	}) => {
		const c = row("c", { parentId: "b", runId: "run", source: "loop", step: 3 });
		await putRows(
			row("a"),
			row("b", { parentId: "a" }),
			c,
			row("d", { parentId: "b" }),
			row("c", { ns: "x", parentId: "b" }),
		);
		const relink = [
			{ key: key("c"), parentId: "a" },
			{ key: key("d"), parentId: undefined },
		];
		await remove({ checkpoints: [key("b")], relink });
		const found = await storage.getCheckpoint(key("c"));
		assert.deepEqual(found && plainRow(found), { ...c, parentId: "a" });
		assert.equal((await storage.getCheckpoint(key("d")))?.parentId, undefined);
		assert.equal((await storage.getCheckpoint(key("c", "x")))?.parentId, "b");
		assert.deepEqual((await storage.getChildren("thread", "", ["a"])).map(plainKey), [key("c")]);
	});

	test("REMOVE-BASE: delta bases are stored by checkpoint and channel, the newest in place of an older one", async (scene) => {
		const { storage, putRows, remove } = scene;
		await putRows(row("a"), row("b"));
		const bases = [
			deltaBase("a", "log", "1"),
			deltaBase("a", "log2", ""),
			deltaBase("b", "log", "3"),
			deltaBase("a", "log", "4", { ns: "x" }),
		];
		await remove({ deltaBases: [deltaBase("a", "log", "older, and longer"), deltaBase("b", "log", "3")] });
		await remove({ deltaBases: bases.filter(({ id }) => id === "a") });
		assertSameRows((await storage.getThreadDeltaBases("thread")).map(plainBase), bases);
		assertSameRows((await storage.getDeltaBases([key("a"), key("c")])).map(plainBase), bases.slice(0, 2));
		assert.deepEqual(await storage.getDeltaBases([]), []);
		assert.deepEqual(await storage.getThreadDeltaBases("missing"), []);
	});

	test("REMOVE-THREAD: a thread goes with all its rows, and is counted", async (scene) => {
		const { storage, putRows, counted } = scene;
		await fill(scene);
		await putRows(row("a", { threadId: "thread2" }), row("a", { threadId: "threa" }));
		const removed = await storage.removeThread("thread");
		assert.deepEqual(
			counted(removed),
			counted({
				checkpoints: 3,
				writes: 4,
				bytes: 3 * "head a".length + "12345".length + 2 * "123".length,
			}),
		);
		assert.equal(await storage.getThread("thread"), undefined);
		assert.deepEqual(await storage.getThreadWrites("thread"), []);
		assert.deepEqual(await storage.getThreadDeltaBases("thread"), []);
		assert.deepEqual(
			(await storage.scan({ limit: 10 })).map(({ threadId }) => threadId),
			["threa", "thread2"],
		);
	});

	test("REMOVE-THREAD: a thread that is made again has nothing of what it had", async (scene) => {
		const { storage, putRows, thread } = scene;
		await fill(scene);
		await storage.removeThread("thread");
		await putRows(row("a"));
		const { checkpoints, head } = await thread();
		assert.deepEqual([checkpoints, head], [1, "a"]);
		assert.deepEqual(await storage.getThreadWrites("thread"), []);
		assert.deepEqual(await storage.getThreadDeltaBases("thread"), []);
	});

	test("REMOVE-THREAD: a thread that is not there counts nothing", async ({ storage, putRows }) => {
		await putRows(row("a"));
		assert.deepEqual(await storage.removeThread("missing"), { checkpoints: 0, writes: 0, bytes: 0 });
	});
}

/** Rows `a` and `b`, and an `a` in a namespace, with heads of six bytes, writes, one of them in a blob, and delta bases. */
async function fill({ put, remove, fresh }: StorageScene): Promise<number> {
	const id = await fresh();
	const head = (name: string) => ({ head: bytes(`head ${name}`) });
	const writes = [write("a", "task", 0, { value: bytes("12345") }), write("a", "task", 1, { value: id })];
	await put({ checkpoint: row("a", head("a")), writes, blobs: [blob(id, "large")] });
	await put({
		checkpoint: row("b", { parentId: "a", ...head("b") }),
		writes: [write("b", "task", 0, { value: bytes("123") })],
	});
	const nested = write("a", "task", 0, { ns: "x", value: bytes("123") });
	await put({ checkpoint: row("a", { ns: "x", ...head("x") }), writes: [nested] });
	const deltaBases = [
		deltaBase("a", "log", "base of a"),
		deltaBase("b", "log", "base of b"),
		deltaBase("a", "log", "of x", { ns: "x" }),
	];
	await remove({ deltaBases });
	return id;
}
