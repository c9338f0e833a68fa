import type { ListedCheckpoint, WriteKey } from "../../storage/storage.ts";
import { busy, type Engine, MOST_ATTEMPTS } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey } from "../rows.ts";
import { collectFamily } from "./collect.ts";
import { planRetention } from "./retention.ts";
import type { Removed } from "./types.ts";

/** Checkpoints that are removed in one go: writers wait for no more than that. */
const BATCH_CHECKPOINTS = 1000;

/** Removes a thread, and the blobs that no other one needs. */
export async function deleteThread(engine: Engine, threadId: string): Promise<Removed> {
	const thread = await engine.storage.getThread(threadId);
	if (thread === undefined) return sum();
	const rows = await engine.storage.removeThread(threadId);
	return sum(rows, await collectFamily(engine, thread.family));
}

/** Keeps the newest `keep` checkpoints of each namespace. */
export async function prune(
	engine: Engine,
	threadIds: readonly string[],
	keep: number,
	pause: Pause,
): Promise<Removed> {
	let removed = sum();
	for (const threadId of new Set(threadIds)) {
		await pause();
		const one =
			keep === 0
				? await deleteThread(engine, threadId)
				: await retain(engine, threadId, (rows) => newestOfEach(rows, keep), [], pause);
		removed = sum(removed, one);
	}
	return removed;
}

/** @param within the threads to look into; all if undefined */
export async function deleteForRuns(
	engine: Engine,
	runIds: readonly string[],
	within: readonly string[] | undefined,
	pause: Pause,
): Promise<Removed> {
	let removed = sum();
	if (runIds.length === 0) return removed;
	const found = await engine.storage.findRuns(runIds);
	const threads = new Set([...found.checkpoints, ...found.writes].map(({ threadId }) => threadId));
	for (const threadId of threads) {
		if (within !== undefined && !within.includes(threadId)) continue;
		const gone = new Set(found.checkpoints.filter((key) => key.threadId === threadId).map(cacheKey));
		const writes = found.writes.filter((key) => key.threadId === threadId && !gone.has(cacheKey(key)));
		const survives = (row: ListedCheckpoint) => !gone.has(cacheKey(row));
		removed = sum(removed, await retain(engine, threadId, (rows) => rows.filter(survives), writes, pause));
	}
	return removed;
}

/** The newest checkpoints of each namespace. Expects rows in the order of a scan. */
export function newestOfEach<T extends ListedCheckpoint>(rows: readonly T[], count: number): T[] {
	const taken = new Map<string, number>();
	return rows.filter(({ ns }) => {
		const before = taken.get(ns) ?? 0;
		if (before < count) taken.set(ns, before + 1);
		return before < count;
	});
}

/** Removes all checkpoints of a thread but some, the oldest first, and some writes of those. */
async function retain(
	engine: Engine,
	threadId: string,
	choose: (rows: readonly ListedCheckpoint[]) => ListedCheckpoint[],
	writes: readonly WriteKey[],
	pause: Pause,
): Promise<Removed> {
	const { storage, blobs } = engine;
	let removed = sum();
	// The plan is made anew when the thread changes under it.
	for (let attempt = 1, left = writes; attempt <= MOST_ATTEMPTS; ) {
		await pause();
		const thread = await storage.getThread(threadId);
		if (thread === undefined) return removed;
		const outline = await storage.readOutline(threadId);
		const rows = outline.checkpoints;
		const stays = new Set(choose(rows));
		if (stays.size === 0 && rows.length > 0) return sum(removed, await deleteThread(engine, threadId));
		const going = rows.filter((row) => !stays.has(row));
		const checkpoints = going.slice(-BATCH_CHECKPOINTS);
		if (checkpoints.length + left.length > 0) {
			for (const row of going.slice(0, -BATCH_CHECKPOINTS)) stays.add(row);
			const kept = rows.filter((row) => stays.has(row));
			const batch = { checkpoints, writes: left, orphans: [], ...(await planRetention(engine, outline, kept, left)) };
			const newStamp = await blobs.nextId();
			const gone = await storage.remove({ threadId, stamp: thread.stamp, newStamp, ...batch });
			attempt = gone === undefined ? attempt + 1 : 1;
			if (gone === undefined) continue;
			removed = sum(removed, gone);
			left = [];
		}
		// Even if there was nothing to remove, values that were replaced since the last time may be given back.
		if (checkpoints.length === going.length) return sum(removed, await collectFamily(engine, thread.family));
	}
	throw busy(threadId);
}

function sum(...parts: readonly Partial<Removed>[]): Removed {
	const add = (what: keyof Removed) => parts.reduce((total, part) => total + (part[what] ?? 0), 0);
	return { checkpoints: add("checkpoints"), writes: add("writes"), blobs: add("blobs"), bytes: add("bytes") };
}
