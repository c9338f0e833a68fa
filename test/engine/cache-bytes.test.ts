import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

const savers: Record<string, (options: object) => DeltaSaver> = {
	MemorySaver: (options) => new MemorySaver(options),
	SqliteSaver: (options) => new SqliteSaver(":memory:", options),
};

const THREADS = 20;
const STEPS = 8;

/** What a thread holds after so many steps. */
function logOf(thread: number, steps: number): string[] {
	return Array.from({ length: steps }, (_, step) => `entry ${step} of thread ${thread}: ${"x".repeat(200)}`);
}

/** Threads that take turns, each step from where the one before ended. */
async function fill(saver: DeltaSaver): Promise<void> {
	const parents = new Map<number, string>();
	for (let step = 1; step <= STEPS; step++)
		for (let thread = 0; thread < THREADS; thread++) {
			const checkpoint = {
				...emptyCheckpoint(),
				id: uuid6(step),
				channel_values: { log: logOf(thread, step) },
				channel_versions: { log: step },
			};
			const configurable = { thread_id: `${thread}`, checkpoint_ns: "", checkpoint_id: parents.get(thread) };
			const metadata = { source: "loop", step, parents: {} } as const;
			const config = await saver.put({ configurable }, checkpoint, metadata, { log: step });
			await saver.putWrites(config, [["log", [`write ${step}`]]], "task");
			parents.set(thread, checkpoint.id);
		}
}

describe.each(Object.entries(savers))("cacheBytes of %s", (_, open) => {
	it.each([0, 1, 5_000, 50_000, Number.POSITIVE_INFINITY])("may be %d: nothing reads otherwise", async (cacheBytes) => {
		const saver = open({ cacheBytes });
		await fill(saver);
		for (let thread = 0; thread < THREADS; thread++) {
			const config = { configurable: { thread_id: `${thread}` } };
			const tuple = await saver.getTuple(config);
			expect(tuple?.checkpoint.channel_values.log).toEqual(logOf(thread, STEPS));
			expect(tuple?.pendingWrites).toEqual([["task", "log", [`write ${STEPS}`]]]);
			const lengths: number[] = [];
			for await (const { checkpoint } of saver.list(config))
				lengths.push((checkpoint.channel_values.log as string[]).length);
			expect(lengths).toEqual(Array.from({ length: STEPS }, (_, i) => STEPS - i));
		}
		expect((await saver.verify()).damage).toEqual([]);
		await saver.close();
	});

	it.each(["32MB", -1, Number.NaN, null])("can't be %j", (cacheBytes) => {
		expect(() => open({ cacheBytes })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});
});
