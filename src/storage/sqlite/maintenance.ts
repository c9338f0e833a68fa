import { compareIds } from "../compare-ids.ts";
import type { CheckpointKey, CopyBatch, Replacement, RowCount, StoredValue, WriteKey, WriteRow } from "../storage.ts";
import { addCheckpoint, countIn, type Entry, findCheckpoint, toCheckpoint } from "./checkpoints.ts";
import { handOn } from "./heads.ts";
import { packId } from "./ids.ts";
import type { SummedWrite } from "./pending.ts";
import { incomplete } from "./proofs.ts";
import { findWritesPlace, setPending, type WritesPlace } from "./put-writes.ts";
import type { SqliteSession } from "./session.ts";
import { addSums, subtractSums, sumOfThread } from "./sums.ts";
import { type InRows, Tally } from "./tally.ts";
import { createThread, findThread, type SqlThread, saveThread } from "./threads.ts";
import { addToTotal, addWrite, ownSum, putBase, sumOfWrite, totalOf } from "./writes.ts";

/** Rows that are removed in one transaction: a tenth of a second of work, on a slow machine. */
const BATCH_ROWS = 2000;

export function copy(session: SqliteSession, batch: CopyBatch): RowCount | undefined {
	const source = findThread(session, batch.source);
	if (source === undefined || source.stamp !== batch.stamp) return undefined;
	if (findThread(session, batch.target) !== undefined) return undefined;
	const { target: threadId, fresh: stamp, now } = batch;
	const target = createThread(session, { threadId, family: source.family, stamp, now });
	const copied = new Tally();
	if (batch.rows !== undefined) addRows(session, target, batch.rows, copied);
	else if (batch.checkpoints === undefined) copyAll(session, source, target, copied);
	else {
		// From the oldest on, as they were put.
		const chosen = [...batch.checkpoints].sort((a, b) => compareIds(a.key.id, b.key.id));
		for (const { key, parentId } of chosen) copyOne(session, source, target, key, parentId, copied);
	}
	for (const row of batch.deltaBases) putBase(session, target, row);
	saveThread(session, target);
	return copied.count;
}

function addRows(session: SqliteSession, target: SqlThread, rows: NonNullable<CopyBatch["rows"]>, copied: Tally): void {
	const ascending = [...rows.checkpoints].sort((a, b) => compareIds(a.id, b.id));
	for (const row of ascending)
		if (addCheckpoint(session, target, row)) copied.checkpoints([{ bytes: row.head.length, pendingWrites: 0 }]);
	for (const row of rows.writes) {
		addToTotal(session, target, row.ns, row.id, "writes", addWrite(session, target, row));
		copied.writes([{ bytes: typeof row.value === "number" ? 0 : row.value.length }]);
	}
}

/** Sums differ between two threads by as much for every row. */
function wayBetween(source: SqlThread, target: SqlThread): { source: number; target: number; between: number } {
	const between = subtractSums(sumOfThread(target.pk), sumOfThread(source.pk));
	return { source: source.pk, target: target.pk, between };
}

function copyAll(session: SqliteSession, source: SqlThread, target: SqlThread, copied: Tally): void {
	const { sql } = session;
	const way = wayBetween(source, target);
	const entries = sql.copyCheckpoints.all(way) as Entry[];
	if (entries.length !== source.checkpoints) throw incomplete(source);
	// They are the newest rows of all, one after the other.
	sql.copyKeys.run(entries[0]?.pk ?? 0, entries.at(-1)?.pk ?? 0, target.pk);
	copied.count.checkpoints += entries.length;
	copied.inRows(sql.countInRows.get(source.pk) as InRows);
	copied.writes(sql.copyWrites.all(way));
	sql.copyBases.run(way);
	for (const entry of entries) countIn(session, target, entry);
	target.loose = source.loose;
}

function copyOne(
	session: SqliteSession,
	source: SqlThread,
	target: SqlThread,
	{ ns, id }: CheckpointKey,
	parentId: string | undefined,
	copied: Tally,
): void {
	const { sql } = session;
	const place = { ...wayBetween(source, target), ns, checkpoint: packId(id) };
	const writes = sql.copyWritesOf.all(place);
	const bases = sql.copyBasesOf.all(place);
	copied.writes(writes);
	// As if they had been there before the checkpoint that takes them over.
	target.loose = addSums(target.loose, totalOf([...writes, ...bases], target));
	const row = findCheckpoint(session, source, ns, id);
	if (row === undefined) return;
	const found = toCheckpoint(session, source, row);
	const added = addCheckpoint(session, target, { ...found, threadId: target.thread_id, parentId });
	if (added !== undefined && row.pending !== null) sql.setPending.run(row.writes, row.pending, added.pk);
	copied.checkpoints([sql.findEntry.get(target.pk, ns, id)]);
}

