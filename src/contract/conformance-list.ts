import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect, TASK } from "./thread.ts";

/** What Python's conformance suite asks of `list`, under its names. */
export function conformanceListRules(test: RuleTest): void {
	test("list/all: all checkpoints of a thread are listed", async (scene) => {
		await putFour(scene);
		assert.equal((await scene.thread().ids()).length, 4);
	});

	test("list/by_thread: no other thread is listed", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread("unknown").ids(), []);
		assert.equal((await scene.thread().ids()).length, ids.length);
	});

	for (const name of ["by_namespace", "multiple_namespaces"]) {
		test(`list/${name}: a namespace lists its own checkpoints`, async ({ thread }) => {
			const ids = new Map<string, string>();
			for (const ns of ["", "child:1", "child:2"]) ids.set(ns, await thread("thread", ns).put());
			for (const [ns, id] of ids) assert.deepEqual(await thread("thread", ns).ids(), [id]);
		});
	}

	test("list/ordering: the newest comes first", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread().ids(), ids.reverse());
	});

	test("list/metadata_filter_single_key: by source", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread().ids({ filter: { source: "input" } }), [ids[2], ids[0]]);
	});

	test("list/metadata_filter_step: by step", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread().ids({ filter: { step: 1 } }), [ids[1]]);
	});

	test("list/combined_thread_and_filter: within one thread", async (scene) => {
		const ids = await putFour(scene);
		await scene.thread("other").put({ source: "loop" });
		assert.deepEqual(await scene.thread().ids({ filter: { source: "loop" } }), [ids[3], ids[1]]);
	});

	test("list/metadata_filter_multiple_keys: all keys must match", async ({ thread }) => {
		const drafts = [
			["input", 1],
			["loop", 1],
			["input", 2],
		] as const;
		const ids: string[] = [];
		for (const [source, step] of drafts) ids.push(await thread().put({ source, metadata: { step } }));
		assert.deepEqual(await thread().ids({ filter: { source: "input", step: 2 } }), [ids[2]]);
	});

	test("list/metadata_filter_no_match: nothing matches", async (scene) => {
		await putFour(scene);
		assert.deepEqual(await scene.thread().ids({ filter: { source: "update", step: 99 } }), []);
	});

	test("list/metadata_custom_keys: by a key of the user's own", async ({ saver, thread }) => {
		await thread().put({ metadata: { score: 42, run_id: "run-abc" } });
		await thread().put({ metadata: { score: 99, run_id: "run-xyz" } });
		const [found, ...others] = await collect(saver.list(thread().config(), { filter: { score: 42 } }));
		assert.deepEqual(found?.metadata, { source: "loop", step: -1, parents: {}, score: 42, run_id: "run-abc" });
		assert.deepEqual(others, []);
		assert.equal((await thread().ids({ filter: { run_id: "run-xyz" } })).length, 1);
	});

	test("list/before: only what is older than the cursor", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread().ids({ before: scene.thread().config(ids[2]) }), [ids[1], ids[0]]);
	});

	test("list/limit: at most so many", async (scene) => {
		await putFour(scene);
		for (const limit of [1, 2]) assert.equal((await scene.thread().ids({ limit })).length, limit);
	});

	test("list/limit_plus_before: the next older one", async (scene) => {
		const ids = await putFour(scene);
		assert.deepEqual(await scene.thread().ids({ before: scene.thread().config(ids[3]), limit: 1 }), [ids[2]]);
	});

	test("list/empty_result: an unknown thread gives nothing", async ({ thread }) => {
		assert.deepEqual(await thread("unknown").ids({ filter: { source: "nonexistent" } }), []);
	});

	test("list/includes_pending_writes: a listed checkpoint has its writes", async ({ saver, thread }) => {
		const id = await thread().put();
		await thread().write(id, [["ch", "val"]]);
		const [listed] = await collect(saver.list(thread().config()));
		assert.deepEqual(listed?.pendingWrites, [[TASK, "ch", "val"]]);
	});
}

async function putFour({ thread }: Scene): Promise<string[]> {
	return thread().chain(4, (n) => ({ source: n % 2 === 0 ? "input" : "loop", metadata: { step: n } }));
}
