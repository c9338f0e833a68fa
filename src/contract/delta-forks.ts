import assert from "node:assert/strict";
import { uuid5 } from "@langchain/langgraph-checkpoint";
import { deltaDraft, deltaWrites, putDeltaChain } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { TASK } from "./thread.ts";

const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/** The task id under which core stores the writes of `updateState` on the parent. */
const updateTask = (parent: string) => uuid5("__interrupt__", parent);

/** Of the writes on a parent, a child gets those that made it. */
export function deltaForkRules(test: RuleTest): void {
	test("D-4: a time-travel fork does not replay what its parent went on to write", async (scene) => {
		const { thread, ids, parent } = await putTrunk(scene);
		const fork = await thread.put({
			parent,
			...deltaDraft(3, { source: "fork", versions: { log: 3 }, newVersions: {} }),
		});
		await thread.write(fork, [["log", "of the fork"]]);
		const next = await thread.put({ parent: fork, ...deltaDraft(4) });
		assert.deepEqual(await thread.replay(fork, "log"), { writes: deltaWrites(0, 2) });
		assert.deepEqual(await thread.replay(next, "log"), { writes: [...deltaWrites(0, 2), "of the fork"] });
		assert.deepEqual(await thread.replay(ids[4] as string, "log"), { writes: deltaWrites(0, 4) });
	});

	test("D-4: an update of an older checkpoint changes its own branch only", async (scene) => {
		const { thread, ids, parent } = await putTrunk(scene);
		await thread.write(parent, [["log", "update"]], updateTask(parent));
		const update = await thread.put({ parent, ...deltaDraft(3, { source: "update" }) });
		assert.deepEqual(await thread.replay(update, "log"), { writes: [...deltaWrites(0, 2), "update"] });
		assert.deepEqual(await thread.replay(ids[3] as string, "log"), { writes: deltaWrites(0, 3) });
		assert.deepEqual(await thread.replay(ids[4] as string, "log"), { writes: deltaWrites(0, 4) });
	});

	test("D-4: an update of the head takes up what finished tasks had written", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const parent = ids[2] as string;
		await thread().write(parent, [["log", "update"]], updateTask(parent));
		const seen = { finished: { "branch:to:finished": 3 } };
		const update = await thread().put({ parent, ...deltaDraft(3, { source: "update", seen }) });
		const { writes } = await thread().replay(update, "log");
		assert.deepEqual(writes, [...deltaWrites(0, 2), "write 2", "update"]);
	});

	test("D-4: an update that changes nothing has the history of its parent", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const draft = deltaDraft(3, { source: "update", versions: { log: 3 }, newVersions: {} });
		const update = await thread().put({ parent: ids[2], ...draft });
		assert.deepEqual(await thread().replay(update, "log"), { writes: deltaWrites(0, 2) });
	});

	test("D-4: a new input over an unfinished step does not revive its writes", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const draft = deltaDraft(3, { source: "input", versions: { log: 3 }, newVersions: {} });
		const input = await thread().put({ parent: ids[2], ...draft });
		assert.deepEqual(await thread().replay(input, "log"), { writes: deltaWrites(0, 2) });
	});

	test("D-4: a new input over an unfinished step brings its own writes", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const parent = ids[2] as string;
		await thread().write(parent, [["log", "input"]], NULL_TASK);
		const input = await thread().put({ parent, ...deltaDraft(3, { source: "input" }) });
		assert.deepEqual(await thread().replay(input, "log"), { writes: [...deltaWrites(0, 2), "input"] });
	});

	test("D-4: a copy has the history of what it copies", async (scene) => {
		const { thread, ids, parent } = await putTrunk(scene);
		const draft = deltaDraft(4, { source: "fork", versions: { log: 4 }, newVersions: {} });
		const copy = await thread.put({ parent, ...draft });
		assert.deepEqual(await thread.replay(copy, "log"), await thread.replay(ids[3] as string, "log"));
	});

	test("D-4: writes of several steps on one parent are replayed in the order of the steps", async ({ thread }) => {
		const parent = await thread().put(deltaDraft(0));
		const task = (step: number) => `${String(step).padStart(8, "0")}${TASK.slice(8)}`;
		for (const step of [2, 10, 1, 3]) await thread().write(parent, [["log", step]], task(step));
		const child = await thread().put({ parent, ...deltaDraft(10) });
		assert.deepEqual(await thread().replay(child, "log"), { writes: [1, 2, 3, 10] });
	});

	test("D-4: branches of branches keep their histories apart", async (scene) => {
		const { thread, ids, parent } = await putTrunk(scene);
		const branches: [string, string[]][] = [];
		for (const name of ["one", "two", "three"]) {
			const fork = await thread.put({
				parent,
				...deltaDraft(3, { source: "fork", versions: { log: 3 }, newVersions: {} }),
			});
			await thread.write(fork, [["log", `first of ${name}`]]);
			const next = await thread.put({ parent: fork, ...deltaDraft(4) });
			await thread.write(next, [["log", `second of ${name}`]]);
			const last = await thread.put({ parent: next, ...deltaDraft(5) });
			branches.push([last, [...deltaWrites(0, 2), `first of ${name}`, `second of ${name}`]]);
		}
		for (const [id, writes] of branches) assert.deepEqual(await thread.replay(id, "log"), { writes });
		assert.deepEqual(await thread.replay(ids[4] as string, "log"), { writes: deltaWrites(0, 4) });
	});
}

/** Five steps, and the third of them to fork from: it has a child already. */
async function putTrunk(scene: Scene) {
	const thread = scene.thread();
	const ids = await putDeltaChain(thread, 5);
	return { thread, ids, parent: ids[2] as string };
}
