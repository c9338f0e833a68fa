import assert from "node:assert/strict";
import fc from "fast-check";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CLASSES, graph } from "./arbitraries.ts";
import { assertSame } from "./same.ts";

const codec = new DeltaCodec({ classes: CLASSES });

/** Any value comes back as it was, and what came back has the same bytes. */
export const comesBack = fc.property(graph, (value) => {
	const encoded = codec.encode(value);
	const decoded = codec.decode(encoded);
	assertSame(decoded, value);
	for (const [same, by] of [
		[value, codec],
		[value, new DeltaCodec({ classes: CLASSES })],
		[decoded, new DeltaCodec({ classes: CLASSES })],
	] as const)
		assert.ok(Buffer.compare(by.encode(same).bytes, encoded.bytes) === 0, "other bytes for the same value");
});
