import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lru } from "../../src/lru.ts";

describe("Lru", () => {
	it("answers what it was given", () => {
		const lru = new Lru<string, number>(10);
		lru.set("a", 1, 3);
		expect(lru.get("a")).toBe(1);
		expect(lru.get("b")).toBe(undefined);
	});

	it("forgets what was set longest ago", () => {
		const lru = filled(["a", "b", "c"]);
		lru.set("d", "d", 1);
		expect(held(lru, "abcd")).toEqual(["b", "c", "d"]);
	});

	it("keeps what was got since", () => {
		const lru = filled(["a", "b", "c"]);
		lru.get("a");
		lru.set("d", "d", 1);
		expect(held(lru, "abcd")).toEqual(["a", "c", "d"]);
	});

	it("keeps what was set again since", () => {
		const lru = filled(["a", "b", "c"]);
		lru.set("a", "new", 1);
		lru.set("d", "d", 1);
		expect(held(lru, "abcd")).toEqual(["new", "c", "d"]);
	});

	it("forgets as many as it must for a heavy one", () => {
		const lru = filled(["a", "b", "c"]);
		lru.set("d", "d", 2);
		expect(held(lru, "abcd")).toEqual(["c", "d"]);
		lru.set("e", "e", 3);
		expect(held(lru, "abcde")).toEqual(["e"]);
	});

	it("does not take what is heavier than its limit, and lets nothing else go for it", () => {
		const lru = filled(["a", "b", "c"]);
		lru.set("d", "d", 4);
		expect(held(lru, "abcd")).toEqual(["a", "b", "c"]);
	});

	it("forgets the older value of a key whose new one is too heavy", () => {
		const lru = filled(["a", "b", "c"]);
		lru.set("b", "new", 4);
		expect(held(lru, "abc")).toEqual(["a", "c"]);
		lru.set("d", "d", 1);
		expect(held(lru, "abcd")).toEqual(["a", "c", "d"]);
	});

	it("counts the weight of a key that is set again once", () => {
		const lru = new Lru<string, number>(10);
		for (let n = 0; n < 100; n++) lru.set("a", n, 1 + (n % 5));
		lru.set("b", 100, 5);
		expect([lru.get("a"), lru.get("b")]).toEqual([99, 100]);
	});

	it("weighs nothing after delete and clear", () => {
		const lru = filled(["a", "b", "c"]);
		lru.delete("b");
		lru.delete("b");
		lru.delete("never there");
		lru.set("d", "d", 1);
		expect(held(lru, "abcd")).toEqual(["a", "c", "d"]);
		lru.clear();
		expect(held(lru, "abc")).toEqual([]);
		lru.set("d", "d", 3);
		expect(held(lru, "d")).toEqual(["d"]);
	});

	it("with a limit of zero holds nothing that weighs anything", () => {
		const lru = new Lru<string, string>(0);
		lru.set("a", "a", 1);
		expect(lru.get("a")).toBe(undefined);
	});

	it("is, after any calls, what a list with the newest last would be", () => {
		const call = fc.record({
			do: fc.constantFrom("get", "set", "delete", "clear"),
			key: fc.nat(6),
			weight: fc.nat(6),
		});
		const calls = fc.array(fc.oneof({ weight: 9, arbitrary: call.filter((one) => one.do !== "clear") }, call), {
			maxLength: 80,
		});
		fc.assert(
			fc.property(fc.nat(15), calls, (limit, steps) => {
				const lru = new Lru<number, string>(limit);
				let model: { key: number; value: string; weight: number }[] = [];
				for (const [n, { do: kind, key, weight }] of steps.entries()) {
					const known = model.find((entry) => entry.key === key);
					const others = model.filter((entry) => entry !== known);
					if (kind === "get") {
						expect(lru.get(key)).toBe(known?.value);
						if (known !== undefined) model = [...others, known];
					} else if (kind === "set") {
						lru.set(key, `${n}`, weight);
						model = weight > limit ? others : [...others, { key, value: `${n}`, weight }];
						while (total(model) > limit) model.shift();
					} else if (kind === "delete") {
						lru.delete(key);
						model = others;
					} else {
						lru.clear();
						model = [];
					}
				}
				for (let key = 0; key <= 6; key++) expect(lru.get(key)).toBe(model.find((entry) => entry.key === key)?.value);
			}),
			{ seed: 20261116, numRuns: 500 },
		);
	});
});

/** Full, with a weight of one each. */
function filled(keys: readonly string[]): Lru<string, string> {
	const lru = new Lru<string, string>(keys.length);
	for (const key of keys) lru.set(key, key, 1);
	return lru;
}

/** The values of these keys that are there. */
function held(lru: Lru<string, string>, keys: string): string[] {
	return [...keys].map((key) => lru.get(key)).filter((value) => value !== undefined);
}

function total(entries: readonly { weight: number }[]): number {
	return entries.reduce((sum, { weight }) => sum + weight, 0);
}
