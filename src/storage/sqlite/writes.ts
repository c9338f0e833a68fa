import { CheckpointError, type Place, quote } from "../../errors.ts";
import type { CheckpointKey, DeltaBaseRow, StoredValue, WriteRow } from "../storage.ts";
import { type PackedId, packId, unpackId } from "./ids.ts";
import { type SummedWrite, unpackWrites } from "./pending.ts";
import { proveKeys } from "./proofs.ts";
import type { SqliteSession } from "./session.ts";
import { addSums, NO_WRITES, subtractSums, sumOf, sumOfThread } from "./sums.ts";
import { findThread, type SqlThread } from "./threads.ts";

interface SqlWrite {
	thread: number;
	ns: string;
	checkpoint: PackedId;
	task: PackedId;
	generation: number;
	idx: number;
	task_path: string | null;
	channel: string;
	run_id: string | null;
	actor: number | null;
	type: string | null;
	sum: number;
	value: StoredValue;
}

interface SqlBase {
	thread: number;
	ns: string;
	checkpoint: PackedId;
	channel: string;
	sum: number;
	data: Uint8Array;
}

/** Which total of a checkpoint's row. */
type Total = "writes" | "bases";

/** All writes of a checkpoint. */
export function findWritesOf(session: SqliteSession, key: CheckpointKey): WriteRow[] {
	const recent = findRecentWrites(session, key);
	if (recent !== undefined) return recent;
	const thread = findThread(session, key.threadId);
	return thread === undefined ? [] : findWrites(session, thread, key.ns, key.id);
}

/** The same by a single statement or none, if the checkpoint was read just now. For use after {@link SqliteSession.refresh}. */
export function findRecentWrites(session: SqliteSession, key: CheckpointKey): WriteRow[] | undefined {
	const recent = session.recent.get(key);
	if (recent === undefined) return undefined;
	const { ns, id } = key;
	const { thread, writes, pending, runId } = recent;
	if (pending instanceof Uint8Array) return checkPending(thread, { ns, id, run_id: runId ?? null, writes, pending });
	if (pending !== null) return pending.map(({ row }) => asRead(row));
	if (writes === NO_WRITES) return [];
	const rows = session.sql.getWrites.all(thread.pk, ns, packId(id));
	if (addSums(totalOf(rows, thread), NO_WRITES) !== writes) return undefined;
	return rows.map((row) => toWrite(row, thread));
}

/** A write as the database would answer it. */
function asRead(row: WriteRow): WriteRow {
	return typeof row.value === "number" ? row : { ...row, value: asBuffer(row.value) };
}

