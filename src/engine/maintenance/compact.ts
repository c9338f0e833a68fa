import { allThreads } from "../../storage/all-threads.ts";
import { compareIds } from "../../storage/compare-ids.ts";
import type { ListedCheckpoint, ThreadRow, WriteRow } from "../../storage/storage.ts";
import { NULL_TASK } from "../delta-channels/attribution.ts";
import type { Engine } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey } from "../rows.ts";
import { collectFamily } from "./collect.ts";

/** What a compaction removed. */
export interface Compacted {
	/** Writes whose checkpoint was never stored. */
	writes: number;
	/** Values that nothing needs any more. */
	blobs: number;
	/** Bytes of both, as stored. */
	bytes: number;
}

/** How far a compaction is. */
export interface CompactProgress extends Compacted {
	threads: number;
}

/**
 * Writes without a checkpoint are kept for this long, in milliseconds: LangGraph may store them before it, and a process
 * may stand still in between.
 */
const ORPHAN_AGE = 60 * 60 * 1000;
const FAMILIES_AT_ONCE = 200;

/**
 * Removes what nothing needs, a batch at a time, beside writers in any process; then the storage gives back the space.
 */
export async function compact(
	engine: Engine,
	onProgress: (done: CompactProgress) => void,
	pause: Pause,
): Promise<Compacted> {
	const done = { threads: 0, writes: 0, blobs: 0, bytes: 0 };
	const add = (part: Partial<Compacted>) => {
		for (const what of ["writes", "blobs", "bytes"] as const) done[what] += part[what] ?? 0;
	};
	for await (const thread of allThreads(engine.storage)) {
		await pause();
		add((await removeOrphans(engine, thread)) ?? {});
		done.threads++;
		onProgress({ ...done });
	}
	for await (const family of allFamilies(engine)) {
		await pause();
		add(await collectFamily(engine, family));
		onProgress({ ...done });
	}
	while (await engine.storage.tidy()) await pause();
	const { writes, blobs, bytes } = done;
	return { writes, blobs, bytes };
}

/** Families that have blobs, also such whose threads are all gone. */
export async function* allFamilies({ storage }: Engine): AsyncGenerator<number> {
	let after: number | undefined;
	do {
		const families = await storage.listFamilies(FAMILIES_AT_ONCE, after);
		yield* families;
		after = families.at(-1);
	} while (after !== undefined);
}

async function removeOrphans(engine: Engine, { threadId, stamp, updatedAt }: ThreadRow) {
	const { storage, blobs } = engine;
	// A checkpoint that comes in between keeps its writes.
	const { checkpoints } = await storage.readOutline(threadId);
	const orphans = findOrphans(checkpoints, (await storage.readThread(threadId)).writes, updatedAt);
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

/** When the id of a checkpoint was made, if it is one that LangGraph makes. */
function timeOf(id: string): number | undefined {
	const [, high, low] = /^([0-9a-f]{8}-[0-9a-f]{4})-6([0-9a-f]{3})-/i.exec(id) ?? [];
	if (high === undefined || low === undefined) return undefined;
	// In units of 100 nanoseconds.
	return Number(BigInt(`0x${high.replace("-", "")}${low}`) / 10_000n) - GREGORIAN;
}
