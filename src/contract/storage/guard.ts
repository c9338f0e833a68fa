import assert from "node:assert/strict";
import { ConcurrencyError } from "../../errors.ts";
import type { CheckpointRow } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { findRow, newestRow } from "./reads.ts";
import { blob, key, row, type StorageScene, write } from "./storage-scene.ts";

/** The guard: with `onlyOnHead`, a checkpoint that would start a branch is refused. */
export function guardRules(test: StorageTest): void {
	const guarded = ({ put }: StorageScene, checkpoint: CheckpointRow) => put({ checkpoint, onlyOnHead: true });

	test("GUARD-HEAD: a checkpoint that follows the newest one of its namespace is taken", async (scene) => {
		await guarded(scene, row("a"));
		await guarded(scene, row("b", { parentId: "a" }));
		await guarded(scene, row("c", { parentId: "b" }));
		await guarded(scene, row("a", { ns: "child" }));
		await guarded(scene, row("a", { threadId: "other" }));
		assert.equal((await newestRow(scene.storage, "thread", ""))?.id, "c");
	});

	test("GUARD-HEAD: one that follows another is refused, names both, and nothing of its batch is stored", async (scene) => {
		const { storage, putRows, tryPut, fresh } = scene;
		await putRows(row("a"), row("b", { parentId: "a" }));
		const before = await readAll(storage);
		const id = await fresh();
		const batch = { writes: [write("c", "task", 0)], blobs: [blob(id, "value")], onlyOnHead: true };
		for (const parentId of ["a", "missing", undefined]) {
			const refused = tryPut({ ...batch, checkpoint: row("c", { parentId }) });
			await assert.rejects(refused, (error) => {
				assert.ok(error instanceof ConcurrencyError);
				assert.deepEqual([error.code, error.parentId, error.headId], ["CONFLICT", parentId, "b"]);
				return true;
			});
		}
		assert.deepEqual(await readAll(storage), before);
		assert.deepEqual(await storage.getBlobs([id]), []);
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

	test("GUARD-OFF: without it any checkpoint is taken", async ({ putRows, thread }) => {
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "a" }), row("d"));
		assert.equal((await thread()).checkpoints, 4);
	});

	test("GUARD-RACE: of batches that race to follow one checkpoint, exactly one is taken", async (scene) => {
		const storages = [scene.storage, await scene.reopen()];
		let parentId: string | undefined;
		for (let round = 1; round <= 20; round++) {
			const races = storages.flatMap((storage, s) =>
				[0, 1].map((n) => ({ storage, id: checkpointId(round * 4 + s * 2 + n) })),
			);
			const results = await Promise.allSettled(
				races.map(async ({ storage, id }) => {
					const batch = {
						threadId: "thread",
						fresh: await storage.reserveIds(1),
						now: scene.tick(),
						blobs: [],
						writes: [],
						deltaBases: [],
					};
					await storage.put({ ...batch, checkpoint: row(id, { parentId }), onlyOnHead: true });
					return id;
				}),
			);
			const taken = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
			assert.equal(taken.length, 1, `${taken.length} were taken in round ${round}`);
			parentId = taken[0];
		}
		assert.equal((await scene.thread()).checkpoints, 20);
	});
}
