import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LAYOUT } from "../../../src/codec/format.ts";
import { pack } from "../../../src/codec/messagepack.ts";
import {
	applyPatches as applyLayers,
	diffBytes as diff,
	type Layer,
	sameBytes,
} from "../../../src/engine/blobs/byte-delta.ts";
import { isCorrupt } from "../../../src/errors.ts";
import { chat, concat, noise, random, repeat, splice } from "../../support/byte-samples.ts";

/** What a patch may take besides the bytes that are new, for each place where something changed. */
const PLACE = 24;

const SEED = 20261116;

const diffBytes = (base: Uint8Array, next: Uint8Array) => diff(base, next).patch;
const applyPatches = (base: Uint8Array, patches: readonly Uint8Array[]) =>
	applyLayers(
		base,
		patches.map((patch) => ({ patch })),
	);

describe("a patch", () => {
	const kinds: Record<string, Uint8Array> = {
		noise: noise(60_000, 1),
		chat: chat(400),
		zeros: new Uint8Array(60_000),
		"one record again and again": repeat(noise(100, 2), 600),
	};

	describe.each(Object.entries(kinds))("of %s", (_, base) => {
		const added = noise(500, 3);
		const end = base.length;
		const middle = end >> 1;
		const edits: Record<string, [next: Uint8Array, most: number]> = {
			"nothing changed": [base.slice(), PLACE],
			"bytes appended": [concat(base, added), 500 + PLACE],
			"bytes put before": [concat(added, base), 500 + 2 * PLACE],
			"bytes put in the middle": [splice(base, middle, 0, added), 500 + 2 * PLACE],
			"bytes put in at five places": [spliceMany(base, 5, 0, 100), 500 + 6 * PLACE],
			"the end cut off": [base.subarray(0, end - 500), PLACE],
			"the beginning cut off": [base.subarray(500), 2 * PLACE],
			"a part cut out": [splice(base, middle, 500), 2 * PLACE],
			"parts cut out at five places": [spliceMany(base, 5, 100, 0), 6 * PLACE],
			"the last bytes replaced": [splice(base, end - 300, 300, added), 500 + 2 * PLACE],
			"a byte changed": [splice(base, middle, 1, new Uint8Array([base[middle]! ^ 1])), 1 + 2 * PLACE],
			"a byte changed at 30 places": [flipped(base, 30), 30 * (1 + PLACE)],
			"bytes replaced at five places": [spliceMany(base, 5, 100, 100), 500 + 6 * PLACE],
			"longer bytes at five places": [spliceMany(base, 5, 100, 300), 1_500 + 6 * PLACE],
			"a window slid on": [concat(base.subarray(500), added), 500 + 2 * PLACE],
			"a window slid on and edited": [
				splice(concat(base.subarray(500), added), middle, 10, noise(10, 4)),
				510 + 4 * PLACE,
			],
			"everything replaced": [noise(1_000, 5), 1_000 + PLACE],
			"nothing left": [new Uint8Array(0), 2],
		};

		it.each(Object.entries(edits))("with %s is as large as what is new", (_, [next, most]) => {
			const patch = diffBytes(base, next);
			expectBytes(applyPatches(base, [patch]), next);
			expect(patch.length).toBeLessThanOrEqual(most);
		});
	});

	it("of a chat with ten messages grown is as large as what is new", () => {
		const long = (n: number) => Buffer.from(noise(150, n)).toString("base64");
		const next = chat(400, (n) => (n % 40 === 7 ? long(n) : `answer ${n}`));
		expect(diffBytes(chat(400), next).length).toBeLessThanOrEqual(10 * (200 + 3 * PLACE));
	});

	it("of nothing, or to nothing, makes the other side", () => {
		for (const bytes of [new Uint8Array(0), new Uint8Array([1]), noise(15, 1), noise(16, 1), noise(5_000, 1)]) {
			expectBytes(applyPatches(new Uint8Array(0), [diffBytes(new Uint8Array(0), bytes)]), bytes);
			expectBytes(applyPatches(bytes, [diffBytes(bytes, new Uint8Array(0))]), new Uint8Array(0));
		}
	});

	it("does not depend on where in a buffer its sides are, nor on their class", () => {
		const whole = noise(9_000, 6);
		const [base, next] = [whole.subarray(100, 8_200), whole.subarray(300, 8_900)];
		const patch = diffBytes(base, next);
		expectBytes(diffBytes(Buffer.from(base), Buffer.from(next)), patch);
		expectBytes(applyPatches(Buffer.from(base), [Buffer.from(patch)]), next);
	});

	it("leaves both sides as they are", () => {
		const [base, next] = [noise(5_000, 7), splice(noise(5_000, 7), 100, 50, noise(90, 8))];
		const [baseBefore, nextBefore] = [base.slice(), next.slice()];
		applyPatches(base, [diffBytes(base, next)]);
		expectBytes(base, baseBefore);
		expectBytes(next, nextBefore);
	});

	it("is never much larger than what it makes", () => {
		const sides = fc.tuple(content, content);
		fc.assert(
			fc.property(sides, ([base, next]) => diffBytes(base, next).length <= next.length + PLACE),
			{ seed: SEED, numRuns: 500 },
		);
	});
});

