import { AIMessageChunk, HumanMessage } from "@langchain/core/messages";
import { contains } from "../../src/studio/http/contains.ts";
import { toJson } from "../../src/studio/http/json.ts";
import { encodeSegment } from "../../src/studio/http/router.ts";

describe("JSON for clients", () => {
	it("has messages as flat objects, at any depth", () => {
		const parsed = JSON.parse(toJson({ deep: [{ message: new HumanMessage({ content: "hi", id: "1" }) }] }));
		expect(parsed.deep[0].message).toMatchObject({ type: "human", content: "hi", id: "1" });
		expect(JSON.parse(toJson([new AIMessageChunk("a")]))[0]).toMatchObject({ type: "ai", content: "a" });
	});

	it("says what it can of what JSON can't say", () => {
		const value = {
			big: 12345678901234567890n,
			map: new Map([["a", new Set([1, 2n])]]),
			error: new TypeError("wrong"),
			date: new Date(0),
			nothing: undefined,
		};
		expect(JSON.parse(toJson(value))).toEqual({
			big: "12345678901234567890",
			map: { a: [1, "2"] },
			error: { name: "TypeError", message: "wrong" },
			date: "1970-01-01T00:00:00.000Z",
		});
		expect(toJson(undefined)).toBe("null");
	});

	it("breaks circles, and only circles", () => {
		const shared = { shared: true };
		const circle: Record<string, unknown> = { one: shared, two: [shared, { again: shared }] };
		circle.self = circle;
		(circle.two as unknown[]).push(circle.two, new Map([["up", circle]]));
		expect(JSON.parse(toJson(circle))).toEqual({
			one: { shared: true },
			two: [{ shared: true }, { again: { shared: true } }, "[Circular]", { up: "[Circular]" }],
			self: "[Circular]",
		});
	});
});

describe("A search for part of some JSON", () => {
	it("finds it as PostgreSQL does", () => {
		const whole = { a: 1, list: [{ b: 2, c: 3 }, "x"], deep: { d: null } };
		for (const part of [
			{},
			{ a: 1 },
			{ list: [{ c: 3 }] },
			{ list: ["x", { b: 2 }] },
			{ deep: {} },
			{ deep: { d: null } },
		])
			expect(contains(whole, part), JSON.stringify(part)).toBe(true);
		for (const part of [
			{ a: "1" },
			{ b: 2 },
			{ list: ["y"] },
			{ list: { 0: "x" } },
			{ toString: {} },
			{ deep: { e: null } },
		])
			expect(contains(whole, part), JSON.stringify(part)).toBe(false);
	});
});

describe("An id in a path", () => {
	it("is escaped only where it must be", () => {
		expect(encodeSegment("user:1@x+y,z;a=b&c$")).toBe("user:1@x+y,z;a=b&c$");
		for (const id of ["a/b", "a b", "100%", "?#", "ä"])
			expect(new URL(`http://h/${encodeSegment(id)}/x`).pathname.split("/").map(decodeURIComponent)).toEqual([
				"",
				id,
				"x",
			]);
	});
});
