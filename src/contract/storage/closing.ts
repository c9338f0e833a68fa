import assert from "node:assert/strict";
import type { Storage } from "../../storage/storage.ts";
import { promised } from "../asserts.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { familyBlobs, findRow } from "./reads.ts";
import {
	blob,
	blobWrite,
	COPY_ALL,
	deltaBase,
	key,
	NO_REMOVAL,
	row,
	type StorageScene,
	write,
} from "./storage-scene.ts";

const NO_TOTALS = { threads: 0, checkpoints: 0, writes: 0, bytes: { checkpoints: 0, blobs: 0, writes: 0 } };
const NOTHING_READ = { checkpoints: [], writes: [], blobs: [] };
const REMOVAL = { threadId: "thread", stamp: 0, newStamp: 1, ...NO_REMOVAL };
const COPY = { source: "thread", stamp: 0, target: "copy", fresh: 1, now: 1, ...COPY_ALL };
const PUT = { threadId: "thread", fresh: 1, now: 1, blobs: [], writes: [], deltaBases: [], checkpoint: row("a") };
const REPLACEMENT = { kind: "blob", id: 1, from: new Uint8Array(1), to: new Uint8Array(2) } as const;

/** Every call of a storage but close, and what it answers where nothing is stored. */
const CALLS: { [M in Exclude<keyof Storage, "close">]: [(storage: Storage) => Promise<unknown>, answer?: unknown] } = {
	read: [(storage) => storage.read({ limit: 1 }, "values", []), NOTHING_READ],
	readPath: [(storage) => storage.readPath(key("a"), 1)],
	readThread: [(storage) => storage.readThread("thread"), { checkpoints: [], writes: [], deltaBases: [] }],
	getBlobs: [(storage) => storage.getBlobs([1]), []],
	findRuns: [(storage) => storage.findRuns(["run"]), { checkpoints: [], writes: [] }],
	getThread: [(storage) => storage.getThread("thread"), undefined],
	listThreads: [(storage) => storage.listThreads(1, undefined), []],
	readFamily: [(storage) => storage.readFamily(1), { blobs: [], threads: [] }],
	listFamilies: [(storage) => storage.listFamilies(1, undefined), []],
	totals: [(storage) => storage.totals(), NO_TOTALS],
	remove: [(storage) => storage.remove(REMOVAL), undefined],
	copy: [(storage) => storage.copy(COPY), undefined],
	removeThread: [(storage) => storage.removeThread("thread"), { checkpoints: 0, writes: 0, bytes: 0 }],
	removeBlobs: [(storage) => storage.removeBlobs(1, [1]), undefined],
	replaceBytes: [(storage) => storage.replaceBytes([REPLACEMENT]), 0],
	clear: [(storage) => storage.clear(), undefined],
	check: [(storage) => storage.check(), []],
	repair: [(storage) => storage.repair(), []],
	tidy: [(storage) => storage.tidy(), false],
	reserveIds: [(storage) => storage.reserveIds(1)],
	put: [(storage) => storage.put(PUT), { family: 1, stamp: 1, replaced: false }],
};

/** clear, close, and what is there when the data are opened again. */
export function closingRules(test: StorageTest): void {
	test("CLEAR-ALL: nothing is left, and the storage can be used again", async (scene) => {
		const { storage, put, tryPut, thread } = scene;
		const ids = await fill(scene);
		const { stamp, family } = await thread();
		await storage.clear();
		const { totals, ...rows } = await readAll(storage);
		assert.deepEqual(totals, NO_TOTALS);
		assert.deepEqual(rows, { threads: [], rows: [], writes: [], deltaBases: [], families: [], blobs: [] });
		assert.deepEqual(await storage.getBlobs(ids), []);
		assert.deepEqual(await familyBlobs(storage, family), []);
		assert.equal(await tryPut({ checkpoint: row("a"), stamp }), undefined);
		await put({ checkpoint: row("a") });
		const reading = await storage.readThread("thread");
		assert.deepEqual([reading.checkpoints.length, reading.writes, reading.deltaBases], [1, [], []]);
	});

	test("CLEAR-ALL: an empty storage can be cleared", async ({ storage, putRows }) => {
		await storage.clear();
		await putRows(row("a"));
		assert.ok(await findRow(storage, key("a")));
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

	test("NEVER-THROWS: every call gives a promise; where nothing is stored, of nothing", async ({ storage, close }) => {
		for (const [name, [call, ...expected]] of Object.entries(CALLS)) {
			const answer = await promised(() => call(storage)).catch((error) =>
				assert.fail(`${name} was rejected: ${error}`),
			);
			if (expected.length > 0) assert.deepEqual(answer, expected[0], name);
		}
		await close();
		for (const [call] of Object.values(CALLS)) await promised(() => call(storage)).catch(() => undefined);
		await promised(() => storage.close());
	});

	test("CHECK-CLEAN: a storage without damage is neither reported nor changed", async (scene) => {
		await fill(scene);
		const { storage } = scene;
		const before = await readAll(storage);
		assert.deepEqual([await storage.check(), await storage.repair(), await storage.check()], [[], [], []]);
		for (let n = 0; await storage.tidy(); n++) assert.ok(n < 1_000, "tidy does not end");
		assert.deepEqual(await readAll(storage), before);
		await scene.put({ checkpoint: row("d", { parentId: "c" }) });
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
		checkpoint: row("a", { runId: "run", source: "input", step: -1, blobs: [first + 1] }),
		writes: [write("a", "task", 0), blobWrite("a", "task", 1, first, { runId: "run", actor: 7 })],
		labels: { user: "a" },
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
		relinked: [row("c", { parentId: "a" })],
		deltaBases: [deltaBase("a", "log", "base")],
	});
	return [first, first + 1, first + 2];
}
