import assert from "node:assert/strict";
import type { CheckpointKey, Reading, ScanQuery } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, assertWrites, plainBlob } from "./plain.ts";
import { blob, deltaBase, key, row, type StorageScene, type TestWrite, write } from "./storage-scene.ts";

/** read: rows with all that would be asked for next. A backend without it has nothing to prove. */
export function readRules(test: StorageTest): void {
	pathRules(test);

	test("READ-SCAN: the rows are those of a scan, in its order", async (scene) => {
		const { storage, putRows } = scene;
		const keys = ["b", "a"].flatMap((threadId) => ["x", ""].map((ns) => ({ threadId, ns })));
		await putRows(...[3, 1, 2].flatMap((n) => keys.map((place) => row(checkpointId(n), place))));
		const queries: ScanQuery[] = [
			{ limit: 100 },
			{ limit: 5 },
			{ threadId: "a", ns: "", limit: 1 },
			{ threadId: "a", before: checkpointId(3), limit: 10 },
			{ ns: "x", after: key(checkpointId(2), "x", "a"), limit: 10 },
			{ threadId: "missing", limit: 1 },
			{ limit: 0 },
		];
		for (const query of queries) {
			const reading = await read(scene, query);
			if (reading) assert.deepEqual(reading.checkpoints, await storage.scan(query));
		}
	});

	test("READ-KEYS: the rows come in the order of the keys, without those that are missing", async (scene) => {
		await scene.putRows(...["a", "b", "c"].map((id) => row(id)), row("a", { threadId: "other" }));
		const reading = await read(scene, [key("c"), key("missing"), key("a", "", "other"), key("a")]);
		if (reading)
			assert.deepEqual(
				reading.checkpoints.map(({ threadId, id }) => [threadId, id]),
				[
					["thread", "c"],
					["other", "a"],
					["thread", "a"],
				],
			);
	});

	test("READ-ALONG: their writes come along, and no others", async (scene) => {
		const { put, putWrites, storage } = scene;
		const writes = [write("a", "task", 0), write("a", "task 1", 0), write("b", "task", 0)];
		await put({ checkpoint: row("a") });
		await put({ checkpoint: row("b", { parentId: "a" }) });
		await putWrites(...writes, write("orphan", "task", 0), write("a", "task", 0, { ns: "x" }));
		const reading = await read(scene, { threadId: "thread", ns: "", limit: 2 });
		if (reading) assertWrites(reading.writes, writes);
		const one = await read(scene, [key("a")]);
		if (one) assertWrites(one.writes, (await storage.getWrites([key("a")])) as TestWrite[]);
	});

	test("READ-ALONG: blobs that rows and writes name come with what they are built on, each once", async (scene) => {
		const { put, fourIds } = scene;
		const [whole, patch, written, other] = await fourIds();
		const blobs = [blob(whole, "whole"), blob(patch, "patch", whole, "json"), blob(written, "written")];
		await put({ checkpoint: row("a"), blobs: [...blobs, blob(other, "of nobody")], namedBlobs: [patch] });
		await put({
			checkpoint: row("b"),
			writes: [write("b", "task", 0, { value: written })],
			namedBlobs: [patch, whole],
		});
		const reading = await read(scene, { threadId: "thread", limit: 2 });
		if (reading) assertSameRows(reading.blobs.map(plainBlob), blobs);
		const one = await read(scene, [key("a")]);
		if (one) assertSameRows(one.blobs.map(plainBlob), blobs.slice(0, 2));
	});

	test("READ-KNOWN: blobs that are known, and what only they are built on, stay away", async (scene) => {
		const { put, storage } = scene;
		const first = await storage.reserveIds(5);
		const [whole, patch, top, own, spare] = [0, 1, 2, 3, 4].map((n) => first + n) as [
			number,
			number,
			number,
			number,
			number,
		];
		const blobs = [
			blob(whole, "whole"),
			blob(patch, "patch", whole),
			blob(top, "top", patch),
			blob(own, "own", whole),
			blob(spare, "spare"),
		];
		await put({ checkpoint: row("a"), blobs, namedBlobs: [top, spare] });
		await put({ checkpoint: row("b"), namedBlobs: [own] });
		const idsOf = async (keys: readonly CheckpointKey[], known: readonly number[]) =>
			(await read(scene, keys, known))?.blobs.map(({ id }) => id).sort((a, b) => a - b);
		const known = await idsOf([key("a")], [patch]);
		if (known === undefined) return;
		assert.deepEqual(known, [top, spare]);
		assert.deepEqual(await idsOf([key("a")], [top, spare]), []);
		assert.deepEqual(await idsOf([key("a"), key("b")], [patch, spare]), [whole, top, own]);
	});

	test("READ-ALONG: a row that is put again names other blobs, a copy the same", async (scene) => {
		const { put, copy, fourIds } = scene;
		const [before, after] = await fourIds();
		await put({ checkpoint: row("a"), blobs: [blob(before, "before")], namedBlobs: [before] });
		await copy("copy");
		await put({ checkpoint: row("a"), blobs: [blob(after, "after")], namedBlobs: [after] });
		for (const [threadId, expected] of [
			["thread", after],
			["copy", before],
		] as const) {
			const reading = await read(scene, { threadId, limit: 1 });
			if (reading)
				assert.deepEqual(
					reading.blobs.map(({ id }) => id),
					[expected],
				);
		}
	});
}

