import assert from "node:assert/strict";
import type { CheckpointKey } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertRows, assertWrites, compareKeys } from "./plain.ts";
import { pathIds, readEverything } from "./reads.ts";
import { blob, blobWrite, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** copy: a thread made of another's rows. */
export function copyRules(test: StorageTest): void {
	test("COPY-ALL: everything is copied, rows without a checkpoint too, and counted", async (scene) => {
		const { storage, copy } = scene;
		const { checkpoints, writes, deltaBases } = await fill(scene);
		const copied = await copy("copy");
		const total = checkpoints.reduce((sum, { head }) => sum + head.length, 0) + 4 * "task 0".length;
		assert.deepEqual(scene.counted(copied), scene.counted({ checkpoints: 4, writes: 5, bytes: total }));
		const moved = <T extends object>(rows: readonly T[]) => rows.map((one) => ({ ...one, threadId: "copy" }));
		assertRows((await storage.read({ threadId: "copy", limit: 10 }, "rows")).checkpoints, moved(checkpoints));
		const reading = await storage.readThread("copy");
		assertWrites(reading.writes, moved(writes));
		assertBases(reading.deltaBases, moved(deltaBases));
	});

	test("COPY-ALL: the copy begins at its own time, with the source's newest and blobs", async (scene) => {
		const { storage, copy, thread, fresh } = scene;
		await fill(scene);
		const { family } = await thread();
		const { blobs } = await storage.readFamily(family);
		const own = await fresh();
		await copy("copy", { fresh: own, now: 5_000 });
		const times = { createdAt: 5_000, updatedAt: 5_000 };
		const expected = { threadId: "copy", family, stamp: own, ...times, checkpoints: 4, newest: "c" };
		assert.deepEqual(await thread("copy"), expected);
		assert.equal((await storage.readFamily(family)).blobs.length, blobs.length);
	});

	test("COPY-ALL: a thread without checkpoints can be copied", async ({ put, copy, counted }) => {
		await put({ writes: [write("a", "task", 0)] });
		await put({ deltaBases: [deltaBase("gone", "log", "base")] });
		const expected = counted({ checkpoints: 0, writes: 1, bytes: "task 0".length });
		assert.deepEqual(counted(await copy("copy")), expected);
	});

	test("COPY-SOME: only the chosen checkpoints are copied, with their writes and delta bases", async (scene) => {
		const { storage, copy, thread } = scene;
		await fill(scene);
		const keys = [key("b"), key("a", "x"), key("missing"), key("a", "missing")];
		const { checkpoints, writes } = await copy("copy", { keys });
		assert.deepEqual([checkpoints, writes], [2, 1]);
		assert.equal((await thread("copy")).newest, "b");
		assert.deepEqual(await copy("empty", { keys: [] }), { checkpoints: 0, writes: 0, bytes: 0 });
		assert.deepEqual(await storage.readThread("empty"), { writes: [], deltaBases: [] });
	});

	for (const [name, keys] of Object.entries({ everything: undefined, "some rows": [key("b"), key("c")], nothing: [] }))
		test(`COPY-ROWS: rows of the batch come besides ${name}, or in its place, and are counted`, async (scene) => {
			const { storage, copy, thread } = scene;
			const source = await fill(scene);
			const there = { threadId: "copy" };
			const added = {
				checkpoints: [
					row("b", { ...there, parentId: "z", step: 9, head: bytes("other"), blobs: [7] }),
					row("d", { ...there, parentId: "c", head: bytes("added") }),
				],
				writes: [
					write("b", "new task", 0, { ...there, actor: 7, runId: "run", taskPath: "path" }),
					write("b", "new task", 0, { ...there, generation: 1 }),
					blobWrite("gone", "new task", -1, 7, there),
				],
				deltaBases: [deltaBase("b", "log", "other", there), deltaBase("d", "log", "added", there)],
			};
			const copied = await copy("copy", { keys, ...added });
			const isCopied = (row: CheckpointKey) => keys?.some(({ ns, id }) => row.ns === ns && row.id === id) ?? true;
			const isOverridden = ({ ns, id }: CheckpointKey) => ns === "" && id === "b";
			const moved = source.checkpoints.filter((one) => isCopied(one) && !isOverridden(one));
			const rows = [...moved.map((one) => ({ ...one, ...there })), ...added.checkpoints].sort(compareKeys);
			assertRows((await storage.read({ ...there, limit: 10 }, "rows")).checkpoints, rows);
			const writes = source.writes.filter(isCopied).length + added.writes.length;
			assert.deepEqual([copied.checkpoints, copied.writes], [rows.length, writes]);
			const { family, newest, checkpoints } = await thread("copy");
			assert.deepEqual([family, newest, checkpoints], [(await thread()).family, "d", rows.length]);
			assert.deepEqual(await pathIds(storage, key("d", "", "copy"), 2), keys?.length === 0 ? ["d"] : ["d", "c"]);
		});

	test("COPY-EXISTS: a copy onto a thread that is there, itself or an empty one, changes nothing", async (scene) => {
		const { storage, put, putRows, remove, copying } = scene;
		await putRows(row("a"), row("b", { threadId: "other" }), row("c", { threadId: "empty" }));
		await put({ writes: [write("a", "task", 0, { threadId: "writes" })] });
		await remove({ threadId: "empty", checkpoints: [key("c", "", "empty")] });
		for (const target of ["thread", "other", "empty", "writes"])
			assert.equal(await storage.copy(await copying(target)), undefined);
	});

	test("COPY-APART: what happens to one thread does not happen to the other", async (scene) => {
		const { storage, put, copy, remove } = scene;
		await fill(scene);
		await copy("copy");
		const value = { value: bytes("new"), conflict: "replace" } as const;
		await put({ checkpoint: row("a", { head: bytes("new") }), writes: [write("a", "task", 0, value)] });
		const relinked = [row("c", { head: bytes("new") })];
		await remove({ checkpoints: [key("b")], relinked, writes: [write("a", "task", 1)] });
		await remove({ deltaBases: [deltaBase("a", "log", "new")] });
		await readEverything(storage);
		await put({ checkpoint: row("a", { threadId: "copy" }), writes: [write("a", "task 2", 0, { threadId: "copy" })] });
		await readEverything(storage);
		await storage.removeThread("thread");
	});
}

/** Three rows and one in a namespace, in the order of a scan, with writes (one in a blob, one of no row) and delta bases. */
async function fill({ put, putRows, putWrites, fresh }: StorageScene) {
	const id = await fresh();
	const checkpoints = [
		row("c", { parentId: "b" }),
		row("b", { parentId: "a", runId: "run", blobs: [id] }),
		row("a", { source: "input", step: -1 }),
		row("a", { ns: "x", parentId: "gone" }),
	];
	const writes = [
		write("a", "task", 0),
		blobWrite("a", "task", 1, id),
		write("b", "task", 0, { runId: "run", type: "json" }),
		write("gone", "task", 0),
		write("gone", "task", 0, { ns: "y" }),
	];
	const deltaBases = [
		deltaBase("a", "log", "of a"),
		deltaBase("b", "log", "of b"),
		deltaBase("a", "log", "of x", { ns: "x" }),
	];
	await putRows(...checkpoints);
	await put({ blobs: [blob(id, "large")], deltaBases });
	await putWrites(...writes);
	return { checkpoints, writes, deltaBases };
}
