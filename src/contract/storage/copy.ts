import assert from "node:assert/strict";
import type { CheckpointRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import {
	assertBases,
	assertRows,
	assertWrites,
	compareKeys,
	plainBase,
	plainRow,
	plainWrite,
	sorted,
} from "./plain.ts";
import { familyBlobs, findRow, newestRow, pathIds, scanRows, threadBases, threadWrites } from "./reads.ts";
import { blob, blobWrite, bytes, COPY_ALL, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

/** copy: a thread made of another's rows. */
export function copyRules(test: StorageTest): void {
	test("COPY-ALL: everything is copied, rows without a checkpoint too, and counted", async (scene) => {
		const { storage, copy } = scene;
		const { checkpoints, writes, deltaBases } = await fill(scene);
		const copied = await copy("copy");
		const headBytes = checkpoints.reduce((sum, { head }) => sum + head.length, 0);
		const bytes = headBytes + 4 * "task 0".length;
		assert.deepEqual(scene.counted(copied), scene.counted({ checkpoints: 4, writes: 5, bytes }));
		const there = { threadId: "copy" };
		const moved = <T extends object>(rows: readonly T[]) => rows.map((one) => ({ ...one, ...there }));
		assertRows(await scanRows(storage, { ...there, limit: 10 }), moved(checkpoints));
		assertWrites(await threadWrites(storage, "copy"), moved(writes));
		assertBases(await threadBases(storage, "copy"), moved(deltaBases));
	});

	test("COPY-ALL: the copy begins at its own time, with the source's head", async ({
		storage,
		putRows,
		copy,
		thread,
		fresh,
	}) => {
		await putRows(row("b"), row("a"), row("z", { ns: "x" }));
		const own = await fresh();
		await copy("copy", { fresh: own, now: 5_000 });
		const { family } = await thread();
		const times = { createdAt: 5_000, updatedAt: 5_000 };
		assert.deepEqual(await thread("copy"), {
			threadId: "copy",
			family,
			stamp: own,
			...times,
			checkpoints: 3,
			newest: "b",
		});
		assert.equal((await newestRow(storage, "copy", "x"))?.id, "z");
	});

	test("COPY-ALL: the source stays as it is", async (scene) => {
		const { storage, copy } = scene;
		await fill(scene);
		const read = async () => {
			const { threads, rows, writes, deltaBases } = await readAll(storage);
			const isSource = ({ threadId }: { threadId: string }) => threadId === "thread";
			return [threads, rows, writes, deltaBases].map((list) => list.filter(isSource));
		};
		const before = await read();
		await copy("copy");
		assert.deepEqual(await read(), before);
	});

	test("COPY-ALL: no blob is stored again", async (scene) => {
		const { storage, copy, thread } = scene;
		await fill(scene);
		const { family } = await thread();
		const before = await familyBlobs(storage, family);
		await copy("copy");
		assert.deepEqual(await familyBlobs(storage, family), before);
	});

	test("COPY-ALL: a thread without checkpoints can be copied", async ({ storage, put, copy, thread, counted }) => {
		await put({ writes: [write("a", "task", 0)] });
		const copied = counted({ checkpoints: 0, writes: 1, bytes: "task 0".length });
		assert.deepEqual(counted(await copy("copy")), copied);
		assert.equal((await thread("copy")).checkpoints, 0);
		assert.equal((await threadWrites(storage, "copy")).length, 1);
	});

	test("COPY-ALL: delta bases without a checkpoint or writes are copied", async ({
		storage,
		putRows,
		remove,
		copy,
	}) => {
		await putRows(row("a"));
		await remove({ deltaBases: [deltaBase("gone", "log", "base")] });
		await copy("copy");
		const bases = await threadBases(storage, "copy");
		assertBases(bases, [deltaBase("gone", "log", "base", { threadId: "copy" })]);
	});

	test("COPY-SOME: only the chosen checkpoints are copied, with their writes and delta bases", async (scene) => {
		const { storage, copy, thread } = scene;
		const { checkpoints, writes, deltaBases } = await fill(scene);
		const keys = [key("b"), key("a", "x"), key("missing"), key("a", "missing")];
		const copied = await copy("copy", { keys });
		const isChosen = (row: { ns: string; id: string }) => keys.some(({ ns, id }) => row.ns === ns && row.id === id);
		const chosen = <T extends { ns: string; id: string }>(rows: readonly T[]) =>
			rows.filter(isChosen).map((one) => ({ ...one, threadId: "copy" }));
		assertRows(await scanRows(storage, { threadId: "copy", limit: 10 }), chosen(checkpoints));
		assertWrites(await threadWrites(storage, "copy"), chosen(writes));
		assertBases(await threadBases(storage, "copy"), chosen(deltaBases));
		const bytes = chosen(checkpoints).reduce((sum, { head }) => sum + head.length, 0) + "task 0".length;
		assert.deepEqual(scene.counted(copied), scene.counted({ checkpoints: 2, writes: 1, bytes }));
		assert.equal((await thread("copy")).newest, "b");
	});

	test("COPY-SOME: nothing can be chosen", async (scene) => {
		const { storage, copy, thread } = scene;
		await fill(scene);
		assert.deepEqual(await copy("copy", { keys: [] }), { checkpoints: 0, writes: 0, bytes: 0 });
		assert.deepEqual([(await thread("copy")).checkpoints, (await thread("copy")).newest], [0, undefined]);
		assert.deepEqual(await storage.readThread("copy"), { checkpoints: [], writes: [], deltaBases: [] });
	});

	for (const [name, keys] of [
		["everything", undefined],
		["some rows", [key("b"), key("c")]],
		["nothing", []],
	] as const)
		test(`COPY-ROWS: rows of the batch come besides ${name}, or in its place, and are counted`, async (scene) => {
			const { storage, copy, thread } = scene;
			const { checkpoints, writes, deltaBases } = await fill(scene);
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
			const isCopied = (row: { ns: string; id: string }) =>
				keys === undefined || keys.some(({ ns, id }) => row.ns === ns && row.id === id);
			const isOverridden = ({ ns, id }: { ns: string; id: string }) => ns === "" && id === "b";
			const moved = <T extends { ns: string; id: string }>(rows: readonly T[]) =>
				rows.filter(isCopied).map((one) => ({ ...one, ...there }));
			const rows = [...moved(checkpoints).filter((one) => !isOverridden(one)), ...added.checkpoints];
			assertRows(await scanRows(storage, { ...there, limit: 10 }), rows.sort(compareKeys));
			const allWrites = [...moved(writes), ...added.writes];
			assertWrites(await threadWrites(storage, "copy"), allWrites);
			const bases = moved(deltaBases).filter((one) => !isOverridden(one));
			assertBases(await threadBases(storage, "copy"), [...bases, ...added.deltaBases]);
			const size = [...rows.map(({ head }) => head), ...allWrites.map(({ value }) => value)];
			const total = size.reduce((sum, { length }) => sum + length, 0);
			const counts = { checkpoints: rows.length, writes: allWrites.length, bytes: total };
			assert.deepEqual(scene.counted(copied), scene.counted(counts));
			const { family, newest, checkpoints: count } = await thread("copy");
			assert.deepEqual([family, newest, count], [(await thread()).family, "d", rows.length]);
			assert.deepEqual(await pathIds(storage, key("d", "", "copy"), 2), keys?.length === 0 ? ["d"] : ["d", "c"]);
			assertRows([await findRow(storage, key("b"))], [checkpoints[1] as CheckpointRow]);
		});

	test("COPY-EXISTS: a copy onto a thread that is there, itself or an empty one, changes nothing", async (scene) => {
		const { storage, put, putRows, remove, thread, fresh, tick } = scene;
		await putRows(row("a"), row("b", { threadId: "other" }), row("c", { threadId: "empty" }));
		await put({ writes: [write("a", "task", 0, { threadId: "writes" })] });
		await remove({ threadId: "empty", checkpoints: [key("c", "", "empty")] });
		const before = await readAll(storage);
		for (const target of ["thread", "other", "empty", "writes"]) {
			const { stamp } = await thread();
			const batch = { source: "thread", stamp, target, fresh: await fresh(), now: tick(), ...COPY_ALL };
			assert.equal(await storage.copy(batch), undefined);
		}
		assert.deepEqual(await readAll(storage), before);
	});

	test("COPY-APART: what happens to one thread does not happen to the other", async (scene) => {
		const { storage, put, copy, remove } = scene;
		await fill(scene);
		await copy("copy");
		const read = async (threadId: string) => [
			(await scanRows(storage, { threadId, limit: 10 })).map(plainRow),
			sorted((await threadWrites(storage, threadId)).map(plainWrite)),
			sorted((await threadBases(storage, threadId)).map(plainBase)),
		];
		const before = await read("copy");
		await put({
			checkpoint: row("a", { head: bytes("new") }),
			writes: [write("a", "task", 0, { value: bytes("new"), conflict: "replace" })],
		});
		await remove({
			checkpoints: [key("b")],
			relinked: [row("c", { head: bytes("new") })],
			writes: [write("a", "task", 1)],
		});
		await remove({ deltaBases: [deltaBase("a", "log", "new")] });
		assert.deepEqual(await read("copy"), before);
		await storage.removeThread("thread");
		assert.deepEqual(await read("copy"), before);
	});

	test("COPY-APART: a write that comes later is in one thread only, beside few others or many", async (scene) => {
		const { storage, putWrites, copy, remove } = scene;
		for (const count of [1, 15, 16, 17, 40]) {
			const [source, target] = [`source of ${count}`, `copy of ${count}`];
			const there = (threadId: string, idx: number) => write("a", "task", idx, { threadId });
			for (let idx = 0; idx < count; idx++) await putWrites(there(source, idx * 2));
			await copy(target, { source });
			const copied = Array.from({ length: count }, (_, idx) => there(target, idx * 2));
			await putWrites(there(source, 1));
			await remove({ threadId: source, writes: [there(source, 0)] });
			assertWrites(await threadWrites(storage, target), copied);
			await putWrites(there(target, 1));
			const kept = Array.from({ length: count - 1 }, (_, idx) => there(source, idx * 2 + 2));
			assertWrites(await threadWrites(storage, source), [...kept, there(source, 1)]);
			assertWrites(await threadWrites(storage, target), [...copied, there(target, 1)]);
		}
	});
}

/** Three rows and one in a namespace, in the order of a scan, with writes (one in a blob, one of a row that is not there) and delta bases. */
async function fill({ put, putWrites, remove, fresh }: StorageScene) {
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
	for (const checkpoint of checkpoints) await put({ checkpoint });
	await put({ blobs: [blob(id, "large")] });
	await putWrites(...writes);
	await remove({ deltaBases });
	return { checkpoints, writes, deltaBases };
}
