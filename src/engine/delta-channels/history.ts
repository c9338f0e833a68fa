import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import { setOwn } from "../head.ts";
import { cellsOf } from "./raw-history.ts";
import { walk } from "./walk.ts";

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const key = await resolve(engine, where);
	const histories: Record<string, DeltaChannelHistory> = {};
	for (const channel of channels) setOwn(histories, channel, { writes: [] });
	for (const [channel, raw] of key ? await walk(engine, key, channels) : []) {
		const values = await engine.readAll(key as CheckpointKey, channel, cellsOf(raw));
		const seed = raw.seed === undefined ? {} : { seed: values.shift() };
		const writes = raw.writes.map(({ taskId }, i) => [taskId, channel, values[i]] as [string, string, unknown]);
		setOwn(histories, channel, { writes, ...seed });
	}
	return histories;
}

async function resolve(
	engine: Engine,
	{ threadId, ns, id }: { threadId: string | undefined; ns: string; id: string | undefined },
): Promise<CheckpointKey | undefined> {
	if (threadId === undefined) return undefined;
	if (id !== undefined) return { threadId, ns, id };
	return (await engine.storage.read({ threadId, ns, limit: 1 }, "rows")).checkpoints[0];
}
