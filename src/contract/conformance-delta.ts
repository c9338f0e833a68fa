import assert from "node:assert/strict";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import type { RuleTest } from "./rule-test.ts";
import type { Thread } from "./thread.ts";

const OTHER_TASK = "1b52a4a4-6b0c-5a83-8d27-3f5f4ec9d0a1";

/** What Python's conformance suite asks of `get_delta_channel_history`, under its names. */
export function conformanceDeltaRules(test: RuleTest): void {
	test("delta_channel_history/writes_oldest_first: writes come in the order of time", async ({ thread }) => {
		const ids = await putSteps(thread(), 5, { 0: { ch: new DeltaSnapshot([]) } });
		assert.deepEqual((await thread().replay(ids[4] as string, "ch")).writes, [1, 2, 3]);
	});

	test("delta_channel_history/seed_is_nearest_snapshot: the seed is the nearest one", async ({ thread }) => {
		const ids = await putSteps(thread(), 6, { 0: { ch: new DeltaSnapshot(0) }, 3: { ch: new DeltaSnapshot(3) } });
		const { seed, writes } = await thread().replay(ids[5] as string, "ch");
		assert.deepEqual([(seed as DeltaSnapshot).value, writes], [3, [4]]);
	});

	test("delta_channel_history/excludes_target_pending_writes: what is pending is not history", async ({ thread }) => {
		const ids = await putSteps(thread(), 3, { 0: { ch: new DeltaSnapshot([]) } });
		await thread().write(ids[2] as string, [["ch", "extra"]], OTHER_TASK);
		assert.deepEqual((await thread().replay(ids[2] as string, "ch")).writes, [1]);
	});

	test("delta_channel_history/multi_channel: each channel stops at its own seed", async ({ saver, thread }) => {
		const seeds = { 1: { a: new DeltaSnapshot("a") }, 3: { b: new DeltaSnapshot("b") } };
		const ids = await thread().chain(5, (n) => ({ values: seeds[n as 1 | 3] ?? {} }));
		for (const [n, id] of ids.entries())
			await thread().write(id, [
				["a", n],
				["b", n],
			]);
		const { a, b } = await saver.getDeltaChannelHistory({ config: thread().config(ids[4]), channels: ["a", "b"] });
		assert.deepEqual(
			a?.writes.map(([, , value]) => value),
			[1, 2, 3],
		);
		assert.deepEqual(
			b?.writes.map(([, , value]) => value),
			[3],
		);
	});

	test("delta_channel_history/empty_channels_returns_empty: no channels, no histories", async ({ saver, thread }) => {
		const ids = await putSteps(thread(), 2, {});
		assert.deepEqual(await saver.getDeltaChannelHistory({ config: thread().config(ids[1]), channels: [] }), {});
	});

	test("delta_channel_history/walk_to_root_no_seed: without a value there is no seed", async ({ thread }) => {
		const ids = await putSteps(thread(), 4, {});
		assert.deepEqual(await thread().replay(ids[3] as string, "ch"), { writes: [0, 1, 2] });
	});

	test("delta_channel_history/migration_plain_value_as_seed: a plain value ends the walk", async ({ thread }) => {
		const ids = await putSteps(thread(), 5, { 0: { ch: ["older"] }, 2: { ch: ["plain"] } });
		assert.deepEqual(await thread().replay(ids[4] as string, "ch"), { writes: [3], seed: ["plain"] });
	});

	test("delta_channel_history/seed_ancestor_own_writes_are_replayed: the writes on the seed's checkpoint count", async ({
		thread,
	}) => {
		const ids = await thread().chain(4, (n) => ({ values: n === 1 ? { ch: new DeltaSnapshot("seed") } : {} }));
		for (const [n, id] of ids.entries()) await thread().write(id, [["ch", n]]);
		const { seed, writes } = await thread().replay(ids[3] as string, "ch");
		assert.deepEqual([(seed as DeltaSnapshot).value, writes], ["seed", [1, 2]]);
	});
}

/** Steps with values at some, and with their number as a write at the others. */
async function putSteps(
	thread: Thread,
	length: number,
	values: Record<number, Record<string, unknown>>,
): Promise<string[]> {
	const ids = await thread.chain(length, (n) => ({ values: values[n] ?? {} }));
	for (const [n, id] of ids.entries()) if (values[n] === undefined) await thread.write(id, [["ch", n]]);
	return ids;
}
