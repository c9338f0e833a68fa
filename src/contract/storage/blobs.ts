import assert from "node:assert/strict";
import type { BlobRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBlobs, assertSameRows } from "./plain.ts";
import { blobIds, familyBlobs } from "./reads.ts";
import { blob, blobWrite, row, type StorageScene } from "./storage-scene.ts";

/** getBlobs, and the families of threads that share blobs. */
export function blobRules(test: StorageTest): void {
	test("BLOB-ROW: blobs come back as they were given", async (scene) => {
		const id = await scene.storage.reserveIds(4);
		const blobs = [
			blob(id, "whole"),
			blob(id + 1, "patch", id),
			blob(id + 2, "typed", undefined, "json"),
			blob(id + 3, "", id, ""),
		];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs(blobs.map((one) => one.id)), blobs);
	});

	test("BLOB-MISSING: blobs that are not there are left out", async (scene) => {
		const id = await scene.fresh();
		await putBlobs(scene, [blob(id, "one")]);
		assert.deepEqual(await scene.storage.getBlobs([]), []);
		assert.deepEqual(await scene.storage.getBlobs([await scene.fresh()]), []);
		assertBlobs(await scene.storage.getBlobs([await scene.fresh(), id]), [blob(id, "one")]);
	});

	test("BLOB-BASES: a blob comes with all it is built on, and nothing else, each once", async (scene) => {
		const [a, b, c, d] = await scene.fourIds();
		const [e, f] = await scene.fourIds();
		const blobs = [blob(a, "a"), blob(b, "b", a), blob(c, "c", b), blob(d, "d", b), blob(e, "e"), blob(f, "f", c)];
		await putBlobs(scene, blobs);
		const idsFor = async (...ids: number[]) =>
			(await scene.storage.getBlobs(ids)).map(({ id }) => id).sort((x, y) => x - y);
		assert.deepEqual(await idsFor(a), [a]);
		assert.deepEqual(await idsFor(c), [a, b, c]);
		assert.deepEqual(await idsFor(c, d), [a, b, c, d]);
		assert.deepEqual(await idsFor(d, c, a, c, f), [a, b, c, d, f]);
		assert.deepEqual(await idsFor(e, f), [a, b, c, e, f]);
	});

	test("BLOB-BASES: bases of other threads of the family are found", async (scene) => {
		const { put, copy, storage } = scene;
		const [base, patch] = [await scene.fresh(), await scene.fresh()];
		await put({ checkpoint: row("a"), blobs: [blob(base, "base")] });
		await copy("copy");
		await put({ checkpoint: row("b", { threadId: "copy" }), blobs: [blob(patch, "patch", base)] });
		await storage.removeThread("thread");
		assertBlobs(await storage.getBlobs([patch]), [blob(base, "base"), blob(patch, "patch", base)]);
	});

	test("BLOB-BASES: a base that is missing is left out", async (scene) => {
		const [gone, patch] = [await scene.fresh(), await scene.fresh()];
		await putBlobs(scene, [blob(patch, "patch", gone)]);
		assertBlobs(await scene.storage.getBlobs([patch]), [blob(patch, "patch", gone)]);
	});

	test("BLOB-BASES: bases that go in a circle end", async (scene) => {
		const id = await scene.storage.reserveIds(5);
		const blobs = [
			blob(id, "0", id + 2),
			blob(id + 1, "1", id),
			blob(id + 2, "2", id + 1),
			blob(id + 3, "3", id + 2),
			blob(id + 4, "self", id + 4),
		];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs([id + 3]), blobs.slice(0, 4));
		assertBlobs(await scene.storage.getBlobs([id + 1]), blobs.slice(0, 3));
		assertBlobs(await scene.storage.getBlobs([id + 4]), blobs.slice(4));
	});

	test("BLOB-SOURCES: a blob comes with what else it takes bytes of, with all that is built on, each once", async (scene) => {
		const id = await scene.storage.reserveIds(6);
		const blobs = [
			blob(id, "0"),
			blob(id + 1, "1"),
			blob(id + 2, "2", id + 1),
			blob(id + 3, "3", id, undefined, id + 2),
			blob(id + 4, "4", id + 3, undefined, id + 5),
			blob(id + 5, "5", undefined, undefined, id + 4),
		];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs([id + 3]), blobs.slice(0, 4));
		assertBlobs(await scene.storage.getBlobs([id + 5]), blobs);
	});

	test("BLOB-BASES: a chain of 1,000 comes whole", async (scene) => {
		const first = await scene.storage.reserveIds(1_000);
		const blobs = Array.from({ length: 1_000 }, (_, n) => blob(first + n, `${n}`, n === 0 ? undefined : first + n - 1));
		await putBlobs(scene, blobs);
		assert.equal((await scene.storage.getBlobs([first + 999])).length, 1_000);
		assert.equal((await scene.storage.getBlobs(blobs.map(({ id }) => id))).length, 1_000);
	});

	test("FAMILY-JOIN: a copy, and a copy of the copy, join the family of their source", async ({
		storage,
		putRows,
		copy,
		thread,
	}) => {
		await putRows(row("a"), row("a", { threadId: "other" }));
		await copy("copy");
		await copy("second", { source: "copy" });
		const { family } = await thread();
		for (const name of ["copy", "second"]) assert.equal((await thread(name)).family, family);
		assert.notEqual((await thread("other")).family, family);
		const expected = await Promise.all(["thread", "copy", "second"].map((name) => thread(name)));
		assertSameRows((await storage.readFamily(family)).threads, expected);
	});

	test("FAMILY-JOIN: a family lives on without the thread that founded it", async ({
		storage,
		putRows,
		copy,
		thread,
	}) => {
		await putRows(row("a"));
		await copy("copy");
		const { family } = await thread();
		await storage.removeThread("thread");
		assert.deepEqual((await storage.readFamily(family)).threads, [await thread("copy")]);
		await putRows(row("a"));
		assert.notEqual((await thread()).family, family);
	});

	test("FAMILY-JOIN: a family that is not there has no threads and no blobs", async ({ storage, fresh }) => {
		const family = await fresh();
		assert.deepEqual(await storage.readFamily(family), { blobs: [], threads: [] });
	});

	test("FAMILY-BLOBS: blobs belong to the family of the thread they were put for", async (scene) => {
		const { storage, put, copy, thread } = scene;
		const [whole, patch, value, foreign] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(whole, "12345")] });
		await copy("copy");
		await put({ checkpoint: row("b", { threadId: "copy" }), blobs: [blob(patch, "", whole, "json", foreign)] });
		await put({ writes: [blobWrite("b", "task", 0, value)], blobs: [blob(value, "123")] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(foreign, "1")] });
		const { family } = await thread();
		const listed = await familyBlobs(storage, family);
		assertSameRows(
			listed.map(({ id, base, source, bytes }) => scene.counted({ id, base, source, bytes })),
			[
				{ id: whole, base: undefined, source: undefined, bytes: 5 },
				{ id: patch, base: whole, source: foreign, bytes: 0 },
				{ id: value, base: undefined, source: undefined, bytes: 3 },
			].map(scene.counted),
		);
	});

	test("FAMILY-BLOBS: blobs outlive their threads", async ({ storage, put, thread, fresh }) => {
		const id = await fresh();
		await put({ checkpoint: row("a"), blobs: [blob(id, "value")] });
		const { family } = await thread();
		await storage.removeThread("thread");
		assert.equal((await familyBlobs(storage, family)).length, 1);
		assertBlobs(await storage.getBlobs([id]), [blob(id, "value")]);
		await storage.removeBlobs(family, [id]);
		assert.deepEqual(await familyBlobs(storage, family), []);
	});

	test("FAMILY-LIST: families with blobs are listed by number, those without threads too", async (scene) => {
		const { storage, put, thread } = scene;
		const ids = await scene.fourIds();
		const families: number[] = [];
		for (const [n, id] of ids.entries()) {
			const threadId = `thread ${n}`;
			await put({ checkpoint: row("a", { threadId }), blobs: n === 2 ? [] : [blob(id, "value")] });
			if (n !== 2) families.push((await thread(threadId)).family);
		}
		families.sort((a, b) => a - b);
		await storage.removeThread("thread 1");
		assert.deepEqual(await storage.listFamilies(10, undefined), families);
		assert.deepEqual(await storage.listFamilies(2, undefined), families.slice(0, 2));
		assert.deepEqual(await storage.listFamilies(2, families[1]), families.slice(2));
		assert.deepEqual(await storage.listFamilies(2, families[2]), []);
	});

	test("FAMILY-REMOVE: blobs that are removed are gone, the others stay", async (scene) => {
		const { storage, put, thread } = scene;
		const [a, b, c, missing] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(a, "a"), blob(b, "b"), blob(c, "c", b)] });
		const { family } = await thread();
		await storage.removeBlobs(family, []);
		assert.equal((await familyBlobs(storage, family)).length, 3);
		await storage.removeBlobs(family, [a, b, missing, a]);
		assertBlobs(await storage.getBlobs([a, b, c]), [blob(c, "c", b)]);
		assert.deepEqual(await blobIds(storage, family), [c]);
	});

	test("FAMILY-REMOVE: the blobs of another family are not removed", async (scene) => {
		const { storage, put, thread } = scene;
		const [mine, theirs] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(mine, "mine")] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(theirs, "theirs")] });
		await storage.removeBlobs((await thread()).family, [theirs]);
		await storage.removeBlobs(await scene.fresh(), [mine, theirs]);
		assertBlobs(await storage.getBlobs([mine, theirs]), [blob(mine, "mine"), blob(theirs, "theirs")]);
	});

	test("FAMILY-MOMENT: a thread that names one of the listed blobs is listed too, however it comes", async (scene) => {
		const { storage, put, copy, thread, reopen, fresh } = scene;
		const other = await reopen();
		await put({ checkpoint: row("a") });
		const { family } = await thread();
		let isDone = false;
		const change = async () => {
			for (let n = 0; n < 30; n++) {
				const [threadId, id] = [`copy ${n}`, await fresh()];
				await copy(threadId);
				await put({ checkpoint: row("b", { threadId, blobs: [id] }), blobs: [blob(id, "value")] });
			}
			isDone = true;
		};
		const look = async () => {
			while (!isDone) {
				const { blobs, threads } = await other.readFamily(family);
				assert.ok(threads.length > blobs.length, `${blobs.length} blobs, but ${threads.length - 1} copies`);
				await new Promise((resolve) => setImmediate(resolve));
			}
		};
		await Promise.all([change(), look()]);
		assert.equal((await storage.readFamily(family)).blobs.length, 30);
	});
}

async function putBlobs({ put }: StorageScene, blobs: readonly BlobRow[]): Promise<void> {
	await put({ checkpoint: row("a"), blobs });
}
