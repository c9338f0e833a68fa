import assert from "node:assert/strict";
import { assertRejects } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { ContractSaver } from "./types.ts";

/** Long enough for the clock to move on. */
const tick = () => new Promise((resolve) => setTimeout(resolve, 5));

/** listThreads: newest first, page by page. */
export function listThreadsRules(test: RuleTest): void {
	test("THREADS-EMPTY: without a thread the list is empty", async ({ saver }) => {
		assert.deepEqual(await saver.listThreads(), { threads: [], next: undefined });
	});

	test("THREADS-ORDER: the thread with the newest checkpoint comes first", async ({ saver, thread }) => {
		for (const threadId of ["b", "c", "a"]) {
			await thread(threadId).put();
			await tick();
		}
		assert.deepEqual(await threadIds(saver), ["a", "c", "b"]);
		await thread("c", "child:1").put();
		assert.deepEqual(await threadIds(saver), ["c", "a", "b"]);
	});

	test("THREADS-INFO: a thread is listed with its number of checkpoints, head and times", async ({ saver, thread }) => {
		const ids = await thread().chain(3);
		await thread("thread", "child:1").chain(2);
		const first = (await saver.listThreads()).threads[0];
		assert.deepEqual([first?.threadId, first?.checkpoints, first?.head], ["thread", 5, ids[2]]);
		assert.ok(first?.createdAt instanceof Date && first.updatedAt instanceof Date);
		assert.ok(first.createdAt <= first.updatedAt);
		await tick();
		const next = await thread().put({ parent: ids[2] });
		const second = (await saver.listThreads()).threads[0];
		assert.deepEqual([second?.checkpoints, second?.head], [6, next]);
		assert.deepEqual(second?.createdAt, first.createdAt);
		assert.ok((second?.updatedAt as Date) > first.updatedAt);
	});

	test("THREADS-INFO: getThread gives one thread as it is listed", async ({ saver, thread }) => {
		await thread("a").chain(2);
		await thread("ab", "child:1").put();
		await thread("written").write("never stored", [["channel", 1]]);
		for (const listed of (await saver.listThreads()).threads)
			assert.deepEqual(await saver.getThread(listed.threadId), listed);
		assert.equal((await saver.listThreads()).threads.length, 3);
		assert.equal(await saver.getThread("b"), undefined);
	});

	test("THREADS-INFO: the head is the greatest id of the root namespace", async ({ saver, thread, nextId }) => {
		const [low, high] = [nextId(), nextId()];
		await thread().put({ id: high });
		await thread().put({ id: low });
		await thread("thread", "child:1").put();
		await thread("nested", "child:1").put();
		const heads = Object.fromEntries((await saver.listThreads()).threads.map(({ threadId, head }) => [threadId, head]));
		assert.deepEqual(heads, { thread: high, nested: undefined });
	});

	test("THREADS-INFO: a repeated put counts once", async ({ saver, thread }) => {
		const id = await thread().put();
		for (let n = 0; n < 3; n++) await thread().put({ id, parent: id });
		assert.equal((await saver.listThreads()).threads[0]?.checkpoints, 1);
	});

	test("THREADS-INFO: counts and heads follow copies and deletions", async ({ saver, thread }) => {
		const info = async (threadId: string) => {
			const found = (await saver.listThreads()).threads.find((one) => one.threadId === threadId);
			return found && [found.checkpoints, found.head];
		};
		const ids = await thread().chain(5, (n) => ({ values: { n }, metadata: { run_id: n === 4 ? "last" : "other" } }));
		await saver.copyThread("thread", "copy");
		await saver.copyThread("thread", "part", { upTo: ids[1] as string });
		await saver.deleteForRuns(["last"]);
		assert.deepEqual(await info("thread"), [4, ids[3]]);
		assert.deepEqual(await info("copy"), [4, ids[3]]);
		assert.deepEqual(await info("part"), [2, ids[1]]);
		await saver.prune(["copy"], { keepLast: 2 });
		assert.deepEqual(await info("copy"), [2, ids[3]]);
		await saver.prune(["copy"], { strategy: "delete" });
		await saver.deleteThread("part");
		assert.deepEqual(await threadIds(saver), ["thread"]);
		await saver.deleteForRuns(["other"]);
		assert.deepEqual(await threadIds(saver), []);
	});

	for (const limit of [1, 2, 5, 7, 24, 25, 26, 1000, 2 ** 31, 2 ** 53, 1e20]) {
		test(`THREADS-PAGE: pages of ${limit} give each of 25 threads once`, async ({ saver, thread }) => {
			for (let n = 0; n < 25; n++) await thread(`thread ${n}`).put();
			const pages = await allPages(saver, limit);
			const seen = pages.flat();
			assert.deepEqual(seen, await threadIds(saver));
			assert.equal(new Set(seen).size, 25);
			assert.equal(pages.length, Math.ceil(25 / limit));
			for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
		});
	}

	test("THREADS-PAGE: the times of one page never rise", async ({ saver, thread }) => {
		for (let n = 0; n < 20; n++) {
			await thread(`thread ${(n * 7) % 13}`).put();
			if (n % 5 === 0) await tick();
		}
		const times = (await saver.listThreads({ limit: 100 })).threads.map(({ updatedAt }) => updatedAt.getTime());
		assert.equal(times.length, 13);
		assert.deepEqual(
			times,
			[...times].sort((a, b) => b - a),
		);
	});

	test("THREADS-PAGE: a thread deleted between two pages does not disturb the rest", async ({ saver, thread }) => {
		for (let n = 0; n < 9; n++) await thread(`thread ${n}`).put();
		const all = await threadIds(saver);
		const first = await saver.listThreads({ limit: 3 });
		await saver.deleteThread(all[2] as string);
		await saver.deleteThread(all[4] as string);
		const rest = await saver.listThreads({ limit: 100, after: first.next });
		assert.deepEqual(
			rest.threads.map(({ threadId }) => threadId),
			[all[3], ...all.slice(5)],
		);
	});

	test("THREADS-PAGE: any id can be listed and paged past", async ({ saver, thread }) => {
		const strange = [
			"__proto__",
			"it's",
			'"',
			"%",
			"a\u0000b",
			"🧵",
			"a,b",
			"a|b",
			"a:b",
			"",
			" ",
			"x".repeat(10_000),
		].filter((id) => id !== "");
		for (const threadId of strange) await thread(threadId).put();
		assert.deepEqual((await allPages(saver, 1)).flat().sort(), [...strange].sort());
	});

	test("THREADS-PAGE: limits and cursors that make no sense are refused", async ({ saver, thread }) => {
		await thread().put();
		for (const options of [
			{ limit: -1 },
			{ limit: 1.5 },
			{ limit: "3" },
			{ after: "no cursor" },
			{ after: 5 },
		] as never[])
			await assertRejects(() => saver.listThreads(options), "INVALID_OPTION");
		assert.deepEqual(await threadIds(saver), ["thread"]);
	});
}

async function threadIds(saver: ContractSaver): Promise<string[]> {
	return (await saver.listThreads()).threads.map(({ threadId }) => threadId);
}

async function allPages(saver: ContractSaver, limit: number): Promise<string[][]> {
	const pages: string[][] = [];
	let after: string | undefined;
	do {
		const page = await saver.listThreads({ limit, after });
		pages.push(page.threads.map(({ threadId }) => threadId));
		after = page.next;
	} while (after !== undefined && pages.length < 100);
	return pages;
}
