import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, plainBlob } from "./plain.ts";
import { blob, row, write } from "./storage-scene.ts";

/** Families: threads that may share blobs, and the blobs that they own. */
export function familyRules(test: StorageTest): void {
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
		assertSameRows(await storage.getFamily(family), expected);
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
		assert.deepEqual(await storage.getFamily(family), [await thread("copy")]);
		await putRows(row("a"));
		assert.notEqual((await thread()).family, family);
	});

	test("FAMILY-JOIN: a family that is not there has no threads and no blobs", async ({ storage, fresh }) => {
		const family = await fresh();
		assert.deepEqual(await storage.getFamily(family), []);
		assert.deepEqual(await storage.listBlobs(family), []);
	});

	test("FAMILY-BLOBS: blobs belong to the family of the thread they were put for", async (scene) => {
		const { storage, put, copy, thread } = scene;
		const [whole, patch, value, foreign] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(whole, "12345")] });
		await copy("copy");
		await put({ checkpoint: row("b", { threadId: "copy" }), blobs: [blob(patch, "", whole)] });
		await put({ writes: [write("b", "task", 0, { value })], blobs: [blob(value, "123")] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(foreign, "1")] });
		const { family } = await thread();
		const listed = await storage.listBlobs(family);
		assertSameRows(
			listed.map(({ id, base, bytes }) => scene.counted({ id, base, bytes })),
			[
				{ id: whole, base: undefined, bytes: 5 },
				{ id: patch, base: whole, bytes: 0 },
				{ id: value, base: undefined, bytes: 3 },
			].map(scene.counted),
		);
	});

	test("FAMILY-BLOBS: blobs outlive their threads", async ({ storage, put, thread, fresh }) => {
		const id = await fresh();
		await put({ checkpoint: row("a"), blobs: [blob(id, "value")] });
		const { family } = await thread();
		await storage.removeThread("thread");
		assert.equal((await storage.listBlobs(family)).length, 1);
		assert.deepEqual((await storage.getBlobs([id])).map(plainBlob), [blob(id, "value")]);
		await storage.removeBlobs(family, [id]);
		assert.deepEqual(await storage.listBlobs(family), []);
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
		assert.equal((await storage.listBlobs(family)).length, 3);
		await storage.removeBlobs(family, [a, b, missing, a]);
		assert.deepEqual((await storage.getBlobs([a, b, c])).map(plainBlob), [blob(c, "c", b)]);
		assert.deepEqual(
			(await storage.listBlobs(family)).map(({ id }) => id),
			[c],
		);
	});

	test("FAMILY-REMOVE: the blobs of another family are not removed", async (scene) => {
		const { storage, put, thread } = scene;
		const [mine, theirs] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(mine, "mine")] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(theirs, "theirs")] });
		await storage.removeBlobs((await thread()).family, [theirs]);
		await storage.removeBlobs(await scene.fresh(), [mine, theirs]);
		assertSameRows((await storage.getBlobs([mine, theirs])).map(plainBlob), [
			blob(mine, "mine"),
			blob(theirs, "theirs"),
		]);
	});
}
