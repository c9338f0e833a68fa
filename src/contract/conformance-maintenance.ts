import assert from "node:assert/strict";
import { readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { TASK, type Thread } from "./thread.ts";

/** Every checkpoint with the same version, so that none can be found by it. */
const sameVersion = (n: number) => ({ values: { step: n }, versions: { step: 1 } });

/** What Python's conformance suite asks of `copy_thread`, under its names. */
export function conformanceCopyRules(test: RuleTest): void {
	test("copy_thread/basic: the target has as many checkpoints", async ({ saver, thread }) => {
		await thread("source").chain(3, sameVersion);
		await saver.copyThread("source", "target");
		assert.equal((await thread("target").ids()).length, 3);
	});

	test("copy_thread/all_checkpoints: every checkpoint has its values", async ({ saver, thread }) => {
		const ids = await thread("source").chain(4, sameVersion);
		await saver.copyThread("source", "target");
		for (const [n, id] of ids.entries()) assert.deepEqual(await thread("target").values(id), { step: n });
	});

	test("copy_thread/preserves_metadata: every checkpoint has its metadata", async ({ saver, thread }) => {
		const ids = await thread("source").chain(3, (n) => ({ ...sameVersion(n), metadata: { step: n, mark: `m${n}` } }));
		await saver.copyThread("source", "target");
		for (const id of ids)
			assert.deepEqual((await thread("target").read(id)).metadata, (await thread("source").read(id)).metadata);
	});

	test("copy_thread/preserves_namespaces: every namespace is copied", async ({ saver, thread }) => {
		for (const ns of ["", "child:1"]) await thread("source", ns).put();
		await saver.copyThread("source", "target");
		for (const ns of ["", "child:1"]) assert.equal((await thread("target", ns).ids()).length, 1);
	});

	test("copy_thread/preserves_writes: pending writes are copied", async ({ saver, thread }) => {
		const ids = await thread("source").chain(2, sameVersion);
		await thread("source").write(ids[1] as string, [["ch", "val"]]);
		await saver.copyThread("source", "target");
		assert.deepEqual(await thread("target").pending(), [[TASK, "ch", "val"]]);
	});

	test("copy_thread/preserves_ordering: ids and their order are the same", async ({ saver, thread }) => {
		const ids = await thread("source").chain(5, sameVersion);
		await saver.copyThread("source", "target");
		assert.deepEqual(await thread("target").ids(), ids.reverse());
	});

	test("copy_thread/source_unchanged: the source stays as it is", async ({ saver, thread }) => {
		await thread("source").chain(3, sameVersion);
		const before = await readThread(saver, "source");
		await saver.copyThread("source", "target");
		assert.deepEqual(await readThread(saver, "source"), before);
	});

	test("copy_thread/nonexistent_source: the target stays empty", async ({ saver, thread }) => {
		await saver.copyThread("nowhere", "target").catch(() => {});
		assert.deepEqual(await thread("target").ids(), []);
	});
}

/** What Python's conformance suite asks of `prune`, under its names. */
export function conformancePruneRules(test: RuleTest): void {
	test("prune/keep_latest_single_thread: the newest stays", async ({ saver, thread }) => {
		const ids = await thread().chain(4, sameVersion);
		await saver.prune(["thread"], { strategy: "keep_latest" });
		assert.deepEqual(await thread().ids(), [ids[3]]);
		assert.deepEqual(await thread().values(), { step: 3 });
	});

	test("prune/keep_latest_multiple_threads: the newest of each stays", async ({ saver, thread }) => {
		const heads = [(await thread("a").chain(3, sameVersion))[2], (await thread("b").chain(3, sameVersion))[2]];
		await saver.prune(["a", "b"], { strategy: "keep_latest" });
		assert.deepEqual([await thread("a").ids(), await thread("b").ids()], [[heads[0]], [heads[1]]]);
	});

	test("prune/keep_latest_across_namespaces: the newest of each namespace stays", async ({ saver, thread }) => {
		const heads = new Map<string, string | undefined>();
		for (const ns of ["", "child:1"]) heads.set(ns, (await thread("thread", ns).chain(3, sameVersion))[2]);
		await saver.prune(["thread"], { strategy: "keep_latest" });
		for (const [ns, head] of heads) assert.deepEqual(await thread("thread", ns).ids(), [head]);
	});

	test("prune/keep_latest_preserves_writes: its pending writes stay", async ({ saver, thread }) => {
		const ids = await thread().chain(3, sameVersion);
		await thread().write(ids[2] as string, [["ch", "val"]]);
		await saver.prune(["thread"], { strategy: "keep_latest" });
		assert.deepEqual(await thread().pending(), [[TASK, "ch", "val"]]);
	});

	test("prune/delete_all: strategy delete leaves nothing", async ({ saver, thread }) => {
		await thread().chain(3, sameVersion);
		await saver.prune(["thread"], { strategy: "delete" });
		assert.deepEqual(await thread().ids(), []);
	});

	test("prune/preserves_other_threads: a thread that is not listed stays", async ({ saver, thread }) => {
		await thread("pruned").chain(3, sameVersion);
		const ids = await thread("other").chain(3, sameVersion);
		await saver.prune(["pruned"]);
		assert.deepEqual(await thread("other").ids(), ids.reverse());
	});

	test("prune/empty_list_noop: no threads, no change", async ({ saver, thread }) => {
		await thread().chain(2);
		assert.equal((await saver.prune([])).checkpoints, 0);
		assert.equal((await thread().ids()).length, 2);
	});

	test("prune/nonexistent_noop: unknown threads are no error", async ({ saver, thread }) => {
		await thread().chain(2);
		assert.equal((await saver.prune(["unknown"])).checkpoints, 0);
		assert.equal((await thread().ids()).length, 2);
	});
}

/** What Python's conformance suite asks of `delete_for_runs`, under its names. */
export function conformanceRunsRules(test: RuleTest): void {
	test("delete_for_runs/single: one run goes, its child stays", async (scene) => {
		const ids = await putRuns(scene.thread());
		await scene.saver.deleteForRuns(["run 0"]);
		assert.deepEqual(await scene.thread().ids(), [ids[2], ids[1]]);
	});

	test("delete_for_runs/multiple: two of three go", async (scene) => {
		const ids = await putRuns(scene.thread());
		await scene.saver.deleteForRuns(["run 0", "run 1"]);
		assert.deepEqual(await scene.thread().ids(), [ids[2]]);
	});

	test("delete_for_runs/preserves_other_runs: the others stay as they are", async (scene) => {
		const ids = await putRuns(scene.thread());
		await scene.saver.deleteForRuns(["run 1"]);
		assert.deepEqual(await scene.thread().values(ids[0]), { step: 0 });
		assert.deepEqual(await scene.thread().values(ids[2]), { step: 2 });
	});

	test("delete_for_runs/removes_writes: what was removed reads as undefined", async (scene: Scene) => {
		const ids = await putRuns(scene.thread());
		await scene.thread().write(ids[1] as string, [["ch", "val"]]);
		await scene.saver.deleteForRuns(["run 1"]);
		assert.equal(await scene.thread().has(ids[1] as string), false);
		assert.equal((await scene.saver.stats()).writes, 0);
	});

	test("delete_for_runs/empty_list_noop: no runs, no change", async (scene) => {
		await putRuns(scene.thread());
		assert.equal((await scene.saver.deleteForRuns([])).checkpoints, 0);
		assert.equal((await scene.thread().ids()).length, 3);
	});

	test("delete_for_runs/nonexistent_noop: unknown runs are no error", async (scene) => {
		await putRuns(scene.thread());
		assert.equal((await scene.saver.deleteForRuns(["unknown"])).checkpoints, 0);
		assert.equal((await scene.thread().ids()).length, 3);
	});

	test("delete_for_runs/across_namespaces: a run goes in every namespace", async ({ saver, thread }) => {
		for (const ns of ["", "child:1"]) await thread("thread", ns).put({ metadata: { run_id: "run" } });
		await saver.deleteForRuns(["run"]);
		for (const ns of ["", "child:1"]) assert.deepEqual(await thread("thread", ns).ids(), []);
	});
}

async function putRuns(thread: Thread): Promise<string[]> {
	return thread.chain(3, (n) => ({ ...sameVersion(n), metadata: { step: n, run_id: `run ${n}` } }));
}
