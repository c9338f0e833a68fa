import assert from "node:assert/strict";
import { assertRejects, assertStillWorks } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import { collect, TASK } from "./thread.ts";

const NULL_TASK = "00000000-0000-0000-0000-000000000000";
const OTHER_TASK = "ffffffff-6b0c-5a83-8d27-3f5f4ec9d0a1";
const ORDINARY = ["__error_source_node__", "__return__", "__no_writes__", "__previous__", "__pregel_tasks"];

/** Writes of tasks: where they go, which of two wins. */
export function putWritesRules(test: RuleTest): void {
	test("W-1: writes put before their checkpoint belong to it", async ({ thread, nextId }) => {
		const id = nextId();
		await thread().write(id, [
			["a", 1],
			["__interrupt__", { id: "i", value: "?" }],
		]);
		await thread().put({ id, values: { a: 0 } });
		assert.deepEqual(await thread().pending(id), [
			[TASK, "__interrupt__", { id: "i", value: "?" }],
			[TASK, "a", 1],
		]);
		assert.deepEqual(await thread().values(id), { a: 0 });
	});

	test("W-1: writes of a checkpoint that is never put make no checkpoint", async ({ saver, thread, nextId }) => {
		const head = await thread().put({ values: { a: 1 } });
		const orphan = nextId();
		await thread().write(orphan, [["a", 2]]);
		await thread("fresh").write(orphan, [["a", 2]]);
		assert.equal(await thread().has(orphan), false);
		assert.equal((await thread().read()).checkpoint.id, head);
		assert.equal(await saver.getTuple(thread("fresh").config()), undefined);
		assert.deepEqual(
			(await collect(saver.list({}))).map(({ checkpoint }) => checkpoint.id),
			[head],
		);
	});

	test("W-1: deleteThread removes writes that never got a checkpoint", async ({ saver, thread, nextId }) => {
		const orphan = nextId();
		await thread().write(orphan, [["a", "old"]]);
		await thread("other").write(orphan, [["a", "kept"]]);
		await saver.deleteThread("thread");
		for (const threadId of ["thread", "other"]) await thread(threadId).put({ id: orphan });
		assert.deepEqual(await thread().pending(orphan), []);
		assert.deepEqual(await thread("other").pending(orphan), [[TASK, "a", "kept"]]);
	});

	test("W-2: the writes of one call are told apart by their position", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["a", 1],
			["a", 2],
			["b", 3],
			["a", 4],
		]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "a", 1],
			[TASK, "a", 2],
			[TASK, "b", 3],
			[TASK, "a", 4],
		]);
	});

	test("W-2: a second call of the same task fills only positions that are free", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["a", 1]]);
		await thread().write(id, [
			["b", "lost"],
			["c", 2],
		]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "a", 1],
			[TASK, "c", 2],
		]);
	});

	test("W-2: special channels have positions of their own", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["a", 1]]);
		for (const channel of ["__error__", "__scheduled__", "__interrupt__", "__resume__"])
			await thread().write(id, [[channel, channel]]);
		const channels = (await thread().pending(id)).map(([, channel]) => channel);
		assert.deepEqual(channels, ["__resume__", "__interrupt__", "__scheduled__", "__error__", "a"]);
	});

	for (const channel of [...ORDINARY, "constructor", "toString", "hasOwnProperty", "__proto__"]) {
		test(`W-2: ${channel} is an ordinary channel`, async ({ thread }) => {
			const id = await thread().put();
			await thread().write(id, [
				[channel, "first"],
				[channel, "second"],
			]);
			await thread().write(id, [[channel, "too late"]]);
			assert.deepEqual(await thread().pending(id), [
				[TASK, channel, "first"],
				[TASK, channel, "second"],
			]);
		});
	}

	test("W-2: the same position of another task, checkpoint or namespace is free", async ({ thread }) => {
		const [one, two] = (await thread().chain(2)) as [string, string];
		await thread("thread", "sub").put({ id: one });
		await thread().write(one, [["a", "one"]]);
		await thread().write(one, [["a", "other task"]], OTHER_TASK);
		await thread().write(two, [["a", "two"]]);
		await thread("thread", "sub").write(one, [["a", "sub"]]);
		assert.deepEqual(await thread().pending(one), [
			[TASK, "a", "one"],
			[OTHER_TASK, "a", "other task"],
		]);
		assert.deepEqual(await thread().pending(two), [[TASK, "a", "two"]]);
		assert.deepEqual(await thread("thread", "sub").pending(one), [[TASK, "a", "sub"]]);
	});

	test("W-3: ordinary writes are kept as they were first put", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["a", "first"],
			["b", "first"],
		]);
		await thread().write(id, [
			["a", "second"],
			["b", "second"],
		]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "a", "first"],
			[TASK, "b", "first"],
		]);
	});

	test("W-3: a call of special writes alone replaces", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["__interrupt__", "first"],
			["__resume__", ["first"]],
		]);
		await thread().write(id, [["__interrupt__", "second"]]);
		await thread().write(id, [["__resume__", ["first", "second"]]]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "__resume__", ["first", "second"]],
			[TASK, "__interrupt__", "second"],
		]);
	});

	test("W-3: a special write beside ordinary ones does not replace", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["__resume__", "first"]]);
		await thread().write(id, [
			["__resume__", "second"],
			["a", 1],
		]);
		assert.deepEqual(await thread().pending(id), [
			[TASK, "__resume__", "first"],
			[TASK, "a", 1],
		]);
	});

	test("W-3: of two special writes of one kind in a mixed call one is kept", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["__resume__", "one"],
			["__resume__", "two"],
			["out", 1],
		]);
		const pending = await thread().pending(id);
		assert.deepEqual(
			pending.map(([, channel]) => channel),
			["__resume__", "out"],
		);
		assert.ok(["one", "two"].includes(pending[0]?.[2] as string));
	});

	test("W-3: of two special writes of one kind alone in a call the last is kept", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["__interrupt__", "one"],
			["__interrupt__", "two"],
		]);
		assert.deepEqual(await thread().pending(id), [[TASK, "__interrupt__", "two"]]);
	});

	test("W-4: an empty list of writes is accepted and changes nothing", async ({ saver, thread, nextId }) => {
		const id = await thread().put();
		await thread().write(id, [["a", 1]]);
		await thread().write(id, []);
		await thread().write(nextId(), []);
		assert.deepEqual(await thread().pending(id), [[TASK, "a", 1]]);
		assert.equal((await collect(saver.list({}))).length, 1);
	});

	test("W-5: writes need a thread_id and a checkpoint_id", async ({ saver, thread, nextId }) => {
		for (const configurable of [
			undefined,
			{},
			{ thread_id: "thread" },
			{ checkpoint_id: nextId() },
			thread().config().configurable,
		])
			await assertRejects(() => saver.putWrites({ configurable }, [["a", 1]], TASK), "INVALID_CONFIG");
		const undefinedId = { configurable: { thread_id: "thread", checkpoint_ns: "", checkpoint_id: undefined } };
		await assertRejects(() => saver.putWrites(undefinedId, [["a", 1]], TASK), "INVALID_CONFIG");
		await assertStillWorks(thread());
	});

	test("W-6: writes stay when the next checkpoint is put, which starts with none", async ({ thread }) => {
		const parent = await thread().put();
		await thread().write(parent, [["a", 1]]);
		const child = await thread().put({ parent });
		await thread().write(child, [["a", 2]]);
		const grandchild = await thread().put({ parent: child });
		assert.deepEqual(await thread().pending(parent), [[TASK, "a", 1]]);
		assert.deepEqual(await thread().pending(child), [[TASK, "a", 2]]);
		assert.deepEqual(await thread().pending(grandchild), []);
	});

	for (const taskId of [
		NULL_TASK,
		"00000003-6b0c-5a83-8d27-3f5f4ec9d0a1",
		"000000-1-6b0c-5a83-8d27-3f5f4ec9d0a1",
		"",
		"A",
		"not a uuid",
	]) {
		test(`W-8: ${JSON.stringify(taskId)} is a legal task id`, async ({ thread }) => {
			const id = await thread().put();
			await thread().write(id, [["a", 1]], taskId);
			await thread().write(id, [["a", 2]], `${taskId}x`);
			assert.deepEqual(await thread().pending(id), [
				[taskId, "a", 1],
				[`${taskId}x`, "a", 2],
			]);
		});
	}

	test("W-8: task ids that differ in case are different tasks", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["a", "lower"]], TASK);
		await thread().write(id, [["a", "upper"]], TASK.toUpperCase());
		assert.equal((await thread().pending(id)).length, 2);
	});
}
