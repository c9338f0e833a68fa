import { AIMessage, HumanMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { leavesOlderBytesAlone, remembersNothingOld, remembersWhatWasRead } from "./mutations.ts";
import { comesBack } from "./properties.ts";
import { assertSame } from "./same.ts";

const SEED = 20261116;

describe("any value", () => {
	it("comes back as it was, and has the same bytes again", () => {
		fc.assert(comesBack, { seed: SEED, numRuns: 1500 });
	});

	it("that changes in place has the bytes of what it is now", () => {
		fc.assert(remembersNothingOld, { seed: SEED, numRuns: 200 });
	});

	it("that was read and changes in place has the bytes of what it is now", () => {
		fc.assert(remembersWhatWasRead, { seed: SEED, numRuns: 300 });
	});

	it("that goes on where another one ends changes nothing of it", () => {
		fc.assert(leavesOlderBytesAlone, { seed: SEED, numRuns: 300 });
	});
});

/** So many elements make a list long enough to be remembered. */
const fillers = () => Array.from({ length: 16 }, (_, n) => ({ n, text: `filler ${n}` }));

describe("a long list that was encoded before", () => {
	const makePlan = () => ({
		title: "x".repeat(3000),
		tasks: [{ name: "first", done: false, parts: [1, [2, undefined, null]] }, Object.create(null)],
	});
	type Plan = ReturnType<typeof makePlan>;

	/** Whether the third time gave the very bytes of the second, after a change. */
	function isRemembered(list: unknown[], change: () => void = () => {}): boolean {
		const codec = new DeltaCodec();
		codec.encode(list);
		const { bytes } = codec.encode(list);
		const before = Buffer.from(bytes);
		change();
		codec.encode(list);
		const again = codec.encode(list).bytes;
		expect(Buffer.compare(again, new DeltaCodec().encode(list).bytes)).toBe(0);
		expect(Buffer.compare(bytes, before)).toBe(0);
		return again === bytes;
	}

	it("is not encoded again", () => {
		const plan = makePlan();
		plan.tasks[0].parts = [1, [2, null]];
		expect(isRemembered([plan, ...fillers()])).toBe(true);
		expect(isRemembered([...fillers(), [Number.NaN, -0, "text"], new HumanMessage("a")])).toBe(true);
	});

	it("is not encoded again after it was read, with something added", () => {
		const codec = new DeltaCodec();
		const list = codec.decode(codec.encode([...fillers(), new HumanMessage("a")]), true) as unknown[];
		let reads = 0;
		Object.defineProperty(list[3], "text", {
			enumerable: true,
			get() {
				reads++;
				return "filler 3";
			},
		});
		codec.encode([...list, "more"]);
		// To compare it takes one look, to walk it and to pack it two.
		expect(reads).toBe(1);
	});

	it.each<[string, (plan: Plan) => void]>([
		["a property at the top", (plan) => Object.assign(plan, { title: "y" })],
		["a property deep inside", (plan) => Object.assign(plan.tasks[0] as object, { done: true })],
		["an element deep inside", (plan) => (plan.tasks[0].parts[1] as unknown[]).push(3)],
		["nothing to a hole", (plan) => void delete (plan.tasks[0].parts[1] as unknown[])[1]],
		["a new property", (plan) => Object.assign(plan.tasks[1] as object, { name: "second" })],
		["one property less", (plan) => void delete (plan.tasks[0] as { name?: string }).name],
		["zero to minus zero", (plan) => plan.tasks[0].parts.splice(0, 1, -0)],
		["an object to an equal one", (plan) => plan.tasks.splice(0, 1, { ...plan.tasks[0] })],
		["an object to a date", (plan) => plan.tasks.splice(1, 1, new Date(0))],
		["an object to one that is there already", (plan) => plan.tasks.splice(1, 1, plan.tasks[0])],
		["what it says of itself", (plan) => Object.defineProperty(plan.tasks[0], "toJSON", { value: () => "other" })],
		["its class", (plan) => Object.setPrototypeOf(plan.tasks[0], class Task {}.prototype)],
	])("is, after a change of %s", (_, change) => {
		const plan = makePlan();
		expect(isRemembered([plan, ...fillers()], () => change(plan))).toBe(false);
	});

	it("is, from the first element on that has a date, a map or an object twice", () => {
		const shared = { text: "x".repeat(3000) };
		for (const member of [new Date(0), new Map(), [shared, shared]])
			expect(isRemembered([...fillers(), member])).toBe(false);
	});
});

describe("a codec that has seen a value before", () => {
	/** Encodes a list often enough to be remembered, changes it, and looks what is stored. */
	function assertSeesChange(list: unknown[], change: () => void): void {
		list.push(...fillers());
		const codec = new DeltaCodec();
		const hex = (by: DeltaCodec) => Buffer.from(by.encode(list).bytes).toString("hex");
		for (let i = 0; i < 3; i++) codec.encode(list);
		const before = hex(codec);
		change();
		for (let i = 0; i < 3; i++) expect(hex(codec)).toBe(hex(new DeltaCodec()));
		expect(hex(codec)).not.toBe(before);
	}

	const blocks = () => new AIMessage({ content: [{ type: "text", text: "a" }] });
	const changes: Record<string, [list: unknown[], change: (list: any) => void]> = {
		"a property set": [[{ a: { b: 1 } }], (list) => Object.assign(list[0].a, { b: 2 })],
		"the sign of a zero": [[{ a: [0] }], (list) => list[0].a.splice(0, 1, -0)],
		"a hole in place of undefined": [[{ a: [undefined, 1] }], (list) => delete list[0].a[0]],
		"undefined in place of a hole": [[{ a: Array(2) }], (list) => list[0].a.fill(undefined)],
		"keys in another order": [[{ a: 1, b: 2 }], (list) => delete list[0].a && Object.assign(list[0], { a: 1 })],
		"a key renamed": [[{ a: 1 }], (list) => delete list[0].a && Object.assign(list[0], { b: 1 })],
		"the content of a message": [[new HumanMessage("a")], (list) => Object.assign(list[0], { content: "b" })],
		"what is deep in a message": [[blocks()], (list) => Object.assign(list[0].content[0], { text: "b" })],
		"an argument of a message": [[new HumanMessage("a")], (list) => Object.assign(list[0].lc_kwargs, { extra: 1 })],
		"a Date in place": [[{ at: new Date(0) }], (list) => list[0].at.setTime(1)],
		"a Map in place": [[{ map: new Map() }], (list) => list[0].map.set(1, 2)],
		"bytes in place": [[{ bytes: new Uint8Array(1) }], (list) => list[0].bytes.fill(1)],
		"one member twice": [[{ a: 1 }], (list) => list.push(list[0])],
		"a part of one member in another": [
			[{ a: { x: 1 } }, { b: 1 }],
			(list) => Object.assign(list[1], { b: list[0].a }),
		],
		"a part of a later member in an earlier one": [
			[{ b: 1 }, { a: { x: 1 } }],
			(list) => Object.assign(list[0], { b: list[1].a }),
		],
		"a part of a member as a member": [[{ a: { x: 1 } }], (list) => list.push(list[0].a)],
		"a member in itself": [[{ a: { x: 1 } }], (list) => Object.assign(list[0].a, { self: list[0] })],
		"the list in a member": [[{ a: { x: 1 } }], (list) => Object.assign(list[0].a, { list })],
	};

	it.each(Object.entries(changes))("notices %s", (_, [list, change]) => {
		assertSeesChange(list, () => change(list));
	});

	it("notices that members it knows from two values share an object once they are in one", () => {
		const codec = new DeltaCodec();
		const shared = { x: 1 };
		const [a, b] = [{ shared }, { shared, b: 1 }];
		const others = fillers();
		for (let i = 0; i < 3; i++) {
			codec.encode([a, ...others]);
			codec.encode([b, ...others]);
		}
		for (const list of [[a, b], [b, a], [a], [a, b]])
			assertSame(codec.decode(codec.encode([...list, ...others])), [...list, ...others]);
	});

	it("does not get lost in a list with four billion holes", () => {
		const holes: unknown[] = [];
		holes[2 ** 32 - 2] = "last";
		assertSeesChange([{ holes }, 1], () => {
			holes[5] = "new";
		});
	});
});
