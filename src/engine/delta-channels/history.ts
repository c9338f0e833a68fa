import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import { setOwn } from "../head.ts";
import { walk } from "./walk.ts";

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const key = await resolve(engine, where);
	const raw = key && (await walk(engine, key, channels));
	const histories: Record<string, DeltaChannelHistory> = {};
	for (const channel of channels) {
		const { seed, writes = [] } = raw?.get(channel) ?? {};
		const cells = [...(seed === undefined ? [] : [seed]), ...writes.map(({ cell }) => cell)];
		const values = key ? await engine.readAll(key, channel, cells) : [];
		const history: DeltaChannelHistory = { writes: [] };
		if (seed !== undefined) history.seed = values.shift();
		for (const [i, { taskId }] of writes.entries()) history.writes.push([taskId, channel, values[i]]);
		setOwn(histories, channel, history);
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
