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
			return import("../../../src/storage/memory/kept-bytes.ts");
		};

		it("come back as they were, short and long ones", async () => {
			const { keepBytes, readBytes } = await load();
			for (const length of [0, 1, 256, 4096, 4097, 10_000])
				expect(readBytes(keepBytes(sample(length)))).toEqual(sample(length));
		});

		it("come back from how they differ from others, if there is little of that", async () => {
			const { changedText, findChanges, keepBytes, readBytes, readChanged } = await load();
			for (const length of [0, 1, 8, 171, 300, 4096, 4097])
				for (const places of [[], [0], [length - 1], [3, 4, 5], [250, 270], [10, 265], [10, 266], [300]]) {
					const pattern = keepBytes(sample(length));
					const bytes = sample(length);
					for (const place of places) if (place < length && place >= 0) bytes[place] = (bytes[place] as number) ^ 0xff;
					const changes = typeof pattern === "string" ? findChanges(pattern, bytes) : undefined;
					if (changes === undefined) continue;
					expect(readChanged(pattern as string, changes)).toEqual(bytes);
					expect(readBytes(changedText(pattern as string, changes))).toEqual(bytes);
				}
		});

		it("are not described by differences where there are too many, too far apart, or in length", async () => {
			const { findChanges } = await load();
			const text = "a".repeat(600);
			const changed = (...places: number[]) => new Uint8Array(600).map((_, i) => (places.includes(i) ? 98 : 97));
			const isNoted = (bytes: Uint8Array) => findChanges(text, bytes) !== undefined;
			expect(isNoted(changed())).toBe(hasBuffer);
			expect(isNoted(changed(255, 510))).toBe(hasBuffer);
			expect(isNoted(changed(256))).toBe(false);
			expect(isNoted(changed(...Array(150).keys()))).toBe(hasBuffer);
			expect(isNoted(changed(...Array(151).keys()))).toBe(false);
			expect(isNoted(new Uint8Array(599).fill(97))).toBe(false);
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
