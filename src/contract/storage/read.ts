import assert from "node:assert/strict";
import type { Scan } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertBlobs, assertRows, assertWrites, plainKey } from "./plain.ts";
import { blob, blobWrite, deltaBase, key, row, write } from "./storage-scene.ts";

/** read and readThread: checkpoints with what it takes to decode them. */
export function readRules(test: StorageTest): void {
	test("READ-KEYS: the rows come in the order of the keys, without those that are missing", async (scene) => {
		const { storage, putRows } = scene;
		await putRows(...["a", "b", "c"].map((id) => row(id)), row("a", { threadId: "other" }));
		const keys = [key("c"), key("missing"), key("a", "", "other"), key("a"), key("a", "x"), key("a", "", "missing")];
		for (const depth of ["rows", "values"] as const) {
			const expected = [row("c"), row("a", { threadId: "other" }), row("a")];
			assertRows((await storage.read(keys, depth)).checkpoints, expected);
			for (const nothing of [[], [key("missing")]])
				assert.deepEqual(await storage.read(nothing, depth), { checkpoints: [], writes: [], blobs: [] });
		}
	});

	test("READ-KEYS: a thousand rows can be asked for at once", async ({ storage, chain }) => {
		const ids = await chain(40);
		const keys = Array.from({ length: 1_000 }, (_, n) => key(ids[n] ?? `missing ${n}`));
		assert.deepEqual((await storage.read(keys, "values")).checkpoints.map(plainKey), keys.slice(0, 40));
	});

	test("READ-DEPTH: at either depth a scan finds the same rows, in the same order", async ({ storage, putRows }) => {
		const places = ["b", "a"].flatMap((threadId) => ["x", ""].map((ns) => ({ threadId, ns })));
		await putRows(...[3, 1, 2].flatMap((n) => places.map((place) => row(checkpointId(n), { ...place, step: n }))));
		const scans: Scan[] = [
			{ limit: 100 },
			{ limit: 5 },
			{ threadId: "a", ns: "", limit: 1 },
			{ threadId: "a", before: checkpointId(3), limit: 10 },
			{ ns: "x", after: key(checkpointId(2), "x", "a"), limit: 10 },
			{ step: 2, limit: 3 },
			{ threadId: "missing", limit: 1 },
			{ limit: 0 },
		];
		for (const scan of scans)
			assertRows((await storage.read(scan, "values")).checkpoints, (await storage.read(scan, "rows")).checkpoints);
	});

	test("READ-DEPTH: rows alone come without writes and blobs", async ({ storage, put, fresh }) => {
		const id = await fresh();
		const checkpoint = row("a", { blobs: [id] });
		await put({ checkpoint, writes: [blobWrite("a", "task", 0, id)], blobs: [blob(id, "value")] });
		for (const which of [[key("a")], { limit: 1 }]) {
			const { checkpoints, writes, blobs } = await storage.read(which, "rows");
			assertRows(checkpoints, [checkpoint]);
			assert.deepEqual([writes, blobs], [[], []]);
		}
	});

	test("READ-WRITES: all writes of the rows come along, of every generation, and no others", async (scene) => {
		const { storage, putRows, putWrites } = scene;
		const writes = ["a", "b"].flatMap((id) => [write(id, "task", 0), write(id, "task 1", 0)]);
		const again = write("a", "task", 0, { conflict: "add", generation: 1 });
		await putRows(row("a"), row("b", { parentId: "a" }), row("c"), row("a", { ns: "x" }));
		await putWrites(...writes, write("orphan", "task", 0), write("c", "task", 0), write("a", "task", 0, { ns: "x" }));
		await putWrites(again);
		for (const which of [[key("b"), key("a"), key("orphan")], { threadId: "thread", ns: "", before: "c", limit: 2 }])
			assertWrites((await storage.read(which, "values")).writes, [...writes, again]);
	});

	test("READ-BLOBS: blobs that rows and writes name come with all that they are built on, each once", async (scene) => {
		const { storage, put, fourIds } = scene;
		const [whole, source, patch, written] = await fourIds();
		const [own, other] = await fourIds();
		const blobs = [
			blob(whole, "whole"),
			blob(source, "source", whole),
			blob(patch, "patch", whole, "json", source),
			blob(written, "written", patch),
			blob(own, "own"),
		];
		await put({ checkpoint: row("a", { blobs: [patch] }), blobs: [...blobs, blob(other, "of nobody")] });
		await put({ checkpoint: row("b", { blobs: [own, patch, whole] }), writes: [blobWrite("b", "task", 0, written)] });
		await put({ writes: [blobWrite("b", "task", 0, own)] });
		assertBlobs((await storage.read([key("a")], "values")).blobs, blobs.slice(0, 3));
		assertBlobs((await storage.read([key("a"), key("b")], "values")).blobs, blobs);
		assertBlobs((await storage.read({ threadId: "thread", limit: 2 }, "values")).blobs, blobs);
	});

	test("READ-BLOBS: a blob that is missing is left out, what was built on it is not", async (scene) => {
		const [gone, patch, named] = await scene.fourIds();
		await scene.put({ checkpoint: row("a", { blobs: [named, patch] }), blobs: [blob(patch, "patch", gone)] });
		assertBlobs((await scene.storage.read([key("a")], "values")).blobs, [blob(patch, "patch", gone)]);
	});

	test("READ-BLOBS: a row that is put again names other blobs, its copy names the same as before", async (scene) => {
		const { put, copy, fourIds, storage } = scene;
		const [before, after] = await fourIds();
		await put({ checkpoint: row("a", { blobs: [before] }), blobs: [blob(before, "before")] });
		await copy("copy");
		await put({ checkpoint: row("a", { blobs: [after] }), blobs: [blob(after, "after")] });
		assertBlobs((await storage.read({ threadId: "thread", limit: 1 }, "values")).blobs, [blob(after, "after")]);
		assertBlobs((await storage.read([key("a", "", "copy")], "values")).blobs, [blob(before, "before")]);
	});

	test("READ-KNOWN: blobs that are known, and what only they are built on, stay away", async (scene) => {
		const [whole, patch, top, own] = await scene.fourIds();
		const [spare, source] = await scene.fourIds();
		const blobs = [
			blob(whole, "whole"),
			blob(source, "source"),
			blob(patch, "patch", whole, undefined, source),
			blob(top, "top", patch),
			blob(own, "own", whole),
			blob(spare, "spare"),
		];
		await scene.put({ checkpoint: row("a", { blobs: [top, spare] }), blobs });
		await scene.put({ checkpoint: row("b", { blobs: [own] }), writes: [blobWrite("b", "task", 0, patch)] });
		const assertRead = async (ids: string[], known: number[], expected: number[]) => {
			const reading = await scene.storage.read(
				ids.map((id) => key(id)),
				"values",
				known,
			);
			assert.deepEqual(new Set(reading.blobs.map(({ id }) => id)), new Set(expected));
		};
		await assertRead(["a"], [patch], [top, spare]);
		await assertRead(["a"], [top, spare, await scene.fresh()], []);
		await assertRead(["a", "b"], [patch, spare], [whole, top, own]);
		await assertRead(["b"], [whole], [own, patch, source]);
		await assertRead(["b"], [], [whole, own, patch, source]);
	});

	test("READ-THREAD: a thread is read with links, writes and delta bases, those without a checkpoint too", async (scene) => {
		const { storage, putRows, putWrites, put } = scene;
		const writes = [write("a", "task", 0), write("gone", "task", 0), write("gone", "task", 0, { ns: "x" })];
		const deltaBases = [
			deltaBase("a", "log", "1"),
			deltaBase("gone", "log", "2"),
			deltaBase("a", "log", "3", { ns: "x" }),
		];
		await putRows(row("c", { parentId: "b" }), row("a"), row("a", { ns: "x", parentId: "gone" }), row("b"));
		await putRows(row("a", { threadId: "thread 2" }), row("a", { threadId: "threa" }));
		await putWrites(...writes, write("a", "task", 1, { threadId: "thread 2" }));
		await put({ deltaBases });
		const reading = await storage.readThread("thread");
		const { checkpoints, written } = await storage.readOutline("thread");
		assert.deepEqual(
			new Set(written.map(({ ns, channel }) => `${ns}/${channel}`)),
			new Set(writes.map(({ ns, channel }) => `${ns}/${channel}`)),
		);
		const links = checkpoints.map(({ ns, id, parentId }) => `${ns}/${id} of ${parentId}`);
		assert.deepEqual(links, ["/c of b", "/b of undefined", "/a of undefined", "x/a of gone"]);
		assertWrites(reading.writes, writes);
		assertBases(reading.deltaBases, deltaBases);
		assert.deepEqual(await storage.readOutline("missing"), { checkpoints: [], written: [] });
		assert.deepEqual(await storage.readThread("missing"), { writes: [], deltaBases: [] });
	});
}
