import assert from "node:assert/strict";
import { assertRejects } from "../asserts.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { assertBlobs } from "./plain.ts";
import { findRow, scanRows, threadWrites, writesAt } from "./reads.ts";
import { blob, blobWrite, bytes, COPY_ALL, deltaBase, key, NO_REMOVAL, row, write } from "./storage-scene.ts";

/** All of a batch is stored or nothing, and what is stored is seen. */
export function atomicRules(test: StorageTest): void {
	test("ATOMIC-PUT: a batch with a blob id that is taken is rejected and leaves nothing", async (scene) => {
		const { storage, put, tryPut, fresh } = scene;
		const [taken, free] = [await fresh(), await fresh()];
		await put({ checkpoint: row("a"), writes: [write("a", "task", -1)], blobs: [blob(taken, "old")] });
		const before = await readAll(storage);
		const batch = {
			checkpoint: row("b"),
			writes: [write("a", "task", -1, { value: bytes("new"), conflict: "replace" }), blobWrite("a", "task", 0, taken)],
			deltaBases: [deltaBase("a", "log", "base")],
			blobs: [blob(free, "free"), blob(taken, "new")],
		};
		await assertRejects(() => tryPut(batch));
		assert.deepEqual(await readAll(storage), before);
		assert.deepEqual(await storage.getBlobs([free]), []);
		await put({ ...batch, blobs: [blob(free, "free")] });
		assert.ok(await findRow(storage, key("b")));
	});

	test("ATOMIC-PUT: a batch that fails does not create its thread", async ({ storage, put, tryPut, fresh }) => {
		const taken = await fresh();
		await put({ checkpoint: row("a"), blobs: [blob(taken, "old")] });
		const other = row("a", { threadId: "other" });
		await assertRejects(() => tryPut({ checkpoint: other, blobs: [blob(taken, "new")] }));
		assert.equal(await storage.getThread("other"), undefined);
		assertBlobs(await storage.getBlobs([taken]), [blob(taken, "old")]);
		await put({ checkpoint: other });
		assert.ok(await storage.getThread("other"));
	});

	test("ATOMIC-PUT: puts at the same time are all stored", async ({ storage, put, thread }) => {
		const rows = Array.from({ length: 60 }, (_, n) => row(checkpointId((n * 37) % 60), { ns: n % 2 ? "x" : "" }));
		await Promise.all(rows.map((checkpoint) => put({ checkpoint, writes: [write(checkpoint.id, "task", 0)] })));
		assert.equal((await scanRows(storage, { limit: 100 })).length, 60);
		assert.equal((await thread()).checkpoints, 60);
		assert.equal((await threadWrites(storage, "thread")).length, 60);
	});

	test("ATOMIC-PUT: of writes with one key at the same time one stays, or each gets its generation", async (scene) => {
		const { storage, put } = scene;
		const all = Array.from({ length: 8 }, (_, n) => write("a", "task", 0, { value: bytes(`${n}`) }));
		await Promise.all(all.map((one) => put({ writes: [one] })));
		assert.equal((await writesAt(storage, key("a"))).length, 1);
		await Promise.all(all.map((one) => put({ writes: [{ ...one, conflict: "add" }] })));
		const generations = (await writesAt(storage, key("a"))).map(({ generation }) => generation);
		assert.deepEqual(generations.sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
	});

	test("ATOMIC-REMOVE: of removals planned at the same time one is done", async ({
		storage,
		putRows,
		thread,
		fresh,
	}) => {
		await putRows(...["a", "b", "c", "d"].map((id) => row(id)));
		const { stamp } = await thread();
		const plans = ["a", "b", "c"].map(async (id) =>
			storage.remove({
				threadId: "thread",
				stamp,
				newStamp: await fresh(),
				...NO_REMOVAL,
				checkpoints: [key(id)],
			}),
		);
		const done = (await Promise.all(plans)).filter((removed) => removed !== undefined);
		assert.deepEqual(
			done.map(({ checkpoints }) => checkpoints),
			[1],
		);
		assert.equal((await scanRows(storage, { limit: 10 })).length, 3);
	});

	test("ATOMIC-COPY: of copies onto one thread at the same time one is done", async ({
		storage,
		putRows,
		thread,
		fresh,
		tick,
	}) => {
		await putRows(row("a"), row("b", { threadId: "other" }), row("c", { threadId: "other" }));
		const copies = ["thread", "other", "thread"].map(async (source) => {
			const { stamp } = await thread(source);
			return storage.copy({ source, stamp, target: "copy", fresh: await fresh(), now: tick(), ...COPY_ALL });
		});
		const done = (await Promise.all(copies)).filter((copied) => copied !== undefined);
		assert.equal(done.length, 1);
		assert.equal((await scanRows(storage, { threadId: "copy", limit: 10 })).length, done[0]?.checkpoints);
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
		];
		for (const step of steps) {
			await step();
			assert.deepEqual(await readAll(other), await readAll(storage));
		}
	});

	test("ATOMIC-SEEN: what one storage has removed makes the other's plans out of date", async ({
		put,
		remove,
		reopen,
		tick,
		fresh,
	}) => {
		const other = await reopen();
		const stamp = await put({ checkpoint: row("a") });
		await remove({ checkpoints: [key("a")] });
		const nothing = { blobs: [], writes: [], deltaBases: [] };
		const batch = { threadId: "thread", fresh: await fresh(), now: tick(), ...nothing };
		assert.equal(await other.put({ ...batch, stamp, checkpoint: row("b") }), undefined);
		assert.notEqual(await other.put({ ...batch, checkpoint: row("b") }), undefined);
	});
}
