import { select } from "../../src/studio/http/pages.ts";

describe("Fields that a client selects", () => {
	const state = { values: { log: [1], "a.b": 2, deep: { x: 3, y: 4 } }, next: [] };

	it("are whole, or parts of them", () => {
		expect(select(state, undefined)).toBe(state);
		expect(select(state, ["next", "values.log", "values.a.b", "values.deep.x", "none", "next.none"])).toEqual({
			next: [],
			values: { log: [1], "a.b": 2, deep: { x: 3 } },
		});
		expect(select(state, ["values.log", "values"])).toEqual({ values: state.values });
		expect(select(state, ["constructor", "constructor.name", ".", ""])).toEqual({});
	});

	it("are the only ones that are looked at", () => {
		const listed = vi.fn(Reflect.ownKeys);
		const values = new Proxy(state.values, { ownKeys: listed });
		expect(select({ values }, ["values.log", "values.deep.y"])).toEqual({ values: { log: [1], deep: { y: 4 } } });
		expect(listed).not.toHaveBeenCalled();
	});
});
