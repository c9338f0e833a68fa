import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Draft } from "./thread.ts";

/** Channel versions are kept, never understood. */
export function versionRules(test: RuleTest): void {
	test("VER-1: versions come back with their type", async ({ thread }) => {
		const versions = {
			int: 1,
			float: 1.5,
			large: 2 ** 40,
			text: "1",
			padded: "00000000000000000000000000000002.0.5",
			zero: 0,
		};
		const seen = { __input__: {}, node: versions, other: { int: 1, text: "" }, "": { int: 7 } };
		const id = await thread().put({ values: { int: "a" }, versions, newVersions: { int: 1 }, seen });
		const { checkpoint } = await thread().read(id);
		assert.deepEqual(checkpoint.channel_versions, versions);
		assert.deepEqual(checkpoint.versions_seen, seen);
	});

	test("VER-1: a version without a value and without a mention in newVersions is kept", async ({ thread }) => {
		const id = await thread().put({ values: {}, versions: { a: 4, b: "x" }, newVersions: {} });
		assert.deepEqual((await thread().read(id)).checkpoint.channel_versions, { a: 4, b: "x" });
	});

	test("VER-2: a thread with string versions works like one with numbers", async ({ thread }) => {
		const version = (n: number) => `${String(n).padStart(32, "0")}.0${n}123`;
		const ids = await thread().chain(
			10,
			(n): Draft => ({
				values: { log: Array.from({ length: n }, (_, i) => i), fixed: "f" },
				versions: { log: version(n), fixed: version(0) },
				newVersions: n === 0 ? { log: version(0), fixed: version(0) } : { log: version(n) },
			}),
		);
		for (const [n, id] of ids.entries())
			assert.deepEqual(await thread().values(id), { log: Array.from({ length: n }, (_, i) => i), fixed: "f" });
	});

	test("VER-2: a thread may change from numbers to strings", async ({ thread }) => {
		const first = await thread().put({ values: { a: "x", b: "y" }, versions: { a: 1, b: 1 } });
		const versions = { a: "2.5", b: 1 };
		const second = await thread().put({
			parent: first,
			values: { a: "z", b: "y" },
			versions,
			newVersions: { a: "2.5" },
		});
		const { checkpoint } = await thread().read(second);
		assert.deepEqual(checkpoint.channel_values, { a: "z", b: "y" });
		assert.deepEqual(checkpoint.channel_versions, versions);
		assert.deepEqual(await thread().values(first), { a: "x", b: "y" });
	});

	test("VER-3: getNextVersion works without this", async ({ saver }) => {
		const { getNextVersion } = saver;
		const first = getNextVersion.call(undefined as never, undefined);
		assert.ok(getNextVersion.call(undefined as never, first) > first);
	});

	test("VER-4: getNextVersion answers at once with ever greater versions", async ({ saver }) => {
		let current = saver.getNextVersion(undefined);
		assert.ok(["number", "string"].includes(typeof current), `the first version is ${typeof current}`);
		for (let n = 0; n < 100; n++) {
			const next = saver.getNextVersion(current);
			assert.equal(typeof next, typeof current);
			assert.ok(next > current, `${next} does not follow ${current}`);
			current = next;
		}
	});

	test("VER-4: getNextVersion depends on nothing but its argument", async ({ saver, thread }) => {
		const first = saver.getNextVersion(undefined);
		if (typeof first !== "number") return;
		await thread().chain(3);
		for (let n = 0; n < 10; n++) saver.getNextVersion(n);
		assert.equal(saver.getNextVersion(undefined), first);
		assert.equal(saver.getNextVersion(7), 8);
	});
}
