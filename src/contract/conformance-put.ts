import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import { collect, TASK } from "./thread.ts";

const OTHER_TASK = "1b52a4a4-6b0c-5a83-8d27-3f5f4ec9d0a1";

/** What Python's conformance suite asks of `put`, under its names. */
export function conformancePutRules(test: RuleTest): void {
	test("put/returns_config: the config that put returns names the checkpoint", async ({ saver, thread }) => {
		const args = thread().draft({ values: { k: "v" } });
		assert.deepEqual(await saver.put(...args), thread().config(args[1].id));
	});

	test("put/roundtrip: what was put is what is read", async ({ saver, thread }) => {
		const args = thread().draft({ values: { msg: "hello" }, source: "input" });
		const tuple = await saver.getTuple(await saver.put(...args));
		assert.deepEqual(tuple?.checkpoint, args[1]);
	});

	test("put/preserves_channel_values: text, numbers, lists, objects, bytes and null come back", async ({ thread }) => {
		const values = {
			str: "hello",
			int: 42,
			list: [1, 2, 3],
			dict: { nested: true },
			bytes: new Uint8Array([0, 255]),
			none: null,
		};
		assert.deepEqual(await thread().values(await thread().put({ values })), values);
	});

	test("put/preserves_channel_versions: channel versions come back", async ({ thread }) => {
		const versions = { a: 1, b: 2 };
		const id = await thread().put({ values: { a: "x", b: "y" }, versions });
		assert.deepEqual((await thread().read(id)).checkpoint.channel_versions, versions);
	});

	test("put/preserves_versions_seen: versions seen come back", async ({ thread }) => {
		const seen = { node1: { ch: 1 }, node2: { ch: 2 } };
		const id = await thread().put({ seen });
		assert.deepEqual(Object.keys((await thread().read(id)).checkpoint.versions_seen), Object.keys(seen));
	});

	test("put/preserves_versions_seen_values: versions seen come back with their values", async ({ thread }) => {
		const seen = { node1: { ch_a: 1, ch_b: 2 }, node2: { ch_a: 3 } };
		const id = await thread().put({ seen });
		assert.deepEqual((await thread().read(id)).checkpoint.versions_seen, seen);
	});

	test("put/preserves_metadata: source, step, parents and keys of the user's own come back", async ({ thread }) => {
		const id = await thread().put({ metadata: { step: 3, custom_key: "custom value" } });
		assert.deepEqual((await thread().read(id)).metadata, {
			source: "loop",
			step: 3,
			parents: {},
			custom_key: "custom value",
		});
	});

	test("put/preserves_nested_metadata: nested metadata comes back", async ({ thread }) => {
		const user = {
			profile: { tags: ["a"], prefs: { n: 3, flag: true }, empty: {}, none: [] },
			metrics: [{ score: 0.95 }],
		};
		const id = await thread().put({ metadata: { user } });
		assert.deepEqual((await thread().read(id)).metadata, { source: "loop", step: -1, parents: {}, user });
	});

	test("put/preserves_run_id: a run id in the metadata comes back", async ({ thread }) => {
		const id = await thread().put({ metadata: { run_id: TASK } });
		assert.equal(((await thread().read(id)).metadata as { run_id?: string }).run_id, TASK);
	});

	for (const [name, ns] of [
		["root_namespace", ""],
		["child_namespace", "child:abc"],
	] as const) {
		test(`put/${name}: a checkpoint in namespace "${ns}" is found there`, async ({ thread }) => {
			const id = await thread("thread", ns).put();
			assert.equal((await thread("thread", ns).read(id)).config.configurable?.checkpoint_ns, ns);
		});
	}

	test("put/default_namespace: without a namespace it is the root", async ({ saver, thread }) => {
		const [, checkpoint, metadata, versions] = thread().draft();
		await saver.put({ configurable: { thread_id: "thread" } }, checkpoint, metadata, versions);
		assert.equal(await thread().has(checkpoint.id), true);
	});

	test("put/multiple_checkpoints_same_thread: every checkpoint of a thread can be read", async ({ thread }) => {
		for (const id of await thread().chain(3)) assert.equal((await thread().read(id)).checkpoint.id, id);
	});

	test("put/multiple_threads_isolated: threads do not see each other", async ({ thread }) => {
		for (const threadId of ["one", "two"]) await thread(threadId).put({ values: { x: threadId }, versions: { x: 1 } });
		for (const threadId of ["one", "two"]) assert.deepEqual(await thread(threadId).values(), { x: threadId });
	});

	test("put/parent_config: the parent is known", async ({ thread }) => {
		const [first, second] = (await thread().chain(2)) as [string, string];
		assert.equal(await thread().parentOf(second), first);
	});

	test("put/incremental_channel_update: a channel left alone keeps its value", async ({ thread }) => {
		const first = await thread().put({ values: { a: "v1", b: "v2" }, versions: { a: 1, b: 1 } });
		const draft = { values: { a: "v1 updated", b: "v2" }, versions: { a: 2, b: 1 }, newVersions: { a: 2 } };
		const second = await thread().put({ parent: first, ...draft });
		assert.deepEqual(await thread().values(second), draft.values);
		assert.deepEqual(await thread().values(first), { a: "v1", b: "v2" });
	});

	test("put/new_channel_added: a channel may appear later", async ({ thread }) => {
		const first = await thread().put({ values: { a: "v1" }, versions: { a: 1 } });
		const draft = { values: { a: "v1", b: "new" }, versions: { a: 1, b: 1 }, newVersions: { b: 1 } };
		assert.deepEqual(await thread().values(await thread().put({ parent: first, ...draft })), draft.values);
	});

	test("put/channel_removed: a channel may disappear", async ({ thread }) => {
		const first = await thread().put({ values: { a: "v1", b: "v2" }, versions: { a: 1, b: 1 } });
		const draft = { values: { a: "v1 updated" }, versions: { a: 2 } };
		assert.deepEqual(await thread().values(await thread().put({ parent: first, ...draft })), draft.values);
	});
}

