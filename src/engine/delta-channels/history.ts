import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import { cellsOf } from "./raw-history.ts";
import { walk } from "./walk.ts";

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const key = await resolve(engine, where);
	if (key === undefined) return Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));
	const raw = [...(await walk(engine, key, channels))];
	const cells = raw.flatMap(([, history]) => cellsOf(history));
	const blobs = await engine.blobs.load(cells.filter((cell) => typeof cell === "number"));
	const histories = raw.map(async ([channel, history]) => {
		const named = cellsOf(history).map((cell) => [channel, cell] as const);
		const values = await engine.decodeAll(key, named, blobs);
		const seed = history.seed === undefined ? {} : { seed: values.shift() };
		const writes = history.writes.map(({ taskId }, i) => [taskId, channel, values[i]] as [string, string, unknown]);
		return [channel, { writes, ...seed }] as const;
	});
	return Object.fromEntries(await Promise.all(histories));
}

async function resolve(
	engine: Engine,
	{ threadId, ns, id }: { threadId: string | undefined; ns: string; id: string | undefined },
): Promise<CheckpointKey | undefined> {
	if (threadId === undefined) return undefined;
	if (id !== undefined) return { threadId, ns, id };
	return (await engine.storage.read({ threadId, ns, limit: 1 }, "rows")).checkpoints[0];
}
