import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { plainKey, plainWriteKey } from "./plain.ts";
import { key, row, type StorageScene, write } from "./storage-scene.ts";

/** Neighbours of one another in one way or another. */
const RUNS = ["run", "run ", "run 1", "Run", "ru", "r%", "r_n", "it's", '"run"', "[1]", "1", ""];
const STRANGE_RUNS = ["run\u0000", "run\u00001", "🏃", "\\u0000"];

/** findRuns: what a run has stored, wherever it is. */
export function runRules(test: StorageTest): void {
	test("RUNS-FIND: checkpoints and writes of several runs are found in all threads and namespaces", async (scene) => {
		for (const runId of ["1", "2", "3"]) {
			const place = { threadId: `thread ${runId}`, ns: runId };
			const writes = [write("b", "task", 0, { ...place, runId }), write("b", "task", 1, place)];
			await scene.put({ checkpoint: row("a", { ...place, runId }), writes });
		}
		const { checkpoints, writes } = await scene.storage.findRuns(["1", "3", "3", "missing"]);
		assert.deepEqual([checkpoints.length, writes.length], [2, 2]);
	});

	test("RUNS-FIND: no run, or one that stored nothing, finds nothing", async ({ storage, put }) => {
		await put({ checkpoint: row("a"), writes: [write("a", "task", 0)] });
		await put({ checkpoint: row("b", { runId: "run" }), writes: [write("b", "task", 0, { runId: "run" })] });
		for (const runs of [[], ["missing"], ["undefined"], ["null"], [""]])
			assert.deepEqual(await storage.findRuns(runs), { checkpoints: [], writes: [] });
	});

	test("RUNS-FIND: a run is found by its whole id, whatever is in it", async (scene) => {
		const runs = [...RUNS, ...STRANGE_RUNS];
		for (const runId of runs) await putRun(scene, runId);
		for (const runId of runs) {
			const { checkpoints, writes } = await scene.storage.findRuns([runId]);
			assert.deepEqual(checkpoints.map(plainKey), [key(`of ${runId}`)]);
			assert.deepEqual(writes.map(plainWriteKey), [{ ...key("a"), taskId: runId, idx: 0, generation: 0 }]);
		}
		await scene.storage.findRuns(runs);
	});

	test("RUNS-FIND: a thousand runs can be asked for at once", async (scene) => {
		await putRun(scene, "run 7");
		const { checkpoints, writes } = await scene.storage.findRuns(Array.from({ length: 1_000 }, (_, n) => `run ${n}`));
		assert.deepEqual([checkpoints.length, writes.length], [1, 1]);
	});

	test("RUNS-NOW: what was replaced or removed is not found, what was copied is", async (scene) => {
		const { storage, put, remove, copy } = scene;
		await put({ checkpoint: row("a", { runId: "old" }), writes: [write("a", "task", -1, { runId: "old" })] });
		await put({ checkpoint: row("b", { runId: "gone" }), writes: [write("b", "task", 0, { runId: "gone" })] });
		const writes = [write("a", "task", -1, { runId: "new", conflict: "replace" })];
		await put({ checkpoint: row("a", { runId: "new" }), writes });
		await remove({ checkpoints: [key("b")] });
		await copy("copy");
		assert.deepEqual(await storage.findRuns(["old", "gone"]), { checkpoints: [], writes: [] });
		const found = await storage.findRuns(["new"]);
		assert.deepEqual([found.checkpoints.length, found.writes.length], [2, 2]);
	});
}

async function putRun({ put }: StorageScene, runId: string): Promise<void> {
	await put({ checkpoint: row(`of ${runId}`, { runId }), writes: [write("a", runId, 0, { runId })] });
}
