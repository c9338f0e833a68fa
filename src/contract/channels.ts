import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Draft } from "./thread.ts";

/** What a checkpoint contains is what was put with it, whatever its versions say. */
export function channelRules(test: RuleTest): void {
	test("CH-1: a channel left out of channel_values is absent, though the parent has it", async ({ thread }) => {
		const parent = await thread().put({ values: { kept: 1, left: 2 }, versions: { kept: 1, left: 1 } });
		const id = await thread().put({ parent, values: { kept: 1 }, versions: { kept: 1, left: 1 }, newVersions: {} });
		assert.deepEqual(await thread().values(id), { kept: 1 });
		assert.deepEqual(await thread().values(parent), { kept: 1, left: 2 });
	});

	test("CH-1: a channel that left comes back only when it is put again", async ({ thread }) => {
		const first = await thread().put({ values: { a: "one" }, versions: { a: 1 } });
		const second = await thread().put({ parent: first, values: {}, versions: { a: 1 }, newVersions: {} });
		const third = await thread().put({ parent: second, values: {}, versions: { a: 1 }, newVersions: {} });
		const fourth = await thread().put({
			parent: third,
			values: { a: "two" },
			versions: { a: 2 },
			newVersions: { a: 2 },
		});
		assert.deepEqual(await thread().values(second), {});
		assert.deepEqual(await thread().values(third), {});
		assert.deepEqual(await thread().values(fourth), { a: "two" });
	});

	test("CH-2: a new version without a value leaves the channel empty and keeps the version", async ({ thread }) => {
		const parent = await thread().put({ values: { __start__: { q: 1 }, a: 1 }, versions: { __start__: 1, a: 1 } });
		const versions = { __start__: 2, a: 1, "branch:to:x": 2 };
		const newVersions = { __start__: 2, "branch:to:x": 2 };
		const id = await thread().put({ parent, values: { a: 1 }, versions, newVersions });
		const { checkpoint } = await thread().read(id);
		assert.deepEqual(checkpoint.channel_values, { a: 1 });
		assert.deepEqual(checkpoint.channel_versions, versions);
	});

	test("CH-2: a channel named in newVersions takes its new value, even with the version of the parent", async ({
		thread,
	}) => {
		const parent = await thread().put({ values: { a: "old" }, versions: { a: 1 } });
		const id = await thread().put({ parent, values: { a: "new" }, versions: { a: 1 }, newVersions: { a: 1 } });
		assert.deepEqual(await thread().values(id), { a: "new" });
		assert.deepEqual(await thread().values(parent), { a: "old" });
	});

	for (const source of ["update", "fork"] as const) {
		test(`CH-3: a put of source ${source} stores what changed although newVersions does not name it`, async ({
			thread,
		}) => {
			const before = { result: ["first"], "branch:to:a": null, "branch:to:b": null, other: 1 };
			const versions = { result: 2, "branch:to:a": 2, "branch:to:b": 2, other: 1 };
			const parent = await thread().put({ values: before, versions });
			const after = { result: ["first", "of the sibling"], other: 2 };
			const newVersions = { other: 3 };
			const id = await thread().put({
				parent,
				values: after,
				versions: { ...versions, other: 3 },
				newVersions,
				source,
			});
			assert.deepEqual(await thread().values(id), after);
			assert.deepEqual(await thread().values(parent), before);
			const child = await thread().put({
				parent: id,
				values: after,
				versions: { ...versions, other: 3 },
				newVersions: {},
			});
			assert.deepEqual(await thread().values(child), after);
		});
	}

	test("CH-4: channels without a version are stored too", async ({ thread }) => {
		const values = { a: 1, __pregel_tasks: [], "join:x+y:z": [], context: undefined, settings: { theme: "dark" } };
		const first = await thread().put({ values, versions: { a: 1 } });
		const second = await thread().put({ parent: first, values: { ...values, a: 2 }, versions: { a: 2 } });
		assert.deepEqual(await thread().values(first), values);
		assert.deepEqual(await thread().values(second), { ...values, a: 2 });
	});

	test("CH-4: a channel without a version may change from one checkpoint to the next", async ({ thread }) => {
		const contents = [[], [{ node: "a", args: 1 }], [], ["x".repeat(200)], undefined, { set: true }, []];
		const ids = await thread().chain(
			contents.length,
			(n): Draft => ({
				values: { a: 1, __pregel_tasks: contents[n] },
				versions: { a: 1 },
				newVersions: n === 0 ? { a: 1 } : {},
			}),
		);
		for (const [n, id] of ids.entries())
			assert.deepEqual(await thread().values(id), { a: 1, __pregel_tasks: contents[n] });
	});

	test("CH-5: an undefined value, a null and a missing channel are three things", async ({ thread }) => {
		const parent = await thread().put({
			values: { none: undefined, nil: null, gone: 1 },
			versions: { none: 1, nil: 1, gone: 1 },
		});
		const versions = { none: 1, nil: 1, gone: 2 };
		const child = await thread().put({
			parent,
			values: { none: undefined, nil: null },
			versions,
			newVersions: { gone: 2 },
		});
		for (const id of [parent, child]) {
			const values = await thread().values(id);
			assert.equal(Object.hasOwn(values, "none"), true);
			assert.equal(values.none, undefined);
			assert.equal(values.nil, null);
			assert.equal(Object.hasOwn(values, "gone"), id === parent);
		}
	});

	test("CH-6: a channel carried over unchanged needs no entry in newVersions", async ({ thread }) => {
		const values = { messages: ["a"], count: 0 };
		let parent = await thread().put({ values, versions: { messages: 1, count: 1 }, source: "input" });
		for (let n = 1; n <= 5; n++) {
			const newVersions = { count: n + 1 };
			const versions = { messages: 1, ...newVersions };
			parent = await thread().put({ parent, values: { ...values, count: n }, versions, newVersions });
			assert.deepEqual(await thread().values(parent), { messages: ["a"], count: n });
		}
	});

	test("CH-6: content that is stored already is not stored again", async ({ saver, thread }) => {
		const values = { big: Array.from({ length: 1000 }, (_, n) => `item ${n}`), text: "x".repeat(20_000) };
		const versions = { big: 1, text: 1 };
		const parent = await thread().put({ values, versions });
		const blobsBefore = (await saver.stats()).bytes.blobs;
		for (const source of ["loop", "input", "update", "fork"] as const)
			await thread().put({ parent, values: structuredClone(values), versions, newVersions: {}, source });
		await thread().put({ id: parent, parent, values, versions, newVersions: {} });
		assert.equal((await saver.stats()).bytes.blobs, blobsBefore);
	});

	test("CH-6: without a parent, a versioned channel that nothing has told of is left out", async ({ thread }) => {
		const values = { foo: "bar", baz: "qux" };
		const versions = { foo: 1, baz: 1 };
		for (const [newVersions, expected] of [
			[{}, {}],
			[{ foo: 1 }, { foo: "bar" }],
			[{ foo: 1, baz: 1 }, values],
		] as const) {
			await thread().put({ values, versions, newVersions });
			assert.deepEqual(await thread().values(), expected);
		}
	});

	test("CH-7: a repeated put carries over its own earlier values, not those of its parent", async ({ thread }) => {
		const versions = { a: 1 };
		const parent = await thread().put({ values: { a: "of the parent" }, versions });
		const id = await thread().put({ parent, values: { a: "its own" }, versions, newVersions: {}, source: "update" });
		await thread().put({ id, parent: id, values: { a: "its own" }, versions, newVersions: {} });
		assert.deepEqual(await thread().values(id), { a: "its own" });
		assert.deepEqual(await thread().values(parent), { a: "of the parent" });
	});

	test("CH-8: a delta channel without a value stays absent, though its version has one elsewhere", async ({
		thread,
	}) => {
		const versions = { log: 3 };
		const snapshot = await thread().put({ values: { log: ["a", "b"] }, versions });
		const id = await thread().put({ parent: snapshot, values: {}, versions, newVersions: {}, source: "update" });
		const next = await thread().put({ parent: id, values: {}, versions, newVersions: { log: 3 } });
		assert.equal(Object.hasOwn(await thread().values(id), "log"), false);
		assert.equal(Object.hasOwn(await thread().values(next), "log"), false);
	});

	test("CH-11: channels come back in the order they were put in", async ({ thread }) => {
		const values = { zeta: 1, alpha: 2, "branch:to:m": null, __start__: 3, beta: undefined };
		const id = await thread().put({ values });
		const child = await thread().put({
			parent: id,
			values: { beta: undefined, zeta: 1, alpha: 9 },
			versions: { alpha: 2 },
		});
		assert.deepEqual(Object.keys(await thread().values(id)), Object.keys(values));
		assert.deepEqual(Object.keys(await thread().values(child)), ["beta", "zeta", "alpha"]);
	});
}
