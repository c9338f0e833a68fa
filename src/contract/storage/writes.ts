import assert from "node:assert/strict";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, assertWrites, plainBlob } from "./plain.ts";
import { blob, bytes, key, row, write } from "./storage-scene.ts";

/** put and its writes: what is dropped, replaced and added, and where they are found. */
export function writeRules(test: StorageTest): void {
	test("WRITE-ROW: writes come back as they were given", async ({ storage, put }) => {
		const writes = [
			write("a", "task", 0, { channel: "log", runId: "run", actor: 2 ** 40, type: "json" }),
			write("a", "task", -3, { value: 2 ** 40, actor: 0 }),
			write("a", "task", 1_000_000, { runId: "", type: "", channel: "" }),
		];
		await put({ checkpoint: row("a"), writes, blobs: [blob(2 ** 40, "value")] });
		assertWrites(await storage.getWrites([key("a")]), writes);
	});

	test("WRITE-ROW: the writes of several checkpoints come in one answer", async ({ storage, putWrites }) => {
		const writes = ["a", "b", "c"].flatMap((id) => [
			write(id, "task", 0),
			write(id, "task", 1),
			write(id, "task 1", 0),
		]);
		const other = write("a", "task", 0, { threadId: "other" });
		await putWrites(...writes, write("a", "task", 0, { ns: "x" }), other);
		const some = [key("a"), key("c"), key("missing"), key("a", "", "other"), key("a", "", "missing")];
		assertWrites(await storage.getWrites(some), [...writes.filter(({ id }) => id !== "b"), other]);
		assert.deepEqual(await storage.getWrites([]), []);
	});

	test("WRITE-ROW: a checkpoint and the writes of another can come in one batch", async ({ storage, put }) => {
		await put({ checkpoint: row("b"), writes: [write("a", "task", 0, { ns: "x" })] });
		assert.ok(await storage.getCheckpoint(key("b")));
		assertWrites(await storage.getWrites([key("a", "x")]), [write("a", "task", 0, { ns: "x" })]);
	});

	test("WRITE-ORPHAN: writes need no checkpoint, and their thread names them all", async ({
		storage,
		putRows,
		putWrites,
	}) => {
		const writes = [write("gone", "task", 0), write("a", "task", 0), write("gone", "task", 0, { ns: "x" })];
		await putRows(row("a"));
		await putWrites(...writes, write("gone", "task", 0, { threadId: "thread2" }));
		assertWrites(await storage.getWrites([key("gone")]), writes.slice(0, 1));
		assertWrites(await storage.getThreadWrites("thread"), writes);
		assert.deepEqual(await storage.getThreadWrites("missing"), []);
	});

	test("WRITE-ORPHAN: those of smaller ids without a row are found, in one namespace", async ({
		storage,
		putRows,
		putWrites,
	}) => {
		const ids = ["a", "b", "bb", "c", checkpointId(1), checkpointId(2), checkpointId(9)];
		await putRows(row("b"), row("a", { ns: "x" }), row("a", { threadId: "other" }), row(checkpointId(2)));
		await putWrites(...ids.flatMap((id) => [write(id, "task", 0), write(id, "task", 1), write(id, "task 1", 0)]));
		await putWrites(write("0", "task", 0, { ns: "x" }), write("0", "task", 0, { threadId: "other" }));
		const orphans = ids.filter((id) => id !== "b" && id !== checkpointId(2));
		for (const before of [
			"",
			"0",
			"a",
			"aa",
			"b",
			"bb",
			"c",
			"d",
			"zzz",
			checkpointId(1),
			checkpointId(3),
			checkpointId(99),
		]) {
			const expected = orphans.filter((id) => id < before);
			const found = await storage.getOrphanWrites("thread", "", before);
			assertWrites(
				found,
				expected.flatMap((id) => [write(id, "task", 0), write(id, "task", 1), write(id, "task 1", 0)]),
			);
		}
		assert.deepEqual(await storage.getOrphanWrites("thread", "y", "zzz"), []);
		assert.deepEqual(await storage.getOrphanWrites("missing", "", "zzz"), []);
	});

	test("WRITE-ORPHAN: a write is one as long as its checkpoint has no row", async ({
		storage,
		put,
		putRows,
		remove,
		copy,
	}) => {
		await put({ writes: [write("a", "task", 0)] });
		const orphans = async (threadId = "thread") => (await storage.getOrphanWrites(threadId, "", "b")).length;
		assert.equal(await orphans(), 1);
		await copy("copy");
		await putRows(row("a"));
		assert.deepEqual([await orphans(), await orphans("copy")], [0, 1]);
		await remove({ checkpoints: [key("a")] });
		assert.equal(await orphans(), 0);
	});

	test("WRITE-DROP: the older of two writes stays, all of it", async ({ storage, put }) => {
		const older = write("a", "task", 0, { channel: "old", runId: "run 1", actor: 1, type: "json" });
		await put({ writes: [older] });
		await put({ writes: [write("a", "task", 0, { channel: "new", runId: "run 2", actor: 2, value: bytes("new") })] });
		assertWrites(await storage.getWrites([key("a")]), [older]);
	});

	test("WRITE-DROP: others of the batch are stored, with their blobs; that of the dropped one is not", async (scene) => {
		const { storage, put } = scene;
		const [kept, dropped, added, other] = await scene.fourIds();
		await put({ writes: [write("a", "task", 0, { value: kept })], blobs: [blob(kept, "kept")] });
		await put({
			checkpoint: row("a"),
			writes: [write("a", "task", 0, { value: dropped }), write("a", "task", 1, { value: added })],
			blobs: [blob(dropped, "dropped"), blob(added, "added"), blob(other, "of the checkpoint")],
		});
		assertWrites(await storage.getWrites([key("a")]), [
			write("a", "task", 0, { value: kept }),
			write("a", "task", 1, { value: added }),
		]);
		const expected = [blob(kept, "kept"), blob(added, "added"), blob(other, "of the checkpoint")];
		assertSameRows((await storage.getBlobs([kept, dropped, added, other])).map(plainBlob), expected);
	});

	test("WRITE-DROP: of two in a batch the first is stored", async (scene) => {
		const { storage, put, thread } = scene;
		const [first, second] = await scene.fourIds();
		const writes = [write("a", "task", 0, { value: first }), write("a", "task", 0, { value: second })];
		await put({ writes, blobs: [blob(first, "first"), blob(second, "second")] });
		assertWrites(await storage.getWrites([key("a")]), writes.slice(0, 1));
		assert.deepEqual(
			(await storage.listBlobs((await thread()).family)).map(({ id }) => id),
			[first],
		);
	});

	test("WRITE-REPLACE: the newer of two writes takes the place of the older, all of it", async ({ storage, put }) => {
		const older = write("a", "task", -1, { channel: "old", runId: "run 1", actor: 1, type: "json" });
		await put({ writes: [older, write("a", "task", 0)] });
		const newer = write("a", "task", -1, { channel: "new", value: bytes("new"), conflict: "replace" });
		await put({ writes: [newer] });
		assertWrites(await storage.getWrites([key("a")]), [newer, write("a", "task", 0)]);
	});

	test("WRITE-REPLACE: a write can go from bytes to a blob and back", async ({ storage, put, fresh }) => {
		const values = [bytes("small"), await fresh(), bytes("small again")];
		for (const value of values) {
			const blobs = typeof value === "number" ? [blob(value, "large")] : [];
			const next = write("a", "task", 0, { value, conflict: "replace" });
			await put({ writes: [next], blobs });
			assertWrites(await storage.getWrites([key("a")]), [next]);
		}
	});

	test("WRITE-REPLACE: of two in a batch the last is stored", async ({ storage, put }) => {
		const writes = ["first", "last"].map((text) => write("a", "task", 0, { value: bytes(text), conflict: "replace" }));
		await put({ writes });
		assertWrites(await storage.getWrites([key("a")]), writes.slice(1));
	});

	test("WRITE-ADD: the first writes of a task are of generation zero", async ({ storage, put, putWrites }) => {
		await putWrites(write("a", "other task", 0), write("a2", "task", 0), write("a", "task", 0, { ns: "x" }));
		const writes = [0, 1].map((idx) => write("a", "task", idx, { actor: 1, conflict: "add" }));
		await put({ writes });
		assertWrites(await storage.getWrites([key("a")]), [...writes, write("a", "other task", 0)]);
	});

	test("WRITE-ADD: each call adds a generation, the older ones stay", async ({ storage, put }) => {
		const calls = [1, 2, 3].map((actor) =>
			[0, 1].map((idx) =>
				write("a", "task", idx, { actor, value: bytes(`of ${actor}`), generation: actor - 1, conflict: "add" }),
			),
		);
		for (const writes of calls) await put({ writes });
		assertWrites(await storage.getWrites([key("a")]), calls.flat());
		assertWrites(await storage.getThreadWrites("thread"), calls.flat());
	});

	test("WRITE-ADD: all writes of a call are of one generation, whatever was there before", async ({ storage, put }) => {
		const before = [write("a", "task", 1, { actor: 1 }), write("a", "task", -3, { actor: 1, conflict: "replace" })];
		await put({ writes: before });
		const writes = [0, 1, 2].map((idx) => write("a", "task", idx, { actor: 2, generation: 1, conflict: "add" }));
		await put({ writes });
		assertWrites(await storage.getWrites([key("a")]), [...before, ...writes]);
	});

	test("WRITE-ADD: nothing is dropped, whoever the actor is", async ({ storage, put }) => {
		const actors = [1, 1, undefined, undefined, 2, 1];
		const calls = actors.map((actor, generation) =>
			write("a", "task", 0, { actor, value: bytes(`call ${generation}`), generation, conflict: "add" }),
		);
		for (const one of calls) await put({ writes: [one] });
		assertWrites(await storage.getWrites([key("a")]), calls);
	});

	test("WRITE-ADD: a call can add some writes and drop others", async ({ storage, put }) => {
		const first = [
			write("a", "task", -1, { actor: 1, value: bytes("old") }),
			write("a", "task", 0, { actor: 1, conflict: "add" }),
		];
		await put({ writes: first });
		const added = write("a", "task", 0, { actor: 2, generation: 1, conflict: "add" });
		const fresh = write("a", "task", -2, { actor: 2 });
		await put({ writes: [write("a", "task", -1, { actor: 2, value: bytes("new") }), added, fresh] });
		assertWrites(await storage.getWrites([key("a")]), [...first, added, fresh]);
	});

	test("WRITE-ADD: generations are removed one by one, copied and found by run", async ({
		storage,
		put,
		remove,
		copy,
	}) => {
		const calls = [0, 1, 2].map((generation) =>
			write("a", "task", 0, { actor: generation, runId: `run ${generation}`, generation, conflict: "add" }),
		);
		for (const one of calls) await put({ writes: [one] });
		await copy("copy");
		const { writes } = await storage.findRuns(["run 1"]);
		assert.deepEqual(
			writes.map(({ generation }) => generation),
			[1, 1],
		);
		assert.equal((await remove({ writes: writes.filter(({ threadId }) => threadId === "thread") })).writes, 1);
		assertWrites(await storage.getWrites([key("a")]), [calls[0], calls[2]] as typeof calls);
		assertWrites(
			await storage.getWrites([key("a", "", "copy")]),
			calls.map((one) => ({ ...one, threadId: "copy" })),
		);
	});

	test("WRITE-KEY: checkpoint, namespace, task and index all tell writes apart", async ({ storage, putWrites }) => {
		const writes = ["a", "ab"].flatMap((id) =>
			["", "n"].flatMap((ns) =>
				["t", "t1", "1"].flatMap((task) => [0, 1, 11, -1].map((idx) => write(id, task, idx, { ns }))),
			),
		);
		await putWrites(...writes);
		await putWrites(...writes.map((one) => ({ ...one, value: bytes("again") })));
		assertWrites(await storage.getThreadWrites("thread"), writes);
	});
}
