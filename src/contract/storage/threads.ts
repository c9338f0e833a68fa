import assert from "node:assert/strict";
import type { Storage, ThreadRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { shuffled } from "./plain.ts";
import { blob, blobWrite, key, row, type StorageScene, write } from "./storage-scene.ts";

type Place = { updatedAt: number; threadId: string };

/** getThread, listThreads and totals: counters, times, order and pages. */
export function threadRules(test: StorageTest): void {
	test("THREAD-GET: a thread is found by its whole id", async ({ storage, putRows }) => {
		await putRows(row("a", { threadId: "ab" }));
		assert.equal((await storage.getThread("ab"))?.threadId, "ab");
		for (const missing of ["a", "abc", "AB", "", "%"]) assert.equal(await storage.getThread(missing), undefined);
	});

	test("THREAD-COUNT: counters and newest are right after every operation", async (scene) => {
		const { storage, putRows, put, remove, copy } = scene;
		const assertThreads = async (expected: Record<string, [number, string | undefined]>) => {
			const threads = await storage.listThreads(10, undefined);
			const found = threads.map(({ threadId, checkpoints, newest }) => [threadId, [checkpoints, newest]]);
			assert.deepEqual(Object.fromEntries(found), expected);
		};
		await putRows(row("b"), row("c"), row("a"), row("d", { ns: "x" }));
		await assertThreads({ thread: [4, "c"] });
		await putRows(row("c"), row("c", { ns: "x" }), row("d", { ns: "x" }));
		await assertThreads({ thread: [5, "c"] });
		await copy("copy");
		await remove({ checkpoints: [key("c")] });
		await assertThreads({ thread: [4, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("c", "x"), key("a")], relinked: [row("b")] });
		await assertThreads({ thread: [2, "b"], copy: [5, "c"] });
		await remove({ checkpoints: [key("b")] });
		await assertThreads({ thread: [1, undefined], copy: [5, "c"] });
		await put({ writes: [write("a", "task", 0)] });
		await copy("part", { source: "copy", keys: [key("a", "", "copy")] });
		await storage.removeThread("copy");
		await putRows(row("0"), row("z", { threadId: "part" }));
		await assertThreads({ thread: [2, "0"], part: [2, "z"] });
	});

	test("THREAD-TIME: a checkpoint updates its thread, also one that is put again; a write does not", async (scene) => {
		const times = async () => {
			const { createdAt, updatedAt } = await scene.thread();
			return [createdAt, updatedAt];
		};
		await scene.put({ checkpoint: row("a"), now: 100 });
		await scene.put({ checkpoint: row("b", { ns: "x" }), now: 200 });
		assert.deepEqual(await times(), [100, 200]);
		await scene.put({ checkpoint: row("a"), now: 300 });
		assert.deepEqual(await times(), [100, 300]);
		await scene.put({ writes: [write("a", "task", 0)], now: 400 });
		await scene.remove({ checkpoints: [key("a")] });
		assert.deepEqual(await times(), [100, 300]);
	});

	test("THREAD-LIST: threads come by descending time, then descending id", async (scene) => {
		const { storage } = scene;
		await putThreads(scene, { b: 1, ab: 2, a: 2, B: 2, é: 2, c: 3, 中: 1 });
		assert.deepEqual(await namesOf(storage), ["c", "é", "ab", "a", "B", "中", "b"]);
		for (const limit of [0, 1, 7, 8]) await storage.listThreads(limit, undefined);
	});

	test("THREAD-LIST: text beyond the basic plane is compared by its bytes in UTF-8 too", async (scene) => {
		await putThreads(scene, { "\uD7FF": 1, "\uE000": 1, "\uFFEE": 1, "\u{10000}": 1, "😀": 1 });
		assert.deepEqual(await namesOf(scene.storage), ["😀", "\u{10000}", "\uFFEE", "\uE000", "\uD7FF"]);
		const rest = await namesOf(scene.storage, { updatedAt: 1, threadId: "\u{10000}" });
		assert.deepEqual(rest, ["\uFFEE", "\uE000", "\uD7FF"]);
	});

	test("THREAD-PLACE: a place where no thread is can be gone on from", async (scene) => {
		await putThreads(scene, { a: 1, b: 2, c: 2, d: 3 });
		const after = (updatedAt: number, threadId: string) => namesOf(scene.storage, { updatedAt, threadId });
		assert.deepEqual(await after(2, "bb"), ["b", "a"]);
		assert.deepEqual(await after(2, ""), ["a"]);
		assert.deepEqual(await after(2, "z"), ["c", "b", "a"]);
		assert.deepEqual(await after(9, ""), ["d", "c", "b", "a"]);
		assert.deepEqual(await after(1, "a"), []);
		assert.deepEqual(await after(0, "z"), []);
	});

	for (const size of [1, 7, 64])
		test(`THREAD-PAGES: pages of ${size} give each of 100 threads once and in order, also those of one time`, async (scene) => {
			const all = Array.from({ length: 100 }, (_, n): [string, number] => [`thread ${n}`, 10 + Math.floor(n / 12)]);
			await putThreads(scene, Object.fromEntries(shuffled(all)));
			const found: ThreadRow[] = [];
			for (let after: Place | undefined; ; after = found.at(-1)) {
				const page: ThreadRow[] = await scene.storage.listThreads(size, after);
				found.push(...page);
				if (page.length < size) break;
				assert.ok(found.length <= 1_000, "the pages do not end");
			}
			assert.deepEqual(found, await scene.storage.listThreads(1_000, undefined));
		});

	test("TOTALS-COUNT: rows and bytes are those that were put, a value in a blob counting there", async (scene) => {
		const { storage, put, fourIds } = scene;
		const nothing = { threads: 0, checkpoints: 0, writes: 0, bytes: { checkpoints: 0, blobs: 0, writes: 0 } };
		assert.deepEqual(await storage.totals(), nothing);
		const [a, b] = await fourIds();
		const blobs = [blob(a, new Uint8Array(1_000)), blob(b, new Uint8Array(20), a)];
		await put({ checkpoint: row("a", { head: new Uint8Array(10) }), blobs });
		await put({ checkpoint: row("a", { threadId: "other", head: new Uint8Array(0) }) });
		await put({ writes: [write("b", "task", 0, { value: new Uint8Array(7) }), blobWrite("b", "task", 1, a)] });
		const bytes = { checkpoints: 10, blobs: 1_020, writes: 7 };
		const expected = { threads: 2, checkpoints: 2, writes: 2, bytes };
		assert.deepEqual(scene.counted(await storage.totals()), scene.counted(expected));
	});

	test("TOTALS-COUNT: totals follow replacements, copies and removals", async (scene) => {
		const { storage, put, fresh, copy, remove, thread } = scene;
		const id = await fresh();
		const first = write("a", "task", 0, { value: new Uint8Array(4) });
		const shorter = write("a", "task", 0, { value: new Uint8Array(1), conflict: "replace" });
		const head = new Uint8Array(3);
		const steps = [
			() => put({ checkpoint: row("a"), writes: [first], blobs: [blob(id, "12345")] }),
			() => put({ checkpoint: row("a", { head }), writes: [shorter] }),
			() => copy("copy"),
			() => remove({ checkpoints: [key("a")] }),
			async () => storage.removeBlobs((await thread()).family, [id]),
			() => storage.removeThread("copy"),
			() => storage.removeThread("thread"),
		];
		for (const step of steps) {
			await step();
			await storage.totals();
		}
	});
}

async function putThreads({ put }: StorageScene, threads: Record<string, number>): Promise<void> {
	for (const [threadId, now] of Object.entries(threads)) await put({ checkpoint: row("1", { threadId }), now });
}

async function namesOf(storage: Storage, after?: Place): Promise<string[]> {
	return (await storage.listThreads(100, after)).map(({ threadId }) => threadId);
}
