import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { BlobRow } from "../../../src/storage/storage.ts";

afterEach(() => {
	vi.unstubAllGlobals();
	vi.resetModules();
});

const anyNumber = fc.oneof(fc.nat(300), fc.nat(2 ** 31), fc.maxSafeNat());
const anyRow = fc.record({
	id: anyNumber,
	base: fc.option(anyNumber, { nil: undefined }),
	source: fc.option(anyNumber, { nil: undefined }),
	type: fc.option(fc.constantFrom("json", ""), { nil: undefined }),
	data: fc
		.constantFrom(0, 1, 10, 127, 128, 4072, 4095, 4096, 4097, 9000)
		.map((length) => Uint8Array.from({ length }, (_, i) => i * 31 + 200)),
}) satisfies fc.Arbitrary<BlobRow>;

for (const [where, hasBuffer] of [
	["where there is a Buffer", true],
	["in a browser", false],
] as const)
	describe(`Blobs that are kept in memory ${where}`, () => {
		const load = async () => {
			if (!hasBuffer) vi.stubGlobal("Buffer", undefined);
			const { MemoryBlobs } = await import("../../../src/storage/memory/blobs.ts");
			return new MemoryBlobs();
		};

		it("come back as they were, whatever their numbers and their size", async () => {
			const blobs = await load();
			fc.assert(
				fc.property(fc.uniqueArray(anyRow, { selector: ({ id }) => id, maxLength: 5 }), anyNumber, (rows, family) => {
					blobs.clear();
					for (const row of rows) blobs.set(family, row);
					for (const row of rows) expect(blobs.get(row.id)).toEqual({ ...row, family });
					const listed = rows.map(({ id, base, source, data }) => ({ id, family, base, source, bytes: data.length }));
					expect([...blobs.list()]).toEqual(listed);
				}),
			);
		});

		it("don't change with the bytes that they were given as", async () => {
			const blobs = await load();
			const data = Uint8Array.of(1, 2, 3);
			blobs.set(1, { id: 2, base: undefined, source: undefined, type: undefined, data });
			data[0] = 9;
			blobs.set(1, { id: 3, base: 2, source: undefined, type: undefined, data });
			expect(blobs.get(2)?.data).toEqual(Uint8Array.of(1, 2, 3));
		});

		it("are replaced only if they are as expected, and removed only from their family", async () => {
			const blobs = await load();
			for (const length of [3, 5000]) {
				const row = { id: 500, base: 3, source: 400, type: undefined, data: new Uint8Array(length).fill(7) };
				blobs.set(300, row);
				const other = new Uint8Array(length).fill(8);
				expect(blobs.replace(500, other, other)).toBe(false);
				expect(blobs.replace(501, row.data, other)).toBe(false);
				expect(blobs.replace(500, row.data, other)).toBe(true);
				expect(blobs.get(500)).toEqual({ ...row, data: other, family: 300 });
				blobs.remove(301, 500);
				expect(blobs.has(500)).toBe(true);
				blobs.remove(300, 500);
				expect(blobs.get(500)).toBeUndefined();
			}
		});
	});
