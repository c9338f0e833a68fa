import assert from "node:assert/strict";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { RuleTest } from "./rule-test.ts";
import { TASK } from "./thread.ts";

/** The three places in which a run id may stand, by descending rank. */
const RUN_ID_PLACES: Record<
	string,
	(runId: string) => { metadata?: Record<string, unknown>; config?: RunnableConfig }
> = {
	"the metadata": (runId) => ({ metadata: { run_id: runId } }),
	"the config's metadata": (runId) => ({ config: { metadata: { run_id: runId } } }),
	"the config's configurable": (runId) => ({ config: { configurable: { run_id: runId } } }),
};

/** Metadata is returned as it was put; run ids are recorded beside it. */
export function metadataRules(test: RuleTest): void {
	for (const [source, step] of [
		["input", -1],
		["loop", 0],
		["loop", -2],
		["update", 3],
		["fork", 12],
	] as const) {
		test(`META-1: source ${source} at step ${step} comes back and can be listed by`, async ({ thread }) => {
			const metadata = { step, parents: { "": "1f000000", "a:1": "1f000001" } };
			const id = await thread().put({ source, metadata });
			await thread().put({ source: "loop", metadata: { step: 99 } });
			assert.deepEqual((await thread().read(id)).metadata, { source, ...metadata });
			assert.deepEqual(await thread().ids({ filter: { source, step } }), [id]);
		});
	}

	for (const [place, withRunId] of Object.entries(RUN_ID_PLACES)) {
		test(`META-2: a run id in ${place} is recorded`, async ({ saver, thread }) => {
			const kept = await thread().put();
			const id = await thread().put({ parent: kept, ...withRunId("run") });
			await saver.deleteForRuns(["another run"]);
			assert.equal(await thread().has(id), true);
			await saver.deleteForRuns(["run"]);
			assert.deepEqual(await thread().ids(), [kept]);
		});
	}

	test("META-2: the metadata's run id counts before the config's metadata, and that before configurable", async ({
		saver,
		thread,
	}) => {
		const config = { metadata: { run_id: "config" }, configurable: { run_id: "configurable" } };
		const first = await thread().put({ metadata: { run_id: "metadata" }, config });
		const second = await thread().put({ config });
		await saver.deleteForRuns(["configurable"]);
		assert.deepEqual(await thread().ids(), [second, first]);
		await saver.deleteForRuns(["config"]);
		assert.deepEqual(await thread().ids(), [first]);
		await saver.deleteForRuns(["metadata"]);
		assert.deepEqual(await thread().ids(), []);
	});

	test("META-3: a run id in the config is not merged into the metadata", async ({ saver, thread }) => {
		const config = { metadata: { run_id: "run", user: "u" }, configurable: { run_id: "run" } };
		const id = await thread().put({ config, metadata: { step: 1 } });
		await saver.putWrites({ ...config, ...thread().config(id) }, [["a", 1]], TASK);
		assert.deepEqual((await thread().read(id)).metadata, { source: "loop", step: 1, parents: {} });
		assert.deepEqual(await thread().ids({ filter: { run_id: "run" } }), []);
	});

	test("META-3: a run id in the metadata itself comes back", async ({ thread }) => {
		const id = await thread().put({ metadata: { step: 1, run_id: "run" } });
		assert.deepEqual((await thread().read(id)).metadata, { source: "loop", step: 1, parents: {}, run_id: "run" });
		assert.deepEqual(await thread().ids({ filter: { run_id: "run" } }), [id]);
	});

	test("META-4: counters of delta channels come back", async ({ thread }) => {
		const counters_since_delta_snapshot = { log: [3, 7], "a.b": [0, 1] };
		const id = await thread().put({ metadata: { counters_since_delta_snapshot } });
		const metadata = (await thread().read(id)).metadata;
		assert.deepEqual(metadata?.counters_since_delta_snapshot, counters_since_delta_snapshot);
	});
}
