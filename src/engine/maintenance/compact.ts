import { allFamilies, allThreads } from "../../storage/all-threads.ts";
import { compareIds } from "../../storage/compare-ids.ts";
import type { ListedCheckpoint, ThreadRow, WriteRow } from "../../storage/storage.ts";
import { NULL_TASK } from "../delta-channels/attribution.ts";
import type { Engine } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey } from "../rows.ts";
import { collectFamily } from "./collect.ts";
import type { Removed } from "./types.ts";

/** What a compaction removed: writes whose checkpoint was never stored, values that nothing needs, and bytes of both. */
export type Compacted = Pick<Removed, "writes" | "blobs" | "bytes">;

/** How far a compaction is. */
export interface CompactProgress extends Compacted {
	threads: number;
}

/**
 * Writes without a checkpoint are kept for this long, in milliseconds: LangGraph may store them before it, and a process
 * may stand still in between.
 */
const ORPHAN_AGE = 60 * 60 * 1000;

/** Removes what nothing needs, a batch at a time, beside writers in any process; then the storage gives back the space. */
export async function compact(
	engine: Engine,
	onProgress: (done: CompactProgress) => void,
	pause: Pause,
): Promise<Compacted> {
	const done = { threads: 0, writes: 0, blobs: 0, bytes: 0 };
	const add = ({ writes = 0, blobs = 0, bytes = 0 }: Partial<Compacted>) => {
		done.writes += writes;
		done.blobs += blobs;
		done.bytes += bytes;
		onProgress({ ...done });
	};
	for await (const thread of allThreads(engine.storage)) {
		await pause();
		const removed = await removeOrphans(engine, thread);
		done.threads++;
		add(removed ?? {});
	}
	for await (const family of allFamilies(engine.storage)) {
		await pause();
		add(await collectFamily(engine, family));
	}
	while (await engine.storage.tidy()) await pause();
	const { threads: _, ...removed } = done;
	return removed;
}

async function removeOrphans(engine: Engine, { threadId, stamp, updatedAt }: ThreadRow) {
	const { storage, blobs } = engine;
	const { checkpoints } = await storage.readOutline(threadId);
	// A checkpoint that comes in between keeps its writes.
	const { writes } = await storage.readThread(threadId);
	const orphans = findOrphans(checkpoints, writes, updatedAt);
	if (orphans.length === 0) return undefined;
	const nothing = { checkpoints: [], writes: [], relinked: [], deltaBases: [] };
	const newStamp = await blobs.nextId();
	// Refused if something was deleted meanwhile: the next compaction will come.
	return storage.remove({ threadId, stamp, newStamp, ...nothing, orphans });
}

/** Old writes whose checkpoint has no row, and that are not the first input of a history either. */
function findOrphans(
	checkpoints: readonly ListedCheckpoint[],
	writes: readonly WriteRow[],
	updatedAt: number,
): WriteRow[] {
	const known = new Set(checkpoints.map(cacheKey));
	const roots = checkpoints.filter(
		({ parentId, ...key }) => parentId === undefined || !known.has(cacheKey({ ...key, id: parentId })),
	);
	const isFirstInput = ({ taskId, ns, id }: WriteRow) =>
		taskId === NULL_TASK && roots.some((root) => root.ns === ns && compareIds(root.id, id) > 0);
	const before = Date.now() - ORPHAN_AGE;
	return writes.filter(
		(write) => !known.has(cacheKey(write)) && (timeOf(write.id) ?? updatedAt) < before && !isFirstInput(write),
	);
}

/** Milliseconds between the beginnings of the calendars of UUIDs and of JavaScript. */
const GREGORIAN = 12_219_292_800_000;

/** When the id of a checkpoint was made, if it is one that LangGraph makes: in units of 100 nanoseconds, but for its 14th digit. */
function timeOf(id: string): number | undefined {
	const [, high, middle, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-6([0-9a-f]{3})-/i.exec(id) ?? [];
	return high === undefined ? undefined : Number(`0x${high}${middle}${low}`) / 10_000 - GREGORIAN;
}
