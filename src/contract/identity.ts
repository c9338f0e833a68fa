import assert from "node:assert/strict";
import type { RunnableConfig } from "@langchain/core/runnables";
import { assertRejects, assertStillWorks } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import { collect, TASK } from "./thread.ts";

/** What core leaves in a config beside the three keys that count. */
const STRAY = {
	canary: "tweet",
	run_id: "run",
	__pregel_send: () => {},
	__pregel_checkpointer: {},
	__pregel_abort_signals: { composed: new AbortController().signal },
};

/** How a checkpoint is addressed, and what configs come back. */
export function identityRules(test: RuleTest): void {
	test("ID-1: one checkpoint id on two threads and two namespaces is four checkpoints", async ({
		saver,
		thread,
		nextId,
	}) => {
		const id = nextId();
		const places = ["a", "b"].flatMap((threadId) => ["", "sub:1"].map((ns) => ({ threadId, ns })));
		for (const { threadId, ns } of places) {
			const place = thread(threadId, ns);
			await place.put({ id, values: { at: `${threadId}/${ns}` } });
			await place.write(id, [["at", `write ${threadId}/${ns}`]]);
		}
		for (const { threadId, ns } of places) {
			const place = thread(threadId, ns);
			assert.deepEqual(await place.values(id), { at: `${threadId}/${ns}` });
			assert.deepEqual(await place.pending(id), [[TASK, "at", `write ${threadId}/${ns}`]]);
		}
		await saver.deleteThread("a");
		assert.equal(await thread("a").has(id), false);
		assert.deepEqual(await thread("b", "sub:1").values(id), { at: "b/sub:1" });
	});

	test("ID-1: a parent is looked for in the same thread and namespace only", async ({ thread }) => {
		const root = thread("a");
		const parent = await root.put({ values: { secret: 1 } });
		await root.write(parent, [["log", "of another thread"]]);
		const child = await thread("b").put({ parent, values: {}, versions: { secret: 1 } });
		assert.deepEqual(await thread("b").values(child), {});
		assert.deepEqual(await thread("b").replay(child, "log"), { writes: [] });
		const nested = await root.within("sub").put({ parent, values: {} });
		assert.deepEqual(await root.within("sub").replay(nested, "log"), { writes: [] });
	});

	test("ID-2: a config without checkpoint_ns means the root namespace everywhere", async ({ saver, thread }) => {
		const [, checkpoint, metadata, versions] = thread().draft({ values: { a: 1 } });
		const bare = { configurable: { thread_id: "thread" } };
		const stored = await saver.put(bare, checkpoint, metadata, versions);
		assert.deepEqual(stored, thread().config(checkpoint.id));
		await saver.putWrites({ configurable: { thread_id: "thread", checkpoint_id: checkpoint.id } }, [["a", 2]], TASK);
		for (const config of [bare, thread().config()]) {
			const tuple = await saver.getTuple(config);
			assert.deepEqual(tuple?.checkpoint.channel_values, { a: 1 });
			assert.deepEqual(tuple?.pendingWrites, [[TASK, "a", 2]]);
			assert.deepEqual(tuple?.config, thread().config(checkpoint.id));
		}
		assert.deepEqual(await thread().ids(), [checkpoint.id]);
	});

	test("ID-2: delta history without checkpoint_ns is that of the root namespace", async ({ saver, thread }) => {
		const [parent, child] = await thread().chain(2, () => ({ values: {} }));
		await thread().write(parent as string, [["log", "x"]]);
		const config = { configurable: { thread_id: "thread", checkpoint_id: child } };
		const { log } = await saver.getDeltaChannelHistory({ config, channels: ["log"] });
		assert.deepEqual(log, { writes: [[TASK, "log", "x"]] });
	});

	test("ID-3: configs that come back hold thread_id, checkpoint_ns and checkpoint_id and nothing else", async (scene) => {
		const thread = scene.thread();
		const parent = await thread.put();
		const [, checkpoint, metadata, versions] = thread.draft({ parent });
		const extra = { tags: ["t"], metadata: { user: "u" }, recursionLimit: 3 };
		const given: RunnableConfig = { ...extra, configurable: { ...STRAY, ...thread.config(parent).configurable } };
		const returned = await scene.saver.put(given, checkpoint, metadata, versions);
		assert.deepEqual(returned, thread.config(checkpoint.id));
		const asked: RunnableConfig = { ...extra, configurable: { ...STRAY, ...returned.configurable } };
		const listed = await collect(scene.saver.list(asked));
		for (const tuple of [await scene.saver.getTuple(asked), ...listed]) {
			assert.deepEqual(tuple?.config, thread.config(checkpoint.id));
			assert.deepEqual(tuple?.parentConfig, thread.config(parent));
		}
	});

	test("ID-3: parentConfig is undefined without a parent", async ({ saver, thread }) => {
		const id = await thread().put();
		assert.equal((await thread().read(id)).parentConfig, undefined);
		const [listed] = await collect(saver.list(thread().config()));
		assert.equal(listed?.parentConfig, undefined);
	});

	test("ID-4: a key with the value undefined equals a missing key", async ({ saver, thread }) => {
		const sub = thread("thread", "sub:1");
		const [, checkpoint, metadata, versions] = sub.draft({ values: { a: 1 } });
		const config = { configurable: { ...sub.config().configurable, checkpoint_id: undefined } };
		await saver.put(config, checkpoint, metadata, versions);
		const tuple = await saver.getTuple(config);
		assert.deepEqual(tuple?.config, sub.config(checkpoint.id));
		assert.equal(tuple?.parentConfig, undefined);
		const everything = { configurable: { thread_id: undefined, checkpoint_ns: undefined, checkpoint_id: undefined } };
		const options = { before: { configurable: { checkpoint_id: undefined } }, limit: undefined, filter: undefined };
		assert.equal((await collect(saver.list(everything, options))).length, 1);
		const root = { configurable: { thread_id: "thread", checkpoint_ns: undefined } };
		assert.equal(await saver.getTuple(root), undefined);
	});

	for (const [given, stored] of [
		[42, "42"],
		[0, "0"],
		[1.5, "1.5"],
		[12345678901234567890n, "12345678901234567890"],
	] as const) {
		test(`ID-5: thread_id ${String(given)} as a ${typeof given} is the thread "${stored}"`, async ({
			saver,
			thread,
		}) => {
			const [, checkpoint, metadata, versions] = thread(stored).draft({ values: { a: 1 } });
			const config = { configurable: { thread_id: given as unknown as string, checkpoint_ns: "" } };
			const returned = await saver.put(config, checkpoint, metadata, versions);
			assert.deepEqual(returned, thread(stored).config(checkpoint.id));
			const address = { configurable: { ...config.configurable, checkpoint_id: checkpoint.id } };
			await saver.putWrites(address, [["a", 2]], TASK);
			assert.deepEqual((await saver.getTuple(config))?.config, returned);
			assert.deepEqual(await thread(stored).pending(), [[TASK, "a", 2]]);
			assert.equal((await collect(saver.list(config))).length, 1);
		});
	}

	for (const [kind, threadId] of Object.entries({ null: null, undefined, object: {}, array: ["thread"] })) {
		test(`ID-5: put and putWrites refuse a thread_id that is ${kind}`, async ({ saver, thread }) => {
			const [, checkpoint, metadata, versions] = thread().draft();
			const config = {
				configurable: { thread_id: threadId as never, checkpoint_ns: "", checkpoint_id: checkpoint.id },
			};
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "INVALID_CONFIG");
			await assertRejects(() => saver.putWrites(config, [["a", 1]], TASK), "INVALID_CONFIG");
			assert.deepEqual(await collect(saver.list({})), []);
			await assertStillWorks(thread());
		});
	}

	test("ID-5: getTuple without a thread_id gives undefined", async ({ saver, thread }) => {
		await thread().put();
		assert.equal(await saver.getTuple({ configurable: { thread_id: undefined } }), undefined);
		assert.equal(await saver.getTuple({ configurable: {} }), undefined);
		assert.equal(await saver.getTuple({}), undefined);
	});

	test("ID-7: namespaces of nested subgraphs are told apart exactly", async ({ thread }) => {
		const task = TASK.replace("0a", "1b");
		const spaces = [
			"",
			"node",
			`node:${TASK}`,
			`node:${TASK}|1`,
			`node:${TASK}|inner:${task}`,
			`node:${task}`,
			"nodes",
		];
		for (const ns of spaces) await thread("thread", ns).put({ values: { ns } });
		for (const ns of spaces) {
			assert.deepEqual(await thread("thread", ns).values(), { ns });
			assert.equal((await thread("thread", ns).ids()).length, 1);
		}
	});

	test("ID-8: the newest checkpoint is the one with the greatest id, whatever was put last", async ({
		thread,
		nextId,
	}) => {
		const [low, middle, high] = [nextId(), nextId(), nextId()];
		for (const id of [middle, high, low]) await thread().put({ id, values: { id } });
		assert.deepEqual(await thread().values(), { id: high });
		assert.deepEqual(await thread().ids(), [high, middle, low]);
	});

	test("ID-8: ids are ordered by their bytes, not by a language's alphabet", async ({ thread }) => {
		for (const id of ["alpha", "Zeta", "10", "9", "_x", "-y"]) await thread().put({ id });
		assert.deepEqual(await thread().ids(), ["alpha", "_x", "Zeta", "9", "10", "-y"]);
		assert.equal((await thread().read()).checkpoint.id, "alpha");
		assert.deepEqual(await thread().ids({ before: thread().config("_x") }), ["Zeta", "9", "10", "-y"]);
	});

	test("ID-8: a fork of an older checkpoint becomes the head", async ({ thread }) => {
		const ids = await thread().chain(4);
		const fork = await thread().put({ parent: ids[1], values: { step: 1 }, source: "fork" });
		assert.equal((await thread().read()).checkpoint.id, fork);
	});
}