/** readPath: a path with all that would be asked for next. */
function pathRules(test: StorageTest): void {
	test("READ-PATH: it answers what a path, its writes, bases and children are", async (scene) => {
		const { storage, putRows, putWrites, put } = scene;
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("d", { parentId: "c" }));
		await putRows(row("c2", { parentId: "b" }), row("e", { parentId: "d" }), row("b", { ns: "x", parentId: "a" }));
		await putWrites(...["a", "b", "c", "d"].map((id) => write(id, "task", 0)), write("0", "task", 0));
		await put({ deltaBases: [deltaBase("c", "log", "base"), deltaBase("e", "log", "none of it")] });
		for (const [limit, ids, siblings] of [
			[10, ["d", "c", "b", "a"], ["c2", "e"]],
			[2, ["d", "c"], ["e"]],
			[0, [], []],
		] as const) {
			const reading = await storage.readPath?.(key("d"), limit);
			if (reading === undefined) return;
			assert.deepEqual(reading.path, await storage.getPath(key("d"), limit));
			assert.deepEqual(
				reading.path.map(({ id }) => id),
				ids,
			);
			assert.deepEqual(reading.siblings.map(({ id }) => id).sort(), siblings);
			assertWrites(
				reading.writes,
				ids.map((id) => write(id, "task", 0)),
			);
			assert.deepEqual(
				reading.deltaBases.map(({ id }) => id),
				ids.length > 0 ? ["c"] : [],
			);
			const orphans = ids.length === 4 ? await storage.getOrphanWrites("thread", "", "a") : undefined;
			assert.deepEqual(reading.orphans, orphans);
		}
	});

	test("READ-PATH: it ends at a missing row or a row seen before, and a missing key has none", async (scene) => {
		const { storage, putRows, putWrites, remove } = scene;
		await putRows(
			row("b", { parentId: "missing" }),
			row("c", { parentId: "b" }),
			row("x"),
			row("y", { parentId: "x" }),
		);
		await putWrites(write("a", "task", 0));
		await remove({ relink: [{ key: key("x"), parentId: "y" }] });
		const path = async (id: string) => {
			const reading = await storage.readPath?.(key(id), 100);
			return reading && [reading.path.map(({ id }) => id), reading.orphans?.map(({ id }) => id)];
		};
		const ended = await path("c");
		if (ended === undefined) return;
		assert.deepEqual(ended, [["c", "b"], ["a"]]);
		assert.deepEqual(await path("y"), [["y", "x"], undefined]);
		assert.deepEqual(await path("missing"), [[], undefined]);
	});
}

async function read(
	{ storage }: StorageScene,
	which: ScanQuery | readonly CheckpointKey[],
	known: readonly number[] = [],
): Promise<Reading | undefined> {
	return storage.read?.(which, known);
}
