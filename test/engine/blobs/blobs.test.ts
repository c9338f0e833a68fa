import { Blobs } from "../../../src/engine/blobs/blobs.ts";
import { diffBytes } from "../../../src/engine/blobs/byte-delta.ts";
import { DeltaSaver } from "../../../src/index.ts";
import { Lru } from "../../../src/lru.ts";
import { MemoryStorage } from "../../../src/storage/memory/storage.ts";
import type { BlobRow } from "../../../src/storage/storage.ts";
import { override } from "../../support/shared-memory.ts";

const textOf = (n: number) =>
	`${n} is a text that is long enough to be found again, and different from all others. `.repeat(4);
const bytesOf = (...numbers: number[]) => new TextEncoder().encode(numbers.map(textOf).join(""));
const blob = (id: number, data: Uint8Array, base?: number, source?: number): BlobRow => ({
	id,
	base,
	source,
	type: undefined,
	data,
});
const open = () => new Blobs(new MemoryStorage(), new Lru(0));

describe("blobs", () => {
	it("are built from others, whatever their numbers", async () => {
		const [base, next, source] = [bytesOf(1, 2), bytesOf(1, 2, 3), bytesOf(3)];
		const { patch, usesSource } = diffBytes(base, next, source);
		expect(usesSource).toBe(true);
		for (const [b, s, n] of [
			[1, 2, 3],
			[1, 3, 2],
			[3, 2, 1],
		] as const) {
			const found = await open().load([n], [blob(b, base), blob(s, source), blob(n, patch, b, s)]);
			expect(found.get(n)?.bytes).toEqual(next);
		}
	});

	it("that name each other are refused, and soon", async () => {
		const { patch } = diffBytes(bytesOf(1, 2), bytesOf(1, 2, 3), bytesOf(3));
		const rows = Array.from({ length: 60 }, (_, n) => blob(n + 1, patch, n || 60, n || 60));
		const storage = override(new MemoryStorage(), { getBlobs: async () => rows });
		await expect(new Blobs(storage, new Lru(0)).load([60])).rejects.toMatchObject({ code: "CORRUPT" });
	});

	it("of calls that ran out of numbers at the same time can be read", async () => {
		const storage = new MemoryStorage();
		// As many as are reserved at once, so that several calls ask for more while others wait.
		const slow = override(storage, {
			reserveIds: async (count) => {
				await new Promise((resolve) => setTimeout(resolve, 1));
				return storage.reserveIds(Math.min(count, 1024));
			},
		});
		const saver = new DeltaSaver(slow);
		const write = async (thread: string) => {
			for (let n = 0; n < 120; n++) {
				const idOf = (step: number) => `1f000000-0000-6000-8000-${String(step).padStart(12, "0")}`;
				const config = (step?: number) => ({
					configurable: { thread_id: thread, checkpoint_id: step === undefined ? undefined : idOf(step) },
				});
				const texts = Array.from({ length: 3 + (n % 20) }, (_, i) => textOf(i));
				await saver.put(
					config(n === 0 ? undefined : n - 1),
					{
						v: 4,
						id: idOf(n),
						ts: "",
						channel_values: { texts },
						channel_versions: { texts: n + 1 },
						versions_seen: {},
					},
					{ source: "loop", step: n, parents: {} },
					{ texts: n + 1 },
				);
				await saver.putWrites(config(n), [["texts", textOf(3 + (n % 20))]], "task");
			}
		};
		const threads = ["a", "b", "c", "d", "e", "f"];
		await Promise.all(threads.map(write));
		const reader = new DeltaSaver(storage);
		for (const thread of threads) {
			let count = 0;
			for await (const { checkpoint } of reader.list({ configurable: { thread_id: thread } })) {
				const { texts } = checkpoint.channel_values as { texts: string[] };
				expect(texts).toEqual(texts.map((_, i) => textOf(i)));
				count++;
			}
			expect(count).toBe(120);
		}
	});
});
