import assert from "node:assert/strict";
import { assertRejects } from "../asserts.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBlobs } from "./plain.ts";
import { findRow, readEverything, scanKeys, writesAt } from "./reads.ts";
import { blob, blobWrite, bytes, deltaBase, key, pause, row, write } from "./storage-scene.ts";

/** All of a batch is stored or nothing, and what is stored is seen. */
export function atomicRules(test: StorageTest): void {
	test("ATOMIC-PUT: a batch with a blob id that is taken is rejected and leaves nothing", async (scene) => {
		const { storage, put, tryPut, fourIds } = scene;
		const [taken, free] = await fourIds();
		await put({ checkpoint: row("a"), writes: [write("a", "task", -1)], blobs: [blob(taken, "old")] });
		const replacing = write("a", "task", -1, { value: bytes("new"), conflict: "replace" });
		const batch = {
			checkpoint: row("b"),
			writes: [replacing, blobWrite("a", "task", 0, taken)],
			deltaBases: [deltaBase("a", "log", "base")],
			blobs: [blob(free, "free"), blob(taken, "new")],
		};
		await assertRejects(() => tryPut(batch));
		await readEverything(storage);
		assert.deepEqual(await storage.getBlobs([free]), []);
		await put({ ...batch, blobs: [blob(free, "free")] });
		assert.ok(await findRow(storage, key("b")));
	});

	test("ATOMIC-PUT: a batch that fails does not create its thread", async ({ storage, put, tryPut, fresh }) => {
		const taken = await fresh();
		await put({ checkpoint: row("a"), blobs: [blob(taken, "old")] });
		const checkpoint = row("a", { threadId: "other" });
		await assertRejects(() => tryPut({ checkpoint, blobs: [blob(taken, "new")] }));
		assert.equal(await storage.getThread("other"), undefined);
		assertBlobs(await storage.getBlobs([taken]), [blob(taken, "old")]);
		await put({ checkpoint });
	});

	test("ATOMIC-PUT: puts at the same time are all stored", async ({ race, batch, thread }) => {
		const storages = await race();
		const rows = Array.from({ length: 60 }, (_, n) => row(checkpointId((n * 37) % 60), { ns: n % 2 ? "x" : "" }));
		const puts = rows.map(async (checkpoint, n) =>
			storages[n % 2]?.put(await batch({ checkpoint, writes: [write(checkpoint.id, "task", 0)] })),
		);
		await Promise.all(puts);
		assert.equal((await scanKeys(storages[0])).length, 60);
		assert.equal((await thread()).checkpoints, 60);
		assert.equal((await storages[0].readThread("thread")).writes.length, 60);
	});

	test("ATOMIC-PUT: of writes with one key at the same time one stays, or each gets its generation", async (scene) => {
		const storages = await scene.race();
		const putAll = (conflict: "drop" | "add") => {
			const all = Array.from({ length: 8 }, (_, n) => write("a", "task", 0, { value: bytes(`${n}`), conflict }));
			return Promise.all(all.map(async (one, n) => storages[n % 2]?.put(await scene.batch({ writes: [one] }))));
		};
		const generations = async () => (await writesAt(storages[0], key("a"))).map(({ generation }) => generation).sort();
		await putAll("drop");
		assert.deepEqual(await generations(), [0]);
		await putAll("add");
		assert.deepEqual(await generations(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
	});

	test("ATOMIC-REMOVE: of removals planned at the same time one is done", async (scene) => {
		await scene.putRows(...["a", "b", "c", "d"].map((id) => row(id)));
		const storages = await scene.race();
		const plans = await Promise.all(["a", "b", "c"].map((id) => scene.removal({ checkpoints: [key(id)] })));
		const results = await Promise.all(plans.map((plan, n) => storages[n % 2]?.remove(plan)));
		const done = results.filter((removed) => removed !== undefined);
		assert.deepEqual(
			done.map(({ checkpoints }) => checkpoints),
			[1],
		);
		assert.equal((await scanKeys(storages[0])).length, 3);
	});

	test("ATOMIC-COPY: of copies onto one thread at the same time one is done", async (scene) => {
		await scene.putRows(row("a"), row("b", { threadId: "other" }), row("c", { threadId: "other" }));
		const storages = await scene.race();
		const plans = await Promise.all(["thread", "other", "thread"].map((source) => scene.copying("copy", { source })));
		const results = await Promise.all(plans.map((plan, n) => storages[n % 2]?.copy(plan)));
		const [done, ...others] = results.filter((copied) => copied !== undefined);
		assert.equal(others.length, 0);
		assert.equal((await scanKeys(storages[0], { threadId: "copy" })).length, done?.checkpoints);
	});

	test("ATOMIC-SEEN: a second storage over the same data sees every batch that has been stored", async (scene) => {
		const { storage, put, remove, copy, reopen, fresh } = scene;
		const other = await reopen();
		const id = await fresh();
		const steps = [
			() => put({ checkpoint: row("a"), writes: [blobWrite("a", "task", 0, id)], blobs: [blob(id, "value")] }),
			() => put({ checkpoint: row("b", { parentId: "a" }) }),
			() => copy("copy"),
			() => remove({ checkpoints: [key("a")], relinked: [row("b")] }),
			() => storage.removeThread("copy"),
			async () => storage.removeBlobs((await scene.thread()).family, [id]),
			() => storage.clear(),
		];
		for (const step of steps) {
			await step();
			await readEverything(other);
		}
	});

	test("ATOMIC-SEEN: what one storage has removed makes the other's plans out of date", async (scene) => {
		const other = await scene.reopen();
		const stamp = await scene.put({ checkpoint: row("a") });
		await scene.remove({ checkpoints: [key("a")] });
		const batch = await scene.batch({ checkpoint: row("b") });
		assert.equal(await other.put({ ...batch, stamp }), undefined);
		assert.ok(await other.put(batch));
	});

	test("ATOMIC-MOMENT: a read shows one moment, whatever is stored and removed meanwhile", async (scene) => {
		const value = (id: number) => ({ checkpoint: row("a", { blobs: [id] }), blobs: [blob(id, `value ${id}`)] });
		let last = await scene.fresh();
		await scene.put(value(last));
		const { family } = await scene.thread();
		const [storage, other] = await scene.race();
		let isDone = false;
		const change = async () => {
			for (let n = 0; n < 40; n++) {
				const next = await scene.fresh();
				await storage.put(await scene.batch(value(next)));
				await storage.removeBlobs(family, [last]);
				last = next;
			}
			isDone = true;
		};
		const look = async () => {
			while (!isDone)
				for (const which of [[key("a")], { threadId: "thread", limit: 1 }]) {
					const { checkpoints, blobs } = await other.read(which, "values");
					const id = checkpoints[0]?.blobs[0] as number;
					assertBlobs(blobs, [blob(id, `value ${id}`)]);
					await pause();
				}
		};
		await Promise.all([change(), look()]);
	});
}