describe("any edits", () => {
	it("of any content are made again by the patch", () => {
		fc.assert(
			fc.property(content, edits, (base, steps) => {
				const next = steps.reduce(edit, base);
				expectBytes(applyPatches(base, [diffBytes(base, next)]), next);
			}),
			{ seed: SEED, numRuns: 1_000 },
		);
	});

	it("from any content to any other are made again by the patch", () => {
		fc.assert(
			fc.property(content, content, (base, next) => {
				expectBytes(applyPatches(base, [diffBytes(base, next)]), next);
			}),
			{ seed: SEED, numRuns: 1_000 },
		);
	});

	it("one after the other are made again by all patches at once", () => {
		fc.assert(
			fc.property(content, fc.array(edits, { maxLength: 12 }), (base, history) => {
				const states = statesOf(base, history);
				const patches = patchesOf(states);
				for (let n = 0; n < states.length; n++)
					expectBytes(applyPatches(base, patches.slice(0, n)), states[n] as Uint8Array);
			}),
			{ seed: SEED, numRuns: 300 },
		);
	});

	it("over 300 patches give the same at once as one by one", () => {
		const next = random(9);
		const history = Array.from({ length: 300 }, () => [
			{ how: Math.floor(next() * 7), at: next(), length: Math.floor(next() * 300), seed: Math.floor(next() * 1e6) },
		]);
		const base = chat(60);
		const patches = patchesOf(statesOf(base, history));
		let step = base;
		for (const patch of patches) step = applyPatches(step, [patch]);
		expectBytes(applyPatches(base, patches), step);
		for (const from of [1, 7, 150, 299]) {
			const middle = applyPatches(base, patches.slice(0, from));
			expectBytes(applyPatches(middle, patches.slice(from)), step);
		}
	});

	it("that bring a byte back through 300 patches keep it", () => {
		const states = Array.from({ length: 301 }, (_, n) => concat(noise(100, n), noise(2_000, 0), noise(n % 7, n)));
		expectBytes(applyPatches(states[0]!, patchesOf(states)), states.at(-1)!);
	});

	it("of no patches at all leave the base", () => {
		const base = noise(100, 1);
		expectBytes(applyPatches(base, []), base);
	});
});

