import { describe, expect, it } from "vitest";
import { diffBytes } from "../../../src/engine/blobs/byte-delta.ts";
import { patchCost, PATCH_ROW_COST as row, shouldStoreWhole } from "../../../src/engine/blobs/snapshot-policy.ts";
import { chat, concat, noise, random, splice } from "../../support/byte-samples.ts";

/** "About twice", with room for the last patch and the row it is in. */
const ABOUT_TWICE = 2.1;

describe("the policy", () => {
	describe.each(Object.entries(histories()))("a history with %s", (_, states) => {
		const steps = simulate(states);

		it("never costs more to read at any point than about twice the value there", () => {
			for (const { value, read } of steps) expect(read).toBeLessThanOrEqual(ABOUT_TWICE * value + row);
		});

		it("never takes more than about twice what was new in it", () => {
			for (const { stored, added } of steps) expect(stored).toBeLessThanOrEqual(ABOUT_TWICE * added + row);
		});
	});

	it("charges every patch its bytes and its row, and those that it takes bytes of", () => {
		expect(patchCost(new Uint8Array(0), undefined)).toBe(row);
		expect(patchCost(new Uint8Array(1_000), undefined)).toBe(1_000 + row);
		expect(patchCost(new Uint8Array(10), new Uint8Array(500))).toBe(510 + 2 * row);
	});

	it("keeps a value whole that is no larger than a row costs", () => {
		expect(shouldStoreWhole(row, patchCost(new Uint8Array(1), undefined), { whole: 0, patches: 0 })).toBe(true);
		expect(shouldStoreWhole(0, patchCost(new Uint8Array(0), undefined), { whole: 0, patches: 0 })).toBe(true);
	});
});

describe("the choice between a patch and a whole value", () => {
	it("is a patch while the patches together are cheaper to read than the value", () => {
		expect(shouldStoreWhole(10_000, 100, { whole: 0, patches: 0 })).toBe(false);
		expect(shouldStoreWhole(10_000, 100, { whole: 0, patches: 9_000 })).toBe(false);
		expect(shouldStoreWhole(10_000, 100, { whole: 0, patches: 9_999 })).toBe(true);
	});

	it("is whole for a patch that is as large as the value", () => {
		for (const size of [200, 10_000, 1_000_000])
			expect(shouldStoreWhole(size, size, { whole: 0, patches: 0 })).toBe(true);
	});
});

describe("a list that grows by equal parts", () => {
	const states = growing(400, (n) => noise(500, n));
	const wholes = simulate(states).filter(({ isWhole }) => isWhole);

	it("is stored whole each time it has about doubled", () => {
		expect(wholes.length).toBeGreaterThan(3);
		expect(wholes.length).toBeLessThan(20);
	});

	it("takes a small multiple of its last state, where whole copies would take hundreds", () => {
		const copies = states.reduce((sum, state) => sum + state.length, 0);
		const stored = simulate(states).at(-1)!.stored;
		expect(stored).toBeLessThan(4 * states.at(-1)!.length);
		expect(copies).toBeGreaterThan(150 * states.at(-1)!.length);
	});
});

interface Step {
	readonly isWhole: boolean;
	/** Bytes of the value. */
	readonly value: number;
	/** Bytes to read for it, and rows at what the policy takes them to cost. */
	readonly read: number;
	/** The same for all that the history has stored so far. */
	readonly stored: number;
	/** The same for its first value and the patches to all others. */
	readonly added: number;
}

/** Stores a history as the policy says. */
function simulate(states: readonly Uint8Array[]): Step[] {
	const steps: Step[] = [];
	let base = { whole: 0, patches: 0 };
	let stored = 0;
	let added = 0;
	for (const [n, value] of states.entries()) {
		const before = states[n - 1];
		const patch = before === undefined ? undefined : diffBytes(before, value).patch;
		const cost = patch === undefined ? value.length : patchCost(patch, undefined);
		const isWhole = patch === undefined || shouldStoreWhole(value.length, cost, base);
		base = isWhole ? { whole: value.length, patches: 0 } : { ...base, patches: base.patches + cost };
		stored += isWhole ? value.length : cost;
		added += cost;
		steps.push({ isWhole, value: value.length, read: base.whole + base.patches, stored, added });
	}
	return steps;
}

function histories(): Record<string, Uint8Array[]> {
	const next = random(1);
	const between = (least: number, most: number) => Math.floor(least + next() * (most - least));
	const start = noise(20_000, 1);
	return {
		"small appends to a large value": growing(300, (n) => noise(50, n), start),
		"large appends to a small value": growing(100, (n) => noise(3_000, n)),
		"appends of every size": growing(200, (n) => noise(between(1, 4_000), n)),
		"messages of a chat": Array.from({ length: 200 }, (_, n) => chat(n)),
		"edits of one byte": evolving(400, start, (value, n) =>
			splice(value, between(0, value.length - 1), 1, noise(1, n)),
		),
		"edits of every size": evolving(300, start, (value, n) => {
			const length = between(1, 3_000);
			return splice(value, between(0, value.length - length), length, noise(length, n));
		}),
		"values that have nothing in common": Array.from({ length: 50 }, (_, n) => noise(between(500, 5_000), n)),
		"a window that slides": Array.from({ length: 300 }, (_, n) => noise(40_000, 2).subarray(n * 100, n * 100 + 8_000)),
		"tiny values": Array.from({ length: 100 }, (_, n) => noise(between(65, 130), n)),
		"a value that is cut down step by step": Array.from({ length: 180 }, (_, n) => start.subarray(0, 20_000 - n * 110)),
		"a value that is cut down to a tenth and goes on": [
			...growing(20, (n) => noise(1_000, n), start),
			...growing(50, (n) => noise(100, n), start.subarray(0, 2_000)),
		],
		"a value that is cut down to a hundredth at once": [
			start,
			...growing(10, (n) => noise(20, n), start.subarray(0, 200)),
		],
		"a value that is cut down and comes back again and again": Array.from({ length: 120 }, (_, n) =>
			noise(20_000, n >> 1).subarray(0, n % 2 === 1 ? 400 + n : 20_000),
		),
	};
}

/** Each state is the one before with more at its end. */
function growing(count: number, more: (n: number) => Uint8Array, start: Uint8Array = new Uint8Array(0)): Uint8Array[] {
	return evolving(count, start, (value, n) => concat(value, more(n)));
}

function evolving(
	count: number,
	start: Uint8Array,
	change: (value: Uint8Array, n: number) => Uint8Array,
): Uint8Array[] {
	const states = [start];
	for (let n = 1; n < count; n++) states.push(change(states.at(-1) as Uint8Array, n));
	return states;
}
