import assert from "node:assert/strict";
import type { Storage, ThreadRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { compareIds } from "./plain.ts";
import { shuffled } from "./scan.ts";
import { key, row, type StorageScene, write } from "./storage-scene.ts";

type Place = { updatedAt: number; threadId: string };

/** getThread and listThreads: counters, times, order and pages. */
export function threadRules(test: StorageTest): void {
	test("THREAD-GET: a thread is found by its whole id", async ({ storage, putRows }) => {
		await putRows(row("a", { threadId: "ab" }));
		assert.equal((await storage.getThread("ab"))?.threadId, "ab");
		for (const missing of ["a", "abc", "AB", "", "%"]) assert.equal(await storage.getThread(missing), undefined);
	});

	test("THREAD-COUNT: counters and head are right after every operation", async (scene) => {
		const { storage, putRows, put, remove, copy } = scene;
		const info = async () => {
			const threads = await storage.listThreads(10, undefined);
			return Object.fromEntries(threads.map(({ threadId, checkpoints, head }) => [threadId, [checkpoints, head]]));
		};
		await putRows(row("b"), row("c"), row("a"), row("d", { ns: "x" }));
		assert.deepEqual(await info(), { thread: [4, "c"] });
		await putRows(row("c"), row("c", { ns: "x" }), row("d", { ns: "x" }));
		assert.deepEqual(await info(), { thread: [5, "c"] });
		await copy("copy");
		await remove({ checkpoints: [key("c")] });
		assert.deepEqual(await info(), { thread: [4, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("c", "x"), key("a")], relink: [{ key: key("b"), parentId: undefined }] });
		assert.deepEqual(await info(), { thread: [2, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("b")] });
		assert.deepEqual(await info(), { thread: [1, undefined], copy: [5, "c"] });
		await put({ writes: [write("a", "task", 0)] });
		await copy("part", { source: "copy", checkpoints: [{ key: key("a"), parentId: undefined }] });
		await storage.removeThread("copy");
		await putRows(row("0"), row("z", { threadId: "part" }));
		assert.deepEqual(await info(), { thread: [2, "0"], part: [2, "z"] });
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
