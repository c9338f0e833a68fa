import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertRows } from "./plain.ts";
import { findRow } from "./reads.ts";
import { bytes, deltaBase, key, row, write } from "./storage-scene.ts";

/** put: threads that come into being, and checkpoints. */
export function putRules(test: StorageTest): void {
	test("PUT-ROW: a row comes back as it was given, with the thread's stamp", async ({ storage, put }) => {
		const full = row("b", { parentId: "a", runId: "run", source: "loop", step: -1, blobs: [3, 1, 2 ** 40] });
		const stamp = await put({ checkpoint: full });
		const found = await findRow(storage, key("b"));
		assertRows([found], [full]);
		assert.equal(found?.stamp, stamp);
	});

	test("PUT-ROW: nothing, empty text and zero are not the same", async ({ storage, putRows }) => {
		const rows = [row("a"), row("b", { parentId: "", runId: "", source: "", step: 0 })];
		await putRows(...rows);
		assertRows([await findRow(storage, key("a")), await findRow(storage, key("b"))], rows);
	});

	test("PUT-ROW: the same id in three namespaces and two threads is six rows", async ({ storage, putRows }) => {
		const rows = ["thread", "other"].flatMap((threadId) => ["", "x", "x|y"].map((ns) => row("a", { threadId, ns })));
		await putRows(...rows);
		assertRows((await storage.read(rows, "rows")).checkpoints, rows);
		await putRows(row("a", { head: bytes("new") }));
		assertRows((await storage.read(rows.slice(1), "rows")).checkpoints, rows.slice(1));
	});

	test("PUT-FRESH: the batch that creates a thread gives it its family and stamp", async (scene) => {
		const { tryPut, fresh, thread } = scene;
		const id = await fresh();
		const result = { family: id, stamp: id, replaced: false };
		assert.deepEqual(await tryPut({ checkpoint: row("a"), fresh: id, now: 77 }), result);
		const times = { createdAt: 77, updatedAt: 77 };
		const expected = { threadId: "thread", family: id, stamp: id, ...times, checkpoints: 1, newest: "a" };
		assert.deepEqual(await thread(), expected);
		assert.deepEqual(await tryPut({ checkpoint: row("b"), now: 99 }), result);
		assert.deepEqual(await thread(), { ...expected, updatedAt: 99, checkpoints: 2, newest: "b" });
	});

	test("PUT-FRESH: writes or delta bases alone create a thread without checkpoints", async ({ put, thread }) => {
		await put({ writes: [write("a", "task", 0)] });
		await put({ threadId: "other", deltaBases: [deltaBase("a", "log", "base", { threadId: "other" })] });
		for (const name of ["thread", "other"]) {
			const { checkpoints, newest } = await thread(name);
			assert.deepEqual([checkpoints, newest], [0, undefined]);
		}
	});

	test("PUT-REPLACE: a row takes the place of the one with its key, all of it and its parent too", async (scene) => {
		const { storage, putRows, thread } = scene;
		await putRows(row("a"), row("b", { parentId: "a", runId: "run", source: "loop", step: 1 }), row("c"));
		const changes = { parentId: "c", runId: "again", source: "update", step: 2, blobs: [7], head: bytes("new") };
		for (const next of [row("b", changes), row("b"), row("b", changes)]) {
			await putRows(next);
			assertRows([await findRow(storage, key("b"))], [next]);
		}
		assert.equal((await thread()).checkpoints, 3);
	});

	test("PUT-REPLACE: writes and delta bases of the checkpoint stay", async ({ storage, put }) => {
		await put({ checkpoint: row("a"), writes: [write("a", "task", 0)], deltaBases: [deltaBase("a", "log", "base")] });
		await put({ checkpoint: row("a", { head: bytes("new") }) });
		const { writes, deltaBases } = await storage.readPath(key("a"), 1);
		assert.deepEqual([writes.length, deltaBases.length], [1, 1]);
	});

	test("PUT-REPLACE: the answer says so, and the thread has the batch's fresh stamp", async (scene) => {
		const { tryPut, copy, thread, fresh } = scene;
		const family = await scene.put({ checkpoint: row("a") });
		await copy("copy");
		const there = { threadId: "copy" };
		let { stamp } = await thread("copy");
		const assertPut = async (batch: Parameters<typeof tryPut>[0], replaced: boolean) => {
			const own = await fresh();
			if (replaced) stamp = own;
			assert.deepEqual(await tryPut({ ...batch, fresh: own }), { family, stamp, replaced });
			assert.equal((await thread("copy")).stamp, stamp);
		};
		await assertPut({ checkpoint: row("a", there) }, true);
		await assertPut({ checkpoint: row("b", there) }, false);
		await assertPut({ checkpoint: row("b", there) }, true);
		await assertPut({ checkpoint: row("a", { ...there, ns: "x" }) }, false);
		await assertPut({ writes: [write("b", "task", 0, there)] }, false);
	});

	test("PUT-BASE: delta bases come with a batch, and take the place of older ones", async ({ storage, put }) => {
		await put({ checkpoint: row("a"), deltaBases: [deltaBase("a", "log", "old"), deltaBase("a", "log 1", "kept")] });
		await put({ deltaBases: [deltaBase("a", "log", "new"), deltaBase("b", "log", "of no row")] });
		assert.equal((await storage.readThread("thread")).deltaBases.length, 3);
	});

	test("PUT-NEWEST: it is the greatest id of the root namespace, in whatever order they come", async (scene) => {
		const newest: (string | undefined)[] = [];
		const rows = ["c", "a", "b", "d", "c"].map((id) => row(id));
		for (const checkpoint of [row("z", { ns: "x" }), ...rows, row("e", { ns: "x" })]) {
			await scene.putRows(checkpoint);
			newest.push((await scene.thread()).newest);
		}
		assert.deepEqual(newest, [undefined, "c", "c", "c", "d", "d", "d"]);
	});
}
