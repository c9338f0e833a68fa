import assert from "node:assert/strict";
import type { Storage } from "../../storage/storage.ts";
import { promised } from "../asserts.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { blob, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

const REMOVAL = { threadId: "thread", stamp: 0, newStamp: 1, checkpoints: [], writes: [], relink: [], deltaBases: [] };
const COPY = { source: "thread", stamp: 0, target: "copy", fresh: 1, now: 1, checkpoints: undefined, deltaBases: [] };

/** Every call of a storage but close. */
const CALLS: Record<Exclude<keyof Storage, "close" | "isInMemory">, (storage: Storage) => Promise<unknown>> = {
	reserveIds: (storage) => storage.reserveIds(1),
	getEpoch: (storage) => storage.getEpoch(),
	getCheckpoint: (storage) => storage.getCheckpoint(key("a")),
	getLatest: (storage) => storage.getLatest("thread", ""),
	scan: (storage) => storage.scan({ limit: 1 }),
	read: async (storage) => storage.read?.({ limit: 1 }, []),
	getPath: (storage) => storage.getPath(key("a"), 1),
	readPath: async (storage) => storage.readPath?.(key("a"), 1),
	getChildren: (storage) => storage.getChildren("thread", "", ["a"]),
	findRuns: (storage) => storage.findRuns(["run"]),
	getWrites: (storage) => storage.getWrites([key("a")]),
	getOrphanWrites: (storage) => storage.getOrphanWrites("thread", "", "a"),
	getThreadWrites: (storage) => storage.getThreadWrites("thread"),
	getDeltaBases: (storage) => storage.getDeltaBases([key("a")]),
	getThreadDeltaBases: (storage) => storage.getThreadDeltaBases("thread"),
	getOutline: async (storage) => storage.getOutline?.("thread"),
	getBlobs: (storage) => storage.getBlobs([1]),
	getThread: (storage) => storage.getThread("thread"),
	listThreads: (storage) => storage.listThreads(1, undefined),
	getFamily: (storage) => storage.getFamily(1),
	listFamilies: (storage) => storage.listFamilies(1, undefined),
	listBlobs: (storage) => storage.listBlobs(1),
	totals: (storage) => storage.totals(),
	put: (storage) => storage.put({ threadId: "thread", fresh: 1, now: 1, blobs: [], writes: [], checkpoint: row("a") }),
	remove: (storage) => storage.remove(REMOVAL),
	copy: (storage) => storage.copy(COPY),
	removeThread: (storage) => storage.removeThread("thread"),
	removeBlobs: (storage) => storage.removeBlobs(1, [1]),
	replaceBytes: (storage) =>
		storage.replaceBytes([{ kind: "blob", id: 1, from: new Uint8Array(1), to: new Uint8Array(2) }]),
	clear: (storage) => storage.clear(),
	check: (storage) => storage.check(),
	repair: (storage) => storage.repair?.() ?? Promise.resolve(),
	tidy: (storage) => storage.tidy(),
};

/** clear, close, and what is there when the data are opened again. */
export function closingRules(test: StorageTest): void {
	test("CLEAR-ALL: nothing is left, and the storage can be used again", async (scene) => {
		const { storage, put, tryPut, thread } = scene;
		const ids = await fill(scene);
		const { stamp, family } = await thread();
		await storage.clear();
		const empty = { checkpoints: 0, blobs: 0, writes: 0 };
		const totals = { threads: 0, checkpoints: 0, writes: 0, bytes: empty };
		assert.deepEqual(await readAll(storage), { threads: [], rows: [], writes: [], deltaBases: [], blobs: [], totals });
		assert.deepEqual(await storage.getBlobs(ids), []);
		assert.deepEqual(await storage.listBlobs(family), []);
		assert.deepEqual(await storage.getThreadWrites("thread"), []);
		assert.equal(await tryPut({ checkpoint: row("a"), stamp }), undefined);
		await put({ checkpoint: row("a") });
		assert.deepEqual(await storage.getDeltaBases([key("a")]), []);
		assert.equal((await thread()).checkpoints, 1);
	});

	test("CLEAR-ALL: an empty storage can be cleared", async ({ storage, putRows }) => {
		await storage.clear();
		await putRows(row("a"));
		assert.ok(await storage.getCheckpoint(key("a")));
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

	test("NEVER-THROWS: every call gives a promise, on an empty storage and on a closed one", async ({
		storage,
		close,
	}) => {
		for (const [name, call] of Object.entries(CALLS))
			await promised(() => call(storage)).catch((error) => assert.fail(`${name} was rejected: ${error}`));
		await close();
		for (const call of Object.values(CALLS)) await promised(() => call(storage)).catch(() => undefined);
		await promised(() => storage.close());
	});

	test("NEVER-THROWS: with nothing stored every read answers nothing", async ({ storage }) => {
		for (const call of ["getCheckpoint", "getLatest", "getThread", "remove", "copy"] as const)
			assert.equal(await CALLS[call](storage), undefined);
		for (const call of ["scan", "getPath", "getChildren", "getWrites", "getThreadWrites", "getOrphanWrites"] as const)
			assert.deepEqual(await CALLS[call](storage), []);
		for (const call of [
			"getDeltaBases",
			"getThreadDeltaBases",
			"getBlobs",
			"listThreads",
			"getFamily",
			"listFamilies",
			"listBlobs",
			"check",
		] as const)
			assert.deepEqual(await CALLS[call](storage), []);
	});

	test("REOPEN-ALL: everything reads the same when the data are opened again", async (scene) => {
		const ids = await fill(scene);
		const before = await readAll(scene.storage);
		assert.equal(before.blobs.length, ids.length);
		const again = await scene.reopen();
		if (again === scene.storage) return;
		await scene.storage.close();
		assert.deepEqual(await readAll(again), before);
		await scene.close();
	});
}

/** Two threads, one a copy of the other, with rows of every kind. */
async function fill({ put, putRows, putWrites, remove, copy, storage }: StorageScene): Promise<number[]> {
	const first = await storage.reserveIds(3);
	await put({
		checkpoint: row("a", { runId: "run", source: "input", step: -1 }),
		writes: [write("a", "task", 0), write("a", "task", 1, { value: first, runId: "run", actor: 7 })],
		blobs: [
			blob(first, "whole"),
			blob(first + 1, "patch", first),
			blob(first + 2, new Uint8Array(100_000), undefined, "json"),
		],
	});
	await putWrites(write("gone", "task", 0));
	await putRows(row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("a", { ns: "x" }));
	await copy("copy");
	await remove({
		checkpoints: [key("b")],
		relink: [{ key: key("c"), parentId: "a" }],
		deltaBases: [deltaBase("a", "log", "base")],
	});
	return [first, first + 1, first + 2];
}
