import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { findRow, scanKeys } from "./reads.ts";
import { blob, blobWrite, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

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
		const id = await fresh();
		const rows = { checkpoint: row("b"), deltaBases: [deltaBase("a", "log", "base")] };
		const batch = { ...rows, writes: [blobWrite("a", "task", 1, id)], blobs: [blob(id, "value")] };
		for (const wrong of [stamp - 1, stamp + 1, 0, await fresh()])
			assert.equal(await tryPut({ ...batch, stamp: wrong }), undefined);
		assert.deepEqual(await storage.getBlobs([id]), []);
		assert.deepEqual(await scanKeys(storage), [key("a")]);
		assert.equal((await tryPut({ ...batch, stamp }))?.stamp, stamp);
	});

	test("STAMP-PUT: a batch with a stamp for a thread that is not there changes nothing", async (scene) => {
		const { storage, tryPut, fresh } = scene;
		const id = await fresh();
		assert.equal(await tryPut({ checkpoint: row("a"), blobs: [blob(id, "value")], stamp: id, fresh: id }), undefined);
		assert.equal(await storage.getThread("thread"), undefined);
		assert.deepEqual(await storage.listFamilies(10, undefined), []);
	});

	test("STAMP-REMOVE: a removal gives the thread its new stamp, which every read of a row shows", async (scene) => {
		const { storage, putRows, remove, fresh } = scene;
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { threadId: "other" }));
		const newStamp = await fresh();
		await remove({ newStamp });
		const rows = [
			await findRow(storage, key("a")),
			...(await storage.read({ threadId: "thread", limit: 10 }, "rows")).checkpoints,
			...(await storage.readPath(key("b"), 10)).path,
			...(await storage.readPath(key("a"), 10)).siblings,
		];
		assert.deepEqual(
			rows.map((found) => found?.stamp),
			Array(6).fill(newStamp),
		);
	});

	test("STAMP-REMOVE: what was planned before a removal is refused, what is planned after it is taken", async (scene) => {
		const old = await scene.put({ checkpoint: row("a") });
		await scene.put({ checkpoint: row("b") });
		await scene.remove({ checkpoints: [key("b")] });
		await assertRefused(scene, old);
		assert.ok(await scene.tryPut({ checkpoint: row("c"), stamp: (await scene.thread()).stamp }));
		await scene.copy("copy");
		await scene.remove({ checkpoints: [key("a")] });
	});

	test("STAMP-REPLACE: what was planned before a checkpoint was put again is refused", async (scene) => {
		const old = await scene.put({ checkpoint: row("a") });
		await scene.put({ checkpoint: row("a") });
		await assertRefused(scene, old);
	});

	test("STAMP-MISSING: a removal or a copy of a thread that is not there changes nothing", async (scene) => {
		const { storage, removal, copying } = scene;
		await scene.putRows(row("a"));
		assert.equal(await storage.remove(await removal({ threadId: "missing" })), undefined);
		assert.equal(await storage.copy(await copying("copy", { source: "missing" })), undefined);
		for (const name of ["missing", "copy"]) assert.equal(await storage.getThread(name), undefined);
	});

	test("STAMP-COPY: a copy has a stamp of its own", async ({ put, copy, remove, fresh, thread, tryPut }) => {
		const stamp = await put({ checkpoint: row("a") });
		const own = await fresh();
		await copy("copy", { fresh: own });
		assert.equal((await thread("copy")).stamp, own);
		await remove({ threadId: "copy" });
		assert.equal((await tryPut({ checkpoint: row("b"), stamp }))?.stamp, stamp);
		assert.equal(await tryPut({ checkpoint: row("b", { threadId: "copy" }), stamp: own }), undefined);
	});

	test("STAMP-RECREATE: a thread that is made again refuses the stamps it had before", async (scene) => {
		const stamps = new Set<number>();
		for (let n = 1; n <= 3; n++) {
			stamps.add(await scene.put({ checkpoint: row("a") }));
			assert.equal(stamps.size, n);
			await scene.storage.removeThread("thread");
			for (const stamp of stamps) assert.equal(await scene.tryPut({ checkpoint: row("b"), stamp }), undefined);
		}
		await scene.put({ checkpoint: row("a") });
		for (const old of stamps) await assertRefused(scene, old);
	});
}

/** Nothing that builds on rows with this stamp is done. */
async function assertRefused(scene: StorageScene, stamp: number): Promise<void> {
	const { storage, tryPut, removal, copying } = scene;
	const changes = { checkpoints: [key("a")], writes: [write("a", "task", 0)], relinked: [row("a", { parentId: "b" })] };
	assert.equal(await tryPut({ checkpoint: row("c"), stamp }), undefined);
	assert.equal(await storage.remove({ ...(await removal(changes)), stamp }), undefined);
	assert.equal(await storage.copy({ ...(await copying("copy")), stamp }), undefined);
	assert.equal(await storage.getThread("copy"), undefined);
	assert.ok(await findRow(storage, key("a")));
}
