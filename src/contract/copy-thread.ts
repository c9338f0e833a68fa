import assert from "node:assert/strict";
import { assertRejects, assertStillWorks, assertSurvivorsUnchanged, readThread } from "./asserts.ts";
import { deltaWrites, putDeltaChain } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect } from "./thread.ts";

const CHANNELS = ["log", "list"];

/** copyThread: all of a thread, under the same checkpoint ids, for itself. */
export function copyThreadRules(test: RuleTest): void {
	test("M-1: a copy has every checkpoint, write and parent link under unchanged ids", async (scene) => {
		const { copied } = await putSource(scene);
		const source = await readThread(scene.saver, "source", CHANNELS);
		assert.deepEqual(await scene.saver.copyThread("source", "copy"), copied);
		assert.deepEqual(await readThread(scene.saver, "copy", CHANNELS), source);
		assert.deepEqual(await readThread(scene.saver, "source", CHANNELS), source);
	});

	test("M-1: a copy has the writes of checkpoints that were not put yet", async ({ saver, thread, nextId }) => {
		const id = await thread("source").put();
		const later = nextId();
		await thread("source").write(later, [["a", "early"]]);
		await saver.copyThread("source", "copy");
		await thread("copy").put({ id: later, parent: id });
		assert.deepEqual(
			(await thread("copy").pending(later)).map(([, , value]) => value),
			["early"],
		);
	});

	test("M-1: a copy remembers the run ids", async ({ saver, thread }) => {
		const [first] = await thread("source").chain(2, (n) => ({ config: { configurable: { run_id: `run ${n}` } } }));
		await saver.copyThread("source", "copy");
		await saver.deleteForRuns(["run 1"]);
		assert.deepEqual(await thread("copy").ids(), [first]);
		assert.deepEqual(await thread("source").ids(), [first]);
	});

	test("M-1: a copy of a pruned thread has its delta history", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread("source"), 6, [1]);
		const expected = await thread("source").replay(ids[5] as string, "log");
		await saver.prune(["source"]);
		await saver.copyThread("source", "copy");
		await saver.deleteThread("source");
		assert.deepEqual(await thread("copy").replay(ids[5] as string, "log"), expected);
	});

	test("M-2: a copy stays as it was when the source is deleted, pruned or written to", async (scene) => {
		await putSource(scene);
		const source = await readThread(scene.saver, "source", CHANNELS);
		for (const copy of ["copy 1", "copy 2", "copy 3"]) await scene.saver.copyThread("source", copy);
		const head = await scene.thread("source").read();
		await scene.thread("source").put({ parent: head.checkpoint.id, values: { list: ["new"] } });
		await scene.saver.prune(["source"]);
		await scene.saver.deleteThread("copy 2");
		assert.deepEqual(await readThread(scene.saver, "copy 1", CHANNELS), source);
		await scene.saver.deleteThread("source");
		assert.deepEqual(await readThread(scene.saver, "copy 1", CHANNELS), source);
		assert.deepEqual(await readThread(await scene.reopen(), "copy 3", CHANNELS), source);
	});

	test("M-2: the source stays as it was when the copy is written to, pruned or deleted", async (scene) => {
		await putSource(scene);
		const source = await readThread(scene.saver, "source", CHANNELS);
		await scene.saver.copyThread("source", "copy");
		const copy = scene.thread("copy");
		const head = (await copy.read()).checkpoint.id;
		const next = await copy.put({ parent: head, values: { list: ["of the copy"] } });
		await copy.write(next, [["list", "x"]]);
		await copy.put({ id: head, parent: head, values: { list: ["replaced in the copy"] } });
		assert.deepEqual(await copy.values(next), { list: ["of the copy"] });
		await scene.saver.prune(["copy"]);
		assert.deepEqual(await readThread(scene.saver, "source", CHANNELS), source);
		await scene.saver.deleteThread("copy");
		assert.deepEqual(await readThread(scene.saver, "source", CHANNELS), source);
	});

	test("M-2: a copy shares what is stored, and the last of the two takes it along", async (scene) => {
		await putSource(scene);
		const before = await scene.saver.stats();
		await scene.saver.copyThread("source", "copy");
		const after = await scene.saver.stats();
		assert.deepEqual([after.blobs, after.bytes.blobs], [before.blobs, before.bytes.blobs]);
		assert.equal(after.checkpoints, before.checkpoints * 2);
		await scene.saver.deleteThread("source");
		assert.deepEqual((await scene.saver.stats()).blobs, before.blobs);
		await scene.saver.deleteThread("copy");
		assert.deepEqual((await scene.saver.stats()).blobs, { whole: 0, patched: 0 });
	});

	test("COPY-UPTO: a copy up to a checkpoint has it and its ancestors, and no branch beside them", async ({
		saver,
		thread,
	}) => {
		const source = thread("source");
		const ids = await source.chain(6, (n) => ({
			values: { list: Array.from({ length: n + 1 }, (_, i) => `item ${i}`) },
		}));
		const sibling = await source.put({ parent: ids[1], values: { list: ["sibling"] } });
		for (const id of [...ids, sibling]) await source.write(id, [["list", id]]);
		const before = await readThread(saver, "source", CHANNELS);
		assert.deepEqual(await saver.copyThread("source", "copy", { upTo: ids[3] as string }), {
			checkpoints: 4,
			writes: 4,
		});
		const copy = await readThread(saver, "copy", CHANNELS);
		assert.deepEqual(
			copy,
			before.filter(({ id }) => ids.slice(0, 4).includes(id)),
		);
		await saver.copyThread("source", "fork", { upTo: sibling });
		assert.deepEqual(await thread("fork").ids(), [sibling, ids[1], ids[0]]);
		assert.deepEqual(await thread("fork").values(), { list: ["sibling"] });
	});

	test("COPY-UPTO: delta history is that of the source", async ({ saver, thread }) => {
		const ids = await putDeltaChain(thread("source"), 6, [2]);
		await saver.copyThread("source", "copy", { upTo: ids[4] as string });
		await saver.deleteThread("source");
		const { writes } = await thread("copy").replay(ids[4] as string, "log");
		assert.deepEqual(writes, deltaWrites(2, 4));
	});

	test("COPY-UPTO: subgraph checkpoints come along with the root checkpoint they were made under", async ({
		saver,
		thread,
	}) => {
		const root = thread("source");
		const ids = await root.chain(3);
		const sub = (n: number) => ({ values: { n }, metadata: { parents: { "": ids[n] } } });
		const under = [
			await root.within("node:0").put(sub(0)),
			await root.within("node:1").put(sub(1)),
			await root.within("node:2").put(sub(2)),
		];
		await saver.copyThread("source", "copy", { upTo: ids[1] as string });
		assert.deepEqual(await thread("copy", "node:0").ids(), [under[0]]);
		assert.deepEqual(await thread("copy", "node:1").ids(), [under[1]]);
		assert.deepEqual(await thread("copy", "node:2").ids(), []);
	});

	test("COPY-UPTO: an unknown checkpoint is refused and nothing is copied", async ({ saver, thread, nextId }) => {
		await thread("source").chain(2);
		await assertRejects(() => saver.copyThread("source", "copy", { upTo: nextId() }), "NOT_FOUND");
		assert.deepEqual(await thread("copy").ids(), []);
		await assertStillWorks(thread("copy"));
	});

	test("COPY-LATEST: only the newest checkpoint of each namespace is copied, and reads as in the source", async (scene) => {
		await putSource(scene);
		const source = await readThread(scene.saver, "source", CHANNELS);
		const { checkpoints } = await scene.saver.copyThread("source", "copy", { latestOnly: true });
		const copy = await readThread(scene.saver, "copy", CHANNELS);
		assert.equal(checkpoints, 3);
		assert.deepEqual(copy.map(({ ns }) => ns).sort(), ["", "child:1", "child:1|inner:2"]);
		assertSurvivorsUnchanged(source, copy);
		for (const { ns, id } of copy) assert.equal(id, source.find((reading) => reading.ns === ns)?.id);
		await scene.saver.deleteThread("source");
		assert.deepEqual(await readThread(scene.saver, "copy", CHANNELS), copy);
	});

	test("COPY-TARGET: a target that has checkpoints is refused and left alone", async ({ saver, thread }) => {
		await thread("source").chain(2);
		const id = await thread("target").put({ values: { a: "mine" } });
		await assertRejects(() => saver.copyThread("source", "target"), "THREAD_EXISTS");
		await assertRejects(() => saver.copyThread("source", "target", { latestOnly: true }), "THREAD_EXISTS");
		assert.deepEqual(await thread("target").ids(), [id]);
		assert.deepEqual(await thread("target").values(), { a: "mine" });
		await thread("nested", "sub").put();
		await assertRejects(() => saver.copyThread("source", "nested"), "THREAD_EXISTS");
		await assertStillWorks(thread("target"));
	});

	test("COPY-TARGET: a thread can't be copied onto itself", async (scene) => {
		await putSource(scene);
		const before = await readThread(scene.saver, "source", CHANNELS);
		await assertRejects(() => scene.saver.copyThread("source", "source"), "INVALID_OPTION", "THREAD_EXISTS");
		assert.deepEqual(await readThread(scene.saver, "source", CHANNELS), before);
	});

	test("COPY-TARGET: a deleted thread can be copied to, and copied again", async ({ saver, thread }) => {
		const ids = await thread("source").chain(3);
		await saver.copyThread("source", "copy");
		await saver.deleteThread("copy");
		await saver.copyThread("source", "copy");
		await saver.copyThread("copy", "copy of the copy");
		await saver.deleteThread("source");
		await saver.deleteThread("copy");
		assert.deepEqual(await thread("copy of the copy").ids(), ids.reverse());
		assert.deepEqual(await thread("copy of the copy").values(), { step: 2 });
	});

	test("COPY-SOURCE: a source that does not exist gives an empty copy", async ({ saver, thread }) => {
		assert.deepEqual(await saver.copyThread("nowhere", "copy"), { checkpoints: 0, writes: 0 });
		assert.deepEqual(await collect(saver.list(thread("copy").config())), []);
	});

	test("COPY-OPTION: options that are unknown or exclude each other are refused", async ({ saver, thread }) => {
		const id = await thread("source").put();
		const wrong = [{ upTo: id, latestOnly: true }, { upTo: 5 }, { latestOnly: "yes" }, { upto: id }] as never[];
		for (const options of wrong)
			await assertRejects(() => saver.copyThread("source", "copy", options), "INVALID_OPTION");
		assert.deepEqual(await thread("copy").ids(), []);
	});
}

/** A thread with a fork, subgraphs, interrupts, delta channels and values that were stored as changes. */
async function putSource({ thread }: Scene): Promise<{ copied: { checkpoints: number; writes: number } }> {
	const root = thread("source");
	const ids = await putDeltaChain(root, 5, [1]);
	for (let n = 0; n < 4; n++) {
		const values = {
			list: Array.from({ length: n * 5 + 1 }, (_, i) => `item ${i} of a list that grows`),
			none: undefined,
		};
		ids.push(await root.put({ parent: ids.at(-1), values, versions: { list: n + 1, log: 6 } }));
	}
	const fork = await root.put({ parent: ids[2], values: { list: ["fork"] }, versions: { list: 1 }, source: "fork" });
	await root.write(
		fork,
		[
			["__interrupt__", { id: "i", value: "sure?" }],
			["list", "x"],
		],
		"task",
	);
	await root.within("child:1").chain(2);
	await root.within("child:1|inner:2").chain(2);
	return { copied: { checkpoints: 14, writes: 7 } };
}
