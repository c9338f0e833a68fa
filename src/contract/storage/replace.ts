import assert from "node:assert/strict";
import type { Replacement } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { assertBases, assertBlobs, assertRows, assertWrites } from "./plain.ts";
import { basesAt, findRow, scanKeys, writesAt } from "./reads.ts";
import { blob, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** replaceBytes: other bytes for rows that are still as they were seen. */
export function replaceRules(test: StorageTest): void {
	test("REPLACE-ROW: a row of each kind gets its new bytes and keeps the rest", async (scene) => {
		const { storage } = scene;
		const { id, checkpoint, task, base } = await fill(scene);
		assert.equal(await storage.replaceBytes(replacements(id)), 4);
		assertRows([await findRow(storage, key("a"))], [{ ...checkpoint, head: bytes("new head") }]);
		const added = write("a", "task", 0, { actor: 2, generation: 1 });
		assertWrites(await writesAt(storage, key("a")), [{ ...task, value: bytes("new value") }, added]);
		assertBases(await basesAt(storage, key("a")), [{ ...base, data: bytes("new base") }]);
		assertBlobs(await storage.getBlobs([id]), [blob(id, "new blob", undefined, "json")]);
	});

	test("REPLACE-ROW: nothing else changes", async (scene) => {
		const { storage } = scene;
		const { id } = await fill(scene);
		const before = await readAll(storage);
		await storage.replaceBytes(replacements(id));
		await storage.replaceBytes(
			replacements(id).map(({ from, to, ...place }) => ({ ...place, from: to, to: from }) as Replacement),
		);
		assert.deepEqual(await readAll(storage), before);
	});

	test("REPLACE-ROW: the totals follow", async (scene) => {
		const { storage } = scene;
		const { id } = await fill(scene);
		const [one, two] = [await storage.totals(), replacements(id)];
		await storage.replaceBytes(
			two.map((replacement) => ({ ...replacement, to: new Uint8Array(replacement.from.length + 1_000) })),
		);
		const { bytes } = await storage.totals();
		const more = (before: number, after: number) => after - before;
		assert.equal(more(one.bytes.checkpoints, bytes.checkpoints), 1_000);
		assert.equal(more(one.bytes.writes, bytes.writes), 1_000);
		assert.equal(more(one.bytes.blobs, bytes.blobs), 1_000);
	});

	test("REPLACE-SEEN: a row that has other bytes meanwhile is left alone, the others are not", async (scene) => {
		const { storage, put } = scene;
		const { id } = await fill(scene);
		await put({ checkpoint: row("a", { head: bytes("changed") }) });
		assert.equal(await storage.replaceBytes(replacements(id)), 3);
		assertRows([await findRow(storage, key("a"))], [row("a", { head: bytes("changed") })]);
		assert.equal(await storage.replaceBytes(replacements(id)), 0);
	});

	test("REPLACE-SEEN: rows that are not there are not counted", async (scene) => {
		const { storage, putRows } = scene;
		await putRows(row("b"));
		assert.equal(await storage.replaceBytes(replacements(await scene.fresh())), 0);
		assert.equal(await storage.replaceBytes([]), 0);
		assert.equal(await findRow(storage, key("a")), undefined);
	});

	test("REPLACE-SEEN: rows with the same key elsewhere, or in another generation, stay", async (scene) => {
		const { storage, copy } = scene;
		const { id } = await fill(scene);
		await copy("copy");
		const before = await readAll(storage);
		const others = replacements(id).filter(({ kind }) => kind !== "blob");
		assert.equal(await storage.replaceBytes(others), 3);
		const after = await readAll(storage);
		for (const list of ["rows", "writes", "deltaBases"] as const) {
			const ofCopy = (all: typeof before) => all[list].filter(({ threadId }) => threadId === "copy");
			assert.deepEqual(ofCopy(after), ofCopy(before));
		}
		assert.deepEqual(after.blobs, before.blobs);
	});

	test("REPLACE-LABELS: a checkpoint that has new bytes is found by any labels", async ({ storage, put }) => {
		await put({ checkpoint: row("a", { source: "loop", head: bytes("old") }), labels: { user: "a" } });
		await storage.replaceBytes([{ kind: "checkpoint", key: key("a"), from: bytes("old"), to: bytes("new") }]);
		assert.deepEqual(await scanKeys(storage, { labels: { user: "b" } }), [key("a")]);
		assert.deepEqual(await scanKeys(storage, { source: "input" }), []);
	});

	test("REPLACE-SEEN: no bytes can be replaced by some, and some by none", async ({ storage, putRows }) => {
		await putRows(row("a", { head: new Uint8Array(0) }));
		const replace = async (from: string, to: string) =>
			storage.replaceBytes([{ kind: "checkpoint", key: key("a"), from: bytes(from), to: bytes(to) }]);
		assert.deepEqual([await replace("", "some"), await replace("", "other"), await replace("some", "")], [1, 0, 1]);
		assert.equal((await findRow(storage, key("a")))?.head.length, 0);
	});
}

/** A row of each kind, and one more write in a later generation. */
async function fill({ put, fresh }: StorageScene) {
	const id = await fresh();
	const checkpoint = row("a", {
		parentId: "z",
		runId: "run",
		source: "loop",
		step: 3,
		blobs: [id],
		head: bytes("old head"),
	});
	const task = write("a", "task", 0, { runId: "run", actor: 1, type: "json", value: bytes("old value") });
	const base = deltaBase("a", "log", "old base");
	await put({ checkpoint, writes: [task], deltaBases: [base], blobs: [blob(id, "old blob", undefined, "json")] });
	await put({ writes: [write("a", "task", 0, { actor: 2, conflict: "add" })] });
	return { id, checkpoint, task, base };
}

/** New bytes for all that {@link fill} stores first. */
function replacements(id: number): Replacement[] {
	return [
		{ kind: "checkpoint", key: key("a"), from: bytes("old head"), to: bytes("new head") },
		{ kind: "write", key: write("a", "task", 0), from: bytes("old value"), to: bytes("new value") },
		{ kind: "deltaBase", key: key("a"), channel: "log", from: bytes("old base"), to: bytes("new base") },
		{ kind: "blob", id, from: bytes("old blob"), to: bytes("new blob") },
	];
}
