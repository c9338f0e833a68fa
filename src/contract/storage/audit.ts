import assert from "node:assert/strict";
import type { CheckpointKey, FoundCheckpoint, Storage, ThreadRow, WriteRow } from "../../storage/storage.ts";
import {
	assertBlobs,
	assertRows,
	assertWrites,
	plainBase,
	plainBlob,
	plainKey,
	plainRow,
	plainWrite,
	sorted,
} from "./plain.ts";
import { ALL, familyBlobs, newestRow, scanRows } from "./reads.ts";

/** Everything that can be read of a storage, for comparison. */
export async function readAll(storage: Storage) {
	const threads = await storage.listThreads(ALL, undefined);
	const rows = await scanRows(storage, { limit: ALL });
	const families = await storage.listFamilies(ALL, undefined);
	const blobs = (await Promise.all(families.map((family) => familyBlobs(storage, family)))).flat();
	const readings = await Promise.all(threads.map(({ threadId }) => storage.readThread(threadId)));
	return {
		threads,
		rows: rows.map(plainRow),
		writes: sorted(readings.flatMap(({ writes }) => writes).map(plainWrite)),
		deltaBases: sorted(readings.flatMap(({ deltaBases }) => deltaBases).map(plainBase)),
		families,
		blobs: sorted((await storage.getBlobs(blobs.map(({ id }) => id))).map(plainBlob)),
		totals: await storage.totals(),
	};
}

/** Compares all that a storage counts with what it holds, and each way to read rows with the others. */
export async function audit(
	storage: Storage,
	counted: <T extends { readonly bytes: unknown }>(count: T) => object,
): Promise<void> {
	assert.deepEqual(await storage.check(), []);
	const { threads, families, writes } = await readAll(storage);
	const sum = { checkpoints: 0, writes: writes.length };
	const bytes = { checkpoints: 0, writes: 0, blobs: 0 };
	for (const { value } of writes) bytes.writes += value.length;
	for (const thread of threads) {
		const rows = await auditThread(storage, thread);
		sum.checkpoints += rows.length;
		for (const { head } of rows) bytes.checkpoints += head.length;
	}
	for (const family of families) for (const blob of await familyBlobs(storage, family)) bytes.blobs += blob.bytes;
	assert.deepEqual(counted(await storage.totals()), counted({ threads: threads.length, ...sum, bytes }));
}

async function auditThread(storage: Storage, thread: ThreadRow): Promise<readonly FoundCheckpoint[]> {
	const { threadId } = thread;
	assert.deepEqual(await storage.getThread(threadId), thread);
	const { checkpoints: rows, writes, blobs } = await storage.read({ threadId, limit: ALL }, "values");
	assert.equal(thread.checkpoints, rows.length, `thread ${JSON.stringify(threadId)} counts its checkpoints wrong`);
	const newest = new Map<string, FoundCheckpoint>();
	for (const row of rows) {
		assert.equal(row.stamp, thread.stamp);
		if (!newest.has(row.ns)) newest.set(row.ns, row);
	}
	assert.equal(thread.newest, newest.get("")?.id, `thread ${JSON.stringify(threadId)} names the wrong newest`);
	for (const [ns, row] of newest) assert.deepEqual(await newestRow(storage, threadId, ns), row);
	const byKey = await storage.read(rows, "values");
	assertRows(byKey.checkpoints, rows);
	assertWrites(byKey.writes, writes);
	assertBlobs(byKey.blobs, blobs);
	await auditReading(storage, threadId, rows, writes);
	return rows;
}

/** Compares the reading of a whole thread with its checkpoints and their writes. */
async function auditReading(
	storage: Storage,
	threadId: string,
	rows: readonly FoundCheckpoint[],
	writes: readonly WriteRow[],
): Promise<void> {
	const reading = await storage.readThread(threadId);
	const link = (row: CheckpointKey & { parentId: string | undefined }) => ({
		...plainKey(row),
		parentId: row.parentId,
	});
	assert.deepEqual(reading.checkpoints.map(link), rows.map(link));
	const keys = new Set(rows.map(({ ns, id }) => JSON.stringify([ns, id])));
	const kept = reading.writes.filter(({ ns, id }) => keys.has(JSON.stringify([ns, id])));
	assertWrites(kept, writes);
}
