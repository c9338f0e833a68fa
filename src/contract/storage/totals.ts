import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { blob, bytes, key, row, write } from "./storage-scene.ts";

const NOTHING = { threads: 0, checkpoints: 0, writes: 0, bytes: { checkpoints: 0, blobs: 0, writes: 0 } };

/** totals: rows and bytes of everything. */
export function totalRules(test: StorageTest): void {
	test("TOTALS-COUNT: an empty storage counts nothing", async ({ storage }) => {
		assert.deepEqual(await storage.totals(), NOTHING);
	});

	test("TOTALS-COUNT: rows and bytes are those that were put, a value in a blob counting there", async (scene) => {
		const { storage, put, fresh } = scene;
		const [a, b] = [await fresh(), await fresh()];
		await put({
			checkpoint: row("a", { head: new Uint8Array(10) }),
			blobs: [blob(a, new Uint8Array(1_000)), blob(b, new Uint8Array(20), a)],
		});
		await put({ checkpoint: row("a", { threadId: "other", head: new Uint8Array(0) }) });
		await put({ writes: [write("b", "task", 0, { value: new Uint8Array(7) }), write("b", "task", 1, { value: a })] });
		const size = { checkpoints: 10, blobs: 1_020, writes: 7 };
		const expected = { threads: 2, checkpoints: 2, writes: 2, bytes: size };
		assert.deepEqual(scene.counted(await storage.totals()), scene.counted(expected));
	});

	test("TOTALS-COUNT: totals follow replacements, copies and removals", async (scene) => {
		const { storage, put, fresh, copy, remove, thread } = scene;
		const id = await fresh();
		const assertTotals = async (rows: number[], [checkpoints, blobs, writes]: [number, number, number]) => {
			const [threads = 0, rowCount = 0, writeCount = 0] = rows;
			const expected = { threads, checkpoints: rowCount, writes: writeCount, bytes: { checkpoints, blobs, writes } };
			assert.deepEqual(scene.counted(await storage.totals()), scene.counted(expected));
		};
		const first = write("a", "task", 0, { value: bytes("1234") });
		await put({ checkpoint: row("a", { head: new Uint8Array(10) }), writes: [first], blobs: [blob(id, "12345")] });
		await assertTotals([1, 1, 1], [10, 5, 4]);
		await put({
			checkpoint: row("a", { head: new Uint8Array(3) }),
			writes: [{ ...first, value: bytes("1"), conflict: "replace" }],
		});
		await assertTotals([1, 1, 1], [3, 5, 1]);
		await copy("copy");
		await assertTotals([2, 2, 2], [6, 5, 2]);
		await remove({ checkpoints: [key("a")] });
		await assertTotals([2, 1, 1], [3, 5, 1]);
		const { family } = await thread("copy");
		await storage.removeThread("copy");
		await assertTotals([1, 0, 0], [0, 5, 0]);
		await storage.removeBlobs(family, [id]);
		await assertTotals([1, 0, 0], [0, 0, 0]);
		await storage.removeThread("thread");
		assert.deepEqual(await storage.totals(), NOTHING);
	});
}
