import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertWrites } from "./plain.ts";
import { findRow, threadWrites, writesAt } from "./reads.ts";
import { blob, blobWrite, bytes, key, row, write } from "./storage-scene.ts";

/** put and its writes: what is dropped, replaced and added, and where they are found. */
export function writeRules(test: StorageTest): void {
	test("WRITE-ROW: writes come back as they were given", async ({ storage, put }) => {
		const writes = [
			write("a", "task", 0, {
				channel: "log",
				runId: "run",
				actor: 2 ** 40,
				type: "json",
				taskPath: "~__pregel_pull, a",
			}),
			write("a", "task", -3, { actor: 0, taskPath: "" }),
			write("a", "task", 1_000_000, { runId: "", type: "", channel: "", value: new Uint8Array(0) }),
		];
		await put({ checkpoint: row("a"), writes });
		assertWrites(await writesAt(storage, key("a")), writes);
	});

	test("WRITE-ROW: a write in a blob, one of no bytes and one whose blob is missing come back as such", async ({
		storage,
		put,
		fresh,
	}) => {
		const id = await fresh();
		const writes = [
			blobWrite("a", "task", 0, id),
			blobWrite("a", "task", 1, 2 ** 40),
			write("a", "task", 2, { value: new Uint8Array(0) }),
		];
		await put({ checkpoint: row("a"), writes, blobs: [blob(id, "value")] });
		assertWrites((await storage.read([key("a")], "values")).writes, writes);
	});

	test("WRITE-ROW: a checkpoint and the writes of another can come in one batch", async ({ storage, put }) => {
		await put({ checkpoint: row("b"), writes: [write("a", "task", 0, { ns: "x" })] });
		assert.ok(await findRow(storage, key("b")));
		assertWrites(await writesAt(storage, key("a", "x")), [write("a", "task", 0, { ns: "x" })]);
	});

	test("WRITE-DROP: the older of two writes stays, all of it", async ({ storage, put }) => {
		const older = write("a", "task", 0, { channel: "old", runId: "run 1", actor: 1, type: "json" });
		await put({ writes: [older] });
		await put({ writes: [write("a", "task", 0, { channel: "new", runId: "run 2", actor: 2, value: bytes("new") })] });
		assertWrites(await writesAt(storage, key("a")), [older]);
	});

	test("WRITE-DROP: others of the batch are stored", async ({ storage, put }) => {
		await put({ writes: [write("a", "task", 0)] });
		const writes = [0, 1, -4].map((idx) => write("a", "task", idx, { value: bytes("new") }));
		await put({ writes });
		assertWrites(await writesAt(storage, key("a")), [write("a", "task", 0), ...writes.slice(1)]);
	});

	test("WRITE-DROP: a write of a later generation is in its way too", async ({ storage, put, remove }) => {
		const later = write("a", "task", 0, { conflict: "add", generation: 1 });
		await put({ writes: [write("a", "task", 0), write("a", "task", 1)] });
		await put({ writes: [later] });
		await remove({ writes: [write("a", "task", 0)] });
		await put({ writes: [write("a", "task", 0, { value: bytes("new") })] });
		assertWrites(await writesAt(storage, key("a")), [write("a", "task", 1), later]);
	});

	test("WRITE-REPLACE: the newer of two writes takes the place of the older, all of it", async ({ storage, put }) => {
		const older = write("a", "task", -1, { channel: "old", runId: "run 1", actor: 1, type: "json" });
		await put({ writes: [older, write("a", "task", 0)] });
		const newer = write("a", "task", -1, { channel: "new", value: bytes("new"), conflict: "replace" });
		await put({ writes: [newer] });
		assertWrites(await writesAt(storage, key("a")), [newer, write("a", "task", 0)]);
	});

	test("WRITE-REPLACE: it is stored in generation 0, and leaves the later ones", async ({ storage, put, remove }) => {
		const later = [1, 2].map((generation) => write("a", "task", 0, { conflict: "add", generation }));
		await put({ writes: [write("a", "task", 0)] });
		for (const one of later) await put({ writes: [one] });
		const newer = write("a", "task", 0, { conflict: "replace", value: bytes("new") });
		await put({ writes: [newer] });
		assertWrites(await writesAt(storage, key("a")), [newer, ...later]);
		await remove({ writes: [newer] });
		await put({ writes: [newer] });
		assertWrites(await writesAt(storage, key("a")), [newer, ...later]);
	});

	test("WRITE-REPLACE: a write that named a blob can get bytes instead", async ({ storage, put, fresh }) => {
		const id = await fresh();
		await put({ checkpoint: row("a"), writes: [blobWrite("a", "task", 0, id)], blobs: [blob(id, "large")] });
		const next = write("a", "task", 0, { conflict: "replace" });
		await put({ writes: [next] });
		const { writes, blobs } = await storage.read([key("a")], "values");
		assertWrites(writes, [next]);
		assert.deepEqual(blobs, []);
	});

	test("WRITE-ADD: the first writes of a task are of generation zero", async ({ storage, put, putWrites }) => {
		await putWrites(write("a", "other task", 0), write("a2", "task", 0), write("a", "task", 0, { ns: "x" }));
		const writes = [0, 1].map((idx) => write("a", "task", idx, { actor: 1, conflict: "add" }));
		await put({ writes });
		assertWrites(await writesAt(storage, key("a")), [...writes, write("a", "other task", 0)]);
	});

	test("WRITE-ADD: each call adds a generation, the older ones stay", async ({ storage, put }) => {
		const calls = [1, 2, 3].map((actor) =>
			[0, 1].map((idx) =>
				write("a", "task", idx, { actor, value: bytes(`of ${actor}`), generation: actor - 1, conflict: "add" }),
			),
		);
		for (const writes of calls) await put({ writes });
		assertWrites(await writesAt(storage, key("a")), calls.flat());
		assertWrites(await threadWrites(storage, "thread"), calls.flat());
	});

	test("WRITE-ADD: all writes of a call are of one generation, whatever was there before", async ({ storage, put }) => {
		const before = [write("a", "task", 1, { actor: 1 }), write("a", "task", -3, { actor: 1, conflict: "replace" })];
		await put({ writes: before });
		const writes = [0, 1, 2].map((idx) => write("a", "task", idx, { actor: 2, generation: 1, conflict: "add" }));
		await put({ writes });
		assertWrites(await writesAt(storage, key("a")), [...before, ...writes]);
	});

	test("WRITE-ADD: nothing is dropped, whoever the actor is", async ({ storage, put }) => {
		const actors = [1, 1, undefined, undefined, 2, 1];
		const calls = actors.map((actor, generation) =>
			write("a", "task", 0, { actor, value: bytes(`call ${generation}`), generation, conflict: "add" }),
		);
		for (const one of calls) await put({ writes: [one] });
		assertWrites(await writesAt(storage, key("a")), calls);
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
		assertWrites(await writesAt(storage, key("a")), [...first, added, fresh]);
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
		assertWrites(await writesAt(storage, key("a")), [calls[0], calls[2]] as typeof calls);
		assertWrites(
			await writesAt(storage, key("a", "", "copy")),
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
		assertWrites(await threadWrites(storage, "thread"), writes);
	});
}
