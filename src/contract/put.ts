import assert from "node:assert/strict";
import { assertRejects, assertStillWorks, readThread } from "./asserts.ts";
import { deepFreeze } from "./freeze.ts";
import type { RuleTest } from "./rule-test.ts";
import { collect, TASK } from "./thread.ts";

/** Parents, repeated puts, and arguments. */
export function putRules(test: RuleTest): void {
	test("PUT-1: the parent is the checkpoint named in the config", async ({ thread }) => {
		const [first, second] = (await thread().chain(2)) as [string, string];
		assert.deepEqual((await thread().read(second)).parentConfig, thread().config(first));
	});

	test("PUT-1: a parent that was never stored is no obstacle", async ({ thread, nextId }) => {
		const missing = nextId();
		const id = await thread().put({ parent: missing, values: { a: 1 } });
		assert.deepEqual(await thread().values(id), { a: 1 });
		assert.deepEqual((await thread().read(id)).parentConfig, thread().config(missing));
		assert.deepEqual(await thread().ids(), [id]);
		assert.deepEqual(await thread().replay(id, "log"), { writes: [] });
	});

	test("PUT-1: a parent may be stored after its child", async ({ thread, nextId }) => {
		const parent = nextId();
		const id = await thread().put({ parent, values: { a: 2 }, versions: { a: 2, log: 2 } });
		await thread().put({ id: parent, values: { a: 1 }, versions: { a: 1, log: 1 } });
		await thread().write(parent, [["log", "x"]]);
		assert.equal(await thread().parentOf(id), parent);
		assert.deepEqual(await thread().values(id), { a: 2 });
		assert.deepEqual(await thread().replay(id, "log"), { writes: ["x"] });
	});

	test("PUT-1: a child can be put on a parent whose thread was deleted", async ({ saver, thread }) => {
		const parent = await thread().put({ values: { a: "old" } });
		await saver.deleteThread("thread");
		const id = await thread().put({ parent, values: { a: "new" } });
		assert.deepEqual(await thread().values(id), { a: "new" });
	});

	test("PUT-2: a checkpoint put as its own parent keeps the parent it had", async ({ thread }) => {
		const [parent, id] = (await thread().chain(2)) as [string, string];
		await thread().put({ id, parent: id, values: { step: 1 }, versions: { step: 2 }, newVersions: {} });
		assert.equal(await thread().parentOf(id), parent);
		assert.deepEqual(await thread().ids(), [id, parent]);
	});

	test("PUT-2: a checkpoint put as its own parent without an earlier put has no parent", async ({ thread, nextId }) => {
		const id = nextId();
		await thread().put({ id, parent: id, values: { a: 1 } });
		assert.equal((await thread().read(id)).parentConfig, undefined);
		assert.deepEqual(await thread().values(id), { a: 1 });
	});

	for (const [name, given] of [
		["left out", []],
		["null", [null]],
	] as const) {
		test(`PUT-7: with newVersions ${name}, every value of a first checkpoint is stored`, async ({ saver, thread }) => {
			const [config, checkpoint, metadata] = thread().draft({ values: { a: 1, b: [2] } });
			await saver.put(config, checkpoint, metadata, ...given);
			assert.deepEqual(await thread().values(), { a: 1, b: [2] });
		});

		test(`PUT-7: with newVersions ${name}, every value of a child is stored`, async ({ saver, thread }) => {
			const versions = { a: 1, b: 1, c: 1 };
			const parent = await thread().put({ values: { a: 1, b: "before".repeat(500), c: 1 }, versions });
			const values = { a: 2, b: "after".repeat(500) };
			const [config, checkpoint, metadata] = thread().draft({ parent, values, versions });
			await saver.put(config, checkpoint, metadata, ...given);
			assert.deepEqual(await thread().values(), values);
			assert.deepEqual(await thread().values(parent), { a: 1, b: "before".repeat(500), c: 1 });
		});
	}

	test("PUT-7: with newVersions {} nothing is new: a step has the values of its parent", async ({ thread }) => {
		const versions = { a: 1, b: 1 };
		const parent = await thread().put({ values: { a: 1, b: "before".repeat(500) }, versions });
		const values = { a: 1, b: "before".repeat(500) };
		const id = await thread().put({ parent, values, versions, newVersions: {} });
		assert.deepEqual(await thread().values(id), values);
		const first = await thread("other").put({ values: { a: 1, free: 2 }, versions: { a: 1 }, newVersions: {} });
		assert.deepEqual(await thread("other").values(first), { free: 2 });
	});

	test("PUT-2: its pending writes are not its own history", async ({ thread, nextId }) => {
		const id = nextId();
		await thread().put({ id, parent: id });
		await thread().write(id, [["log", "x"]]);
		assert.deepEqual(await thread().replay(id, "log"), { writes: [] });
	});

	test("PUT-3: a second put of an id replaces checkpoint and metadata", async ({ saver, thread }) => {
		const [parent, id] = (await thread().chain(2, (n) => ({ values: { step: n, gone: n } }))) as [string, string];
		const seen = { node: { step: 2 } };
		const again = { id, parent: id, values: { step: "again", more: [1] }, versions: { step: 3, more: 3 }, seen };
		await thread().put({ ...again, metadata: { step: 7, writes: { node: 1 } } });
		const { checkpoint, metadata } = await thread().read(id);
		assert.deepEqual(checkpoint.channel_values, { step: "again", more: [1] });
		assert.deepEqual(checkpoint.channel_versions, { step: 3, more: 3 });
		assert.deepEqual(checkpoint.versions_seen, seen);
		assert.deepEqual(metadata, { source: "loop", step: 7, parents: {}, writes: { node: 1 } });
		assert.deepEqual(await thread().values(parent), { step: 0, gone: 0 });
		assert.equal((await collect(saver.list({}))).length, 2);
	});

	test("PUT-3: a second put that names no new versions loses no value, write or parent", async ({ thread }) => {
		const values = { messages: ["a", "b"], count: 2, __pregel_tasks: [] };
		const versions = { messages: 2, count: 2 };
		const parent = await thread().put({ values: { messages: ["a"], count: 1 } });
		const id = await thread().put({ parent, values, versions });
		await thread().write(id, [
			["messages", "c"],
			["__interrupt__", { value: "?" }],
		]);
		const pending = await thread().pending(id);
		await thread().put({ id, parent: id, values, versions, newVersions: {} });
		assert.deepEqual(await thread().values(id), values);
		assert.deepEqual(await thread().pending(id), pending);
		assert.equal(await thread().parentOf(id), parent);
	});

	test("PUT-3: a second put leaves children and siblings as they were", async ({ saver, thread }) => {
		const ids = await thread().chain(3, (n) => ({
			values: { list: Array.from({ length: n + 1 }, (_, i) => `item ${i}`) },
		}));
		await thread().put({ parent: ids[0], values: { list: ["item 0", "fork"] } });
		const before = await readThread(saver, "thread");
		const id = ids[1] as string;
		await thread().put({ id, parent: id, values: { list: ["replaced"] }, versions: { list: 9 } });
		const after = await readThread(saver, "thread");
		assert.deepEqual(
			after.filter((reading) => reading.id !== id),
			before.filter((reading) => reading.id !== id),
		);
		assert.deepEqual(await thread().values(id), { list: ["replaced"] });
	});

	test("PUT-3: twenty puts of one id leave one checkpoint that reads as the last", async ({ saver, thread }) => {
		const id = await thread().put({ values: { n: -1 } });
		for (let n = 0; n < 20; n++) await thread().put({ id, parent: id, values: { n, text: "x".repeat(n * 50) } });
		assert.deepEqual(await thread().values(), { n: 19, text: "x".repeat(950) });
		assert.equal((await collect(saver.list({}))).length, 1);
	});

	test("PUT-4: a copy holds the values it was given, not those of its parent", async ({ thread }) => {
		const [parent, copied] = (await thread().chain(2, (n) => ({
			values: { messages: ["a", "b", "c"].slice(0, n + 1), [`branch:to:${n}`]: null },
			versions: { messages: n + 1, [`branch:to:${n}`]: n + 1, start: 1 },
		}))) as [string, string];
		const { channel_values: values, channel_versions: versions } = (await thread().read(copied)).checkpoint;
		const copy = await thread().put({ parent, values, versions, newVersions: {}, source: "fork" });
		assert.deepEqual(await thread().values(copy), { messages: ["a", "b"], "branch:to:1": null });
		assert.equal(await thread().parentOf(copy), parent);
	});

	test("PUT-4: a copy of a root has no parent and still holds all values", async ({ thread }) => {
		const root = await thread().put({ values: { messages: ["a"], count: 1 }, source: "input" });
		const { channel_values: values, channel_versions: versions } = (await thread().read(root)).checkpoint;
		const copy = await thread().put({ values, versions, newVersions: {}, source: "fork" });
		assert.deepEqual(await thread().values(copy), { messages: ["a"], count: 1 });
	});

	test("PUT-5: newVersions may be the same object as channel_versions", async ({ saver, thread }) => {
		const [config, checkpoint, metadata] = thread().draft({ values: { a: 1, b: 2 } });
		await saver.put(config, checkpoint, metadata, checkpoint.channel_versions);
		assert.deepEqual(await thread().values(), { a: 1, b: 2 });
		assert.deepEqual((await thread().read()).checkpoint.channel_versions, { a: 1, b: 1 });
	});

	test("PUT-5: no argument is changed, and frozen ones are accepted", async ({ saver, thread }) => {
		const values = {
			list: [{ a: 1 }, ["b"]],
			map: { nested: { deep: [1, 2] } },
			text: "x".repeat(500),
			none: undefined,
		};
		const parent = await thread().put({ values: structuredClone(values) });
		const args = thread().draft({ parent, values, metadata: { nested: { a: [1] } }, seen: { node: { list: 1 } } });
		const before = structuredClone(args);
		await saver.put(...deepFreeze(args));
		assert.deepEqual(args, before);
		const writes = deepFreeze([
			["list", [{ a: 1 }]],
			["map", { b: 2 }],
		] as [string, unknown][]);
		await saver.putWrites(deepFreeze(thread().config(args[1].id)), writes, TASK);
		assert.deepEqual(await thread().values(), values);
		assert.deepEqual(await thread().pending(), [
			[TASK, "list", [{ a: 1 }]],
			[TASK, "map", { b: 2 }],
		]);
	});

	test("PUT-6: a config without configurable or thread_id is refused asynchronously", async ({ saver, thread }) => {
		const [, checkpoint, metadata, versions] = thread().draft({ values: { a: 1 } });
		for (const config of [
			{},
			{ configurable: {} },
			{ configurable: undefined },
			{ configurable: { checkpoint_ns: "" } },
		])
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "INVALID_CONFIG");
		assert.deepEqual(await collect(saver.list({})), []);
		await assertStillWorks(thread());
	});
}
