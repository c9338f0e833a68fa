import assert from "node:assert/strict";
import type { CheckpointKey, FoundCheckpoint, Scan, Storage, WriteRow } from "../../storage/storage.ts";
import { plainKey } from "./plain.ts";

/** More than any test stores. */
export const ALL = 1_000_000;

/** The keys that a scan finds, in its order. */
export async function scanKeys(storage: Storage, scan: Partial<Scan> = {}): Promise<CheckpointKey[]> {
	return (await storage.read({ limit: ALL, ...scan }, "rows")).checkpoints.map(plainKey);
}

export async function findRow(storage: Storage, key: CheckpointKey): Promise<FoundCheckpoint | undefined> {
	return (await storage.read([key], "rows")).checkpoints[0];
}

export async function pathIds(storage: Storage, key: CheckpointKey, limit = ALL): Promise<string[]> {
	return (await storage.readPath(key, limit)).path.map(({ id }) => id);
}

/** The writes under one key, with or without a checkpoint. */
export async function writesAt(storage: Storage, key: CheckpointKey): Promise<WriteRow[]> {
	const { writes } = await storage.readThread(key.threadId);
	return writes.filter(({ ns, id }) => ns === key.ns && id === key.id);
}

/** How many checkpoints of a thread are read in every way there is. */
const MOST_PATHS = 20;

/** Reads all that is stored, in every way there is. Of a checked storage this compares everything. */
export async function readEverything(storage: Storage): Promise<void> {
	assert.deepEqual(await storage.check(), []);
	await storage.read({ limit: ALL }, "values");
	for (const { threadId } of await storage.listThreads(ALL, undefined)) {
		await storage.getThread(threadId);
		await storage.read({ threadId, limit: ALL }, "values");
		const { checkpoints } = await storage.readOutline(threadId);
		await storage.readThread(threadId);
		for (const ns of new Set(checkpoints.map((row) => row.ns)))
			await storage.read({ threadId, ns, limit: 1 }, "values");
		await storage.read(checkpoints.slice(0, MOST_PATHS), "values");
		for (const row of checkpoints.slice(0, MOST_PATHS)) await storage.readPath(row, ALL);
	}
	for (const family of await storage.listFamilies(ALL, undefined)) {
		const { blobs } = await storage.readFamily(family);
		await storage.getBlobs(blobs.map(({ id }) => id));
	}
	await storage.totals();
}

/** Compares what a storage counts with its rows, where nothing is known of them. */
export async function assertCounted(storage: Storage): Promise<void> {
	assert.deepEqual(await storage.check(), []);
	const threads = await storage.listThreads(ALL, undefined);
	const rows = await scanKeys(storage);
	for (const { threadId, checkpoints, newest } of threads) {
		const own = rows.filter((row) => row.threadId === threadId);
		assert.deepEqual([checkpoints, newest], [own.length, own.find(({ ns }) => ns === "")?.id]);
	}
	const readings = await Promise.all(threads.map(({ threadId }) => storage.readThread(threadId)));
	const writes = readings.reduce((sum, reading) => sum + reading.writes.length, 0);
	const { bytes: _, ...totals } = await storage.totals();
	assert.deepEqual(totals, { threads: threads.length, checkpoints: rows.length, writes });
}
