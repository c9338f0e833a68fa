import assert from "node:assert/strict";
import { DeltaSnapshot, uuid5 } from "@langchain/langgraph-checkpoint";
import { deltaDraft } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect, TASK } from "./thread.ts";

/** Paths in the order that LangGraph applies their tasks in. No path comes first, then text by code points. */
const PATHS = [undefined, "~__pregel_pull, a", "~__pregel_push, 0000000001", "~~0000000002~", "~\ufffd", "~\u{1f600}"];
/** Tasks whose ids sort the other way round. */
const TASKS = PATHS.map((_, i) => `${`${9 - i}`.repeat(8)}${TASK.slice(8, -1)}${i}`);

const NULL_TASK = "00000000-0000-0000-0000-000000000000";
const PULL = "~__pregel_pull, node";

/** Puts a checkpoint with a write of each path, the last first. */
async function putPaths({ thread }: Scene, draft = {}): Promise<string> {
	const id = await thread().put({ ...deltaDraft(0), ...draft });
	for (const [i, path] of [...PATHS.entries()].reverse())
		await thread().write(id, [["log", i]], TASKS[i], {}, ...(path === undefined ? [] : [path]));
	return id;
}

/** What a run stores: all its calls carry one metadata object. */
const newRun = () => ({ metadata: {} });

/** The id under which exit durability files what a task wrote in the first superstep of a run, and in later ones. */
const exitTask = (step: number, task: string) => `${String(step).padStart(8, "0")}${task.slice(8)}`;
const lateTask = (step: number, task: string) => `ffffffff-0000-${step.toString(16).padStart(4, "0")}${task.slice(18)}`;

