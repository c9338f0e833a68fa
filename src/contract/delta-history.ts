import assert from "node:assert/strict";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { deltaWrites, putDeltaChain } from "./delta-fixtures.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";

/** The history of a delta channel: where it starts, what it holds, and that every walk ends. */
export function deltaHistoryRules(test: RuleTest): void {
	test("D-1: the walk from a checkpoint that is its own parent ends", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 3);
		const id = ids[2] as string;
		await thread().put({ id, parent: id, versions: { log: 3 }, newVersions: {}, metadata: { step: 2 } });
		assert.deepEqual(await thread().replay(id, "log"), { writes: deltaWrites(0, 2) });
		const child = await thread().put({ parent: id, versions: { log: 4 }, metadata: { step: 3 } });
		assert.deepEqual(await thread().replay(child, "log"), { writes: deltaWrites(0, 3) });
	});

	for (const length of [2, 3]) {
		test(`D-1: walks over ${length} checkpoints in a circle end`, async (scene) => {
			const { saver, thread } = scene;
			const ids = await putCircle(scene, length);
			for (const id of ids) assert.ok((await thread().history(id, "log")).writes.length <= length);
			const copied = await saver.copyThread("thread", "copy");
			assert.equal(copied.checkpoints, length);
			await saver.copyThread("thread", "part", { upTo: ids[0] as string });
			assert.ok((await thread("part").ids()).includes(ids[0] as string));
			await saver.deleteForRuns(["run 1"]);
			assert.equal((await thread().ids()).length, length - 1);
			await saver.prune(["thread", "copy", "part"]);
			assert.equal((await thread("copy").ids()).length, 1);
			for (const id of await thread("copy").ids())
				assert.deepEqual(await thread("copy").values(id), { n: ids.indexOf(id) });
		});
	}

	test("D-1: a walk ends at a parent that is not there", async ({ thread, nextId }) => {
		const id = await thread().put({ parent: nextId() });
		await thread().write(id, [["log", "x"]]);
		const child = await thread().put({ parent: id });
		assert.deepEqual(await thread().replay(child, "log"), { writes: ["x"] });
	});

	test("D-2: history starts at the nearest ancestor with a value and includes its own writes", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 8, [0, 3]);
		for (const [n, from] of [
			[1, 0],
			[2, 0],
			[3, 0],
			[4, 3],
			[7, 3],
		] as const) {
			const { seed, writes } = await thread().replay(ids[n] as string, "log");
			assert.deepEqual((seed as DeltaSnapshot).value, deltaWrites(0, from));
			assert.deepEqual(writes, deltaWrites(from, n));
		}
	});

	test("D-2: without a value on the way there is no seed", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 5);
		for (const [n, id] of ids.entries()) {
			const history = await thread().history(id, "log");
			assert.equal(Object.hasOwn(history, "seed"), false);
			assert.deepEqual(
				history.writes.map(([, , value]) => value),
				deltaWrites(0, n),
			);
		}
	});

	test("D-2: null, an empty list and false are seeds", async ({ thread }) => {
		for (const seed of [null, [], false, 0, ""]) {
			const root = await thread().put({ values: { log: ["older"] } });
			const parent = await thread().put({ parent: root, values: { log: seed } });
			const child = await thread().put({ parent, values: {}, versions: { log: 9 } });
			assert.deepEqual(await thread().replay(child, "log"), { writes: [], seed });
		}
	});

	test("D-2: writes come with their task ids, ordered by task and position within one checkpoint", async ({
		thread,
	}) => {
		const parent = await thread().put();
		await thread().write(
			parent,
			Array.from({ length: 12 }, (_, n) => ["log", `b${n}`]),
			"b",
		);
		await thread().write(
			parent,
			[
				["other", 0],
				["log", "a1"],
				["log", "a2"],
			],
			"a",
		);
		await thread().write(parent, [["log", "C"]], "C");
		const child = await thread().put({ parent });
		const { writes } = await thread().history(child, "log");
		assert.deepEqual(writes, [
			["C", "log", "C"],
			["a", "log", "a1"],
			["a", "log", "a2"],
			...Array.from({ length: 12 }, (_, n) => ["b", "log", `b${n}`]),
		]);
	});

	test("D-3: several channels are answered at once, each to its own seed", async ({ saver, thread }) => {
		const drafts = [{ values: { a: "seed a" } }, {}, { values: { b: "seed b" } }, {}, {}];
		const ids = await thread().chain(drafts.length, (n) => ({
			versions: { a: n + 1, b: n + 1, c: n + 1 },
			...drafts[n],
		}));
		for (const [n, id] of ids.entries())
			await thread().write(id, [
				["a", n],
				["b", n],
				["c", n],
			]);
		const config = thread().config(ids[4]);
		const histories = await saver.getDeltaChannelHistory({ config, channels: ["a", "b", "c", "unknown"] });
		const plain = Object.entries(histories).map(([channel, { writes, ...seed }]) => [
			channel,
			writes.map(([, , n]) => n),
			seed,
		]);
		assert.deepEqual(plain, [
			["a", [0, 1, 2, 3], { seed: "seed a" }],
			["b", [2, 3], { seed: "seed b" }],
			["c", [0, 1, 2, 3], {}],
			["unknown", [], {}],
		]);
	});

	test("D-3: a new thread and an unknown checkpoint have an empty history", async ({ saver, thread, nextId }) => {
		const channels = ["log", "other"];
		const empty = { log: { writes: [] }, other: { writes: [] } };
		assert.deepEqual(await saver.getDeltaChannelHistory({ config: thread("new").config(), channels }), empty);
		assert.deepEqual(await saver.getDeltaChannelHistory({ config: thread().config(nextId()), channels }), empty);
		assert.deepEqual(await saver.getDeltaChannelHistory({ config: thread().config(), channels: [] }), {});
	});

	test("D-3: a walk of 300 ancestors gives every write", async ({ thread }) => {
		const ids = await putDeltaChain(thread(), 301);
		assert.deepEqual(await thread().replay(ids[300] as string, "log"), { writes: deltaWrites(0, 300) });
	});

	test("D-3: a history holds what was written, of any type", async ({ thread }) => {
		const values = [
			new Uint8Array([1, 2]),
			{ a: [null, { b: undefined }] },
			undefined,
			"x".repeat(5000),
			new Map([["a", 1]]),
		];
		const parent = await thread().put({ values: { log: new DeltaSnapshot(values) } });
		await thread().write(
			parent,
			values.map((value) => ["log", value]),
		);
		const child = await thread().put({ parent, values: {} });
		const { writes, seed } = await thread().replay(child, "log");
		assert.deepEqual(writes, values);
		assert.deepEqual((seed as DeltaSnapshot).value, values);
	});
}

/** Checkpoints each of which names the next as its parent, and the last names the first. */
async function putCircle({ thread, nextId }: Scene, length: number): Promise<string[]> {
	const ids = Array.from({ length }, nextId);
	for (const [n, id] of ids.entries()) {
		const parent = ids[(n + 1) % length];
		await thread().put({ id, parent, values: { n }, metadata: { step: n, run_id: `run ${n}` } });
		await thread().write(id, [["log", n]]);
	}
	return ids;
}