/** What Python's conformance suite asks of `put_writes`, under its names. */
export function conformancePutWritesRules(test: RuleTest): void {
	test("put_writes/basic: a write is pending at its checkpoint", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["channel", "value"]]);
		assert.equal((await thread().pending(id)).length, 1);
	});

	test("put_writes/preserves_task_id: a write comes back with its task", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["channel", "value"]], OTHER_TASK);
		assert.equal((await thread().pending(id))[0]?.[0], OTHER_TASK);
	});

	test("put_writes/preserves_channel_and_value: a write comes back with its channel and value", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["channel", { nested: [1, null] }]]);
		assert.deepEqual((await thread().pending(id))[0]?.slice(1), ["channel", { nested: [1, null] }]);
	});

	test("put_writes/task_path: one argument more than JavaScript has is no error", async ({ saver, thread }) => {
		const id = await thread().put();
		const putWrites = saver.putWrites.bind(saver) as (...args: unknown[]) => Promise<void>;
		await putWrites(thread().config(id), [["channel", "value"]], TASK, "~path");
		assert.deepEqual(await thread().pending(id), [[TASK, "channel", "value"]]);
	});

	test("put_writes/multiple_writes_same_task: all writes of a call come back", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["a", 1],
			["b", 2],
			["c", 3],
		]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "a", 1],
			[TASK, "b", 2],
			[TASK, "c", 3],
		]);
	});

	test("put_writes/multiple_tasks: two tasks may write to one channel", async ({ thread }) => {
		const id = await thread().put();
		for (const task of [TASK, OTHER_TASK]) await thread().write(id, [["a", task]], task);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "a", TASK],
			[OTHER_TASK, "a", OTHER_TASK],
		]);
	});

	test("put_writes/idempotent: the same call twice stores once", async ({ thread }) => {
		const id = await thread().put();
		for (let n = 0; n < 2; n++) await thread().write(id, [["a", 1]]);
		assert.deepEqual(await thread().pending(id), [[TASK, "a", 1]]);
	});

	test("put_writes/special_channels: an error and an interrupt in one call are both kept", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["__error__", "e"],
			["__interrupt__", "i"],
		]);
		assert.deepEqual(
			(await thread().pending(id)).map(([, channel]) => channel),
			["__interrupt__", "__error__"],
		);
	});

	test("put_writes/across_namespaces: namespaces do not see each other's writes", async ({ thread, nextId }) => {
		const id = nextId();
		for (const ns of ["", "child:1"]) {
			await thread("thread", ns).put({ id });
			await thread("thread", ns).write(id, [["a", ns]]);
		}
		for (const ns of ["", "child:1"]) assert.deepEqual(await thread("thread", ns).pending(id), [[TASK, "a", ns]]);
	});

	test("put_writes/cleared_on_next_checkpoint: the next checkpoint has no writes", async ({ saver, thread }) => {
		const first = await thread().put();
		await thread().write(first, [["a", 1]]);
		await thread().put({ parent: first });
		assert.deepEqual(await thread().pending(), []);
		assert.deepEqual((await collect(saver.list(thread().config())))[0]?.pendingWrites, []);
	});
}
