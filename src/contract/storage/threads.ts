import assert from "node:assert/strict";
import type { Storage, ThreadRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { compareIds, shuffled } from "./plain.ts";
import { blob, blobWrite, bytes, key, row, type StorageScene, write } from "./storage-scene.ts";

type Place = { updatedAt: number; threadId: string };

const NOTHING = { threads: 0, checkpoints: 0, writes: 0, bytes: { checkpoints: 0, blobs: 0, writes: 0 } };

/** getThread, listThreads and totals: counters, times, order and pages. */
export function threadRules(test: StorageTest): void {
	test("THREAD-GET: a thread is found by its whole id", async ({ storage, putRows }) => {
		await putRows(row("a", { threadId: "ab" }));
		assert.equal((await storage.getThread("ab"))?.threadId, "ab");
		for (const missing of ["a", "abc", "AB", "", "%"]) assert.equal(await storage.getThread(missing), undefined);
	});

	test("THREAD-COUNT: counters and newest are right after every operation", async (scene) => {
		const { storage, putRows, put, remove, copy } = scene;
		const info = async () => {
			const threads = await storage.listThreads(10, undefined);
			return Object.fromEntries(threads.map(({ threadId, checkpoints, newest }) => [threadId, [checkpoints, newest]]));
		};
		await putRows(row("b"), row("c"), row("a"), row("d", { ns: "x" }));
		assert.deepEqual(await info(), { thread: [4, "c"] });
		await putRows(row("c"), row("c", { ns: "x" }), row("d", { ns: "x" }));
		assert.deepEqual(await info(), { thread: [5, "c"] });
		await copy("copy");
		await remove({ checkpoints: [key("c")] });
		assert.deepEqual(await info(), { thread: [4, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("c", "x"), key("a")], relinked: [row("b")] });
		assert.deepEqual(await info(), { thread: [2, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("b")] });
		assert.deepEqual(await info(), { thread: [1, undefined], copy: [5, "c"] });
		await put({ writes: [write("a", "task", 0)] });
		await copy("part", { source: "copy", keys: [key("a")], checkpoints: [row("b", { threadId: "part" })] });
		await storage.removeThread("copy");
		await putRows(row("0"), row("z", { threadId: "part" }));
		assert.deepEqual(await info(), { thread: [2, "0"], part: [3, "z"] });
	});

	test("THREAD-TIME: a checkpoint updates its thread, also one that is put again", async ({ put, thread }) => {
		await put({ checkpoint: row("a"), now: 100 });
		await put({ checkpoint: row("b", { ns: "x" }), now: 200 });
		assert.deepEqual([(await thread()).createdAt, (await thread()).updatedAt], [100, 200]);
		await put({ checkpoint: row("a"), now: 300 });
		assert.deepEqual([(await thread()).createdAt, (await thread()).updatedAt], [100, 300]);
	});

	test("THREAD-LIST: without threads the list is empty", async ({ storage }) => {
		assert.deepEqual(await storage.listThreads(10, undefined), []);
		assert.deepEqual(await storage.listThreads(10, { updatedAt: 1_000, threadId: "a" }), []);
	});

	test("THREAD-LIST: threads come by descending time, then descending id", async ({ storage, put }) => {
		for (const [threadId, now] of [
			["b", 1],
			["ab", 2],
			["a", 2],
			["B", 2],
			["é", 2],
			["c", 3],
			["中", 1],
		] as const)
			await put({ checkpoint: row("1", { threadId }), now });
		const listed = await storage.listThreads(10, undefined);
		assert.deepEqual(
			listed.map(({ threadId }) => threadId),
			["c", "é", "ab", "a", "B", "中", "b"],
		);
		for (const one of listed) assert.deepEqual(one, await storage.getThread(one.threadId));
	});

	test("THREAD-LIST: text beyond the basic plane is compared by its bytes in UTF-8 too", async ({ storage, put }) => {
		const ascending = ["\uD7FF", "\uE000", "\uFFEE", "\u{10000}", "😀"];
		for (const threadId of ascending) await put({ checkpoint: row("1", { threadId }), now: 1 });
		const listed = await storage.listThreads(10, undefined);
		assert.deepEqual(
			listed.map(({ threadId }) => threadId),
			[...ascending].reverse(),
		);
		const rest = await storage.listThreads(10, { updatedAt: 1, threadId: "\u{10000}" });
		assert.deepEqual(
			rest.map(({ threadId }) => threadId),
			["\uFFEE", "\uE000", "\uD7FF"],
		);
	});

	test("THREAD-PLACE: a place where no thread is can be gone on from", async (scene) => {
		await putThreads(scene, [
			["a", 1],
			["b", 2],
			["c", 2],
			["d", 3],
		]);
		const after = async (updatedAt: number, threadId: string) =>
			(await scene.storage.listThreads(10, { updatedAt, threadId })).map((thread) => thread.threadId);
		assert.deepEqual(await after(2, "bb"), ["b", "a"]);
		assert.deepEqual(await after(2, ""), ["a"]);
		assert.deepEqual(await after(2, "z"), ["c", "b", "a"]);
		assert.deepEqual(await after(9, ""), ["d", "c", "b", "a"]);
		assert.deepEqual(await after(1, "a"), []);
		assert.deepEqual(await after(0, "z"), []);
	});

	test("THREAD-PLACE: at most as many threads come as are asked for", async (scene) => {
		await putThreads(scene, [
			["a", 1],
			["b", 2],
			["c", 3],
		]);
		for (const [limit, expected] of [
			[0, []],
			[1, ["c"]],
			[3, ["c", "b", "a"]],
			[4, ["c", "b", "a"]],
		] as const)
			assert.deepEqual(
				(await scene.storage.listThreads(limit, undefined)).map(({ threadId }) => threadId),
				expected,
			);
	});

	for (const size of [1, 7, 64])
		test(`THREAD-PAGES: pages of ${size} give each of 150 threads once and in order, also those of one time`, async (scene) => {
			const all = Array.from({ length: 150 }, (_, n): [string, number] => [`thread ${n}`, 10 + Math.floor(n / 12)]);
			await putThreads(scene, shuffled(all));
			const places = all.map(([threadId, updatedAt]) => ({ threadId, updatedAt })).sort(comparePlaces);
			const found = await listPages(scene.storage, size);
			assert.deepEqual(
				found.map(({ threadId, updatedAt }) => ({ threadId, updatedAt })),
				places,
			);
		});

	test("TOTALS-COUNT: an empty storage counts nothing", async ({ storage }) => {
		assert.deepEqual(await storage.totals(), NOTHING);
	});

	test("TOTALS-COUNT: rows and bytes are those that were put, a value in a blob counting there", async (scene) => {
		const { storage, put, fresh } = scene;
		const [a, b] = [await fresh(), await fresh()];
		await put({
			checkpoint: row("a", { head: new Uint8Array(10) }),
			blobs: [blob(a, new Uint8Array(1_000)), blob(b, new Uint8Array(20), a)],
		});
		await put({ checkpoint: row("a", { threadId: "other", head: new Uint8Array(0) }) });
		await put({ writes: [write("b", "task", 0, { value: new Uint8Array(7) }), blobWrite("b", "task", 1, a)] });
		const size = { checkpoints: 10, blobs: 1_020, writes: 7 };
		const expected = { threads: 2, checkpoints: 2, writes: 2, bytes: size };
		assert.deepEqual(scene.counted(await storage.totals()), scene.counted(expected));
	});

	test("TOTALS-COUNT: totals follow replacements, copies and removals", async (scene) => {
		const { storage, put, fresh, copy, remove, thread } = scene;
		const id = await fresh();
		const assertTotals = async (rows: number[], [checkpoints, blobs, writes]: [number, number, number]) => {
			const [threads = 0, rowCount = 0, writeCount = 0] = rows;
			const expected = { threads, checkpoints: rowCount, writes: writeCount, bytes: { checkpoints, blobs, writes } };
			assert.deepEqual(scene.counted(await storage.totals()), scene.counted(expected));
		};
		const first = write("a", "task", 0, { value: bytes("1234") });
		await put({ checkpoint: row("a", { head: new Uint8Array(10) }), writes: [first], blobs: [blob(id, "12345")] });
		await assertTotals([1, 1, 1], [10, 5, 4]);
		await put({
			checkpoint: row("a", { head: new Uint8Array(3) }),
			writes: [{ ...first, value: bytes("1"), conflict: "replace" }],
		});
		await assertTotals([1, 1, 1], [3, 5, 1]);
		await copy("copy");
		await assertTotals([2, 2, 2], [6, 5, 2]);
		await remove({ checkpoints: [key("a")] });
		await assertTotals([2, 1, 1], [3, 5, 1]);
		const { family } = await thread("copy");
		await storage.removeThread("copy");
		await assertTotals([1, 0, 0], [0, 5, 0]);
		await storage.removeBlobs(family, [id]);
		await assertTotals([1, 0, 0], [0, 0, 0]);
		await storage.removeThread("thread");
		assert.deepEqual(await storage.totals(), NOTHING);
	});
}

function comparePlaces(a: Place, b: Place): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}

async function putThreads(
	{ put }: StorageScene,
	threads: readonly (readonly [threadId: string, now: number])[],
): Promise<void> {
	for (const [threadId, now] of threads) await put({ checkpoint: row("1", { threadId }), now });
}

async function listPages(storage: Storage, size: number): Promise<ThreadRow[]> {
	const found: ThreadRow[] = [];
	for (let after: Place | undefined; ; after = found.at(-1)) {
		const page = await storage.listThreads(size, after);
		assert.ok(page.length <= size);
		found.push(...page);
		assert.ok(found.length <= 1_000, "the pages do not end");
		if (page.length < size) return found;
	}
}