/** Writes with task paths, as LangGraph 1.5 and later store them. */
export function taskPathRules(test: RuleTest): void {
	test("N-1: a task path is taken, and may be missing", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["a", 1]], TASKS[1], {}, PULL);
		await thread().write(id, [["a", 2]], TASKS[2]);
		assert.equal((await thread().pending(id)).length, 2);
	});

	test("N-1: an empty path is none", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [["a", 1]], "b", {}, "");
		await thread().write(id, [["a", 2]], "a");
		assert.deepEqual(
			(await thread().pending(id)).map(([task]) => task),
			["a", "b"],
		);
	});

	test("N-2: pending writes are ordered by path, task and index, in getTuple and list", async (scene) => {
		const id = await putPaths(scene);
		const tasks = (await scene.thread().pending(id)).map(([task]) => task);
		assert.deepEqual(tasks, TASKS);
		const [listed] = await collect(scene.saver.list(scene.thread().config()));
		assert.deepEqual(
			listed?.pendingWrites?.map(([task]) => task),
			TASKS,
		);
	});

	test("N-2: tasks with one path are ordered by their ids, by code points, and each by its indexes", async ({
		thread,
	}) => {
		const id = await thread().put();
		const writes = Array.from({ length: 12 }, (_, n): [string, number] => ["a", n]);
		for (const task of ["\u{1f600}", "\ufffd", "b", "B"]) await thread().write(id, writes, task, {}, PULL);
		const read = await thread().pending(id);
		assert.deepEqual([...new Set(read.map(([task]) => task))], ["B", "b", "\ufffd", "\u{1f600}"]);
		assert.deepEqual(
			read.slice(12, 24).map(([, , n]) => n),
			writes.map(([, n]) => n),
		);
	});

	test("N-3: the history of a delta channel has the same order within a checkpoint", async (scene) => {
		const parent = await putPaths(scene);
		const child = await scene.thread().put({ parent, ...deltaDraft(1) });
		const { writes } = await scene.thread().history(child, "log");
		assert.deepEqual(
			writes.map(([task]) => task),
			TASKS,
		);
	});

	test("N-4: a path may hold any text", async ({ thread }) => {
		const id = await thread().put();
		const paths = ["", "~", "a|b:c", "'; drop table", "%_", "\u0000", "\n", "é", "e\u0301", "x".repeat(5000)];
		for (const [i, path] of paths.entries()) await thread().write(id, [["a", path]], `task ${i}`, {}, path);
		const expected = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
		assert.deepEqual(
			(await thread().pending(id)).map(([, , value]) => value),
			expected,
		);
	});

	test("N-1: a copy has the paths", async (scene) => {
		await putPaths(scene);
		await scene.saver.copyThread("thread", "copy");
		assert.deepEqual(
			(await scene.thread("copy").pending()).map(([task]) => task),
			TASKS,
		);
	});

	test("N-1: a partial copy has the paths", async (scene) => {
		const parent = await putPaths(scene);
		await scene.thread().put({ parent });
		await scene.saver.copyThread("thread", "copy", { upTo: parent });
		assert.deepEqual(
			(await scene.thread("copy").pending()).map(([task]) => task),
			TASKS,
		);
	});

	test("N-1: what prune keeps has its paths, and the order of what it removes", async (scene) => {
		const { saver, thread } = scene;
		const parent = await putPaths(scene);
		const child = await thread().put({ parent, ...deltaDraft(1) });
		for (const i of [2, 1]) await thread().write(child, [["log", `child ${i}`]], TASKS[i], {}, PATHS[i]);
		await saver.prune(["thread"]);
		assert.deepEqual(await thread().ids(), [child]);
		assert.deepEqual((await thread().replay(child, "log")).writes, [0, 1, 2, 3, 4, 5]);
		const next = await thread().put({ parent: child, ...deltaDraft(2) });
		const expected = [0, 1, 2, 3, 4, 5, "child 1", "child 2"];
		assert.deepEqual((await thread().replay(next, "log")).writes, expected);
		await saver.prune(["thread"]);
		assert.deepEqual((await thread().replay(next, "log")).writes, expected);
	});

	test("N-1: what deleteForRuns leaves has its paths, and the order of what it removes", async (scene) => {
		const { saver, thread } = scene;
		const parent = await putPaths(scene, { metadata: { run_id: "gone" } });
		const child = await thread().put({ parent, ...deltaDraft(1) });
		for (const i of [2, 1]) await thread().write(child, [["log", `child ${i}`]], TASKS[i], {}, PATHS[i]);
		await saver.deleteForRuns(["gone"]);
		assert.deepEqual((await thread().replay(child, "log")).writes, [0, 1, 2, 3, 4, 5]);
		assert.deepEqual(
			(await thread().pending(child)).map(([, , value]) => value),
			["child 1", "child 2"],
		);
	});

	test("N-5: what a run in exit durability wrote in later supersteps comes after its first one, in order", async ({
		thread,
	}) => {
		const run = newRun();
		const parent = await thread().put(deltaDraft(0));
		const late = (step: number) =>
			thread().write(parent, [["log", step]], lateTask(step, TASKS[1] as string), run, `~~000000${step}${PULL}`);
		for (const step of [3000, 2003, 2002]) await late(step);
		await thread().write(parent, [["log", 2001]], exitTask(2001, TASKS[2] as string), run, PULL);
		const child = await thread().put({ parent, ...deltaDraft(3000, { config: run }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: [2001, 2002, 2003, 3000] });
	});

	test("N-5: another run from the same checkpoint has nothing of it", async ({ thread }) => {
		const [one, other] = [newRun(), newRun()];
		const parent = await thread().put(deltaDraft(0));
		await thread().write(parent, [["log", "one"]], exitTask(1, TASK), one, PULL);
		await thread().write(parent, [["log", "one, later"]], lateTask(2, TASK), one, `~~0000000002${PULL}`);
		const child = await thread().put({ parent, ...deltaDraft(2, { config: one }) });
		await thread().write(parent, [["log", "other"]], TASK, other, PULL);
		const branch = await thread().put({ parent, ...deltaDraft(1, { config: other }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["one", "one, later"] });
		assert.deepEqual(await thread().replay(branch, "log"), { writes: ["other"] });
	});

	test("N-5: what a run filed that never came to its checkpoint is in no other run's", async ({ thread }) => {
		const [dead, other] = [newRun(), newRun()];
		const parent = await thread().put(deltaDraft(-1));
		await thread().write(parent, [["log", "command"]], "00000000-0000-0000-0000-000000000001", dead, "");
		await thread().write(parent, [["log", "first"]], exitTask(0, TASKS[1] as string), dead, PULL);
		await thread().write(parent, [["log", "later"]], lateTask(1, TASKS[1] as string), dead, `~~0000000001${PULL}`);
		await thread().write(parent, [["log", "other"]], TASKS[2], other, PULL);
		const child = await thread().put({ parent, ...deltaDraft(0, { config: other }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["other"] });
	});

	test("N-6: what a command wrote in step 0 of a run in exit durability is the child's", async ({ thread }) => {
		const run = newRun();
		const parent = await thread().put(deltaDraft(-1));
		await thread().write(parent, [["log", "task"]], exitTask(0, TASK), run, PULL);
		await thread().write(parent, [["log", "command"]], "00000000-0000-0000-0000-000000000001", run, "");
		const child = await thread().put({ parent, ...deltaDraft(0, { config: run }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["command", "task"] });
	});

	for (const known of [true, false])
		test(`N-7: a run in exit durability goes on with what was pending (${known ? "" : "un"}known)`, async ({
			thread,
		}) => {
			const run = known ? newRun() : {};
			const parent = await thread().put(deltaDraft(0));
			await thread().write(parent, [["log", "pending"]], TASKS[1], {}, "~__pregel_pull, b");
			await thread().write(parent, [["log", "first"]], exitTask(1, TASKS[2] as string), run, "~__pregel_pull, a");
			await thread().write(parent, [["log", "last"]], exitTask(1, TASKS[3] as string), run, "~__pregel_pull, c");
			const child = await thread().put({ parent, ...deltaDraft(1, { config: run }) });
			assert.deepEqual(await thread().replay(child, "log"), { writes: ["first", "pending", "last"] });
		});

	test("N-7: without paths it has filed again what was pending", async ({ thread }) => {
		const run = newRun();
		const parent = await thread().put(deltaDraft(0));
		await thread().write(parent, [["log", "pending"]], TASKS[1]);
		for (const i of [1, 2])
			await thread().write(parent, [["log", i === 1 ? "pending" : "new"]], exitTask(1, TASKS[i] as string), run);
		const child = await thread().put({ parent, ...deltaDraft(1, { config: run }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["pending", "new"] });
	});

	test("N-8: a checkpoint may be put after its writes, and its child after that", async ({ thread, nextId }) => {
		const run = newRun();
		const stub = nextId();
		await thread().write(stub, [["log", "second"]], lateTask(1, TASK), run, `~~0000000001${PULL}`);
		await thread().write(stub, [["log", "first"]], exitTask(0, TASK), run, PULL);
		await thread().put({ id: stub, metadata: { step: -2 }, versions: {}, config: run });
		const child = await thread().put({ parent: stub, ...deltaDraft(1, { config: run }) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["first", "second"] });
	});

	test("N-9: a put that comes with many writes at once is stored with all of them", async ({ thread }) => {
		const run = newRun();
		const parent = await thread().put(deltaDraft(0));
		const writes = Array.from({ length: 20 }, (_, n) =>
			thread().write(parent, [["log", n]], `task ${n}`, run, `~__pregel_push, ${String(n).padStart(10, "0")}`),
		);
		const child = thread().put({ parent, ...deltaDraft(1, { config: run }) });
		await Promise.all(writes);
		const { writes: read } = await thread().replay(await child, "log");
		assert.deepEqual(
			read,
			Array.from({ length: 20 }, (_, n) => n),
		);
	});

	for (const path of [[""], []] as const)
		test(`N-${path.length === 0 ? 11 : 10}: an input that stands at the parent is its own child's alone`, async ({
			thread,
		}) => {
			const [first, second] = [newRun(), newRun()];
			const parent = await thread().put(deltaDraft(0));
			await thread().write(parent, [["log", "task"]], TASK, first, PULL);
			const step = await thread().put({ parent, ...deltaDraft(1, { config: first }) });
			await thread().write(parent, [["log", "input"]], uuid5("__input__", parent), second, ...path);
			const input = await thread().put({ parent, ...deltaDraft(1, { source: "input", config: second }) });
			assert.deepEqual(await thread().replay(input, "log"), { writes: ["input"] });
			assert.deepEqual(await thread().replay(step, "log"), { writes: ["task"] });
		});

	for (const known of [true, false])
		test(`N-12: all updates of one superstep are in their child (${known ? "" : "un"}known)`, async ({ thread }) => {
			const update = known ? newRun() : {};
			const parent = await thread().put(deltaDraft(0));
			for (const i of [2, 0, 1]) {
				const task = uuid5(i === 0 ? "__interrupt__" : `__interrupt__:${i}`, parent);
				await thread().write(parent, [["log", `update ${i}`]], task, update, `~__interrupt__, 000000000${i}`);
			}
			const child = await thread().put({ parent, ...deltaDraft(1, { source: "update", config: update }) });
			assert.deepEqual(await thread().replay(child, "log"), { writes: ["update 0", "update 1", "update 2"] });
			const run = newRun();
			await thread().write(parent, [["log", "task"]], TASK, run, PULL);
			const step = await thread().put({ parent, ...deltaDraft(1, { config: run }) });
			if (known) assert.deepEqual(await thread().replay(step, "log"), { writes: ["task"] });
		});

	test("N-13: a branch that stores its value has nothing of what was pending at its parent", async ({ thread }) => {
		const [one, other] = [newRun(), newRun()];
		const parent = await thread().put(deltaDraft(0));
		await thread().write(parent, [["log", "one"]], TASK, one, PULL);
		const child = await thread().put({ parent, ...deltaDraft(1, { config: one }) });
		const values = { log: new DeltaSnapshot(["other"]) };
		const branch = await thread().put({ parent, ...deltaDraft(1, { source: "fork", values, config: other }) });
		await thread().write(branch, [["log", "more"]], TASKS[1], other, PULL);
		const next = await thread().put({ parent: branch, ...deltaDraft(2, { config: other }) });
		const { seed, writes } = await thread().replay(next, "log");
		assert.deepEqual([(seed as DeltaSnapshot).value, writes], [["other"], ["more"]]);
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["one"] });
	});

	test("N-15: metadata and versions_seen may hold what LangGraph keeps of snapshots", async ({ thread }) => {
		const seen = { __snapshot_bumps__: { "node|log": 3, "node:log": 2 } };
		const id = await thread().put({ seen, metadata: { delta_writes_versioned: true } });
		const { checkpoint, metadata } = await thread().read(id);
		assert.deepEqual(checkpoint.versions_seen, seen);
		assert.equal((metadata as { delta_writes_versioned?: unknown }).delta_writes_versioned, true);
	});

	test("N-16: a history is answered for any channel", async ({ thread }) => {
		const parent = await thread().put({ values: { plain: [1] }, versions: { plain: 1 } });
		await thread().write(parent, [["plain", [2]]], TASK, {}, PULL);
		const child = await thread().put({ parent, values: {}, versions: { plain: 2 } });
		assert.deepEqual(await thread().replay(child, "plain"), { seed: [1], writes: [[2]] });
		assert.deepEqual(await thread().replay(child, "never was"), { writes: [] });
	});

	test("N-17: one interrupt may be a list", async ({ thread }) => {
		const id = await thread().put();
		const interrupts = [
			{ id: "a", value: 1 },
			{ id: "b", value: 2 },
		];
		await thread().write(id, [["__interrupt__", interrupts]], TASK, {}, PULL);
		assert.deepEqual(await thread().pending(id), [[TASK, "__interrupt__", interrupts]]);
	});

	test("N-6: the id of a step's null task is not that of a command", async ({ thread }) => {
		const id = await thread().put(deltaDraft(-1));
		await thread().write(id, [["log", "filed"]], "00000000-0000-0000-0000-000000000001", {}, "");
		await thread().write(id, [["log", "pending"]], NULL_TASK, {}, "");
		assert.deepEqual(
			(await thread().pending(id)).map(([, , value]) => value),
			["pending", "filed"],
		);
	});
}
