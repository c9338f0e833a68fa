import assert from "node:assert/strict";
import type { BlobRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, plainBlob } from "./plain.ts";
import { blob, row, type StorageScene } from "./storage-scene.ts";

/** getBlobs: blobs with all that they are built on. */
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
		assertSameRows((await scene.storage.getBlobs(blobs.map((one) => one.id))).map(plainBlob), blobs);
	});

	test("BLOB-MISSING: blobs that are not there are left out", async (scene) => {
		const id = await scene.fresh();
		await putBlobs(scene, [blob(id, "one")]);
		assert.deepEqual(await scene.storage.getBlobs([]), []);
		assert.deepEqual(await scene.storage.getBlobs([await scene.fresh()]), []);
		assert.deepEqual((await scene.storage.getBlobs([await scene.fresh(), id])).map(plainBlob), [blob(id, "one")]);
	});

	test("BLOB-BASES: a blob comes with all it is built on, and nothing else, each once", async (scene) => {
		const first = await scene.storage.reserveIds(6);
		const [a, b, c, d, e, f] = Array.from({ length: 6 }, (_, n) => first + n) as [
			number,
			number,
			number,
			number,
			number,
			number,
		];
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
		assertSameRows((await storage.getBlobs([patch])).map(plainBlob), [blob(base, "base"), blob(patch, "patch", base)]);
	});

	test("BLOB-BASES: a base that is missing is left out", async (scene) => {
		const [gone, patch] = [await scene.fresh(), await scene.fresh()];
		await putBlobs(scene, [blob(patch, "patch", gone)]);
		assert.deepEqual((await scene.storage.getBlobs([patch])).map(plainBlob), [blob(patch, "patch", gone)]);
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
		assertSameRows((await scene.storage.getBlobs([id + 3])).map(plainBlob), blobs.slice(0, 4));
		assertSameRows((await scene.storage.getBlobs([id + 1])).map(plainBlob), blobs.slice(0, 3));
		assertSameRows((await scene.storage.getBlobs([id + 4])).map(plainBlob), blobs.slice(4));
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
		assertSameRows((await scene.storage.getBlobs([id + 3])).map(plainBlob), blobs.slice(0, 4));
		assertSameRows((await scene.storage.getBlobs([id + 5])).map(plainBlob), blobs);
	});

	test("BLOB-SOURCES: are listed with the blobs of a family", async (scene) => {
		const id = await scene.storage.reserveIds(2);
		await putBlobs(scene, [blob(id, "0"), blob(id + 1, "one", id, undefined, id)]);
		const family = (await scene.storage.getThread("thread"))?.family as number;
		const listed = await scene.storage.listBlobs(family);
		assert.deepEqual(
			listed.map(({ id, base, source }) => ({ id, base, source })).sort((a, b) => a.id - b.id),
			[
				{ id, base: undefined, source: undefined },
				{ id: id + 1, base: id, source: id },
			],
		);
	});

	test("BLOB-BASES: a chain of 1,000 comes whole", async (scene) => {
		const first = await scene.storage.reserveIds(1_000);
		const blobs = Array.from({ length: 1_000 }, (_, n) => blob(first + n, `${n}`, n === 0 ? undefined : first + n - 1));
		await putBlobs(scene, blobs);
		assert.equal((await scene.storage.getBlobs([first + 999])).length, 1_000);
		assert.equal((await scene.storage.getBlobs(blobs.map(({ id }) => id))).length, 1_000);
	});
}

async function putBlobs({ put }: StorageScene, blobs: readonly BlobRow[]): Promise<void> {
	await put({ checkpoint: row("a"), blobs });
}
