import { type Checkpoint, maxChannelVersion, TASKS } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey, ListedCheckpoint } from "../storage/storage.ts";
import { unpackHistory } from "./delta-channels/raw-history.ts";
import type { Engine } from "./engine.ts";
import type { Cell } from "./head.ts";
import { cacheKey, groupWrites, writeCell } from "./rows.ts";

/**
 * The packets sent by checkpoints of formats before 4, which LangGraph kept as writes of the parent. Where the parent
 * is gone they were recorded as the history of a delta channel is.
 */
export async function readOldSends(engine: Engine, rows: readonly ListedCheckpoint[]): Promise<Map<string, Cell[]>> {
	const sends = new Map<string, Cell[]>();
	if (rows.length === 0) return sends;
	const recorded = (await engine.storage.getDeltaBases(rows)).filter(({ channel }) => channel === TASKS);
	for (const row of recorded)
		sends.set(
			cacheKey(row),
			unpackHistory(row.data).writes.map(({ cell }) => cell),
		);
	const parents = new Map<string, CheckpointKey>();
	const open = rows.filter((row) => row.parentId !== undefined && !sends.has(cacheKey(row)));
	for (const row of open) parents.set(parentKey(row), { ...row, id: row.parentId as string });
	const writes = groupWrites(await engine.storage.getWrites([...parents.values()]));
	for (const row of open) {
		const found = (writes.get(parentKey(row)) ?? []).filter(({ channel }) => channel === TASKS);
		sends.set(cacheKey(row), found.map(writeCell));
	}
	return sends;
}

function parentKey(row: ListedCheckpoint): string {
	return cacheKey({ ...row, id: row.parentId as string });
}

/** Puts packets where LangGraph looks for them since format 4. */
export function restoreSends(checkpoint: Checkpoint, sends: unknown[]): void {
	checkpoint.channel_values[TASKS] = sends;
	const versions = Object.values(checkpoint.channel_versions);
	checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
}
