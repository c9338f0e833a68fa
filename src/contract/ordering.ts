import assert from "node:assert/strict";
import { assertRejects, readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import { FailingSerde } from "./serdes.ts";
import { TASK } from "./thread.ts";

const UNSTORABLE = "this can't be stored";

/** Calls that overlap, and calls that fail half-way. */
export function orderingRules(test: RuleTest): void {
	test("ORD-1: puts of several namespaces at once are all stored", async ({ thread }) => {
		const spaces = Array.from({ length: 20 }, (_, n) => (n === 0 ? "" : `node:${n}`));
		const chains = await Promise.all(
			spaces.map((ns) => thread("thread", ns).chain(5, (n) => ({ values: { ns, list: Array(n).fill(ns) } }))),
		);
		for (const [at, ns] of spaces.entries())
			for (const [n, id] of (chains[at] as string[]).entries())
				assert.deepEqual(await thread("thread", ns).values(id), { ns, list: Array(n).fill(ns) });
	});

	test("ORD-1: a child, its parent and the parent's writes may be put at once", async ({ thread, nextId }) => {
		const [stub, id] = [nextId(), nextId()];
		await Promise.all([
			thread().put({ id: stub, metadata: { step: -2 }, newVersions: {} }),
			thread().write(stub, [["log", "a"]], "00000000-1"),
			thread().write(stub, [["log", "b"]], "00000001-2"),
			thread().write(id, [["__interrupt__", "?"]]),
			thread().put({ id, parent: stub, values: { a: 1 }, metadata: { step: 1 } }),
		]);
		assert.equal(await thread().parentOf(id), stub);
		assert.deepEqual(await thread().values(id), { a: 1 });
		assert.deepEqual(await thread().pending(id), [[TASK, "__interrupt__", "?"]]);
		assert.deepEqual(
			(await thread().pending(stub)).map(([, , value]) => value),
			["a", "b"],
		);
	});

	test("ORD-1: a hundred putWrites at once on one checkpoint are all stored", async ({ thread }) => {
		const id = await thread().put();
		const tasks = Array.from({ length: 100 }, (_, n) => `task ${String(n).padStart(3, "0")}`);
		await Promise.all(
			tasks.map((task) =>
				thread().write(
					id,
					[
						["a", task],
						["b", task],
					],
					task,
				),
			),
		);
		assert.deepEqual(
			await thread().pending(id),
			tasks.flatMap((task) => [
				[task, "a", task],
				[task, "b", task],
			]),
		);
	});

	test("ORD-1: puts that are not awaited are stored each with its own values", async ({ thread }) => {
		const place = thread();
		const values = Array.from({ length: 40 }, (_, n) => ({
			list: Array.from({ length: n }, (_, i) => `item ${i} of the list`),
		}));
		const ids = values.map((value) => ({ args: place.draft({ values: value }) }));
		await Promise.all(
			ids.map(({ args }, n) => {
				if (n > 0) (args[0].configurable as Record<string, string>).checkpoint_id = ids[n - 1]?.args[1].id as string;
				return place.saver.put(...args);
			}),
		);
		for (const [n, { args }] of ids.entries()) assert.deepEqual(await place.values(args[1].id), values[n]);
	});

	test.opening("ORD-2: a put that fails half-way leaves nothing", async (open) => {
		const { saver, thread } = await open(new FailingSerde(UNSTORABLE));
		const id = await thread().put({ values: { a: "stored" } });
		const before = await saver.stats();
		const values = { a: "new", b: "good", c: UNSTORABLE, d: "good" };
		await assertRejects(() => thread().put({ parent: id, values }));
		assert.deepEqual(await thread().ids(), [id]);
		assert.deepEqual(await saver.stats(), before);
	});

	test.opening("ORD-2: a repeated put that fails leaves the checkpoint as it was", async (open) => {
		const { saver, thread } = await open(new FailingSerde(UNSTORABLE));
		const id = await thread().put({ values: { a: "stored", b: ["x"] } });
		const before = await readThread(saver, "thread");
		await assertRejects(() => thread().put({ id, parent: id, values: { a: "new", b: UNSTORABLE } }));
		assert.deepEqual(await readThread(saver, "thread"), before);
	});

	test.opening("ORD-2: a putWrites that fails half-way stores none of its writes", async (open) => {
		const { saver, thread } = await open(new FailingSerde(UNSTORABLE));
		const id = await thread().put();
		await assertRejects(() =>
			thread().write(id, [
				["a", "good"],
				["b", UNSTORABLE],
				["c", "good"],
			]),
		);
		assert.deepEqual(await thread().pending(id), []);
		assert.equal((await saver.stats()).writes, 0);
		await thread().write(id, [["a", "later"]]);
		assert.deepEqual(await thread().pending(id), [[TASK, "a", "later"]]);
	});

	test("ORD-2: a reader sees a checkpoint whole or not at all", async ({ saver, thread }) => {
		const parent = await thread().put({ values: { a: 0, b: 0 } });
		for (let n = 1; n <= 20; n++) {
			const args = thread().draft({ parent, values: { a: n, b: n, c: Array(n).fill(n) } });
			const put = saver.put(...args);
			const tuple = await saver.getTuple(thread().config(args[1].id));
			if (tuple !== undefined) assert.deepEqual(tuple.checkpoint.channel_values, args[1].channel_values);
			await put;
			assert.deepEqual(await thread().values(args[1].id), args[1].channel_values);
		}
	});

	test("ORD-3: a subgraph's checkpoint can be read before that of its parent graph is there", async ({
		thread,
		nextId,
	}) => {
		const root = nextId();
		const sub = thread("thread", "node:1");
		const id = await sub.put({ values: { a: 1 }, metadata: { parents: { "": root } } });
		assert.deepEqual(await sub.values(), { a: 1 });
		assert.equal(await thread().has(root), false);
		await thread().put({ id: root, values: { b: 1 } });
		assert.deepEqual([await sub.values(id), await thread().values()], [{ a: 1 }, { b: 1 }]);
	});

	test("ORD-3: what was acknowledged is there for a saver that opens the storage now", async (scene) => {
		const thread = scene.thread();
		const ids = await thread.chain(5, (n) => ({
			values: { list: Array.from({ length: n + 1 }, (_, i) => `item ${i}`) },
		}));
		await thread.write(ids[4] as string, [["list", "pending"]]);
		const before = await readThread(scene.saver, "thread", ["list"]);
		assert.deepEqual(await readThread(await scene.reopen(), "thread", ["list"]), before);
	});

	test("ORD-3: two savers on one storage see each other's checkpoints", async (scene) => {
		const one = scene.thread();
		const two = one.through(await scene.reopen());
		const expected = new Map<string, unknown>();
		let parent: string | undefined;
		for (let n = 0; n < 12; n++) {
			const values = { list: Array.from({ length: n + 1 }, (_, i) => `item ${i} of a list that both append to`) };
			parent = await (n % 2 === 0 ? one : two).put({ parent, values, versions: { list: n + 1 } });
			expected.set(parent, values);
			for (const side of [one, two]) assert.deepEqual(await side.values(), values);
		}
		for (const [id, values] of expected) for (const side of [one, two]) assert.deepEqual(await side.values(id), values);
	});
}