describe("bytes that are no patch", () => {
	const base = chat(30);
	const next = splice(splice(base, 1_000, 200, noise(150, 1)), 2_000, 0, noise(60, 2));
	const patch = diffBytes(base, next);

	it("are refused wherever they are cut off", () => {
		for (let length = 0; length < patch.length; length++)
			expectRefusal(base, [patch.subarray(0, length)], `${length} bytes`);
	});

	it("are refused if something follows", () => {
		for (const more of [
			[Uint8Array.of(65)],
			[1, 0],
			[1],
			[0, -1],
			[-1, 0],
			[0, 1.5],
			[1.5, 0],
			["0", "0"],
			[null],
			[{}],
			[0n],
		])
			expectRefusal(base, [concat(patch, packList(more).subarray(1))]);
	});

	it("are refused if the base is another", () => {
		expectRefusal(base.subarray(0, base.length - 1), [patch]);
		expectRefusal(new Uint8Array(0), [patch]);
	});

	it.each([2 ** 14, 2 ** 20, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 53, 2 ** 60])(
		"are refused if they declare %d bytes",
		(length) => {
			const short = new Uint8Array(10);
			for (const hostile of [[length], [length, length, 0], [length, noise(20, 1)], [length, -length, 0]].map(
				packList,
			)) {
				expectRefusal(short, [hostile]);
				expectRefusal(short, [diffBytes(short, short), hostile]);
				expectRefusal(short, [hostile, diffBytes(new Uint8Array(20), noise(20, 1)), hostile]);
			}
		},
	);

	it("are refused if they copy what the base does not have", () => {
		const digits = new TextEncoder().encode("0123456789");
		const letters = diffBytes(digits, new TextEncoder().encode("ABCDEFGHIJ"));
		const copies = {
			after: copy(4, 10),
			"after, in part": copy(4, 8),
			"far off": copy(4, 2 ** 45),
		};
		for (const [where, hostile] of Object.entries(copies)) {
			expectRefusal(digits, [hostile], where);
			expectRefusal(digits, [letters, hostile], `${where}, of a patch`);
			expectRefusal(digits, [letters, copy(10, 0), hostile], `${where}, of two patches`);
		}
		expectBytes(applyPatches(digits, [letters, copy(4, 3)]), new TextEncoder().encode("DEFG"));
	});

	it("whatever they are, are refused or make no more than there is", () => {
		const chain = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 4 });
		fc.assert(
			fc.property(chain, fc.uint8Array({ maxLength: 50 }), (patches, bytes) => {
				const most = patches.reduce((sum, one) => sum + one.length, bytes.length);
				const made = tryApply(bytes, patches);
				return made === undefined || made.length <= most;
			}),
			{ seed: SEED, numRuns: 3_000 },
		);
	});

	it("with one byte changed are refused or make what they say", () => {
		for (let at = 0; at < patch.length; at++)
			for (const change of [1, 0x40, 0x80]) {
				const damaged = patch.slice();
				damaged[at] = damaged[at]! ^ change;
				const made = tryApply(base, [damaged]);
				const atOnce = tryApply(base, [diffBytes(base, base), damaged]);
				if (made === undefined) expect(atOnce).toBe(undefined);
				else expectBytes(atOnce!, made);
			}
	});

	it("but thousands of empty operations, are read to their end", () => {
		const empty = Array.from({ length: 20_000 }, () => [0, 0, new Uint8Array(0)]).flat();
		const hostile = packList([10, ...empty, 10, 0]);
		expectBytes(applyPatches(noise(10, 1), [hostile]), noise(10, 1));
		expectBytes(applyPatches(noise(10, 1), [hostile, hostile]), noise(10, 1));
	});
});

describe("sameBytes", () => {
	it("tells bytes apart by length and by every byte", () => {
		for (const length of [0, 1, 100, 4_095, 4_096, 4_097, 20_000]) {
			const bytes = noise(length, 1);
			expect(sameBytes(bytes, bytes.slice())).toBe(true);
			expect(sameBytes(bytes, concat(bytes, new Uint8Array(1)))).toBe(false);
			for (const at of [0, length >> 1, length - 1].filter((place) => place >= 0 && place < length))
				expect(sameBytes(bytes, splice(bytes, at, 1, new Uint8Array([bytes[at]! ^ 1])))).toBe(false);
		}
	});
});

interface Edit {
	how: number;
	/** Where, as a share of the content. */
	at: number;
	length: number;
	seed: number;
}

const edits = fc.array(
	fc.record({
		how: fc.nat(6),
		at: fc.double({ min: 0, max: 1, noNaN: true }),
		length: fc.nat(300),
		seed: fc.nat(1_000),
	}),
	{ maxLength: 5 },
);

/** Noise, few different bytes, text, records that repeat, and nothing. */
const content = fc.oneof(
	fc.uint8Array({ maxLength: 300 }),
	fc.tuple(fc.nat(9_000), fc.nat(1_000)).map(([length, seed]) => noise(length, seed)),
	fc.array(fc.nat(1), { maxLength: 500 }).map((bits) => Uint8Array.from(bits)),
	fc.nat(30).map((messages) => chat(messages)),
	fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.nat(100)).map(([record, times]) => repeat(record, times)),
	fc.nat(9_000).map((length) => new Uint8Array(length)),
);

function edit(bytes: Uint8Array, { how, at, length, seed }: Edit): Uint8Array {
	const place = Math.floor(at * bytes.length);
	switch (how) {
		case 0:
			return concat(bytes, noise(length, seed));
		case 1:
			return bytes.subarray(0, bytes.length - Math.min(length, bytes.length));
		case 2:
			return splice(bytes, place, length);
		case 3:
			return splice(bytes, place, 0, noise(length, seed));
		case 4:
			return splice(bytes, place, length, noise(length, seed));
		case 5:
			return concat(bytes.subarray(place), bytes.subarray(0, place));
		default:
			return splice(bytes, place, 0, bytes.subarray(0, length));
	}
}

