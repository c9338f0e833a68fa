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

describe("a codec that has seen a value before", () => {
	/** Encodes a list often enough to be remembered, changes it, and looks what is stored. */
	function assertSeesChange(list: unknown[], change: () => void): void {
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
		for (let i = 0; i < 3; i++) {
			codec.encode([a]);
			codec.encode([b]);
		}
		for (const list of [[a, b], [b, a], [a], [a, b]]) assertSame(codec.decode(codec.encode(list)), list);
	});

	it("does not get lost in a list with four billion holes", () => {
		const holes: unknown[] = [];
		holes[2 ** 32 - 2] = "last";
		assertSeesChange([{ holes }, 1], () => {
			holes[5] = "new";
		});
	});
});
