import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { assertSameRows, assertWrites, plainBase, plainKey, plainRow, plainWrite } from "./plain.ts";
import { blob, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

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
		const rows = (await storage.scan({ threadId: "copy", limit: 10 })).map(plainRow);
		assertSameRows(
			rows,
			checkpoints.map((one) => ({ ...one, ...there })),
		);
		assertWrites(
			await storage.getThreadWrites("copy"),
			writes.map((one) => ({ ...one, ...there })),
		);
		const bases = (await storage.getThreadDeltaBases("copy")).map(plainBase);
		assertSameRows(
			bases,
			deltaBases.map((one) => ({ ...one, ...there })),
		);
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
			head: "b",
		});
		assert.equal((await storage.getLatest("copy", "x"))?.id, "z");
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
		const before = await storage.listBlobs(family);
		await copy("copy");
		assert.deepEqual(await storage.listBlobs(family), before);
	});

	test("COPY-ALL: a thread without checkpoints can be copied", async ({ storage, put, copy, thread, counted }) => {
		await put({ writes: [write("a", "task", 0)] });
		const copied = counted({ checkpoints: 0, writes: 1, bytes: "task 0".length });
		assert.deepEqual(counted(await copy("copy")), copied);
		assert.equal((await thread("copy")).checkpoints, 0);
		assert.equal((await storage.getThreadWrites("copy")).length, 1);
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
		const bases = await storage.getThreadDeltaBases("copy");
		assert.deepEqual(bases.map(plainBase), [deltaBase("gone", "log", "base", { threadId: "copy" })]);
	});

	test("COPY-SOME: only the chosen checkpoints are copied, with their writes and delta bases", async (scene) => {
		const { storage, copy } = scene;
		const { checkpoints, writes, deltaBases } = await fill(scene);
		const chosen = [
			{ key: key("b"), parentId: undefined },
			{ key: key("a", "x"), parentId: undefined },
		];
		const copied = await copy("copy", { checkpoints: chosen });
		const isChosen = ({ ns, id }: { ns: string; id: string }) =>
			chosen.some((one) => one.key.ns === ns && one.key.id === id);
		const rows = checkpoints.filter(isChosen).map((one) => ({ ...one, threadId: "copy", parentId: undefined }));
		assertSameRows((await storage.scan({ threadId: "copy", limit: 10 })).map(plainRow), rows);
		const copiedWrites = writes.filter(isChosen).map((one) => ({ ...one, threadId: "copy" }));
		assertWrites(await storage.getThreadWrites("copy"), copiedWrites);
		const bases = deltaBases.filter(isChosen).map((one) => ({ ...one, threadId: "copy" }));
		assertSameRows((await storage.getThreadDeltaBases("copy")).map(plainBase), bases);
		const bytes = rows.reduce((sum, { head }) => sum + head.length, 0) + "task 0".length;
		assert.deepEqual(scene.counted(copied), scene.counted({ checkpoints: 2, writes: copiedWrites.length, bytes }));
	});

	test("COPY-SOME: the copied rows have the parents they are given", async ({ storage, chain, copy, thread }) => {
		const [a, b, c, d] = (await chain(4)) as [string, string, string, string];
		const checkpoints = [
			{ key: key(a), parentId: undefined },
			{ key: key(c), parentId: a },
			{ key: key(d), parentId: "elsewhere" },
		];
		await copy("copy", { checkpoints });
		const parents = (await storage.scan({ threadId: "copy", limit: 10 })).map(({ id, parentId }) => [id, parentId]);
		assert.deepEqual(parents, [
			[d, "elsewhere"],
			[c, a],
			[a, undefined],
		]);
		assert.deepEqual((await storage.getChildren("copy", "", [a])).map(plainKey), [key(c, "", "copy")]);
		assert.equal((await thread("copy")).head, d);
		assert.equal((await storage.getCheckpoint(key(c)))?.parentId, b);
	});

	test("COPY-SOME: a key that the source does not have is left out", async ({ storage, putRows, copy }) => {
		await putRows(row("a"));
		const checkpoints = [key("a"), key("b"), key("a", "x")].map((one) => ({ key: one, parentId: undefined }));
		assert.equal((await copy("copy", { checkpoints })).checkpoints, 1);
		assert.deepEqual((await storage.scan({ threadId: "copy", limit: 10 })).map(plainKey), [key("a", "", "copy")]);
	});

	test("COPY-SOME: nothing can be chosen", async ({ storage, putRows, copy, thread }) => {
		await putRows(row("a"));
		assert.deepEqual(await copy("copy", { checkpoints: [] }), { checkpoints: 0, writes: 0, bytes: 0 });
		assert.deepEqual([(await thread("copy")).checkpoints, (await thread("copy")).head], [0, undefined]);
		assert.deepEqual(await storage.getThreadWrites("copy"), []);
	});

	test("COPY-BASE: delta bases of the batch come besides, and in place of, those of the source", async (scene) => {
		const { storage, putRows, remove, copy } = scene;
		await putRows(row("a"), row("b"));
		await remove({ deltaBases: [deltaBase("a", "one", "old"), deltaBase("a", "two", "old")] });
		const checkpoints = [key("a"), key("b")].map((one) => ({ key: one, parentId: undefined }));
		await copy("copy", { checkpoints, deltaBases: [deltaBase("a", "two", "new"), deltaBase("b", "two", "new")] });
		const there = { threadId: "copy" };
		assertSameRows((await storage.getThreadDeltaBases("copy")).map(plainBase), [
			deltaBase("a", "one", "old", there),
			deltaBase("a", "two", "new", there),
			deltaBase("b", "two", "new", there),
		]);
		const source = [deltaBase("a", "one", "old"), deltaBase("a", "two", "old")];
		assertSameRows((await storage.getThreadDeltaBases("thread")).map(plainBase), source);
	});

	test("COPY-ROWS: rows of the batch are stored instead of the source's, and counted", async (scene) => {
		const { storage, copy, thread } = scene;
		await fill(scene);
		const there = { threadId: "copy" };
		const checkpoints = [row("a", { ...there, parentId: "z", head: bytes("other") }), row("d", { ...there, ns: "x" })];
		const writes = [
			write("a", "task", 0, { ...there, value: bytes("other"), actor: 7, runId: "run" }),
			write("a", "task", 0, { ...there, generation: 1 }),
			write("gone", "task", -1, there),
		];
		const deltaBases = [deltaBase("a", "log", "other")];
		for (const chosen of [undefined, [{ key: key("b"), parentId: undefined }]]) {
			const copied = await copy("copy", { checkpoints: chosen, rows: { checkpoints, writes }, deltaBases });
			assert.deepEqual([copied.checkpoints, copied.writes], [2, 3]);
			assertSameRows((await storage.scan({ ...there, limit: 10 })).map(plainRow), checkpoints);
			assertWrites(await storage.getThreadWrites("copy"), writes);
			assertSameRows(
				(await storage.getThreadDeltaBases("copy")).map(plainBase),
				deltaBases.map((one) => ({ ...one, ...there })),
			);
			const { family, head } = await thread("copy");
			assert.deepEqual([family, head], [(await thread()).family, "a"]);
			await storage.removeThread("copy");
		}
	});

	test("COPY-ROWS: no rows can be given", async (scene) => {
		const { storage, copy } = scene;
		await fill(scene);
		assert.deepEqual(await copy("copy", { rows: { checkpoints: [], writes: [] } }), {
			checkpoints: 0,
			writes: 0,
			bytes: 0,
		});
		assert.deepEqual(await storage.getThreadDeltaBases("copy"), []);
	});

	test("COPY-EXISTS: a copy onto a thread that is there, itself or an empty one, changes nothing", async (scene) => {
		const { storage, put, putRows, remove, thread, fresh, tick } = scene;
		await putRows(row("a"), row("b", { threadId: "other" }), row("c", { threadId: "empty" }));
		await put({ writes: [write("a", "task", 0, { threadId: "writes" })] });
		await remove({ threadId: "empty", checkpoints: [key("c", "", "empty")] });
		const before = await readAll(storage);
		for (const target of ["thread", "other", "empty", "writes"]) {
			const { stamp } = await thread();
			const rest = { fresh: await fresh(), now: tick(), checkpoints: undefined, deltaBases: [] };
			assert.equal(await storage.copy({ source: "thread", stamp, target, ...rest }), undefined);
		}
		assert.deepEqual(await readAll(storage), before);
	});

	test("COPY-APART: what happens to one thread does not happen to the other", async (scene) => {
		const { storage, put, copy, remove } = scene;
		await fill(scene);
		await copy("copy");
		const read = async (threadId: string) => [
			(await storage.scan({ threadId, limit: 10 })).map(plainRow),
			(await storage.getThreadWrites(threadId)).map(plainWrite),
			(await storage.getThreadDeltaBases(threadId)).map(plainBase),
		];
		const before = await read("copy");
		await put({
			checkpoint: row("a", { head: bytes("new") }),
			writes: [write("a", "task", 0, { value: bytes("new"), conflict: "replace" })],
		});
		await remove({
			checkpoints: [key("b")],
			relink: [{ key: key("c"), parentId: undefined }],
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
			assertWrites(await storage.getThreadWrites(target), copied);
			await putWrites(there(target, 1));
			const kept = Array.from({ length: count - 1 }, (_, idx) => there(source, idx * 2 + 2));
			assertWrites(await storage.getThreadWrites(source), [...kept, there(source, 1)]);
			assertWrites(await storage.getThreadWrites(target), [...copied, there(target, 1)]);
		}
	});
}

/** Three rows and one in a namespace, with writes (one in a blob, one of a row that is not there) and delta bases. */
async function fill({ put, putWrites, remove, fresh }: StorageScene) {
	const id = await fresh();
	const checkpoints = [
		row("a", { source: "input", step: -1 }),
		row("b", { parentId: "a", runId: "run" }),
		row("c", { parentId: "b" }),
		row("a", { ns: "x", parentId: "gone" }),
	];
	const writes = [
		write("a", "task", 0),
		write("a", "task", 1, { value: id }),
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
