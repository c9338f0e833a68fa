import { afterEach, describe, expect, it, vi } from "vitest";

afterEach(() => {
	vi.unstubAllGlobals();
	vi.resetModules();
});

const sample = (length: number) => Uint8Array.from({ length }, (_, i) => i * 31 + (i >> 8));

for (const [where, hasBuffer] of [
	["where there is a Buffer", true],
	["in a browser", false],
] as const)
	describe(`Bytes that are kept in memory ${where}`, () => {
		const load = async () => {
			if (!hasBuffer) vi.stubGlobal("Buffer", undefined);
			return import("../src/storage/kept-bytes.ts");
		};

		it("come back as they were, short and long ones", async () => {
			const { keepBytes, readBytes } = await load();
			for (const length of [0, 1, 256, 4096, 4097, 10_000])
				expect(readBytes(keepBytes(sample(length)))).toEqual(sample(length));
		});

		it("are the same as others of the same content, and of no other", async () => {
			const { areSame, keepBytes } = await load();
			for (const length of [1, 256, 4096, 4097]) {
				const [kept, other] = [keepBytes(sample(length)), sample(length)];
				expect(areSame(kept, keepBytes(other))).toBe(true);
				other.set([~(other.at(-1) as number)], length - 1);
				expect(areSame(kept, keepBytes(other))).toBe(false);
				expect(areSame(kept, keepBytes(sample(length + 1)))).toBe(false);
			}
		});

		it("contain their pieces and start with their beginning", async () => {
			const { keepBytes, mayContain, startsWith } = await load();
			for (const length of [256, 5000]) {
				const kept = keepBytes(sample(length));
				expect(mayContain(kept, keepBytes(sample(length).slice(100, 200)))).toBe(true);
				expect(startsWith(kept, sample(3))).toBe(true);
				expect(startsWith(kept, Uint8Array.of(0, 1))).toBe(false);
			}
		});
	});
