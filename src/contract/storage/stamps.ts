import assert from "node:assert/strict";
import type { Storage } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { findRow, newestRow, scanRows } from "./reads.ts";
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

/** Stamps: a batch that builds on what may be gone is refused and changes nothing. */
export function stampRules(test: StorageTest): void {
	test("STAMP-PUT: a batch with the thread's stamp is taken and leaves the stamp", async ({ put, thread }) => {
		const stamp = await put({ checkpoint: row("a") });
		assert.equal(await put({ checkpoint: row("b"), stamp }), stamp);
		assert.equal(await put({ writes: [write("b", "task", 0)], stamp }), stamp);
		assert.equal((await thread()).stamp, stamp);
	});

	test("STAMP-PUT: a batch with another stamp changes nothing", async ({ storage, put, tryPut, fresh }) => {
		const stamp = await put({ checkpoint: row("a"), writes: [write("a", "task", 0)] });
		const before = await readAll(storage);
		const id = await fresh();
		const deltaBases = [deltaBase("a", "log", "base")];
		const batch = {
			checkpoint: row("b"),
			deltaBases,
			writes: [blobWrite("a", "task", 1, id)],
			blobs: [blob(id, "value")],
		};
		for (const wrong of [stamp - 1, stamp + 1, 0, await fresh()])
			assert.equal(await tryPut({ ...batch, stamp: wrong }), undefined);
		assert.deepEqual(await readAll(storage), before);
		assert.deepEqual(await storage.getBlobs([id]), []);
		assert.equal((await tryPut({ ...batch, stamp }))?.stamp, stamp);
	});

	test("STAMP-PUT: a batch with a stamp for a thread that is not there changes nothing", async ({
		storage,
		tryPut,
		fresh,
	}) => {
		const id = await fresh();
		assert.equal(await tryPut({ checkpoint: row("a"), blobs: [blob(id, "value")], stamp: id, fresh: id }), undefined);
		assert.equal(await storage.getThread("thread"), undefined);
		assert.deepEqual(await storage.getBlobs([id]), []);
		assert.deepEqual(await scanRows(storage, { limit: 10 }), []);
		assert.deepEqual(await storage.listFamilies(10, undefined), []);
	});

	test("STAMP-REMOVE: a removal gives the thread its new stamp, which every read of a row shows", async (scene) => {
		const { storage, putRows, remove, fresh, thread } = scene;
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { threadId: "other" }));
		const newStamp = await fresh();
		await remove({ newStamp });
		assert.equal((await thread()).stamp, newStamp);
		assert.deepEqual(await stampsOf(storage), [newStamp]);
		assert.notEqual((await findRow(storage, key("c", "", "other")))?.stamp, newStamp);
	});

	test("STAMP-REMOVE: what was planned before a removal is refused, what is planned after it is taken", async (scene) => {
		const { storage, put, tryPut, remove, copy } = scene;
		const old = await put({ checkpoint: row("a") });
		await put({ checkpoint: row("b") });
		await remove({ checkpoints: [key("b")] });
		assert.equal(await tryPut({ checkpoint: row("c"), stamp: old }), undefined);
		assert.equal(
			await storage.remove({ ...(await emptyRemoval(scene)), stamp: old, checkpoints: [key("a")] }),
			undefined,
		);
		assert.equal(await storage.copy({ ...(await emptyCopy(scene)), stamp: old }), undefined);
		assert.ok(await findRow(storage, key("a")));
		const { stamp } = await scene.thread();
		assert.equal((await tryPut({ checkpoint: row("c"), stamp }))?.stamp, stamp);
		await copy("copy");
		await remove({ checkpoints: [key("a")] });
	});

	test("STAMP-REMOVE: a removal with another stamp, or of a thread that is not there, changes nothing", async (scene) => {
		const { storage, put, fresh } = scene;
		const stamp = await put({ checkpoint: row("a"), writes: [write("a", "task", 0)] });
		const before = await readAll(storage);
		const removal = {
			...(await emptyRemoval(scene)),
			checkpoints: [key("a")],
			writes: [write("a", "task", 0)],
			relinked: [row("a", { parentId: "b" })],
			deltaBases: [deltaBase("a", "log", "base")],
		};
		for (const wrong of [stamp + 1, stamp - 1, await fresh()])
			assert.equal(await storage.remove({ ...removal, stamp: wrong }), undefined);
		assert.equal(await storage.remove({ ...removal, threadId: "missing" }), undefined);
		assert.deepEqual(await readAll(storage), before);
		assert.equal(await storage.getThread("missing"), undefined);
	});

	test("STAMP-COPY: a copy with another stamp, or of a thread that is not there, changes nothing", async (scene) => {
		const { storage, put } = scene;
		const stamp = await put({ checkpoint: row("a") });
		const before = await readAll(storage);
		const batch = await emptyCopy(scene);
		assert.equal(await storage.copy({ ...batch, stamp: stamp + 1 }), undefined);
		assert.equal(await storage.copy({ ...batch, source: "missing" }), undefined);
		assert.deepEqual(await readAll(storage), before);
		assert.equal(await storage.getThread("copy"), undefined);
	});

	test("STAMP-COPY: a copy has a stamp of its own", async ({ put, copy, remove, fresh, thread, tryPut }) => {
		const stamp = await put({ checkpoint: row("a") });
		const own = await fresh();
		await copy("copy", { fresh: own });
		assert.equal((await thread("copy")).stamp, own);
		await remove({ threadId: "copy" });
		assert.equal((await thread()).stamp, stamp);
		assert.equal((await tryPut({ checkpoint: row("b"), stamp }))?.stamp, stamp);
		assert.equal(await tryPut({ checkpoint: row("b", { threadId: "copy" }), stamp: own }), undefined);
	});

	test("STAMP-RECREATE: a thread that is made again refuses the stamp it had before", async (scene) => {
		const { storage, put, tryPut } = scene;
		const stamps = new Set<number>();
		for (let n = 1; n <= 3; n++) {
			stamps.add(await put({ checkpoint: row("a") }));
			assert.equal(stamps.size, n);
			await storage.removeThread("thread");
			for (const stamp of stamps) assert.equal(await tryPut({ checkpoint: row("b"), stamp }), undefined);
		}
		const stamp = await put({ checkpoint: row("a") });
		for (const old of stamps) {
			assert.equal(await tryPut({ checkpoint: row("b"), stamp: old }), undefined);
			assert.equal(await storage.remove({ ...(await emptyRemoval(scene)), stamp: old }), undefined);
			assert.equal(await storage.copy({ ...(await emptyCopy(scene)), stamp: old }), undefined);
		}
		assert.equal((await tryPut({ checkpoint: row("b"), stamp }))?.stamp, stamp);
	});
}

/** The stamps that reads of the rows `a` and its child `b` show. */
async function stampsOf(storage: Storage): Promise<number[]> {
	const rows = [
		await findRow(storage, key("a")),
		await newestRow(storage, "thread", ""),
		...(await scanRows(storage, { threadId: "thread", limit: 10 })),
		...(await storage.readPath(key("b"), 10)).path,
		...(await storage.readPath(key("a"), 10)).siblings,
	];
	assert.equal(rows.length, 7);
	return [...new Set(rows.map((found) => found?.stamp as number))];
}

async function emptyRemoval({ storage, fresh }: StorageScene) {
	const stamp = (await storage.getThread("thread"))?.stamp ?? 0;
	return { threadId: "thread", stamp, newStamp: await fresh(), ...NO_REMOVAL };
}

async function emptyCopy({ storage, fresh, tick }: StorageScene) {
	const stamp = (await storage.getThread("thread"))?.stamp ?? 0;
	return { source: "thread", stamp, target: "copy", fresh: await fresh(), now: tick(), ...COPY_ALL };
}
