import { DeltaCodec } from "../../src/codec/codec.ts";

/** About as many elements as are remembered of a list of the kind that is made here. */
const LONGEST = 250_000;

/** A list whose first element counts how often it is looked into. */
function makeWatched(length: number): { list: unknown[]; countReads(work: () => unknown): number } {
	let reads = 0;
	const first = {
		get property() {
			reads++;
			return 1;
		},
	};
	const countReads = (work: () => unknown) => {
		reads = 0;
		work();
		return reads;
	};
	return { list: [first, ...Array.from({ length: length - 1 }, (_, i) => [i])], countReads };
}

describe("A list that is encoded again and again", () => {
	it("is only compared the third time", () => {
		const codec = new DeltaCodec();
		const { list, countReads } = makeWatched(1_000);
		const unseen = countReads(() => codec.encode(list));
		codec.encode(list);
		list.push([]);
		expect(countReads(() => codec.encode(list))).toBeLessThan(unseen);
	});

	it.each([1_000, LONGEST - 2, LONGEST + 2])("has the bytes of what it holds, from %i elements on", (length) => {
		const codec = new DeltaCodec();
		const list = Array.from({ length }, (_, i) => [i]);
		for (let round = 0; round < 4; round++) {
			expect(Buffer.compare(codec.encode(list).bytes, new DeltaCodec().encode(list).bytes)).toBe(0);
			list[length - 1]?.push(round);
			list.push([round]);
		}
	});
});
