import assert from "node:assert/strict";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { RuleTest } from "./rule-test.ts";
import type { ContractSaver } from "./types.ts";

/** listCheckpoints: who is whose parent, and which run stored it. */
export function listCheckpointsRules(test: RuleTest): void {
	test("CHECKPOINTS-INFO: each has its parent, run, source and step", async ({ saver, thread }) => {
		const config = { configurable: { run_id: "run" } };
		const root = await thread().put({ metadata: { source: "input", step: -1 } });
		const child = await thread().put({ parent: root, metadata: { source: "loop", step: 0 }, config });
		const infos = await collect(saver, { configurable: { thread_id: "thread" } });
		const common = { threadId: "thread", checkpointNs: "" };
		assert.deepEqual(infos, [
			{ ...common, checkpointId: child, parentId: root, runId: "run", source: "loop", step: 0 },
			{ ...common, checkpointId: root, parentId: undefined, runId: undefined, source: "input", step: -1 },
		]);
	});

	test("CHECKPOINTS-ORDER: they come as list lists them, whatever is asked for", async ({ saver, thread }) => {
		const ids = await thread().chain(70);
		await thread("thread", "child:1").chain(3);
		await thread("other").chain(2);
		const before = { configurable: { checkpoint_id: ids[40] } };
		const questions: [RunnableConfig, { before?: RunnableConfig; limit?: number }?][] = [
			[{}],
			[{ configurable: { thread_id: "thread" } }],
			[{ configurable: { thread_id: "thread", checkpoint_ns: "child:1" } }],
			[{ configurable: { thread_id: "thread", checkpoint_ns: "" } }, { limit: 6 }],
			[{ configurable: { thread_id: "thread", checkpoint_ns: "" } }, { before, limit: 5 }],
			[{ configurable: { thread_id: "thread", checkpoint_ns: "", checkpoint_id: ids[7] } }],
			[{ configurable: { thread_id: "thread" } }, { limit: 0 }],
			[{ configurable: { thread_id: "nobody" } }],
		];
		for (const [config, options] of questions) {
			const listed: unknown[] = [];
			for await (const { config: found } of saver.list(config, options)) listed.push(found.configurable);
			const infos = await collect(saver, config, options);
			const found = infos.map(({ threadId, checkpointNs, checkpointId }) => ({
				thread_id: threadId,
				checkpoint_ns: checkpointNs,
				checkpoint_id: checkpointId,
			}));
			assert.deepEqual(found, listed);
		}
	});
}

async function collect(
	saver: ContractSaver,
	config: RunnableConfig,
	options?: { before?: RunnableConfig; limit?: number },
) {
	const infos = [];
	for await (const info of saver.listCheckpoints(config, options)) infos.push(info);
	return infos;
}
