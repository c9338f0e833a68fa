import assert from "node:assert/strict";
import type { Replacement } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBlobs, assertRows } from "./plain.ts";
import { findRow, readEverything, scanKeys } from "./reads.ts";
import { blob, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** replaceBytes: other bytes for rows that are still as they were seen. */
export function replaceRules(test: StorageTest): void {
	test("REPLACE-ROW: a row of each kind gets its new bytes and keeps the rest", async (scene) => {
		const { storage } = scene;
		const { id, checkpoint } = await fill(scene);
		assert.equal(await storage.replaceBytes(replacements(id)), 4);
		assertRows([await findRow(storage, key("a"))], [{ ...checkpoint, head: bytes("new head") }]);
		assertBlobs(await storage.getBlobs([id]), [blob(id, "new blob", undefined, "json")]);
	});

	test("REPLACE-ROW: rows with the same key elsewhere, or in another generation, stay", async (scene) => {
		const { storage, copy } = scene;
		const { id } = await fill(scene);
		await copy("copy");
		const others = replacements(id).filter(({ kind }) => kind !== "blob");
		assert.equal(await storage.replaceBytes(others), 3);
	});

	test("REPLACE-ROW: the totals follow", async (scene) => {
		const { storage } = scene;
		const { id } = await fill(scene);
		const before = await storage.totals();
		const longer = replacements(id).map((one) => ({ ...one, to: new Uint8Array(one.from.length + 1_000) }));
		await storage.replaceBytes(longer);
		const after = await storage.totals();
		for (const kind of ["checkpoints", "writes", "blobs"] as const)
			assert.equal(after.bytes[kind] - before.bytes[kind], 1_000);
	});

	test("REPLACE-SEEN: a row that has other bytes meanwhile is left alone, the others are not", async (scene) => {
		const { storage, put } = scene;
		const { id } = await fill(scene);
		await put({ checkpoint: row("a", { head: bytes("changed") }) });
		assert.equal(await storage.replaceBytes(replacements(id)), 3);
		await readEverything(storage);
		assert.equal(await storage.replaceBytes(replacements(id)), 0);
	});

	test("REPLACE-SEEN: rows that are not there are not counted", async ({ storage, putRows, fresh }) => {
		await putRows(row("b"));
		assert.equal(await storage.replaceBytes(replacements(await fresh())), 0);
		assert.equal(await storage.replaceBytes([]), 0);
	});

	test("REPLACE-SEEN: no bytes can be replaced by some, and some by none", async ({ storage, putRows }) => {
		await putRows(row("a", { head: new Uint8Array(0) }));
		const replace = async (from: string, to: string) =>
			storage.replaceBytes([{ kind: "checkpoint", key: key("a"), from: bytes(from), to: bytes(to) }]);
		assert.deepEqual([await replace("", "some"), await replace("", "other"), await replace("some", "")], [1, 0, 1]);
	});

	test("REPLACE-LABELS: a checkpoint that has new bytes is found by any labels", async ({ storage, put }) => {
		await put({ checkpoint: row("a", { source: "loop", head: bytes("old") }), labels: { user: "a" } });
		await storage.replaceBytes([{ kind: "checkpoint", key: key("a"), from: bytes("old"), to: bytes("new") }]);
		assert.deepEqual(await scanKeys(storage, { labels: { user: "b" } }), [key("a")]);
		assert.deepEqual(await scanKeys(storage, { source: "input" }), []);
	});
}

/** A row of each kind, and one more write in a later generation. */
async function fill({ put, fresh }: StorageScene) {
	const id = await fresh();
	const fields = { parentId: "z", runId: "run", source: "loop", step: 3, blobs: [id], head: bytes("old head") };
	const checkpoint = row("a", fields);
	const task = write("a", "task", 0, { runId: "run", actor: 1, type: "json", value: bytes("old value") });
	const deltaBases = [deltaBase("a", "log", "old base"), deltaBase("a", "other", "old base")];
	await put({ checkpoint, writes: [task], deltaBases, blobs: [blob(id, "old blob", undefined, "json")] });
	await put({ writes: [write("a", "task", 0, { actor: 2, conflict: "add", value: bytes("old value") })] });
	return { id, checkpoint };
}

/** New bytes for a row of each kind that {@link fill} stores. */
function replacements(id: number): Replacement[] {
	return [
		{ kind: "checkpoint", key: key("a"), from: bytes("old head"), to: bytes("new head") },
		{ kind: "write", key: write("a", "task", 0), from: bytes("old value"), to: bytes("new value") },
		{ kind: "deltaBase", key: key("a"), channel: "log", from: bytes("old base"), to: bytes("new base") },
		{ kind: "blob", id, from: bytes("old blob"), to: bytes("new blob") },
	];
}
