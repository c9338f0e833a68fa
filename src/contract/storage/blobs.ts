import assert from "node:assert/strict";
import type { BlobRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBlobs } from "./plain.ts";
import { blob, blobWrite, deltaBase, pause, row, type StorageScene } from "./storage-scene.ts";

/** getBlobs, and the families of threads that share blobs. */
export function blobRules(test: StorageTest): void {
	test("BLOB-ROW: blobs come back as they were given, those that are not there are left out", async (scene) => {
		const [a, b, c, d] = await scene.fourIds();
		const blobs = [blob(a, "whole"), blob(b, "patch", a), blob(c, "typed", undefined, "json"), blob(d, "", a, "")];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs([a, b, c, await scene.fresh(), d]), blobs);
		for (const nothing of [[], [await scene.fresh()]]) assert.deepEqual(await scene.storage.getBlobs(nothing), []);
	});

	test("BLOB-BASES: a blob comes with all it is built on, and nothing else, each once", async (scene) => {
		const [a, b, c, d] = await scene.fourIds();
		const [e, f] = await scene.fourIds();
		const blobs = [blob(a, "a"), blob(b, "b", a), blob(c, "c", b), blob(d, "d", b), blob(e, "e"), blob(f, "f", c)];
		await putBlobs(scene, blobs);
		for (const ids of [[a], [c], [c, d], [d, c, a, c, f], [e, f]]) await scene.storage.getBlobs(ids);
		assertBlobs(await scene.storage.getBlobs([c]), blobs.slice(0, 3));
	});

	test("BLOB-BASES: bases of other threads of the family are found, one that is missing is left out", async (scene) => {
		const { storage, put, copy, fourIds } = scene;
		const [base, patch] = await fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(base, "base")] });
		await copy("copy");
		await put({ checkpoint: row("b", { threadId: "copy" }), blobs: [blob(patch, "patch", base)] });
		await storage.removeThread("thread");
		assertBlobs(await storage.getBlobs([patch]), [blob(base, "base"), blob(patch, "patch", base)]);
		await storage.removeBlobs((await scene.thread("copy")).family, [base]);
		assertBlobs(await storage.getBlobs([patch]), [blob(patch, "patch", base)]);
	});

	test("BLOB-BASES: bases that go in a circle end", async (scene) => {
		const [a, b, c, d] = await scene.fourIds();
		const blobs = [blob(a, "a", c), blob(b, "b", a), blob(c, "c", b), blob(d, "self", d, undefined, c)];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs([b]), blobs.slice(0, 3));
		assertBlobs(await scene.storage.getBlobs([d]), blobs);
	});

	test("BLOB-BASES: a blob comes with what else it copies bytes from, and all that is built on", async (scene) => {
		const [a, b, c, d] = await scene.fourIds();
		const [e, f] = await scene.fourIds();
		const blobs = [
			blob(a, "a"),
			blob(b, "b"),
			blob(c, "c", b),
			blob(d, "d", a, undefined, c),
			blob(e, "e", d, undefined, f),
			blob(f, "f", undefined, undefined, e),
		];
		await putBlobs(scene, blobs);
		assertBlobs(await scene.storage.getBlobs([d]), blobs.slice(0, 4));
		assertBlobs(await scene.storage.getBlobs([f]), blobs);
	});

	test("BLOB-BASES: a chain of 1,000 comes whole", async (scene) => {
		const first = await scene.storage.reserveIds(1_000);
		const blobs = Array.from({ length: 1_000 }, (_, n) => blob(first + n, `${n}`, n === 0 ? undefined : first + n - 1));
		await putBlobs(scene, blobs);
		assert.equal((await scene.storage.getBlobs([first + 999])).length, 1_000);
		assert.equal((await scene.storage.getBlobs(blobs.map(({ id }) => id))).length, 1_000);
	});

	test("FAMILY-JOIN: a copy, and a copy of the copy, join the family of their source", async (scene) => {
		const { storage, putRows, copy, thread } = scene;
		const [value] = await scene.fourIds();
		await scene.put({ checkpoint: row("a", { blobs: [value] }), blobs: [blob(value, "value")] });
		await putRows(row("a", { threadId: "other" }));
		await copy("copy");
		await copy("second", { source: "copy" });
		const { family } = await thread();
		for (const name of ["copy", "second"]) assert.equal((await thread(name)).family, family);
		for (const name of ["thread", "copy", "second"]) {
			assert.ok((await storage.readFamily(family)).named.includes(value));
			await storage.removeThread(name);
		}
		assert.deepEqual((await storage.readFamily(family)).named, []);
		await putRows(row("a"));
		assert.notEqual((await thread()).family, family);
	});

	test("FAMILY-BLOBS: blobs belong to the family of the thread they were put for, and outlive it", async (scene) => {
		const { storage, put, copy, thread } = scene;
		const [whole, patch, value, foreign] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(whole, "12345")] });
		await copy("copy");
		await put({ checkpoint: row("b", { threadId: "copy" }), blobs: [blob(patch, "", whole, "json", foreign)] });
		await put({ writes: [blobWrite("b", "task", 0, value)], blobs: [blob(value, "123")] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(foreign, "1")] });
		const { family } = await thread();
		for (const name of ["thread", "copy"]) await storage.removeThread(name);
		const { blobs, named } = await storage.readFamily(family);
		assert.deepEqual(new Set(blobs.map(({ id }) => id)), new Set([whole, patch, value]));
		assert.deepEqual(named, []);
		assert.deepEqual(await storage.readFamily(await scene.fresh()), { blobs: [], named: [], deltaBases: [] });
	});

	test("FAMILY-NAMED: what checkpoints and writes name, also orphans, comes with all delta bases", async (scene) => {
		const { storage, put, copy, thread } = scene;
		const [first, second, value, orphan] = await scene.fourIds();
		const foreign = await scene.fresh();
		await put({ checkpoint: row("a", { blobs: [first, second] }), deltaBases: [deltaBase("a", "log", "1")] });
		await put({ checkpoint: row("b"), blobs: [] });
		await put({ writes: [blobWrite("b", "task", 0, value)] });
		await put({ checkpoint: row("a", { threadId: "other", blobs: [foreign] }) });
		await copy("copy");
		await put({ writes: [blobWrite("c", "task", 0, orphan)] });
		const { named, deltaBases } = await storage.readFamily((await thread()).family);
		assert.deepEqual(new Set(named), new Set([first, second, value, orphan]));
		assert.deepEqual(deltaBases.map(({ threadId }) => threadId).sort(), ["copy", "thread"]);
	});

	test("FAMILY-LIST: families with blobs are listed by number, those without threads too", async (scene) => {
		const { storage, put, thread } = scene;
		const families: number[] = [];
		for (const [n, id] of (await scene.fourIds()).entries()) {
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

	test("FAMILY-REMOVE: blobs of a family that are removed are gone, all others stay", async (scene) => {
		const { storage, put, thread, fresh } = scene;
		const [a, b, c, theirs] = await scene.fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(a, "a"), blob(b, "b"), blob(c, "c", b)] });
		await put({ checkpoint: row("a", { threadId: "other" }), blobs: [blob(theirs, "theirs")] });
		const { family } = await thread();
		for (const [from, ids] of [
			[family, []],
			[family, [theirs]],
			[await fresh(), [a, theirs]],
		] as const)
			await storage.removeBlobs(from, ids);
		assert.equal((await storage.getBlobs([a, b, c, theirs])).length, 4);
		await storage.removeBlobs(family, [a, b, await fresh(), a]);
		assertBlobs(await storage.getBlobs([a, b, c]), [blob(c, "c", b)]);
		await storage.removeBlobs(family, [c]);
		assert.deepEqual(await storage.listFamilies(10, undefined), [(await thread("other")).family]);
	});

	test("FAMILY-MOMENT: a listed blob is named by the row that it came with, however that comes", async (scene) => {
		await scene.put({ checkpoint: row("a") });
		const { family } = await scene.thread();
		const [storage, other] = await scene.race();
		let isDone = false;
		const change = async () => {
			for (let n = 0; n < 30; n++) {
				const [threadId, id] = [`copy ${n}`, await scene.fresh()];
				await storage.copy(await scene.copying(threadId));
				const checkpoint = row("b", { threadId, blobs: [id] });
				await storage.put(await scene.batch({ checkpoint, blobs: [blob(id, "value")] }));
			}
			isDone = true;
		};
		const look = async () => {
			while (!isDone) {
				const { blobs, named } = await other.readFamily(family);
				for (const { id } of blobs)
					assert.ok(named.includes(id), `blob ${id} is listed, but not the row that names it`);
				await pause();
			}
		};
		await Promise.all([change(), look()]);
		assert.equal((await other.readFamily(family)).blobs.length, 30);
	});
}

async function putBlobs({ put }: StorageScene, blobs: readonly BlobRow[]): Promise<void> {
	await put({ checkpoint: row("a"), blobs });
}
