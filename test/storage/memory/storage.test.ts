import { describe, expect, it } from "vitest";
import { MemoryStorage } from "../../../src/storage/memory/storage.ts";
import type { BlobRow } from "../../../src/storage/storage.ts";

async function storeBlob(data: Uint8Array): Promise<BlobRow> {
	const storage = new MemoryStorage();
	const blob = { id: 1, base: undefined, source: undefined, type: undefined, data };
	await storage.put({ threadId: "thread", fresh: 2, now: 1, blobs: [blob], writes: [], deltaBases: [] });
	const [stored] = await storage.getBlobs([1]);
	return stored!;
}

describe("MemoryStorage", () => {
	it("does not keep a large buffer for the sake of a few bytes", async () => {
		for (const length of [0, 10, 1_000, 2_000]) {
			const { data } = await storeBlob(new Uint8Array(1_000_000).fill(7).subarray(100, 100 + length));
			expect(data).toEqual(new Uint8Array(length).fill(7));
			expect(data.buffer.byteLength).toBeLessThanOrEqual(8192);
		}
	});

	it("leaves out checkpoints with other labels, also in a copy", async () => {
		const storage = new MemoryStorage();
		const rest = { parentId: undefined, runId: undefined, source: undefined, step: undefined, blobs: [] };
		const batch = { threadId: "thread", fresh: 1, now: 1, blobs: [], writes: [], deltaBases: [] };
		for (const id of ["a", "b", "c"]) {
			const checkpoint = { threadId: "thread", ns: "", id, ...rest, head: new Uint8Array(0) };
			await storage.put({ ...batch, checkpoint, labels: { user: id } });
		}
		const copy = { source: "thread", stamp: 1, target: "copy", fresh: 2, now: 2, keys: undefined };
		await storage.copy({ ...copy, checkpoints: [], writes: [], deltaBases: [] });
		const { checkpoints } = await storage.read({ labels: { user: "b" }, limit: 10 }, "rows");
		expect(checkpoints.map(({ threadId, id }) => `${id} of ${threadId}`)).toEqual(["b of copy", "b of thread"]);
	});

	it("holds bytes that are most of their buffer as they are", async () => {
		const data = new Uint8Array(3_000).subarray(100, 2_900);
		expect((await storeBlob(data)).data).toBe(data);
	});
});
