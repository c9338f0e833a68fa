import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { RawHistory } from "./raw-history.ts";
import { walk } from "./walk.ts";

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const key = await resolve(engine, where);
	const raw = key === undefined ? new Map<string, RawHistory>() : await walk(engine, key, channels);
	const ids = new Set<number>();
	for (const { seed, writes } of raw.values()) {
		if (typeof seed === "number") ids.add(seed);
		for (const { cell } of writes) if (typeof cell === "number") ids.add(cell);
	}
	const blobs = await engine.blobs.load(ids);
	const histories: Record<string, DeltaChannelHistory> = {};
	for (const channel of channels) {
		const { seed, writes = [] } = raw.get(channel) ?? {};
		const history: DeltaChannelHistory = { writes: [] };
		const at = key as CheckpointKey;
		const cells = seed === undefined ? [] : [seed];
		for (const { cell } of writes) cells.push(cell);
		const named = cells.map((cell) => [channel, cell] as const);
		const values = await engine.decodeAll(at, named, blobs);
		if (seed !== undefined) history.seed = values.shift();
		for (const [i, { taskId }] of writes.entries()) history.writes.push([taskId, channel, values[i]]);
		Object.defineProperty(histories, channel, { value: history, writable: true, enumerable: true, configurable: true });
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
