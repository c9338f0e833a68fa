import assert from "node:assert/strict";
import type { FoundCheckpoint, Storage, ThreadRow } from "../../storage/storage.ts";
import { plainBase, plainBlob, plainKey, plainRow, plainWrite, sorted } from "./plain.ts";

/** More than any test stores. */
const ALL = 1_000_000;

/** Everything that can be read of a storage, for comparison. Blobs of families without a thread can't be found. */
export async function readAll(storage: Storage) {
	const threads = await storage.listThreads(ALL, undefined);
	const rows = await storage.scan({ limit: ALL });
	const ids = (await storedBlobs(storage, threads)).map(({ id }) => id);
	const writes = await Promise.all(threads.map(({ threadId }) => storage.getThreadWrites(threadId)));
	const deltaBases = await Promise.all(threads.map(({ threadId }) => storage.getThreadDeltaBases(threadId)));
	for (const { threadId } of threads) await auditOutline(storage, threadId);
	return {
		threads,
		rows: rows.map(plainRow),
		writes: sorted(writes.flat().map(plainWrite)),
		deltaBases: sorted(deltaBases.flat().map(plainBase)),
		blobs: sorted((await storage.getBlobs(ids)).map(plainBlob)),
		totals: await storage.totals(),
	};
}

/** Compares everything that a storage counts with what it holds. */
export async function audit(
	storage: Storage,
	counted: <T extends { bytes: unknown }>(count: T) => object,
): Promise<void> {
	assert.deepEqual(await storage.check(), []);
	const threads = await storage.listThreads(ALL, undefined);
	const sum = { checkpoints: 0, writes: 0 };
	const bytes = { checkpoints: 0, writes: 0 };
	for (const thread of threads) {
		const rows = await storage.scan({ threadId: thread.threadId, limit: ALL });
		await auditThread(storage, thread, rows);
		await auditOutline(storage, thread.threadId);
		const writes = await storage.getThreadWrites(thread.threadId);
		sum.checkpoints += rows.length;
		sum.writes += writes.length;
		for (const { head } of rows) bytes.checkpoints += head.length;
		for (const { value } of writes) bytes.writes += typeof value === "number" ? 0 : value.length;
	}
	const blobBytes = (await storedBlobs(storage, threads)).reduce((total, blob) => total + blob.bytes, 0);
	const { bytes: total, ...counts } = await storage.totals();
	const { blobs, ...rest } = total;
	assert.deepEqual(counted({ ...counts, bytes: rest }), counted({ threads: threads.length, ...sum, bytes }));
	assert.ok(blobs >= blobBytes, `${blobBytes} bytes of blobs are listed, ${blobs} are counted`);
}

async function auditThread(storage: Storage, thread: ThreadRow, rows: readonly FoundCheckpoint[]): Promise<void> {
	const { threadId } = thread;
	assert.deepEqual(await storage.getThread(threadId), thread);
	assert.equal(thread.checkpoints, rows.length, `thread ${JSON.stringify(threadId)} counts its checkpoints wrong`);
	const newest = new Map<string, FoundCheckpoint>();
	for (const row of rows) {
		assert.equal(row.stamp, thread.stamp);
		if (!newest.has(row.ns)) newest.set(row.ns, row);
	}
	assert.equal(thread.head, newest.get("")?.id, `thread ${JSON.stringify(threadId)} names the wrong head`);
	for (const [ns, row] of newest) assert.equal((await storage.getLatest(threadId, ns))?.id, row.id);
}

/** Compares the outline of a thread with its rows. */
async function auditOutline(storage: Storage, threadId: string): Promise<void> {
	const outline = await storage.getOutline?.(threadId);
	if (outline === undefined) return;
	const rows = await storage.scan({ threadId, limit: ALL });
	assert.deepEqual(
		outline.checkpoints.map((row) => ({ ...plainKey(row), parentId: row.parentId })),
		rows.map((row) => ({ ...plainKey(row), parentId: row.parentId })),
	);
	const written = [...outline.written].flatMap(([ns, channels]) => [...channels].map((channel) => ({ ns, channel })));
	const writes = await storage.getThreadWrites(threadId);
	const pairs = new Map(writes.map(({ ns, channel }) => [JSON.stringify([ns, channel]), { ns, channel }]));
	assert.deepEqual(sorted(written), sorted([...pairs.values()]));
}

async function storedBlobs(storage: Storage, threads: readonly ThreadRow[]) {
	const families = [...new Set(threads.map(({ family }) => family))];
	return (await Promise.all(families.map((family) => storage.listBlobs(family)))).flat();
}
