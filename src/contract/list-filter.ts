import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";

/** Keys that mean something to SQL, JSON paths, patterns or JavaScript objects. */
const KEYS = [
	"a.b",
	"a'b",
	'a"b',
	"$",
	"$.step",
	"[0]",
	"a[0]",
	"#-1",
	"a\\b",
	"%",
	"_",
	"*",
	"",
	" ",
	"a b",
	"é",
	"🧵",
	"') OR 1=1 --",
	'") OR ("1"="1',
	"__proto__",
	"constructor",
	"a\u0000b",
	"a/b",
	"a~0b",
	"a,b",
	"{a}",
	"step ",
	"x".repeat(2000),
];

/** What a key would find if it were read as a path. */
const NESTED = { a: { b: "nested", "0": "nested" }, $: "other" };

/** Metadata filters compare top-level keys with JSON values, all of them. */
export function listFilterRules(test: RuleTest): void {
	test("LIST-3: every key of the filter must be equal", async ({ thread }) => {
		const ids = await thread().chain(6, (n) => ({
			source: n % 2 === 0 ? "input" : "loop",
			metadata: { step: n, kind: n % 3 },
		}));
		assert.deepEqual(await thread().ids({ filter: { source: "loop" } }), [ids[5], ids[3], ids[1]]);
		assert.deepEqual(await thread().ids({ filter: { step: 4 } }), [ids[4]]);
		assert.deepEqual(await thread().ids({ filter: { source: "input", kind: 2 } }), [ids[2]]);
		assert.deepEqual(await thread().ids({ filter: { source: "input", step: 1 } }), []);
		assert.deepEqual(await thread().ids({ filter: { unknown: 1 } }), []);
		assert.equal((await thread().ids({ filter: {} })).length, 6);
	});

	test("LIST-3: a filter key with the value undefined is ignored", async ({ thread }) => {
		const ids = await thread().chain(3, (n) => ({ metadata: { step: n } }));
		assert.deepEqual(await thread().ids({ filter: { source: undefined, step: 1, other: undefined } }), [ids[1]]);
		assert.equal((await thread().ids({ filter: { other: undefined } })).length, 3);
	});

	test("LIST-3: the filter comes before the limit", async ({ thread }) => {
		const ids = await thread().chain(8, (n) => ({ metadata: { even: n % 2 === 0 } }));
		assert.deepEqual(await thread().ids({ filter: { even: true }, limit: 2 }), [ids[6], ids[4]]);
		assert.deepEqual(await thread().ids({ filter: { even: true }, limit: 2, before: thread().config(ids[4]) }), [
			ids[2],
			ids[0],
		]);
		assert.deepEqual(await thread().ids({ filter: { even: true }, limit: 0 }), []);
	});

	for (const [kind, value] of Object.entries({
		"an empty object": {},
		"an object": { "": "1f000000", a: { b: [1, null] } },
		"an array": [1, "two", { three: 3 }],
		"an empty array": [],
		true: true,
		false: false,
		null: null,
		"an empty string": "",
		"a string with quotes": `it's "so"`,
		zero: 0,
		"a negative number": -2,
		"a fraction": 0.1,
	})) {
		test(`LIST-3: ${kind} can be filtered by`, async ({ thread }) => {
			const other = await thread().put({ metadata: { mark: "other" } });
			const id = await thread().put({ metadata: { mark: value } });
			const without = await thread().put();
			assert.deepEqual(await thread().ids({ filter: { mark: value } }), [id]);
			assert.deepEqual(await thread().ids(), [without, id, other]);
		});
	}

	test("LIST-3: values of different types are different", async ({ thread }) => {
		const values = [1, "1", true, "true", null, "null", [1], { "0": 1 }, 0, false, ""];
		const ids: string[] = [];
		for (const mark of values) ids.push(await thread().put({ metadata: { mark } }));
		for (const [n, mark] of values.entries()) assert.deepEqual(await thread().ids({ filter: { mark } }), [ids[n]]);
	});

	test("LIST-3: an object value must be equal as a whole", async ({ thread }) => {
		const id = await thread().put({ metadata: { parents: { "": "x", sub: "y" } } });
		assert.deepEqual(await thread().ids({ filter: { parents: { "": "x", sub: "y" } } }), [id]);
		assert.deepEqual(await thread().ids({ filter: { parents: { "": "x" } } }), []);
		assert.deepEqual(await thread().ids({ filter: { parents: {} } }), []);
	});

	for (const key of KEYS) {
		test(`LIST-3: ${JSON.stringify(key.slice(0, 20))} is looked up as one top-level key`, async ({ thread }) => {
			await thread().put({ metadata: { ...NESTED, step: 1 } });
			const id = await thread().put({ metadata: { ...NESTED, [key]: "mine" } });
			await thread().put({ metadata: { ...NESTED, [key]: "not mine" } });
			assert.deepEqual(await thread().ids({ filter: { [key]: "mine" } }), [id]);
			assert.deepEqual(await thread().ids({ filter: { [key]: "nested" } }), []);
			assert.deepEqual(await thread().ids({ filter: { [key]: "mine", source: "loop" } }), [id]);
		});
	}

	test("LIST-3: a key that objects inherit matches nothing", async ({ thread }) => {
		await thread().put();
		for (const key of ["constructor", "toString", "__proto__"])
			for (const value of [null, {}, Object.prototype.toString.call(key)])
				assert.deepEqual(await thread().ids({ filter: { [key]: value } }), []);
	});

	test("LIST-3: a filter works over all threads and within one namespace", async ({ saver, thread }) => {
		for (const threadId of ["a", "b"])
			for (const ns of ["", "sub"]) await thread(threadId, ns).put({ metadata: { mark: ns } });
		const marks: string[] = [];
		for await (const { config } of saver.list({}, { filter: { mark: "sub" } }))
			marks.push(config.configurable?.thread_id);
		assert.deepEqual(marks, ["b", "a"]);
		assert.equal((await thread("a", "sub").ids({ filter: { mark: "" } })).length, 0);
	});
}