/** Makes a thread disappear, and removes what fits in a batch. Answers what is left of it. */
export function removeThread(session: SqliteSession, threadId: string, removed: Tally): GoneThread | undefined {
	const thread = findThread(session, threadId);
	if (thread === undefined) return undefined;
	const { pk, family } = thread;
	session.sql.removeThread.run(pk);
	session.sql.removeTotals.run(pk);
	if (sweep(session, thread, removed)) return undefined;
	session.sql.addGone.run(pk, family);
	return { pk, family };
}

/** What is left of a thread that has disappeared. */
export type GoneThread = Pick<SqlThread, "pk" | "family">;

/** Removes more of a thread that has disappeared. Answers whether that was all. */
export function removeGone(session: SqliteSession, thread: GoneThread, removed: Tally): boolean {
	const isDone = sweep(session, thread, removed);
	if (isDone) session.sql.removeGone.run(thread.pk);
	return isDone;
}

function sweep(session: SqliteSession, thread: GoneThread, removed: Tally): boolean {
	const { sql } = session;
	const checkpoints = sql.listSome.all(thread.pk, BATCH_ROWS) as { pk: number }[];
	const pks = checkpoints.map(({ pk }) => pk);
	handOn(session, thread, pks);
	sql.removeListed.run(JSON.stringify(pks));
	const keys = sql.removeSomeKeys.run(thread.pk, BATCH_ROWS).changes;
	const writes = sql.removeSomeWrites.all(thread.pk, BATCH_ROWS);
	removed.checkpoints(checkpoints);
	removed.writes(writes);
	const isDone = Math.max(checkpoints.length, keys, writes.length) < BATCH_ROWS;
	if (isDone) sql.removeAllBases.run(thread.pk);
	return isDone;
}

/** Answers whether the row still had the bytes that were seen. */
export function replaceBytes(session: SqliteSession, replacement: Replacement): boolean {
	const { sql } = session;
	const { from, to } = replacement;
	if (replacement.kind === "blob") return sql.replaceBlob.run(to, replacement.id, from).changes > 0;
	const { threadId, ns, id } = replacement.key;
	const thread = findThread(session, threadId);
	if (thread === undefined) return false;
	if (replacement.kind === "checkpoint") return replaceHead(session, thread, replacement);
	if (replacement.kind === "deltaBase")
		return sql.replaceBase.run(to, thread.pk, ns, packId(id), replacement.channel, from).changes > 0;
	return replaceValue(session, thread, replacement);
}

function replaceHead(
	session: SqliteSession,
	thread: SqlThread,
	{ key, from, to }: Replacement & { kind: "checkpoint" },
): boolean {
	const row = findCheckpoint(session, thread, key.ns, key.id);
	if (row === undefined || Buffer.compare(row.head, from) !== 0) return false;
	handOn(session, thread, [row.pk]);
	session.sql.setHead.run(to, row.pk);
	return true;
}

function replaceValue(
	session: SqliteSession,
	thread: SqlThread,
	{ key, from, to }: Replacement & { kind: "write" },
): boolean {
	const { ns, id, taskId, generation, idx } = key;
	const inRow = findWritesPlace(session, thread, ns, id);
	if (inRow?.pending !== undefined) return replacePending(session, thread, inRow, inRow.pending, { key, from, to });
	const place = [thread.pk, ns, packId(id), packId(taskId), generation, idx];
	const row = session.sql.getWrite.get(...place) as
		| (WriteRow & { run_id: string | null; task_path: string | null; sum: number })
		| undefined;
	if (row === undefined) return false;
	const before = ownSum(row, thread);
	const columns = {
		...row,
		threadId: thread.thread_id,
		id,
		taskId,
		taskPath: row.task_path ?? undefined,
		runId: row.run_id ?? undefined,
	};
	const own = sumOfWrite({ ...columns, value: to });
	const sum = addSums(own, sumOfThread(thread.pk));
	if (session.sql.replaceValue.run(to, sum, ...place, from).changes === 0) return false;
	const { loose } = thread;
	addToTotal(session, thread, ns, id, "writes", subtractSums(own, before));
	if (thread.loose !== loose) saveThread(session, thread);
	return true;
}

function replacePending(
	session: SqliteSession,
	thread: SqlThread,
	place: WritesPlace,
	pending: readonly SummedWrite[],
	{ key, from, to }: { key: WriteKey; from: StoredValue; to: Uint8Array },
): boolean {
	const { taskId, generation, idx } = key;
	const older = pending.find(({ row }) => row.taskId === taskId && row.generation === generation && row.idx === idx);
	if (older === undefined || !isSameValue(older.row.value, from)) return false;
	const row = { ...older.row, value: to };
	const newer = { row, sum: sumOfWrite(row) };
	setPending(
		session,
		thread,
		place,
		pending.map((write) => (write === older ? newer : write)),
	);
	return true;
}

function isSameValue(a: StoredValue, b: StoredValue): boolean {
	return typeof a === "number" || typeof b === "number" ? a === b : Buffer.compare(a, b) === 0;
}