function statesOf(base: Uint8Array, history: readonly (readonly Edit[])[]): Uint8Array[] {
	const states = [base];
	for (const steps of history) states.push(steps.reduce(edit, states.at(-1)!));
	return states;
}

function patchesOf(states: readonly Uint8Array[]): Uint8Array[] {
	return states.slice(1).map((next, n) => diffBytes(states[n]!, next));
}

/** Replaces `length` bytes by `fill` new ones at evenly spaced places. */
function spliceMany(bytes: Uint8Array, places: number, length: number, fill: number): Uint8Array {
	let result = bytes;
	for (let n = places; n > 0; n--)
		result = splice(result, Math.floor((bytes.length * n) / (places + 1)), length, noise(fill, n));
	return result;
}

/** One byte changed at evenly spaced places. */
function flipped(bytes: Uint8Array, places: number): Uint8Array {
	const result = bytes.slice();
	for (let n = 1; n <= places; n++) {
		const at = Math.floor((bytes.length * n) / (places + 1));
		result[at] = result[at]! ^ 0xff;
	}
	return result;
}

function packList(parts: readonly unknown[]): Uint8Array {
	return pack(parts, LAYOUT.array);
}

/** A patch that copies `length` bytes of its base at `from` and does nothing else. */
function copy(length: number, from: number): Uint8Array {
	return packList([length, length, from]);
}

/** What the patches make, or `undefined` if they are refused in the one way that is allowed. */
function tryApply(base: Uint8Array, patches: readonly Uint8Array[]): Uint8Array | undefined {
	try {
		return applyPatches(base, patches);
	} catch (error) {
		expect(error instanceof RangeError || isCorrupt(error)).toBe(true);
		return undefined;
	}
}

function expectRefusal(base: Uint8Array, patches: readonly Uint8Array[], what?: string): void {
	expect(tryApply(base, patches), what).toBe(undefined);
}

/** `toEqual` looks at one byte at a time. */
function expectBytes(actual: Uint8Array, expected: Uint8Array): void {
	if (Buffer.compare(actual, expected) !== 0) expect(actual).toEqual(expected);
}

describe("a patch with a second source", () => {
	const base = chat(50);
	const message = noise(400, 11);
	const source = concat(Uint8Array.of(1), message);

	it("does not hold what the source has", () => {
		const next = concat(base, message);
		const { patch, usesSource } = diff(base, next, source);
		expect(usesSource).toBe(true);
		expect(patch.length).toBeLessThan(PLACE);
		expect(applyLayers(base, [{ patch, source }])).toEqual(next);
	});

	it("holds only what is in neither", () => {
		const next = concat(base, splice(message, 200, 0, noise(20, 12)));
		const { patch } = diff(base, next, source);
		expect(patch.length).toBeLessThan(20 + 3 * PLACE);
		expect(applyLayers(base, [{ patch, source }])).toEqual(next);
	});

	it("says that it does not need one that has nothing new", () => {
		const { patch, usesSource } = diff(base, concat(base, message), noise(400, 13));
		expect(usesSource).toBe(false);
		expect(applyLayers(base, [{ patch }])).toEqual(concat(base, message));
	});

	it("stands between others that have sources of their own or none", () => {
		fc.assert(
			fc.property(fc.array(fc.tuple(fc.nat(1000), fc.boolean(), fc.nat(3)), { maxLength: 8 }), (steps) => {
				let value = base;
				const layers: Layer[] = steps.map(([seed, hasSource, edit]) => {
					const added = noise(100 + seed, seed);
					const next = edit === 0 ? concat(value, added) : splice(value, seed % value.length, edit * 30, added);
					const { patch, usesSource } = diff(value, next, hasSource ? concat(noise(3, 1), added) : undefined);
					value = next;
					return { patch, source: usesSource ? concat(noise(3, 1), added) : undefined };
				});
				expect(Buffer.compare(applyLayers(base, layers), value)).toBe(0);
			}),
			{ seed: SEED },
		);
	});

	it("is refused without it, or with one that is too short", () => {
		const { patch } = diff(base, concat(base, message), source);
		expect(() => applyLayers(base, [{ patch }])).toThrow(RangeError);
		expect(() => applyLayers(base, [{ patch, source: source.subarray(0, 300) }])).toThrow(RangeError);
	});
});
