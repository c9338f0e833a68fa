import { type Checkpoint, maxChannelVersion, TASKS } from "@langchain/langgraph-checkpoint";
import type { ListedCheckpoint } from "../storage/storage.ts";
import type { Cell } from "./cells.ts";
import { unpackHistory } from "./delta-channels/raw-history.ts";
import type { Engine } from "./engine.ts";
import { groupWrites, writeCell } from "./rows.ts";

/**
 * The packets sent by a checkpoint of a format before 4, which LangGraph kept as writes of the parent. Where the parent
 * is gone they were recorded as the history of a delta channel is. `undefined` if there never was a parent.
 */
export async function readOldSends(engine: Engine, row: ListedCheckpoint): Promise<Cell[] | undefined> {
	const { deltaBases, writes } = await engine.storage.readPath(row, 2);
	const recorded = deltaBases.find(({ id, channel }) => id === row.id && channel === TASKS);
	if (recorded !== undefined) return unpackHistory(recorded.data).writes.map(({ cell }) => cell);
	if (row.parentId === undefined) return undefined;
	const [ofParent = []] = groupWrites(writes.filter(({ id }) => id !== row.id)).values();
	return ofParent.filter(({ channel }) => channel === TASKS).map(writeCell);
}

/** Puts these packets where LangGraph looks for them since format 4. */
export async function restoreSends(engine: Engine, row: ListedCheckpoint, checkpoint: Checkpoint): Promise<void> {
	const sends = await readOldSends(engine, row);
	if (sends === undefined) return;
	checkpoint.channel_values[TASKS] = await engine.readAll(row, TASKS, sends);
	const versions = Object.values(checkpoint.channel_versions);
	checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
}
