import assert from "node:assert/strict";
import { promised } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect, TASK } from "./thread.ts";

const STRANGE: [kind: string, text: string][] = [
	["__proto__", "__proto__"],
	["constructor", "constructor"],
	["toString", "toString"],
	["a number", "42"],
	["a padded number", "042"],
	["a float", "42.0"],
	["single quotes", "it's '' \\' --"],
	["double quotes", '"a" "" \\"'],
	["an SQL comment", "'; DROP TABLE checkpoints; --"],
	["percent", "100%"],
	["underscore", "a_b"],
	["a glob", "a*[?]"],
	["a path", "../../etc/passwd"],
	["a JSON path", "$.thread_id[0]"],
	["emoji", "🧵👩‍👩‍👧‍👦"],
	["spaces", " a  b "],
	["line breaks", "a\r\nb\n"],
	["a NUL", "a\u0000b"],
	["only a NUL", "\u0000"],
	["other control characters", "\u0001\u001f\u007f\u2028"],
	["10 kB", "x".repeat(10_000)],
	["10 kB, another end", `${"x".repeat(9_999)}y`],
];

/** Ids that a prefix, a pattern, a number conversion, a collation or a normalisation would confuse. */
const NEIGHBOURS = [
	["a", "ab", "abc", "A", "a ", " a", "a%", "a_", "a*", "a\u0000", "a\u0000b", "á", "a\u0301"],
	["1", "01", "1.0", "1e0", "+1", "1n"],
	["null", "undefined", "NaN", "true"],
];

/** Any string is a legal id, and no two of them are the same. */
export function strangeIdRules(test: RuleTest): void {
	for (const [kind, text] of STRANGE) {
		test(`ID-6: ${kind} is a legal thread id`, async ({ saver, thread }) => {
			const strange = thread(text);
			const [parent, id] = (await strange.chain(2)) as [string, string];
			await strange.write(id, [["step", text]]);
			const tuple = await strange.read();
			assert.deepEqual(tuple.config, strange.config(id));
			assert.deepEqual(tuple.parentConfig, strange.config(parent));
			assert.deepEqual(tuple.pendingWrites, [[TASK, "step", text]]);
			assert.deepEqual(await strange.ids(), [id, parent]);
			assert.equal((await collect(saver.list({}))).length, 2);
			await saver.deleteThread(text);
			assert.deepEqual(await strange.ids(), []);
		});

		test(`ID-6: ${kind} is a legal namespace, checkpoint id, task id and channel`, async ({ saver, thread }) => {
			const strange = thread("thread", text);
			const values = Object.fromEntries([[text, { [text]: text }]]);
			const id = await strange.put({ id: text, values, metadata: { [text]: text }, seen: { [text]: { [text]: 1 } } });
			await strange.write(id, [[text, text]], text);
			const tuple = await strange.read();
			assert.deepEqual(tuple.config, strange.config(text));
			assert.deepEqual(Object.entries(tuple.checkpoint.channel_values), Object.entries(values));
			assert.deepEqual(Object.entries(tuple.checkpoint.channel_versions), [[text, 1]]);
			assert.deepEqual(tuple.pendingWrites, [[text, text, text]]);
			assert.equal(Object.hasOwn(tuple.metadata ?? {}, text), true);
			const child = await strange.put({ id: `${text}child`, parent: text, values: {} });
			assert.deepEqual(await strange.replay(child, text), { writes: [text], seed: values[text] });
			assert.equal((await collect(saver.list(thread().config()))).length, 0);
		});
	}

	for (const ids of NEIGHBOURS) {
		test(`ID-6: neighbours such as ${JSON.stringify(ids.slice(0, 3))} are different threads`, async ({
			saver,
			thread,
		}) => {
			for (const id of ids) await thread(id).put({ values: { id } });
			for (const id of ids) {
				assert.deepEqual(await thread(id).values(), { id });
				assert.equal((await thread(id).ids()).length, 1);
			}
			await saver.deleteThread(ids[0] as string);
			assert.equal(await saver.getTuple(thread(ids[0]).config()), undefined);
			for (const id of ids.slice(1)) assert.deepEqual(await thread(id).values(), { id });
			await saver.prune([ids[1] as string], { strategy: "delete" });
			for (const id of ids.slice(2)) assert.deepEqual(await thread(id).values(), { id });
		});

		test(`ID-6: neighbours such as ${JSON.stringify(ids.slice(0, 3))} are different namespaces`, async ({ thread }) => {
			for (const ns of ids) await thread("thread", ns).put({ values: { ns } });
			for (const ns of ids) {
				assert.deepEqual(await thread("thread", ns).values(), { ns });
				assert.equal((await thread("thread", ns).ids()).length, 1);
			}
		});
	}

	test("ID-6: ids that differ only in half a surrogate pair are refused or kept apart", async ({ thread }) => {
		const halves = ["x\ud800", "x\ud801", "x\udfff"];
		const accepted = await putEach(thread, halves);
		for (const id of accepted) assert.deepEqual(await thread(id).values(), { id: halves.indexOf(id) });
	});

	test("ID-6: no id reaches the prototype of plain objects", async ({ thread }) => {
		for (const text of ["__proto__", "constructor", "prototype"]) {
			const strange = thread(text, text);
			await strange.put({ id: text, values: Object.fromEntries([[text, { polluted: true }]]) });
			await strange.write(text, [[text, { polluted: true }]], text);
			await strange.read();
		}
		assert.equal(({} as { polluted?: boolean }).polluted, undefined);
	});
}

/** Puts one checkpoint on each thread and gives the ids that were accepted. */
async function putEach(thread: Scene["thread"], ids: string[]): Promise<string[]> {
	const accepted: string[] = [];
	for (const [n, id] of ids.entries()) {
		const place = thread(id);
		const put = promised(() => place.put({ values: { id: n } }));
		if (
			await put.then(
				() => true,
				() => false,
			)
		)
			accepted.push(id);
	}
	return accepted;
}
