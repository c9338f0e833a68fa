import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";

/** Around the sizes at which stores switch from inline to separate, from whole to patched, from plain to compressed. */
const SIZES = [0, 1, 63, 64, 65, 127, 128, 255, 256, 1000, 4096, 65_535, 65_536, 100_000];

const item = (n: number) => ({ id: `item ${n}`, text: `text of item ${n}, long enough to matter`, n });
const items = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => item(from + n));

/** Letters without a pattern, enough to cut texts from. */
const LETTERS = Array.from({ length: 110_000 }, (_, n) =>
	String.fromCharCode(97 + ((Math.imul(n, n + 7) >>> 5) % 26)),
).join("");
const text = (size: number, from = 0) => LETTERS.slice(from * 50, from * 50 + size);

/** Each a history of one channel: every state must be read back as it was put. */
const SHAPES: Record<string, unknown[]> = {
	"a list that is appended to": [items(0, 1), items(0, 2), items(0, 20), items(0, 21)],
	"a list that is trimmed at its head": [items(0, 20), items(1, 20), items(15, 20), items(19, 20)],
	"a list that slides": [items(0, 10), items(1, 11), items(2, 12), items(12, 22)],
	"a list edited in the middle": [
		items(0, 20),
		items(0, 20).with(10, item(99)),
		items(0, 20).with(0, item(98)).with(19, item(97)),
	],
	"a list with an item put in and taken out": [
		items(0, 10),
		items(0, 10).toSpliced(5, 0, item(99)),
		items(0, 10).toSpliced(2, 3),
	],
	"a list whose last item is replaced": [items(0, 20), items(0, 20).with(-1, item(99)), items(0, 19)],
	"a list that is emptied and filled": [items(0, 5), [], items(0, 5), [], []],
	"a list that is turned round and sorted": [items(0, 10), items(0, 10).reverse(), items(0, 10)],
	"a list of equal items": [
		Array(10).fill("x"),
		Array(11).fill("x"),
		Array(9).fill("x"),
		[...Array(4).fill("x"), "y", ...Array(4).fill("x")],
	],
	"a list of lists": [[[1], [2, 3]], [[1], [2, 3, 4]], [[1, 1], [2, 3, 4], []], [[]]],
	"an object with keys set and removed": [{ a: 1 }, { a: 1, b: 2 }, { b: 2, c: { d: 1 } }, {}, { a: undefined }],
	"an object edited deep down": [
		{ a: { b: { c: items(0, 5) } }, z: text(500) },
		{ a: { b: { c: items(0, 6) } }, z: text(500) },
		{ a: { b: { c: items(0, 6), d: 1 } }, z: text(500) },
		{ a: { b: {} }, z: text(499) },
	],
	"an object of files": [
		Object.fromEntries(items(0, 20).map((file) => [file.id, text(400, file.n)])),
		{ ...Object.fromEntries(items(0, 20).map((file) => [file.id, text(400, file.n)])), "item 7": text(401, 3) },
	],
	"an object whose keys change their order": [
		{ a: 1, b: 2, c: 3 },
		{ c: 3, b: 2, a: 1 },
	],
	"an object with index keys": [
		{ "0": "a", "1": "b" },
		{ "0": "a", "2": "c" },
		{ length: 1, "0": "x" },
	],
	"a string that grows": [text(10), text(100), text(1000), text(10_000), text(10_001)],
	"a string edited in the middle": [text(1000), `${text(500)}X${text(1000).slice(501)}`, text(500), ""],
	"a string of emoji that grows": [
		"🧵".repeat(100),
		`${"🧵".repeat(100)}\ud83e\uddf5`,
		`${"🧵".repeat(99)}\ud83e`,
		"🧵".repeat(99),
	],
	"a string cut inside a surrogate pair": [`${text(200)}🧵`, `${text(200)}🧶`, `${text(200)}🧵🧶`],
	"bytes that grow": [
		new Uint8Array(100).fill(1),
		new Uint8Array(200).fill(1),
		new Uint8Array(0),
		new Uint8Array(100).fill(2),
	],
	"a channel that changes its type": [
		items(0, 9),
		text(300),
		{ a: items(0, 9) },
		7,
		null,
		undefined,
		[1],
		new Map([["a", 1]]),
		true,
		items(0, 9),
	],
	"an array and an object with the same entries": [["a", "b"], { "0": "a", "1": "b" }, ["a", "b"]],
	"values that JSON holds for equal": [
		[0],
		[-0],
		[null],
		[undefined],
		[Number.NaN],
		[[]],
		[{}],
		[""],
		["0"],
		[0n],
		[false],
	],
	"dates and sets inside a list": [
		[new Date(0)],
		[new Date(0), new Set([1])],
		[new Date(1), new Set([1])],
		[new Date(1), new Set([2])],
	],
	"no change at all": [items(0, 9), items(0, 9), items(0, 9)],
};

/** Values of every size and shape of change. */
export function valueShapeRules(test: RuleTest): void {
	for (const size of SIZES) {
		test(`CH-2: values of ${size} bytes come back, and so do their changes`, async ({ thread }) => {
			const kinds: ((size: number) => unknown)[] = [
				(n) => text(n),
				(n) => new Uint8Array(n).map((_, at) => at % 251),
				(n) => ["head", text(n)],
				(n) => ({ key: text(n), other: n }),
				(n) => Array.from({ length: Math.ceil(n / 100) }, (_, at) => text(Math.min(n, 100), at)),
			];
			const states = [size, size + 1, Math.max(0, size - 1), size].map((n) =>
				Object.fromEntries(kinds.map((kind, at) => [`kind ${at}`, kind(n)])),
			);
			const ids = await thread().chain(states.length, (n) => ({ values: states[n] }));
			for (const [n, id] of ids.entries()) assert.deepEqual(await thread().values(id), states[n]);
		});
	}

	for (const [shape, states] of Object.entries(SHAPES)) {
		test(`CH-2: ${shape} reads back at every step`, async (scene) => void (await assertReadsBack(scene, states)));
		test(`CH-2: ${shape} reads back at every step after its root was pruned`, async (scene) => {
			const ids = await assertReadsBack(scene, states);
			await scene.saver.prune(["thread"], { keepLast: ids.length - 1 });
			for (const [n, id] of ids.slice(1).entries())
				assert.deepEqual(await scene.thread().values(id), { it: states[n + 1] });
		});
	}
}

async function assertReadsBack(scene: Scene, states: unknown[]): Promise<string[]> {
	const thread = scene.thread();
	const ids = await thread.chain(states.length, (n) => ({ values: { it: states[n] }, versions: { it: n + 1 } }));
	for (const [n, id] of ids.entries()) assert.deepEqual(await thread.values(id), { it: states[n] });
	const reopened = thread.through(await scene.reopen());
	for (const [n, id] of ids.entries()) assert.deepEqual(await reopened.values(id), { it: states[n] });
	return ids;
}
