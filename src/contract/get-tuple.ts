import assert from "node:assert/strict";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { partsOf, readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect, TASK } from "./thread.ts";

/** What is read: fresh objects, ordered writes, old formats brought up to date. */
export function getTupleRules(test: RuleTest): void {
	test("GET-1: what a reader does to a tuple is not seen by later readers", async (scene) => {
		const ids = await putRich(scene);
		for (const id of ids) {
			const before = structuredClone(partsOf(await scene.thread().read(id)));
			deface(await scene.thread().read(id));
			assert.deepEqual(partsOf(await scene.thread().read(id)), before);
		}
	});

	test("GET-1: what a reader does to a listed tuple is not seen by later readers", async (scene) => {
		await putRich(scene);
		const before = structuredClone(await readThread(scene.saver, "thread", ["list"]));
		for (const tuple of await collect(scene.saver.list(scene.thread().config()))) deface(tuple);
		assert.deepEqual(await readThread(scene.saver, "thread", ["list"]), before);
	});

	test("GET-1: what a reader does to a delta history is not seen by later readers", async ({ thread }) => {
		const parent = await thread().put({ values: { log: ["seed"] } });
		await thread().write(parent, [["log", { n: [1] }]]);
		const child = await thread().put({ parent, values: {} });
		const before = structuredClone(await thread().history(child, "log"));
		const history = await thread().history(child, "log");
		const [write] = history.writes as [[string, string, { n: number[] }]];
		(history.seed as unknown[]).push("changed");
		write[2].n.push(2);
		history.writes.push([TASK, "log", "added"]);
		assert.deepEqual(await thread().history(child, "log"), before);
		assert.deepEqual(await thread().values(parent), { log: ["seed"] });
		assert.deepEqual(await thread().pending(parent), [[TASK, "log", { n: [1] }]]);
	});

	test("GET-1: two reads share nothing", async (scene) => {
		const ids = await putRich(scene);
		const [one, two] = [await scene.thread().read(ids[1]), await scene.thread().read(ids[1])];
		const held = new Set(objectsIn(partsOf(one)));
		for (const part of objectsIn(partsOf(two))) assert.equal(held.has(part), false, "two reads hold the same object");
	});

	test("GET-1: a child made by changing what was read leaves its parent alone", async ({ thread }) => {
		const parent = await thread().put({ values: { list: [{ n: 1 }], map: { a: { b: 1 } } } });
		const { checkpoint } = await thread().read(parent);
		const values = checkpoint.channel_values as { list: { n: number }[]; map: { a: { b: number } } };
		values.list.push({ n: 2 });
		(values.list[0] as { n: number }).n = 10;
		values.map.a.b = 2;
		const child = await thread().put({ parent, values });
		assert.deepEqual(await thread().values(child), { list: [{ n: 10 }, { n: 2 }], map: { a: { b: 2 } } });
		assert.deepEqual(await thread().values(parent), { list: [{ n: 1 }], map: { a: { b: 1 } } });
	});

	test("GET-2: pending writes are ordered by task id, by code points, then by position", async ({ thread }) => {
		const id = await thread().put();
		const tasks = ["b", "Z", "a", "10", "9", "é", "_"];
		for (const task of tasks)
			await thread().write(
				id,
				Array.from({ length: 12 }, (_, n) => ["ch", `${task}${n}`]),
				task,
			);
		await thread().write(id, [["__interrupt__", "i"]], "a");
		const expected = [...tasks]
			.sort()
			.flatMap((task) => [
				...(task === "a" ? [[task, "__interrupt__", "i"]] : []),
				...Array.from({ length: 12 }, (_, n) => [task, "ch", `${task}${n}`]),
			]);
		assert.deepEqual(await thread().pending(id), expected);
	});

	test("GET-2: pending writes are an empty array when there are none", async ({ saver, thread }) => {
		const id = await thread().put();
		assert.deepEqual((await thread().read(id)).pendingWrites, []);
		assert.deepEqual((await collect(saver.list({})))[0]?.pendingWrites, []);
	});

	for (const v of [1, 2, 3]) {
		test(`GET-3: a checkpoint of format ${v} gets the sends pending at its parent`, async ({ saver, thread }) => {
			const { parent, id } = await putOldFormat(thread(), v);
			for (const tuple of [await thread().read(id), ...(await collect(saver.list(thread().config(id))))]) {
				assert.deepEqual(tuple.checkpoint.channel_values, { a: 1, __pregel_tasks: ["first", "second", "third"] });
				assert.deepEqual(tuple.checkpoint.channel_versions, { a: 3, b: 2, __pregel_tasks: 3 });
			}
			assert.deepEqual(await thread().values(parent), {});
		});
	}

	test("GET-3: without any version the sends get the first one", async ({ saver, thread }) => {
		const parent = await thread().put({ v: 1 });
		const id = await thread().put({ parent, v: 1 });
		const { checkpoint } = await thread().read(id);
		assert.deepEqual(checkpoint.channel_values, { __pregel_tasks: [] });
		assert.deepEqual(checkpoint.channel_versions, { __pregel_tasks: saver.getNextVersion(undefined) });
	});

	test("GET-3: format 4 and roots of older formats are left as they are", async ({ thread }) => {
		const root = await thread().put({ v: 1, values: { a: 1 } });
		await thread().write(root, [["__pregel_tasks", "send"]]);
		const current = await thread().put({ parent: root, v: 4, values: { a: 1 } });
		assert.deepEqual(await thread().values(root), { a: 1 });
		assert.deepEqual(await thread().values(current), { a: 1 });
	});

	test("GET-3: a checkpoint of an old format reads the same after its parent was pruned", async ({ saver, thread }) => {
		const { id } = await putOldFormat(thread(), 1);
		const before = (await thread().read(id)).checkpoint;
		await saver.prune(["thread"]);
		assert.deepEqual((await thread().read(id)).checkpoint, before);
	});

	test("GET-4: what is not there reads as undefined", async ({ saver, thread, nextId }) => {
		const id = await thread().put();
		assert.equal(await saver.getTuple(thread().config(nextId())), undefined);
		assert.equal(await saver.getTuple(thread("unknown").config()), undefined);
		assert.equal(await saver.getTuple(thread("unknown").config(id)), undefined);
		assert.equal(await saver.getTuple(thread("thread", "unknown").config()), undefined);
		assert.equal(await saver.getTuple(thread("thread", "unknown").config(id)), undefined);
		assert.equal(await saver.get(thread("unknown").config()), undefined);
	});

	test("GET-4: get gives the checkpoint of the tuple", async ({ saver, thread }) => {
		const id = await thread().put({ values: { a: [1] } });
		assert.deepEqual(await saver.get(thread().config()), (await thread().read(id)).checkpoint);
	});

	test("GET-5: the checkpoint and its metadata come back exactly as put", async ({ saver, thread }) => {
		const metadata = {
			step: -1,
			parents: { "": "x" },
			score: 0.5,
			nested: { list: [1, { a: null }], "a.b": true },
			text: "\u0000é🧵",
		};
		const args = thread().draft({ values: { a: [1] }, seen: { n: { a: 1 } }, source: "update", metadata });
		await saver.put(...args);
		const tuple = await thread().read();
		assert.deepEqual(tuple.checkpoint, args[1]);
		assert.deepEqual(tuple.metadata, { source: "update", ...metadata });
	});
}