export function asBuffer(bytes: Uint8Array): Buffer {
	return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** All writes of a checkpoint: as many as its row says that there are. */
export function findWrites(session: SqliteSession, thread: SqlThread, ns: string, id: string): WriteRow[] {
	const place = findPlace(session, thread, ns, id);
	if (place !== undefined && hasPending(place)) return checkPending(thread, { ns, id, ...place });
	const rows = session.sql.getWrites.all(thread.pk, ns, packId(id));
	checkTotal(rows, thread, place && subtractSums(place.writes, NO_WRITES), { ns, id });
	return rows.map((row) => toWrite(row, thread));
}

/** Where the writes and bases of a checkpoint are. */
export interface RowPlace {
	readonly pk: number;
	readonly run_id: string | null;
	/** Totals. */
	readonly writes: number;
	readonly bases: number;
	/** The writes themselves, unless they have rows of their own. */
	readonly pending: Uint8Array | null;
}

/** A checkpoint without a row has no place, and nobody keeps a total of what it has. */
export function findPlace(session: SqliteSession, thread: SqlThread, ns: string, id: string): RowPlace | undefined {
	const place = session.sql.getPlace.get(thread.pk, ns, id) as RowPlace | undefined;
	if (place === undefined) proveKeys(session, thread);
	else if (place.pk === null) throw missing(thread, { ns, id });
	return place;
}

/** A checkpoint with writes in its row. */
export interface Pending {
	readonly ns: string;
	readonly id: string;
	readonly run_id: string | null;
	readonly pending: Uint8Array;
}

export function hasPending<T extends { readonly pending: Uint8Array | null }>(
	row: T,
): row is T & { pending: Uint8Array } {
	return row.pending !== null;
}

/** The writes that stand in a row, each as it was stored. */
export function openPending({ thread_id: threadId }: SqlThread, row: Pending): SummedWrite[] {
	const { ns, id, run_id, pending } = row;
	const writes: SummedWrite[] = [];
	for (const write of unpackWrites(pending, { threadId, ns, id }, run_id ?? undefined)) {
		if (write.sum !== sumOfWrite(write.row)) throw damaged("write", write.row, write.row);
		writes.push(write);
	}
	return writes;
}

/** The same, and as many as the row says. */
function checkPending(thread: SqlThread, row: Pending & { readonly writes: number }): WriteRow[] {
	const writes = openPending(thread, row);
	if (totalOfPending(writes) !== row.writes) throw missing(thread, row);
	return writes.map((write) => write.row);
}

/** The total that a row has for them. */
export function totalOfPending(writes: readonly SummedWrite[]): number {
	return writes.reduce((total, { sum }) => addSums(total, sum), NO_WRITES);
}

/** All of a thread that stand in rows of their checkpoints. */
export function findThreadPending(session: SqliteSession, thread: SqlThread): WriteRow[] {
	const rows = session.sql.getThreadPending.all(thread.pk) as (Pending & { writes: number })[];
	return rows.flatMap((row) => checkPending(thread, row));
}

export function findBases(session: SqliteSession, thread: SqlThread, ns: string, id: string): DeltaBaseRow[] {
	const rows = session.sql.getBases.all(thread.pk, ns, packId(id));
	checkTotal(rows, thread, findPlace(session, thread, ns, id)?.bases, { ns, id });
	return rows.map((row) => toBase(row, thread));
}

function checkTotal(
	rows: readonly unknown[],
	thread: SqlThread,
	expected: number | undefined,
	at?: { ns: string; id: string },
): void {
	if (expected !== undefined && totalOf(rows, thread) !== expected) throw missing(thread, at);
}

function missing({ thread_id: threadId }: SqlThread, at?: { ns: string; id: string }): CheckpointError {
	const where = at === undefined ? "" : ` at checkpoint ${quote(at.id)}, namespace ${quote(at.ns)},`;
	return new CheckpointError(
		"CORRUPT",
		`Writes or delta bases${where} of thread ${quote(threadId)} are missing, or an index of them is damaged: call repair().`,
		{ place: { threadId, ns: at?.ns, checkpointId: at?.id } },
	);
}

/** All that a thread has, in the number that its checkpoints and itself say there are. */
export function findThreadWrites(session: SqliteSession, thread: SqlThread): WriteRow[] {
	const { writes, pending } = rowsOfThread(session, thread);
	return [...writes.map((row) => toWrite(row, thread)), ...pending];
}

export function findThreadBases(session: SqliteSession, thread: SqlThread): DeltaBaseRow[] {
	return rowsOfThread(session, thread).bases.map((row) => toBase(row, thread));
}

function rowsOfThread(session: SqliteSession, thread: SqlThread) {
	const writes = session.sql.getThreadWrites.all(thread.pk);
	const bases = session.sql.getThreadBases.all(thread.pk);
	const pending = findThreadPending(session, thread);
	checkThreadTotal(session, thread, totalOf([...writes, ...bases], thread));
	return { writes, bases, pending };
}

/** Throws unless the total over all rows of writes and delta bases of a thread is what its checkpoints and itself say. */
export function checkThreadTotal(session: SqliteSession, thread: SqlThread, total: number): void {
	const stored = session.sql.getTotals.get(thread.pk) as { count: number; total: number | null };
	const expected = addSums(Number(BigInt.asIntN(32, BigInt(stored.total ?? 0))), thread.loose);
	if (total !== expected || stored.count !== thread.checkpoints) throw missing(thread);
}

/** Gives a write a row of its own. Answers what it adds to the total of its checkpoint. */
export function addWrite(session: SqliteSession, thread: SqlThread, row: WriteRow, own = sumOfWrite(row)): number {
	const { ns, id, taskId, generation, idx, taskPath, channel, runId, actor, type, value } = row;
	session.sql.putWrite.run(
		thread.pk,
		ns,
		packId(id),
		packId(taskId),
		generation,
		idx,
		taskPath ?? null,
		channel,
		runId ?? null,
		actor ?? null,
		type ?? null,
		addSums(own, sumOfThread(thread.pk)),
		// better-sqlite3 binds a number as a float unless it is told otherwise, and a column of type ANY keeps that.
		typeof value === "number" ? BigInt(value) : value,
	);
	return own;
}

export function putBase(session: SqliteSession, thread: SqlThread, { ns, id, channel, data }: DeltaBaseRow): void {
	const place = [thread.pk, ns, packId(id), channel];
	const older = session.sql.getBaseSum.get(...place) as { sum: number } | undefined;
	const own = sumOfBase(ns, id, channel);
	session.sql.putBase.run(...place, addSums(own, sumOfThread(thread.pk)), data);
	addToTotal(session, thread, ns, id, "bases", older === undefined ? own : subtractSums(own, ownSum(older, thread)));
}

/** Keeps account of writes or bases at a checkpoint: in its row, or, as long as it has none, in the thread's. */
export function addToTotal(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
	total: Total,
	change: number,
): void {
	if (change === 0) return;
	const add = total === "writes" ? session.sql.addToWrites : session.sql.addToBases;
	if (add.run({ change, thread: thread.pk, ns, id }).changes === 0) thread.loose = addSums(thread.loose, change);
}

/** The totals of what is there for a checkpoint that is about to have a row. */
export function takeLoose(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
): { writes: number; bases: number } {
	if (thread.loose === 0) return { writes: 0, bases: 0 };
	return {
		writes: totalOf(session.sql.getWrites.all(thread.pk, ns, packId(id)), thread),
		bases: totalOf(session.sql.getBases.all(thread.pk, ns, packId(id)), thread),
	};
}

/** What rows of a thread add to a total. */
export function totalOf(rows: readonly unknown[], thread: SqlThread): number {
	return (rows as { sum: number }[]).reduce((total, row) => addSums(total, ownSum(row, thread)), 0);
}

/** How many rows there are, and their sums as SQLite adds them up. */
export interface SumCount {
	readonly count: number;
	/** Null if there are none. */
	readonly sums: number | null;
}

/** The same for rows that SQLite has counted. */
export function totalOfCount({ count, sums }: SumCount, thread: SqlThread): number {
	return ((sums ?? 0) - count * sumOfThread(thread.pk)) | 0;
}

/** A sum without what belonging to the thread adds to it. */
export function ownSum({ sum }: { sum: number }, thread: SqlThread): number {
	return subtractSums(sum, sumOfThread(thread.pk));
}

/** The bytes of a value have a checksum of their own; the number of a blob has none. */
export function sumOfWrite(row: WriteRow): number {
	const { ns, id, taskId, generation, idx, taskPath, channel, runId, actor, type, value } = row;
	const number = typeof value === "number" ? value : undefined;
	return sumOf("write", ns, id, taskId, generation, idx, taskPath, channel, runId, actor, type, number);
}

export function sumOfBase(ns: string, id: string, channel: string): number {
	return sumOf("base", ns, id, channel);
}

export function toWrite(row: unknown, thread: SqlThread): WriteRow {
	const found = row as SqlWrite;
	const { ns, checkpoint, task, generation, idx, task_path, channel, run_id, actor, type, value } = found;
	const write = {
		threadId: thread.thread_id,
		ns,
		id: unpackId(checkpoint),
		taskId: unpackId(task),
		generation,
		idx,
		taskPath: task_path ?? undefined,
		channel,
		runId: run_id ?? undefined,
		actor: actor ?? undefined,
		type: type ?? undefined,
		value,
	};
	if (ownSum(found, thread) !== sumOfWrite(write)) throw damaged("write", write, write);
	return write;
}

function toBase(row: unknown, thread: SqlThread): DeltaBaseRow {
	const found = row as SqlBase;
	const { ns, checkpoint, channel, data } = found;
	const base = { threadId: thread.thread_id, ns, id: unpackId(checkpoint), channel, data };
	if (ownSum(found, thread) !== sumOfBase(ns, base.id, channel)) throw damaged("delta base", base, base);
	return base;
}

function damaged(
	kind: string,
	{ threadId, ns, id }: CheckpointKey,
	what: Place & { channel: string },
): CheckpointError {
	const { channel, taskId, idx, generation } = what;
	return new CheckpointError(
		"CORRUPT",
		`A ${kind} of channel ${quote(channel)} at checkpoint ${quote(id)} in thread ${quote(threadId)}, namespace ${quote(ns)}, is damaged: call repair().`,
		{ place: { threadId, ns, checkpointId: id, channel, taskId, idx, generation } },
	);
}
