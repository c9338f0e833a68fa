import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packId, unpackId } from "../../../src/storage/sqlite/ids.ts";

const SEED = 20261116;

describe("a packed id", () => {
	it("is 16 bytes for a UUID, and itself for any other", () => {
		const uuid = "1f0a3c5e-77b2-6d40-8001-0123456789ab";
		expect(packId(uuid)).toEqual(Buffer.from("1f0a3c5e77b26d4080010123456789ab", "hex"));
		const others = [
			uuid.toUpperCase(),
			uuid.replace("-", "0"),
			`${uuid} `,
			uuid.slice(1),
			uuid.replace("b", "g"),
			uuid.replace("1f", "1/"),
			uuid.replace("1f", "1`"),
			"",
			"checkpoint",
		];
		for (const id of others) expect(packId(id)).toBe(id);
	});

	it("comes back as it was", () => {
		const almost = fc.tuple(fc.uuid(), fc.nat({ max: 35 }), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }));
		const ids = fc.oneof(
			fc.uuid(),
			fc.string(),
			almost.map(([id, at, char]) => `${id.slice(0, at)}${char}${id.slice(at + 1)}`),
		);
		const property = fc.property(ids, (id) => void expect(unpackId(packId(id))).toBe(id));
		fc.assert(property, { seed: SEED, numRuns: 3000 });
	});
});
