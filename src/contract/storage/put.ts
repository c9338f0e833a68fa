import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertRows, plainRow } from "./plain.ts";
import { basesAt, findRow, newestRow, threadBases, writesAt } from "./reads.ts";
import { bytes, deltaBase, key, row, write } from "./storage-scene.ts";

/** put: threads that come into being, and checkpoints. */
export function putRules(test: StorageTest): void {
	test("PUT-ROW: a row comes back as it was given, with the thread's stamp", async ({ storage, put }) => {
		const full = row("b", { parentId: "a", runId: "run", source: "loop", step: -1, blobs: [3, 1, 2 ** 40] });
		const stamp = await put({ checkpoint: full });
		const found = await findRow(storage, key("b"));
		assert.ok(found);
		assert.deepEqual(plainRow(found), full);
		assert.equal(found.stamp, stamp);
	});

	test("PUT-ROW: fields that are undefined come back undefined", async ({ storage, putRows }) => {
		await putRows(row("a"));
		const found = await findRow(storage, key("a"));
		assert.ok(found);
		for (const field of ["parentId", "runId", "source", "step"] as const) assert.equal(found[field], undefined);
	});

	test("PUT-ROW: empty text and zero are not the same as nothing", async ({ storage, putRows }) => {
		const empty = row("a", { parentId: "", runId: "", source: "", step: 0 });
		await putRows(empty);
		assertRows([await findRow(storage, key("a"))], [empty]);
	});

	test("PUT-ROW: a row that is not there is undefined", async ({ storage, putRows }) => {
		await putRows(row("a"));
		for (const missing of [key("b"), key("a", "ns"), key("a", "", "other"), key("")])
			assert.equal(await findRow(storage, missing), undefined);
	});

	test("PUT-ROW: the same id in three namespaces and two threads is six rows", async ({ storage, putRows }) => {
		const rows = ["thread", "other"].flatMap((threadId) => ["", "x", "x|y"].map((ns) => row("a", { threadId, ns })));
		await putRows(...rows);
		for (const one of rows) {
			assertRows([await findRow(storage, one)], [one]);
		}
	});

	test("PUT-FRESH: the batch that creates a thread gives it its family and stamp", async ({
		storage,
		tryPut,
		fresh,
		thread,
	}) => {
		const id = await fresh();
		assert.deepEqual(await tryPut({ checkpoint: row("a"), fresh: id, now: 77 }), {
			family: id,
			stamp: id,
			replaced: false,
		});
		const expected = {
			threadId: "thread",
			family: id,
			stamp: id,
			createdAt: 77,
			updatedAt: 77,
			checkpoints: 1,
			newest: "a",
		};
		assert.deepEqual(await thread(), expected);
		assert.deepEqual(await tryPut({ checkpoint: row("b"), now: 99 }), { family: id, stamp: id, replaced: false });
		assert.deepEqual(await thread(), { ...expected, updatedAt: 99, checkpoints: 2, newest: "b" });
		assert.equal(await storage.getThread("threa"), undefined);
	});

	test("PUT-FRESH: writes alone create a thread without checkpoints", async ({ put, thread, storage }) => {
		await put({ writes: [write("a", "task", 0)] });
		const { checkpoints, newest } = await thread();
		assert.deepEqual({ checkpoints, newest }, { checkpoints: 0, newest: undefined });
		assert.equal(await newestRow(storage, "thread", ""), undefined);
	});

	test("PUT-REPLACE: a row takes the place of the one with its key, all of it and its parent too", async ({
		storage,
		putRows,
		thread,
	}) => {
		await putRows(row("a"), row("b", { parentId: "a", runId: "run", source: "loop", step: 1 }), row("c"));
		const changes = { parentId: "c", runId: "again", source: "update", step: 2, blobs: [7], head: bytes("new") };
		for (const next of [row("b", changes), row("b"), row("b", changes)]) {
			await putRows(next);
			assertRows([await findRow(storage, key("b"))], [next]);
		}
		assert.equal((await thread()).checkpoints, 3);
	});

	test("PUT-REPLACE: rows with the same id elsewhere stay as they are", async ({ storage, putRows }) => {
		const others = [row("a", { ns: "x" }), row("a", { threadId: "other" })];
		await putRows(row("a"), ...others, row("a", { head: bytes("new") }));
		for (const one of others) {
			assertRows([await findRow(storage, one)], [one]);
		}
	});

	test("PUT-BASE: delta bases come with a batch, and take the place of older ones", async ({ storage, put }) => {
		await put({ checkpoint: row("a"), deltaBases: [deltaBase("a", "log", "old"), deltaBase("a", "log 1", "kept")] });
		await put({ deltaBases: [deltaBase("a", "log", "new"), deltaBase("b", "log", "of no row")] });
		await put({ checkpoint: row("a", { head: bytes("again") }) });
		const expected = [
			deltaBase("a", "log", "new"),
			deltaBase("a", "log 1", "kept"),
			deltaBase("b", "log", "of no row"),
		];
		assertBases(await threadBases(storage, "thread"), expected);
		assertBases(await basesAt(storage, key("a")), expected.slice(0, 2));
	});

	test("PUT-REPLACE: writes of the checkpoint stay", async ({ storage, put }) => {
		await put({ checkpoint: row("a"), writes: [write("a", "task", 0)] });
		await put({ checkpoint: row("a", { head: bytes("new") }) });
		assert.equal((await writesAt(storage, key("a"))).length, 1);
	});

	test("PUT-RESULT: the answer names the family and the stamp, and says whether a checkpoint was replaced", async (scene) => {
		const { put, tryPut, copy, remove, thread } = scene;
		const family = await put({ checkpoint: row("a") });
		await copy("copy");
		let stamp = await scene.fresh();
		await remove({ threadId: "copy", newStamp: stamp });
		const there = { threadId: "copy" };
		const replaced = async (batch: Parameters<typeof tryPut>[0]) => {
			const result = await tryPut(batch);
			// Whoever builds on what was replaced has to look again.
			if (result?.replaced) assert.notEqual(result.stamp, stamp);
			else assert.equal(result?.stamp, stamp);
			stamp = result?.stamp as number;
			assert.deepEqual([result?.family, (await thread("copy")).stamp], [family, stamp]);
			return result?.replaced;
		};
		assert.equal(await replaced({ checkpoint: row("a", there) }), true);
		assert.equal(await replaced({ checkpoint: row("b", there) }), false);
		assert.equal(await replaced({ checkpoint: row("b", there) }), true);
		assert.equal(await replaced({ checkpoint: row("a", { ...there, ns: "x" }) }), false);
		assert.equal(await replaced({ writes: [write("b", "task", 0, there)] }), false);
	});

	test("PUT-NEWEST: the newest is the greatest id of the root namespace, in whatever order they come", async ({
		putRows,
		thread,
	}) => {
		const newest: (string | undefined)[] = [];
		for (const checkpoint of [
			row("z", { ns: "x" }),
			row("c"),
			row("a"),
			row("b"),
			row("d"),
			row("c"),
			row("e", { ns: "x" }),
		]) {
			await putRows(checkpoint);
			newest.push((await thread()).newest);
		}
		assert.deepEqual(newest, [undefined, "c", "c", "c", "d", "d", "d"]);
	});
}
