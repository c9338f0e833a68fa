import assert from "node:assert/strict";
import type { Storage } from "../../storage/storage.ts";
import { promised } from "../asserts.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readEverything, scanKeys } from "./reads.ts";
import { blob, blobWrite, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

const NOTHING = { blobs: [], writes: [], deltaBases: [] };
const PUT = { ...NOTHING, threadId: "thread", fresh: 1, now: 1, checkpoint: row("a") };
const REMOVAL = { ...NOTHING, threadId: "thread", stamp: 0, newStamp: 1, checkpoints: [], orphans: [], relinked: [] };
const COPY = { ...NOTHING, source: "thread", stamp: 0, target: "copy", fresh: 1, now: 1, keys: [], checkpoints: [] };

/** Every call of a storage but close. */
const CALLS: Record<Exclude<keyof Storage, "close">, (storage: Storage) => Promise<unknown>> = {
	reserveIds: (storage) => storage.reserveIds(1),
	read: (storage) => storage.read({ limit: 1 }, "values", []),
	readPath: (storage) => storage.readPath(key("a"), 1),
	readOutline: (storage) => storage.readOutline("thread"),
	readThread: (storage) => storage.readThread("thread"),
	getBlobs: (storage) => storage.getBlobs([1]),
	findRuns: (storage) => storage.findRuns(["run"]),
	getThread: (storage) => storage.getThread("thread"),
	listThreads: (storage) => storage.listThreads(1, undefined),
	readFamily: (storage) => storage.readFamily(1),
	listFamilies: (storage) => storage.listFamilies(1, undefined),
	totals: (storage) => storage.totals(),
	remove: (storage) => storage.remove(REMOVAL),
	copy: (storage) => storage.copy(COPY),
	removeThread: (storage) => storage.removeThread("thread"),
	removeBlobs: (storage) => storage.removeBlobs(1, [1]),
	replaceBytes: (storage) =>
		storage.replaceBytes([{ kind: "blob", id: 1, from: new Uint8Array(1), to: new Uint8Array(2) }]),
	clear: (storage) => storage.clear(),
	check: (storage) => storage.check(),
	tidy: (storage) => storage.tidy(),
	put: (storage) => storage.put(PUT),
};

/** clear, close, and what is there when the data are opened again. */
export function closingRules(test: StorageTest): void {
	test("CLEAR-ALL: nothing is left, and the storage can be used again", async (scene) => {
		const { storage, put, tryPut, thread } = scene;
		const ids = await fill(scene);
		const { stamp } = await thread();
		await storage.clear();
		await readEverything(storage);
		assert.deepEqual(await storage.getBlobs(ids), []);
		assert.equal(await tryPut({ checkpoint: row("a"), stamp }), undefined);
		await put({ checkpoint: row("a") });
		assert.deepEqual(await scanKeys(storage), [key("a")]);
	});

	test("CLEAR-ALL: an empty storage can be cleared", async ({ storage, putRows }) => {
		await storage.clear();
		await putRows(row("a"));
	});

	test("CHECK-CLEAN: a storage without damage is neither reported nor changed", async (scene) => {
		const { storage, put } = scene;
		await fill(scene);
		assert.deepEqual([await storage.check(), await storage.check(true), await storage.check()], [[], [], []]);
		for (let n = 0; await storage.tidy(); n++) assert.ok(n < 1_000, "tidy does not end");
		await readEverything(storage);
		await put({ checkpoint: row("d", { parentId: "c" }) });
	});

	test("CLOSE-TWICE: close may be called again, also at once, also of a storage that was never used", async (scene) => {
		await Promise.all([scene.storage.close(), scene.storage.close()]);
		await scene.close();
	});

	test("CLOSE-TWICE: a storage that was used can be closed twice", async (scene) => {
		await fill(scene);
		await scene.close();
		await scene.close();
	});

	test("NEVER-THROWS: every call answers where nothing is stored, and gives a promise when closed", async (scene) => {
		for (const call of Object.values(CALLS)) await call(scene.storage);
		const [storage] = await scene.race();
		await scene.close();
		for (const call of Object.values(CALLS)) await promised(() => call(storage)).catch(() => undefined);
		await promised(() => storage.close());
	});

	test("REOPEN-ALL: everything reads the same when the data are opened again", async (scene) => {
		await fill(scene);
		const again = await scene.reopen();
		if (again === scene.storage) return;
		await scene.storage.close();
		await readEverything(again);
		await scene.close();
	});
}

/** Two threads, one a copy of the other, with rows of every kind. Returns the ids of their blobs. */
async function fill({ put, putRows, putWrites, remove, copy, fourIds }: StorageScene): Promise<number[]> {
	const [whole, patch, large] = await fourIds();
	await put({
		checkpoint: row("a", { runId: "run", source: "input", step: -1, blobs: [patch] }),
		labels: { user: "a" },
		writes: [write("a", "task", 0), blobWrite("a", "task", 1, whole, { runId: "run", actor: 7 })],
		blobs: [blob(whole, "whole"), blob(patch, "patch", whole), blob(large, new Uint8Array(100_000), undefined, "json")],
	});
	await putWrites(write("gone", "task", 0));
	await putRows(row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("a", { ns: "x" }));
	await copy("copy");
	const relinked = [row("c", { parentId: "a" })];
	await remove({ checkpoints: [key("b")], relinked, deltaBases: [deltaBase("a", "log", "base")] });
	return [whole, patch, large];
}
