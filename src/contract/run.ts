import { badInputRules } from "./bad-input.ts";
import { callTimeRules } from "./call-time.ts";
import { channelRules } from "./channels.ts";
import { conformanceDeltaRules } from "./conformance-delta.ts";
import { conformanceListRules } from "./conformance-list.ts";
import { conformanceCopyRules, conformancePruneRules, conformanceRunsRules } from "./conformance-maintenance.ts";
import { conformancePutRules, conformancePutWritesRules } from "./conformance-put.ts";
import { copyThreadRules } from "./copy-thread.ts";
import { coreValueRules } from "./core-values.ts";
import { deleteForRunsRules } from "./delete-for-runs.ts";
import { deleteThreadRules } from "./delete-thread.ts";
import { deltaForkRules } from "./delta-forks.ts";
import { deltaHistoryRules } from "./delta-history.ts";
import { forkRules } from "./forks.ts";
import { getTupleRules } from "./get-tuple.ts";
import { historyRules } from "./histories.ts";
import { identityRules } from "./identity.ts";
import { lifecycleRules } from "./lifecycle.ts";
import { listRules } from "./list.ts";
import { listCheckpointsRules } from "./list-checkpoints.ts";
import { listFilterRules } from "./list-filter.ts";
import { listThreadsRules } from "./list-threads.ts";
import { losslessRules } from "./lossless.ts";
import { metadataRules } from "./metadata.ts";
import { orderingRules } from "./ordering.ts";
import { pruneRules } from "./prune.ts";
import { putRules } from "./put.ts";
import { putWritesRules } from "./put-writes.ts";
import { raceRules } from "./races.ts";
import { createRuleTest, namesOf, SkipList, type Topic } from "./rule-test.ts";
import { serializationRules } from "./serialization.ts";
import { statsRules } from "./stats.ts";
import { strangeIdRules } from "./strange-ids.ts";
import { taskPathRules } from "./task-paths.ts";
import type { SaverContractOptions } from "./types.ts";
import { valueShapeRules } from "./value-shapes.ts";
import { versionRules } from "./versions.ts";

const TOPICS: Record<string, Topic[]> = {
	"identity and config": [identityRules, strangeIdRules],
	put: [putRules],
	"channel storage": [channelRules, forkRules, valueShapeRules, historyRules],
	versions: [versionRules],
	putWrites: [putWritesRules, taskPathRules, coreValueRules],
	getTuple: [getTupleRules],
	list: [listRules, listFilterRules],
	"ordering and concurrency": [orderingRules, raceRules],
	serialization: [callTimeRules, serializationRules, losslessRules],
	"metadata and run ids": [metadataRules],
	"bad input": [badInputRules],
	"delta channels": [deltaHistoryRules, deltaForkRules],
	copyThread: [copyThreadRules],
	prune: [pruneRules],
	deleteForRuns: [deleteForRunsRules],
	deleteThread: [deleteThreadRules],
	"listThreads and listCheckpoints": [listThreadsRules, listCheckpointsRules],
	"stats and clear": [statsRules],
	"close and reopen": [lifecycleRules],
	"Python conformance": [
		conformancePutRules,
		conformancePutWritesRules,
		conformanceListRules,
		conformanceCopyRules,
		conformancePruneRules,
		conformanceRunsRules,
		conformanceDeltaRules,
	],
};

/**
 * Registers the whole contract of a saver as tests, each named after the rule it checks. Brings no test runner: pass
 * `describe` and `it` of yours.
 *
 * Each test asks `setup` for a saver over empty storage, closes it and calls `teardown`. A rule that a saver can't keep
 * is skipped by name, with a reason; a skip that matches nothing is an error.
 *
 * @example
 * ```ts
 * import { describe, it } from "vitest";
 * import { MemorySaver } from "langgraph-checkpoint-delta";
 * import { runSaverContract } from "langgraph-checkpoint-delta/contract";
 *
 * runSaverContract({
 *   name: "MemorySaver",
 *   test: { describe, it },
 *   setup: async ({ serde }) => ({ saver: new MemorySaver(serde) }),
 * });
 * ```
 */
export function runSaverContract(options: SaverContractOptions): void {
	const skips = new SkipList(options.skip ?? [], namesOf(Object.values(TOPICS).flat()));
	const test = createRuleTest(options, skips);
	options.test.describe(`${options.name} keeps the saver contract`, () => {
		for (const [name, topics] of Object.entries(TOPICS))
			options.test.describe(name, () => {
				for (const register of topics) register(test);
			});
	});
}
