import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertWrites } from "./plain.ts";
import { writesAt } from "./reads.ts";
import { blob, blobWrite, bytes, key, row, type StorageScene, type TestWrite, write } from "./storage-scene.ts";

/** put and its writes: what is dropped, replaced and added. */
export function writeRules(test: StorageTest): void {
	const assertStored = async ({ storage }: StorageScene, ...expected: TestWrite[]) =>
		assertWrites(await writesAt(storage, key("a")), expected);

	test("WRITE-ROW: writes come back as they were given", async (scene) => {
		const full = { channel: "log", runId: "run", actor: 2 ** 40, type: "json", taskPath: "~__pregel_pull, a" };
		const writes = [
			write("a", "task", 0, full),
			write("a", "task", -3, { actor: 0, taskPath: "" }),
			write("a", "task", 1_000_000, { runId: "", type: "", channel: "", value: new Uint8Array(0) }),
		];
		await scene.put({ checkpoint: row("a"), writes });
		await assertStored(scene, ...writes);
	});

	test("WRITE-ROW: a value may be in a blob, and the blob may be missing", async (scene) => {
		const id = await scene.fresh();
		const writes = [blobWrite("a", "task", 0, id), blobWrite("a", "task", 1, 2 ** 40)];
		await scene.put({ checkpoint: row("a"), writes, blobs: [blob(id, "value")] });
		await assertStored(scene, ...writes);
	});

	test("WRITE-ROW: a checkpoint and the writes of another can come in one batch", async ({ storage, put }) => {
		await put({ checkpoint: row("b"), writes: [write("a", "task", 0, { ns: "x" })] });
		assertWrites(await writesAt(storage, key("a", "x")), [write("a", "task", 0, { ns: "x" })]);
	});

	test("WRITE-KEY: checkpoint, namespace, task and index all tell writes apart", async ({ storage, putWrites }) => {
		const writes = ["a", "ab"].flatMap((id) =>
			["", "n"].flatMap((ns) =>
				["t", "t1", "1"].flatMap((task) => [0, 1, 11, -1].map((idx) => write(id, task, idx, { ns }))),
			),
		);
		await putWrites(...writes);
		await putWrites(...writes.map((one) => ({ ...one, value: bytes("again") })));
		assertWrites((await storage.readThread("thread")).writes, writes);
	});

	test("WRITE-DROP: the older of two writes stays, all of it, and others of the batch are stored", async (scene) => {
		const older = write("a", "task", 0, { channel: "old", runId: "run 1", actor: 1, type: "json" });
		await scene.put({ writes: [older] });
		const writes = [0, 1, -4].map((idx) => write("a", "task", idx, { channel: "new", value: bytes("new") }));
		await scene.put({ writes });
		await assertStored(scene, older, ...writes.slice(1));
	});

	test("WRITE-DROP: a write of a later generation is in its way too", async (scene) => {
		const later = write("a", "task", 0, { conflict: "add", generation: 1 });
		await scene.put({ writes: [write("a", "task", 0), write("a", "task", 1)] });
		await scene.put({ writes: [later] });
		await scene.remove({ writes: [write("a", "task", 0)] });
		await scene.put({ writes: [write("a", "task", 0, { value: bytes("new") })] });
		await assertStored(scene, write("a", "task", 1), later);
	});

	test("WRITE-REPLACE: the newer of two writes takes the place of the older, all of it", async (scene) => {
		const older = write("a", "task", -1, { channel: "old", runId: "run 1", actor: 1, type: "json", taskPath: "path" });
		await scene.put({ writes: [older, write("a", "task", 0)] });
		const newer = write("a", "task", -1, { channel: "new", value: bytes("new"), conflict: "replace" });
		await scene.put({ writes: [newer] });
		await assertStored(scene, newer, write("a", "task", 0));
	});

	test("WRITE-REPLACE: it is stored in generation 0, and leaves the later ones", async (scene) => {
		const later = [1, 2].map((generation) => write("a", "task", 0, { conflict: "add", generation }));
		const newer = write("a", "task", 0, { conflict: "replace", value: bytes("new") });
		for (const one of [write("a", "task", 0), ...later, newer]) await scene.put({ writes: [one] });
		await assertStored(scene, newer, ...later);
		await scene.remove({ writes: [newer] });
		await scene.put({ writes: [newer] });
		await assertStored(scene, newer, ...later);
	});

	test("WRITE-REPLACE: a write that named a blob can get bytes instead", async (scene) => {
		const id = await scene.fresh();
		await scene.put({ checkpoint: row("a"), writes: [blobWrite("a", "task", 0, id)], blobs: [blob(id, "large")] });
		await scene.put({ writes: [write("a", "task", 0, { conflict: "replace" })] });
		assert.deepEqual((await scene.storage.read([key("a")], "values")).blobs, []);
	});

	test("WRITE-ADD: the first writes of a task are of generation zero", async (scene) => {
		await scene.putWrites(write("a", "other task", 0), write("a2", "task", 0), write("a", "task", 0, { ns: "x" }));
		const writes = [0, 1].map((idx) => write("a", "task", idx, { actor: 1, conflict: "add" }));
		await scene.put({ writes });
		await assertStored(scene, ...writes, write("a", "other task", 0));
	});

	test("WRITE-ADD: each call adds a generation, whoever the actor is, and the older ones stay", async (scene) => {
		const calls = [1, 1, undefined, undefined, 2, 1].map((actor, generation) =>
			[0, 1].map((idx) =>
				write("a", "task", idx, { actor, value: bytes(`call ${generation}`), generation, conflict: "add" }),
			),
		);
		for (const writes of calls) await scene.put({ writes });
		await assertStored(scene, ...calls.flat());
	});

	test("WRITE-ADD: all writes of a call are of one generation, whatever was there before", async (scene) => {
		const before = [write("a", "task", 1, { actor: 1 }), write("a", "task", -3, { actor: 1, conflict: "replace" })];
		await scene.put({ writes: before });
		const writes = [0, 1, 2].map((idx) => write("a", "task", idx, { actor: 2, generation: 1, conflict: "add" }));
		await scene.put({ writes });
		await assertStored(scene, ...before, ...writes);
	});

	test("WRITE-ADD: a call can add some writes, drop others and replace others", async (scene) => {
		const first = [-1, -2, 0].map((idx) => write("a", "task", idx, { actor: 1, conflict: "add" }));
		await scene.put({ writes: first });
		const added = write("a", "task", 0, { actor: 2, generation: 1, conflict: "add" });
		const replacing = write("a", "task", -2, { actor: 2, conflict: "replace" });
		const fresh = write("a", "task", -4, { actor: 2 });
		await scene.put({ writes: [write("a", "task", -1, { actor: 2, value: bytes("new") }), added, replacing, fresh] });
		await assertStored(scene, first[0] as TestWrite, first[2] as TestWrite, added, replacing, fresh);
	});

	test("WRITE-ADD: generations are removed one by one, copied and found by run", async (scene) => {
		const calls = [0, 1, 2].map((generation) =>
			write("a", "task", 0, { actor: generation, runId: `run ${generation}`, generation, conflict: "add" }),
		);
		for (const one of calls) await scene.put({ writes: [one] });
		await scene.copy("copy");
		const { writes } = await scene.storage.findRuns(["run 1"]);
		const keys = writes.filter(({ threadId }) => threadId === "thread");
		assert.equal((await scene.remove({ writes: keys })).writes, 1);
		await assertStored(scene, calls[0] as TestWrite, calls[2] as TestWrite);
	});
}