async function putRich({ thread }: Scene): Promise<string[]> {
	const ids = await thread().chain(3, (n) => ({
		values: {
			list: Array.from({ length: n + 3 }, (_, i) => ({ i })),
			map: { a: { b: [n] } },
			bytes: new Uint8Array([1, 2, n]),
		},
		seen: { node: { list: 1 } },
		metadata: { nested: { list: [n] } },
	}));
	for (const id of ids)
		await thread().write(id, [
			["list", { items: [id] }],
			["map", [1]],
		]);
	return ids;
}

/** Changes every part of a tuple, as core and nodes do. */
function deface({ config, checkpoint, metadata, pendingWrites = [] }: CheckpointTuple): void {
	const values = checkpoint.channel_values as { list: { i: number }[]; map: { a: { b: number[] } }; bytes: Uint8Array };
	values.list.splice(0, 1, { i: 99 }, { i: 98 });
	Object.assign(values.list.at(-1) as object, { i: 97 });
	values.map.a.b.push(96);
	values.bytes.fill(95);
	checkpoint.versions_seen.other = { list: 9 };
	checkpoint.channel_versions.list = 94;
	(metadata as unknown as { nested: { list: number[] } }).nested.list.push(93);
	const [write] = pendingWrites as [[string, string, { items: string[] }]];
	write[2].items.push("92");
	pendingWrites.splice(1, 1);
	Object.assign(config.configurable as object, { checkpoint_id: "91" });
}

async function putOldFormat(thread: ReturnType<Scene["thread"]>, v: number): Promise<{ parent: string; id: string }> {
	const parent = await thread.put({ v });
	await thread.write(
		parent,
		[
			["__pregel_tasks", "second"],
			["a", 1],
			["__pregel_tasks", "third"],
		],
		"task b",
	);
	await thread.write(parent, [["__pregel_tasks", "first"]], "task a");
	const id = await thread.put({ parent, v, values: { a: 1 }, versions: { a: 3, b: 2 } });
	return { parent, id };
}

function objectsIn(value: unknown): object[] {
	if (typeof value !== "object" || value === null) return [];
	if (ArrayBuffer.isView(value)) return [value, value.buffer];
	return [value, ...Object.values(value).flatMap(objectsIn)];
}
