import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import { TASK } from "./thread.ts";

const VALUES: Record<string, () => unknown> = {
	"a Uint8Array": () => new Uint8Array([0, 1, 127, 128, 255]),
	"an empty Uint8Array": () => new Uint8Array(),
	"bytes that look like text": () => new TextEncoder().encode('{"json": true}'),
	"bytes that are no text": () => new Uint8Array(1000).map((_, n) => (n * 7) % 256),
	"a Date": () => new Date("2025-06-01T12:00:00.123Z"),
	"a BigInt": () => -(2n ** 100n),
	"a Map": () =>
		new Map<unknown, unknown>([
			["a", 1],
			[2, new Map([["b", null]])],
		]),
	"a Set": () => new Set<unknown>(["a", 1, "b"]),
	"an object with a key of the value undefined": () => ({ a: undefined, b: 1 }),
	"an array with undefined in it": () => [undefined, 1, undefined],
	NaN: () => Number.NaN,
	Infinity: () => Number.POSITIVE_INFINITY,
	"negative Infinity": () => Number.NEGATIVE_INFINITY,
	"negative zero": () => -0,
	undefined: () => undefined,
	null: () => null,
	false: () => false,
	"an empty string": () => "",
	"an empty array": () => [],
	"an empty object": () => ({}),
	"a large integer": () => Number.MAX_SAFE_INTEGER,
	"a small fraction": () => Number.MIN_VALUE,
	"a string with emoji and NUL": () => "🧵\u0000é\u2028",
	"half a surrogate pair": () => "\ud800x",
	"a key named __proto__": () => JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}'),
	"keys of every kind": () => ({ "": 1, "a.b": 2, "0": 3, é: 4, "a\u0000b": 5, $: 6 }),
	"what looks like a serialized constructor": () => ({ lc: 2, type: "constructor", id: ["Set"], args: [[1]] }),
	"what looks like a serialized undefined": () => ({ lc: 2, type: "undefined" }),
	"a deep nest": () =>
		Array.from({ length: 60 }).reduce<unknown>((inner, _, n) => (n % 2 ? { inner } : [inner]), "core"),
};

/** The saver's own codec gives back what it was given. */
export function losslessRules(test: RuleTest): void {
	for (const [kind, create] of Object.entries(VALUES)) {
		test(`SER-4: ${kind} comes back as it was, as a channel, in a list, in an object and as a write`, async ({
			thread,
		}) => {
			const values = { top: create(), list: [1, create(), "end"], object: { before: 1, nested: { value: create() } } };
			const id = await thread().put({ values, versions: { top: 1, list: 1, object: 1 } });
			await thread().write(id, [
				["top", create()],
				["list", [create()]],
			]);
			const stored = await thread().values(id);
			assert.deepEqual(stored, values);
			assert.deepEqual(await thread().pending(id), [
				[TASK, "top", create()],
				[TASK, "list", [create()]],
			]);
			assert.equal(({} as { polluted?: boolean }).polluted, undefined);
		});

		test(`SER-4: ${kind} comes back from a list and an object that changed around it`, async ({ thread }) => {
			const padding = Array.from({ length: 20 }, (_, n) => `padding ${n}`);
			const states = [
				{ list: [...padding, create()], object: { ...padding, value: create() } },
				{ list: [...padding, create(), create()], object: { ...padding, value: create(), more: create() } },
				{
					list: [...padding.slice(3), create(), "x", create()],
					object: { ...padding, value: "other", more: create() },
				},
				{ list: [create()], object: { value: create() } },
			];
			const ids = await thread().chain(states.length, (n) => ({ values: states[n] }));
			for (const [n, id] of ids.entries()) assert.deepEqual(await thread().values(id), states[n]);
		});
	}

	test("SER-4: bytes are stored as they are at any offset of a larger buffer", async ({ thread }) => {
		const buffer = new Uint8Array(64).map((_, n) => n);
		const values = { middle: buffer.subarray(10, 20), list: [buffer.subarray(60), buffer.subarray(0, 1)] };
		const id = await thread().put({ values });
		const stored = (await thread().values(id)) as typeof values;
		assert.deepEqual([...stored.middle], [...values.middle]);
		assert.deepEqual(
			stored.list.map((bytes) => [...bytes]),
			values.list.map((bytes) => [...bytes]),
		);
	});
}
