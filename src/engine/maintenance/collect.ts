import type { ListedBlob } from "../../storage/storage.ts";
import { unpackHistory } from "../delta-channels/raw-history.ts";
import type { Engine } from "../engine.ts";
import { unpackRow } from "../rows.ts";

/** Blobs that are removed in one go: writers wait for no more than that. */
const BATCH_BLOBS = 500;

/** Removes the blobs of a family that none of its threads can reach. */
export async function collectFamily(engine: Engine, family: number): Promise<{ blobs: number; bytes: number }> {
	const dead = await unreachedBlobs(engine, family);
	for (let i = 0; i < dead.length; i += BATCH_BLOBS) {
		const ids = dead.slice(i, i + BATCH_BLOBS).map(({ id }) => id);
		await engine.storage.removeBlobs(family, ids);
		for (const id of ids) engine.blobs.forget(id);
	}
	return { blobs: dead.length, bytes: dead.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/**
 * The blobs of a family that none of its threads can reach, and none ever will.
 *
 * Safe beside writers in any process. Blobs are listed before they are marked, so one that is added meanwhile is not
 * touched; it is in the last listing, which tells what it is built on. And no put can begin to refer to a blob that is no
 * longer marked: it takes over only what some row of its thread refers to, and is refused if rows of the thread were deleted
 * since it looked. But a reference may move on while threads are marked, into a newer row or a copy, and the row that had it
 * be deleted: so threads are marked until none has come or lost a row since.
 */
export async function unreachedBlobs(engine: Engine, family: number): Promise<ListedBlob[]> {
	let { blobs, threads } = await engine.storage.readFamily(family);
	const stored = blobs;
	if (stored.length === 0) return [];
	const reached = new Set<number>();
	/** Threads by their stamp before they were marked. */
	const marked = new Map<string, number>();
	for (let isDone = false; !isDone; ) {
		isDone = true;
		for (const { threadId, stamp } of threads) {
			if (marked.get(threadId) === stamp) continue;
			isDone = false;
			await markThread(engine, threadId, (id) => reached.add(id));
			marked.set(threadId, stamp);
		}
		if (!isDone) ({ blobs, threads } = await engine.storage.readFamily(family));
	}
	const rows = new Map(blobs.map((row) => [row.id, row]));
	// A set goes on to what is added to it on the way.
	for (const id of reached) {
		const { base, source } = rows.get(id) ?? {};
		if (base !== undefined) reached.add(base);
		if (source !== undefined) reached.add(source);
	}
	return stored.filter(({ id }) => !reached.has(id));
}

/** Calls `mark` for every blob that a row of the thread names, with the channel it is for. Bases are not followed. */
export async function markThread(
	engine: Engine,
	threadId: string,
	mark: (id: number, channel: string) => void,
): Promise<void> {
	for await (const row of engine.scanAll({ threadId }))
		for (const [channel, cell] of unpackRow(row).manifest) if (typeof cell === "number") mark(cell, channel);
	const { writes, deltaBases } = await engine.storage.readThread(threadId);
	for (const { blob, channel } of writes) if (blob !== undefined) mark(blob, channel);
	for (const { data, channel } of deltaBases) {
		const { seed, writes } = unpackHistory(data);
		for (const cell of [seed, ...writes.map((write) => write.cell)]) if (typeof cell === "number") mark(cell, channel);
	}
}
