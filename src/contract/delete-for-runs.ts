import assert from "node:assert/strict";
import type { RunnableConfig } from "@langchain/core/runnables";
import { assertSurvivorsUnchanged, readThread } from "./asserts.ts";
import { deltaDraft, deltaWrites, putDeltaChain } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import { TASK } from "./thread.ts";

const run = (runId: string): RunnableConfig => ({ configurable: { run_id: runId } });

/** deleteForRuns: what other runs stored reads exactly as before. */
export function deleteForRunsRules(test: RuleTest): void {
	test("M-5: a surviving child is linked to its nearest surviving ancestor", async ({ saver, thread }) => {
		const ids = await thread().chain(6, (n) => ({
			values: { n },
			metadata: { run_id: [1, 4].includes(n) ? "keep" : "delete" },
		}));
		const removed = await saver.deleteForRuns(["delete"]);
		assert.equal(removed.checkpoints, 4);
		assert.deepEqual(await thread().ids(), [ids[4], ids[1]]);
		assert.equal(await thread().parentOf(ids[4] as string), ids[1]);
		assert.equal(await thread().parentOf(ids[1] as string), undefined);
	});

	test("M-5: a surviving child has its values, writes and delta history", async ({ saver, thread }) => {
		const ids: string[] = [];
		for (let n = 0; n < 9; n++) {
			const config = run(`run ${Math.floor(n / 3)}`);
			const values = { list: Array.from({ length: n + 1 }, (_, i) => `item ${i} of the list`) };
			const draft = deltaDraft(n, { values, versions: { log: n + 1, list: n + 1 }, config });
			ids.push(await thread().put({ parent: ids.at(-1), ...draft }));
			await thread().write(ids[n] as string, [["log", `write ${n}`]], `task ${n}`, config);
		}
		const before = await readThread(saver, "thread", ["log", "list"]);
		await saver.deleteForRuns(["run 1"]);
		const after = await readThread(saver, "thread", ["log", "list"]);
		assert.deepEqual(
			after.map(({ id }) => id),
			[ids[8], ids[7], ids[6], ids[2], ids[1], ids[0]],
		);
		assertSurvivorsUnchanged(before, after);
		assert.equal(await thread().parentOf(ids[6] as string), ids[2]);
		assert.deepEqual(await thread().replay(ids[8] as string, "log"), { writes: deltaWrites(0, 8) });
	});

	test("M-5: with threadIds, a run that was copied is deleted only there", async ({ saver, thread }) => {
		const ids = await thread("main").chain(3, (n) => ({ values: { n }, config: run(`run ${n}`) }));
		await saver.copyThread("main", "copy");
		const before = await readThread(saver, "copy");
		const removed = await saver.deleteForRuns(["run 2"], { threadIds: ["main", "elsewhere"] });
		assert.equal(removed.checkpoints, 1);
		assert.deepEqual(await thread("main").ids(), [ids[1], ids[0]]);
		assert.deepEqual(await readThread(saver, "copy"), before);
		assert.equal((await saver.deleteForRuns(["run 1"], { threadIds: [] })).checkpoints, 0);
	});

	test("M-5: the thread goes on after a run in its middle was deleted", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const middle = await thread().put({ parent: ids[2], ...deltaDraft(3, { metadata: { run_id: "run" } }) });
		await thread().write(middle, [["log", "write 3"]], "task 3");
		const last = await thread().put({ parent: middle, ...deltaDraft(4) });
		await thread().write(last, [["log", "write 4"]], "task 4");
		await saver.deleteForRuns(["run"]);
		const next = await thread().put({ parent: last, ...deltaDraft(5) });
		assert.deepEqual(await thread().replay(next, "log"), { writes: deltaWrites(0, 5) });
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().replay(next, "log"), { writes: deltaWrites(0, 5) });
	});

	test("M-5: without the last run the thread is back at its previous head", async ({ saver, thread }) => {
		const first = await thread().put({ values: { a: 1 }, config: run("one") });
		await thread().write(first, [["a", "of the first run"]], "task 1", run("one"));
		const before = await readThread(saver, "thread", ["a"]);
		const stats = await saver.stats();
		await thread().write(first, [["a", "of the second run"]], "task 2", run("two"));
		await thread().write(first, [["a", "also"]], "task 3", { metadata: { run_id: "two" } });
		const second = await thread().put({ parent: first, values: { a: 2 }, config: run("two") });
		await thread().write(second, [["__interrupt__", "?"]], TASK, run("two"));
		const removed = await saver.deleteForRuns(["two"]);
		assert.deepEqual([removed.checkpoints, removed.writes], [1, 3]);
		assert.deepEqual(await readThread(saver, "thread", ["a"]), before);
		assert.deepEqual(await saver.stats(), stats);
	});

	test("M-5: writes that a deleted run put on a checkpoint of another run are removed", async ({ saver, thread }) => {
		const id = await thread().put({ config: run("one") });
		await thread().write(id, [["a", "kept"]], "task 1", run("one"));
		await thread().write(id, [["a", "also kept"]], "task 2");
		await thread().write(id, [["a", "removed"]], "task 3", run("two"));
		await saver.deleteForRuns(["two"]);
		assert.deepEqual(await thread().pending(id), [
			["task 1", "a", "kept"],
			["task 2", "a", "also kept"],
		]);
		await thread().write(id, [["a", "again"]], "task 3", run("three"));
		assert.equal((await thread().pending(id)).length, 3);
	});

	test("M-5: a survivor's delta history keeps what a deleted run wrote", async ({ saver, thread }) => {
		const root = await thread().put(deltaDraft(0, { config: run("one") }));
		await thread().write(root, [["log", "a"]], "task 1", run("two"));
		const middle = await thread().put({ parent: root, ...deltaDraft(1, { config: run("two") }) });
		await thread().write(middle, [["log", "b"]], "task 2", run("three"));
		const last = await thread().put({ parent: middle, ...deltaDraft(2, { config: run("three") }) });
		await saver.deleteForRuns(["two"]);
		assert.deepEqual(await thread().replay(last, "log"), { writes: ["a", "b"] });
		assert.deepEqual(await thread().pending(root), []);
	});

	test("M-5: deleting a branch leaves the others", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread(), 4);
		const draft = deltaDraft(2, { source: "fork", versions: { log: 2 }, newVersions: {}, config: run("fork") });
		const fork = await thread().put({ parent: ids[1], ...draft });
		await thread().write(fork, [["log", "of the fork"]], TASK, run("fork"));
		await thread().put({ parent: fork, ...deltaDraft(3, { config: run("fork") }) });
		await saver.deleteForRuns(["fork"]);
		assert.deepEqual(await thread().ids(), [...ids].reverse());
		for (const [n, id] of ids.entries())
			assert.deepEqual(await thread().replay(id, "log"), { writes: deltaWrites(0, n) });
	});

	test("M-6: the pending writes of survivors stay", async ({ saver, thread }) => {
		const first = await thread().put({ config: run("one") });
		const second = await thread().put({ parent: first, config: run("two") });
		await thread().write(second, [["__interrupt__", "?"]], TASK, run("two"));
		await saver.deleteForRuns(["one"]);
		assert.deepEqual(await thread().pending(second), [[TASK, "__interrupt__", "?"]]);
	});

	test("RUNS-SCOPE: a run is deleted on every thread and in every namespace, and only exactly that run", async ({
		saver,
		thread,
	}) => {
		for (const threadId of ["a", "b"])
			for (const ns of ["", "child:1"])
				for (const runId of ["run", "run1", "Run", "run%", ""])
					await thread(threadId, ns).put({ values: { runId }, metadata: { run_id: runId } });
		const removed = await saver.deleteForRuns(["run", "unknown"]);
		assert.equal(removed.checkpoints, 4);
		for (const threadId of ["a", "b"])
			for (const ns of ["", "child:1"]) assert.equal((await thread(threadId, ns).ids()).length, 4);
	});

	test("RUNS-SCOPE: checkpoints without a run id are never deleted", async ({ saver, thread }) => {
		const id = await thread().put();
		for (const runIds of [[], [""], ["undefined"], ["null"]]) await saver.deleteForRuns(runIds);
		assert.deepEqual(await thread().ids(), [id]);
	});

	test("RUNS-SCOPE: ids with quotes, percent signs and NUL are taken literally", async ({ saver, thread }) => {
		const strange = ["it's", '"x"', "%", "_", "a\u0000b", "__proto__", "🧵"];
		for (const runId of strange) await thread(runId).put({ config: run(runId) });
		for (const [n, runId] of strange.entries()) {
			assert.equal((await saver.deleteForRuns([runId])).checkpoints, 1);
			assert.equal((await saver.stats()).checkpoints, strange.length - n - 1);
		}
	});

	test("RUNS-SCOPE: many run ids can be named at once", async ({ saver, thread }) => {
		const ids = await thread().chain(20, (n) => ({ values: { n }, config: run(`run ${n}`) }));
		const runIds = Array.from({ length: 3000 }, (_, n) => `run ${n + 5}`);
		assert.equal((await saver.deleteForRuns([...runIds, ...runIds])).checkpoints, 15);
		assert.deepEqual(await thread().ids(), ids.slice(0, 5).reverse());
	});

	test("RUNS-SCOPE: orphaned writes of a run are deleted with it", async ({ saver, thread, nextId }) => {
		const id = nextId();
		await thread().write(id, [["a", 1]], TASK, run("run"));
		await saver.deleteForRuns(["run"]);
		await thread().put({ id });
		assert.deepEqual(await thread().pending(id), []);
	});
}
