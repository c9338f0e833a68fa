import { CheckpointError, quote } from "../../errors.ts";
import type { Removed } from "../../saver/types.ts";
import type { ListedCheckpoint, RowCount, WriteKey } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import { MOST_ATTEMPTS } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey } from "../rows.ts";
import { collectFamily } from "./collect.ts";
import { planRetention } from "./retention.ts";

/** Checkpoints that are removed in one go: writers wait for no more than that. */
const BATCH_CHECKPOINTS = 1000;

/** Removes a thread, and the blobs that no other one needs. */
export async function deleteThread(engine: Engine, threadId: string): Promise<Removed> {
	const thread = await engine.storage.getThread(threadId);
	if (thread === undefined) return nothing();
	const rows = await engine.storage.removeThread(threadId);
	engine.links.forget(threadId);
	return collect(engine, thread.family, rows);
}

/** Keeps the newest `keep` checkpoints of each namespace. */
export async function prune(
	engine: Engine,
	threadIds: readonly string[],
	keep: number,
	pause: Pause,
): Promise<Removed> {
	const removed = nothing();
	for (const threadId of new Set(threadIds)) {
		await pause();
		const one =
			keep === 0
				? await deleteThread(engine, threadId)
				: await retain(engine, threadId, (rows) => newestOfEach(rows, keep), [], pause);
		add(removed, one);
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
	const removed = nothing();
	if (runIds.length === 0) return removed;
	const found = await engine.storage.findRuns(runIds);
	const threads = new Set([...found.checkpoints, ...found.writes].map(({ threadId }) => threadId));
	for (const threadId of threads) {
		if (within !== undefined && !within.includes(threadId)) continue;
		const gone = new Set(found.checkpoints.filter((key) => key.threadId === threadId).map(cacheKey));
		const writes = found.writes.filter((key) => key.threadId === threadId && !gone.has(cacheKey(key)));
		const survives = (row: ListedCheckpoint) => !gone.has(cacheKey(row));
		add(removed, await retain(engine, threadId, (rows) => rows.filter(survives), writes, pause));
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
	const { storage, blobs, links } = engine;
	const removed = nothing();
	// The plan is made anew when the thread changes under it.
	for (let attempt = 1, left = writes; attempt <= MOST_ATTEMPTS; ) {
		await pause();
		const thread = await storage.getThread(threadId);
		if (thread === undefined) return removed;
		const reading = await storage.readThread(threadId);
		const rows = reading.checkpoints;
		const chosen = choose(rows);
		// Even then values that were replaced since the last time may be given back.
		if (chosen.length === rows.length && left.length === 0) return collect(engine, thread.family, removed);
		if (chosen.length === 0 && rows.length > 0) return sum(removed, await deleteThread(engine, threadId));
		const kept = withoutOldest(rows, chosen);
		const { removed: checkpoints, relinked, deltaBases } = await planRetention(engine, reading, kept, left);
		const batch = { checkpoints, writes: left, orphans: [], relinked, deltaBases };
		const newStamp = await blobs.nextId();
		const gone = await storage.remove({ threadId, stamp: thread.stamp, newStamp, ...batch });
		links.forget(threadId);
		attempt = gone === undefined ? attempt + 1 : 1;
		if (gone === undefined) continue;
		add(removed, gone);
		left = [];
		if (kept.length === chosen.length) return collect(engine, thread.family, removed);
	}
	throw new CheckpointError("BUSY", `Checkpoints of thread ${quote(threadId)} are being deleted elsewhere; try again.`);
}

async function collect(engine: Engine, family: number, rows: RowCount): Promise<Removed> {
	const { checkpoints, writes, bytes } = rows;
	return sum({ checkpoints, writes, bytes, blobs: 0 }, await collectFamily(engine, family));
}

/** All rows but the oldest of those that were not chosen: as many as can go at once. */
function withoutOldest(rows: readonly ListedCheckpoint[], chosen: readonly ListedCheckpoint[]): ListedCheckpoint[] {
	if (rows.length - chosen.length <= BATCH_CHECKPOINTS) return [...chosen];
	const stays = new Set(chosen);
	const going = rows.filter((row) => !stays.has(row)).slice(-BATCH_CHECKPOINTS);
	const goes = new Set(going);
	return rows.filter((row) => !goes.has(row));
}

function nothing(): Removed {
	return { checkpoints: 0, writes: 0, blobs: 0, bytes: 0 };
}

function add(total: Removed, part: Partial<Removed>): void {
	total.checkpoints += part.checkpoints ?? 0;
	total.writes += part.writes ?? 0;
	total.blobs += part.blobs ?? 0;
	total.bytes += part.bytes ?? 0;
}

function sum(one: Removed, other: Partial<Removed>): Removed {
	const both = { ...one };
	add(both, other);
	return both;
}
