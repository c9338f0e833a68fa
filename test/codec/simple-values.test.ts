import fc from "fast-check";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CheckpointError } from "../../src/index.ts";
import { assertSame } from "./same.ts";

const text = fc.oneof(fc.string({ unit: "binary", maxLength: 40 }), fc.constantFrom("\ud800", "x".repeat(300), "é"));
const member = fc.oneof(
	text,
	fc.double(),
	fc.integer(),
	fc.constantFrom(null, undefined, true, false, -0, 10n, () => 1),
	fc.constantFrom({}, [], Object.create(null), { toJSON: () => "inside" }),
	// Twice the same object, as often as not.
	fc.constant(Object.freeze({})),
);
const object = fc.dictionary(fc.oneof(fc.constantFrom("source", "step", "0"), text), member, { maxKeys: 20 });

/** Whether an object with this key is a map of MessagePack. */
const isOrdinary = (key: string) => key.isWellFormed() && key !== "__proto__" && !key.startsWith("\ufeff");

describe("objects of simple values", () => {
	it("have the bytes that the codec writes where it has to take more care", () => {
		fc.assert(
			fc.property(object, (value) => {
				fc.pre(!Object.hasOwn(value, "and then") && Object.keys(value).every(isOrdinary));
				const { bytes } = new DeltaCodec().encode(value);
				// With an object inside it is not simple any more, and a last entry changes none before it.
				const careful = new DeltaCodec().encode({ ...value, "and then": { a: 1 } }).bytes;
				expect(Buffer.from(careful.subarray(0, bytes.length))).toEqual(Buffer.from(bytes));
			}),
			{ numRuns: 2000 },
		);
	});

	it("come back as they were", () => {
		const value = { source: "loop", step: -1, parents: {}, isIt: false, none: null, ratio: 0.5, negative: -0 };
		const codec = new DeltaCodec();
		assertSame(codec.decode(codec.encode(value)), value);
	});

	it("may store something themselves while they are stored", () => {
		const codec = new DeltaCodec();
		const inner = { isInner: true, text: "of another value" };
		const stored: unknown[] = [];
		const value = {
			before: 1,
			get now() {
				stored.push(codec.decode(codec.encode(inner)));
				return 2;
			},
			after: 3,
		};
		assertSame(codec.decode(codec.encode(value)), { before: 1, now: 2, after: 3 });
		assertSame(stored[0], inner);
	});

	it("say which of them can't be read, and leave the codec as it was", () => {
		const codec = new DeltaCodec();
		const value = {
			before: 1,
			get broken(): unknown {
				throw new Error("on purpose");
			},
		};
		expect(() => codec.encode(value)).toThrow(/on purpose/);
		expect(() => codec.encode(value)).toThrow(CheckpointError);
		assertSame(codec.decode(codec.encode({ next: 1 })), { next: 1 });
	});
});
