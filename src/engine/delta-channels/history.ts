import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { Engine } from "../engine.ts";
import { cellsOf } from "./raw-history.ts";
import { walk } from "./walk.ts";

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const { threadId, ns } = where;
	const none = channels.map((channel): [string, DeltaChannelHistory] => [channel, { writes: [] }]);
	if (threadId === undefined) return Object.fromEntries(none);
	const id = where.id ?? (await engine.storage.read({ threadId, ns, limit: 1 }, "rows")).checkpoints[0]?.id;
	if (id === undefined) return Object.fromEntries(none);
	const key = { threadId, ns, id };
	const histories = new Map(none);
	for (const [channel, raw] of await walk(engine, key, channels)) {
		const values = await engine.readAll(key, channel, cellsOf(raw));
		const seed = raw.seed === undefined ? {} : { seed: values.shift() };
		const writes = raw.writes.map(({ taskId }, i) => [taskId, channel, values[i]] as [string, string, unknown]);
		histories.set(channel, { writes, ...seed });
	}
	return Object.fromEntries(histories);
}
