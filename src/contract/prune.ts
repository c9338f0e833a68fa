import assert from "node:assert/strict";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { assertRejects, assertStillWorks, assertSurvivorsUnchanged, readThread } from "./asserts.ts";
import { deltaDraft, deltaWrites, putDeltaChain } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import { TASK } from "./thread.ts";

/** prune: what is kept reads exactly as before. */
export function pruneRules(test: RuleTest): void {
	test("M-3: the kept checkpoint has its values, writes and delta history, and no parent that is gone", async ({
		saver,
		thread,
	}) => {
		const ids = await putDeltaChain(thread(), 6, [1]);
		const list = Array.from({ length: 30 }, (_, n) => `item ${n}`);
		const head = await thread().put({
			parent: ids[5],
			...deltaDraft(6, { values: { list }, versions: { log: 7, list: 1 } }),
		});
		await thread().write(head, [
			["__interrupt__", "sure?"],
			["log", "pending"],
		]);
		const before = await readThread(saver, "thread", ["log", "list"]);
		await saver.prune(["thread"]);
		const after = await readThread(saver, "thread", ["log", "list"]);
		assert.deepEqual(
			after.map(({ id }) => id),
			[head],
		);
		assertSurvivorsUnchanged(before, after);
	});

	test("M-3: prune, put on and prune again loses nothing of a delta channel", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 4);
		for (let n = 4; n < 16; n++) {
			await saver.prune(["thread"]);
			const id = await thread().put({ parent: ids.at(-1), ...deltaDraft(n) });
			await thread().write(id, [["log", `write ${n}`]], `task ${n}`);
			assert.deepEqual(await thread().replay(id, "log"), { writes: deltaWrites(0, n) });
			ids.push(id);
		}
		await saver.prune(["thread"]);
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(ids.at(-1) as string, "log"), { writes: deltaWrites(0, 15) });
	});

	test("M-3: a plain value is still the seed after its checkpoint was pruned", async ({ saver, thread }) => {
		const root = await thread().put({ values: { log: ["plain"] }, versions: { log: 1 } });
		await thread().write(root, [["log", "a"]]);
		const head = await thread().put({ parent: root, ...deltaDraft(1) });
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(head, "log"), { writes: ["a"], seed: ["plain"] });
	});

	test("M-3: a later snapshot stands before what prune set aside", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		await saver.prune(["thread"]);
		const values = { log: new DeltaSnapshot(["all"]) };
		const snapshot = await thread().put({ parent: ids[2], ...deltaDraft(3, { values }) });
		const head = await thread().put({ parent: snapshot, ...deltaDraft(4) });
		const { seed, writes } = await thread().replay(head, "log");
		assert.deepEqual([(seed as DeltaSnapshot).value, writes], [["all"], []]);
	});

	test("M-3: a fork from the kept checkpoint has its history too", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 4);
		const kept = ids[3] as string;
		await saver.prune(["thread"]);
		const fork = await thread().put({
			parent: kept,
			...deltaDraft(4, { source: "fork", versions: { log: 4 }, newVersions: {} }),
		});
		const next = await thread().put({ parent: kept, ...deltaDraft(4) });
		assert.deepEqual(await thread().replay(fork, "log"), { writes: deltaWrites(0, 3) });
		assert.deepEqual(await thread().replay(next, "log"), { writes: deltaWrites(0, 4) });
	});

	test("M-3: each branch that is kept has its own delta history", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 5);
		const fork = await thread().put({
			parent: ids[1],
			...deltaDraft(2, { source: "fork", versions: { log: 2 }, newVersions: {} }),
		});
		await thread().write(fork, [["log", "of the fork"]]);
		const next = await thread().put({ parent: fork, ...deltaDraft(3) });
		const before = await readThread(saver, "thread", ["log"]);
		await saver.prune(["thread"], { keepLast: 4 });
		const after = await readThread(saver, "thread", ["log"]);
		assert.deepEqual(
			after.map(({ id }) => id),
			[next, fork, ids[4], ids[3]],
		);
		assertSurvivorsUnchanged(before, after);
	});

	test("M-4: an update without counters keeps the delta channels that its ancestors count", async ({
		saver,
		thread,
	}) => {
		const ids = await putDeltaChain(thread(), 4);
		const draft = { source: "update" as const, values: {}, versions: { log: 5 }, metadata: { step: 4 } };
		const update = await thread().put({ parent: ids[3], ...draft });
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(update, "log"), { writes: deltaWrites(0, 4) });
	});

	test("M-4: a channel with a version and writes but no counter keeps its history", async ({ saver, thread }) => {
		const ids = await thread().chain(4, (n) => ({ values: {}, versions: { log: n + 1 } }));
		for (const [n, id] of ids.entries()) await thread().write(id, [["log", n]]);
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(ids[3] as string, "log"), { writes: [0, 1, 2] });
	});

	test("M-4: a channel with a counter but no version keeps its history", async ({ saver, thread }) => {
		const metadata = { counters_since_delta_snapshot: { log: [1, 1] } };
		const ids = await thread().chain(3, () => ({ values: {}, versions: {}, metadata }));
		for (const [n, id] of ids.entries()) await thread().write(id, [["log", n]]);
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(ids[2] as string, "log"), { writes: [0, 1] });
	});

	test("M-6: interrupts stay to be resumed, in every namespace", async ({ saver, thread }) => {
		for (const ns of ["", "child:1"]) {
			const ids = await thread("thread", ns).chain(3);
			await thread("thread", ns).write(ids[2] as string, [
				["__interrupt__", ns],
				["__resume__", [ns]],
			]);
		}
		await saver.prune(["thread"]);
		for (const ns of ["", "child:1"])
			assert.deepEqual(await thread("thread", ns).pending(), [
				[TASK, "__resume__", [ns]],
				[TASK, "__interrupt__", ns],
			]);
	});

	test("M-6: writes that came before their checkpoint stay", async ({ saver, thread, nextId }) => {
		const ids = await thread().chain(3);
		const later = nextId();
		await thread().write(later, [["a", "early"]]);
		await saver.prune(["thread"]);
		await thread().put({ id: later, parent: ids[2] });
		assert.deepEqual(await thread().pending(later), [[TASK, "a", "early"]]);
	});

	test("M-7: metadata that names pruned checkpoints stays as it is", async ({ saver, thread }) => {
		const ids = await thread().chain(3);
		const metadata = { parents: { "": ids[0] } };
		const sub = await thread("thread", "child:1").put({ metadata });
		await saver.prune(["thread"]);
		assert.deepEqual((await thread("thread", "child:1").read(sub)).metadata?.parents, metadata.parents);
	});

	for (const keepLast of [1, 2, 5, 9, 10, 11, 1000]) {
		test(`PRUNE-KEEP: keepLast ${keepLast} keeps the newest of each namespace`, async ({ saver, thread }) => {
			const spaces = ["", "child:1"];
			const chains = new Map<string, string[]>();
			for (const ns of spaces)
				chains.set(ns, await thread("thread", ns).chain(10, (n) => ({ values: { list: Array(n * 9).fill(`${n}`) } })));
			const before = await readThread(saver, "thread", ["log"]);
			const removed = await saver.prune(["thread"], { keepLast });
			for (const ns of spaces)
				assert.deepEqual(await thread("thread", ns).ids(), chains.get(ns)?.slice(-keepLast).reverse());
			assert.equal(removed.checkpoints, 2 * Math.max(0, 10 - keepLast));
			assertSurvivorsUnchanged(before, await readThread(saver, "thread", ["log"]));
		});
	}

	test("PRUNE-KEEP: links between kept checkpoints stay", async ({ saver, thread }) => {
		const ids = await thread().chain(6);
		await saver.prune(["thread"], { strategy: "keep_latest", keepLast: 3 });
		assert.equal(await thread().parentOf(ids[5] as string), ids[4]);
		assert.equal(await thread().parentOf(ids[4] as string), ids[3]);
		assert.equal(await thread().parentOf(ids[3] as string), undefined);
	});

	test("PRUNE-COUNT: prune says what it removed", async ({ saver, thread }) => {
		const ids = await thread().chain(5, (n) => ({ values: { text: `${n}`.repeat(3000) } }));
		for (const id of ids)
			await thread().write(id, [
				["a", 1],
				["b", 2],
			]);
		const before = await saver.stats();
		const removed = await saver.prune(["thread", "thread", "unknown"]);
		const after = await saver.stats();
		assert.deepEqual([removed.checkpoints, removed.writes], [4, 8]);
		assert.equal(removed.blobs, before.blobs.whole + before.blobs.patched - after.blobs.whole - after.blobs.patched);
		assert.ok(removed.blobs >= 4 && removed.bytes > 0);
		assert.deepEqual([after.checkpoints, after.writes], [1, 2]);
		assert.deepEqual(await saver.prune(["thread"]), { checkpoints: 0, writes: 0, blobs: 0, bytes: 0 });
	});

	test("PRUNE-DELETE: strategy delete removes all of the listed threads and nothing else", async ({
		saver,
		thread,
		nextId,
	}) => {
		for (const threadId of ["a", "ab", "b"]) for (const ns of ["", "child:1"]) await thread(threadId, ns).chain(3);
		await thread("a").write(nextId(), [["a", "orphan"]]);
		const before = await readThread(saver, "ab");
		const removed = await saver.prune(["a", "b"], { strategy: "delete" });
		assert.deepEqual([removed.checkpoints, removed.writes], [12, 1]);
		for (const threadId of ["a", "b"]) assert.deepEqual(await readThread(saver, threadId), []);
		assert.deepEqual(await readThread(saver, "ab"), before);
	});

	for (const options of [
		{ strategy: "keep_some" },
		{ strategy: "" },
		{ strategy: null },
		{ strategy: "constructor" },
		{ keepLast: 0 },
		{ keepLast: -1 },
		{ keepLast: 1.5 },
		{ keepLast: Number.NaN },
		{ keepLast: "2" },
		{ keep: 2 },
	]) {
		test(`PRUNE-OPTION: ${JSON.stringify(options)} is refused and nothing is removed`, async ({ saver, thread }) => {
			const ids = await thread().chain(3);
			await assertRejects(() => saver.prune(["thread"], options as never), "INVALID_OPTION");
			assert.deepEqual(await thread().ids(), ids.reverse());
			await assertStillWorks(thread());
		});
	}
}
