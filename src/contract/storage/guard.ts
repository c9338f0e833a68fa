import assert from "node:assert/strict";
import { ConcurrencyError } from "../../errors.ts";
import type { CheckpointRow } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { findRow, scanKeys } from "./reads.ts";
import { blob, key, row, type StorageScene, write } from "./storage-scene.ts";

/** The guard: with `onlyOnHead`, a checkpoint that would start a branch is refused. */
export function guardRules(test: StorageTest): void {
	const guarded = ({ put }: StorageScene, checkpoint: CheckpointRow) => put({ checkpoint, onlyOnHead: true });

	test("GUARD-HEAD: a checkpoint that follows the newest one of its namespace is taken", async (scene) => {
		for (const checkpoint of [row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" })])
			await guarded(scene, checkpoint);
		await guarded(scene, row("a", { ns: "child" }));
		await guarded(scene, row("a", { threadId: "other" }));
		assert.equal((await scene.thread()).newest, "c");
	});

	test("GUARD-HEAD: one that follows another is refused, names both, and nothing of its batch is stored", async (scene) => {
		const { storage, putRows, tryPut, fresh } = scene;
		await putRows(row("a"), row("b", { parentId: "a" }));
		const id = await fresh();
		const batch = { writes: [write("c", "task", 0)], blobs: [blob(id, "value")], onlyOnHead: true };
		for (const parentId of ["a", "missing", undefined])
			await assert.rejects(tryPut({ ...batch, checkpoint: row("c", { parentId }) }), (error) => {
				assert.ok(error instanceof ConcurrencyError);
				assert.deepEqual([error.code, error.parentId, error.headId], ["CONFLICT", parentId, "b"]);
				return true;
			});
		assert.deepEqual(await storage.getBlobs([id]), []);
		assert.deepEqual((await storage.readThread("thread")).writes, []);
		await guarded(scene, row("c", { parentId: "b" }));
	});

	test("GUARD-HEAD: one whose id is smaller than its parent's would not be the newest, and is refused", async (scene) => {
		await scene.putRows(row("b"));
		await assert.rejects(guarded(scene, row("a", { parentId: "b" })), ConcurrencyError);
		assert.equal(await findRow(scene.storage, key("a")), undefined);
	});

	test("GUARD-AGAIN: the newest checkpoint may be put again, an older one may not", async (scene) => {
		await scene.putRows(row("a"), row("b", { parentId: "a" }));
		await guarded(scene, row("b", { step: 7, parentId: "a" }));
		assert.equal((await findRow(scene.storage, key("b")))?.step, 7);
		await assert.rejects(guarded(scene, row("a")), ConcurrencyError);
	});

	test("GUARD-FIRST: the first two checkpoints of a thread may come in either order", async (scene) => {
		await guarded(scene, row("b", { parentId: "a" }));
		await guarded(scene, row("a"));
		await guarded(scene, row("c", { parentId: "b" }));
		assert.equal((await scene.thread()).newest, "c");
	});

	test("GUARD-OFF: without it any checkpoint is taken", async ({ storage, putRows }) => {
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "a" }), row("d"));
		assert.equal((await scanKeys(storage)).length, 4);
	});

	test("GUARD-RACE: of batches that race to follow one checkpoint, exactly one is taken", async (scene) => {
		const storages = await scene.race();
		let parentId: string | undefined;
		for (let round = 1; round <= 20; round++) {
			const races = [0, 1, 2, 3].map(async (n) => {
				const checkpoint = row(checkpointId(round * 4 + n), { parentId });
				await storages[n % 2]?.put(await scene.batch({ checkpoint, onlyOnHead: true }));
				return checkpoint.id;
			});
			const results = await Promise.allSettled(races);
			const taken = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
			assert.equal(taken.length, 1, `${taken.length} were taken in round ${round}`);
			parentId = taken[0];
		}
		assert.equal((await scene.thread()).checkpoints, 20);
	});
}
