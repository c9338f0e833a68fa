import { CheckpointError, type Place, quote } from "../errors.ts";
import { inGeneration } from "./new-write.ts";
import { type PackedId, packId, unpackId } from "./sqlite-ids.ts";
import type { FreshCheckpoint, SqliteSession, TaskWrite } from "./sqlite-session.ts";
import { addSums, NO_WRITES, subtractSums, sumOf, sumOfThread } from "./sqlite-sums.ts";
import { findThread, type SqlThread } from "./sqlite-threads.ts";
import type { CheckpointKey, DeltaBaseRow, NewWrite, StoredValue, WriteRow } from "./storage.ts";

interface SqlWrite {
	thread: number;
	ns: string;
	checkpoint: PackedId;
	task: PackedId;
	generation: number;
	idx: number;
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

/** Writes of a fresh checkpoint that are kept for whoever reads it next. */
const MOST_KEPT = 8;

/** Which total of a checkpoint's row. */
type Total = "writes" | "bases";

/** All writes of a checkpoint. */
export function findWritesOf(session: SqliteSession, key: CheckpointKey): WriteRow[] {
	const recent = findRecentWrites(session, key);
	if (recent !== undefined) return recent;
	const thread = findThread(session, key.threadId);
	return thread === undefined ? [] : findWrites(session, thread, key.ns, key.id);
}

/** The same by a single statement, if the checkpoint was read just now and nothing has changed since. */
export function findRecentWrites(session: SqliteSession, { threadId, ns, id }: CheckpointKey): WriteRow[] | undefined {
	const expected = session.takeExpected({ threadId, ns, id });
	if (expected !== undefined) return [...expected];
	const recent = session.recent.get(threadId, ns, id);
	if (recent === undefined) return undefined;
	const rows = session.sql.getWrites.all(recent.thread.pk, ns, packId(id));
	if (addSums(totalOf(rows, recent.thread), NO_WRITES) !== recent.writes) return undefined;
	return rows.map((row) => toWrite(row, recent.thread));
}

/** All writes of a checkpoint: as many as its row says that there are. */
export function findWrites(session: SqliteSession, thread: SqlThread, ns: string, id: string): WriteRow[] {
	const rows = session.sql.getWrites.all(thread.pk, ns, packId(id));
	const stored = storedTotal(session, thread, ns, id, "writes");
	checkTotal(rows, thread, stored === undefined ? undefined : subtractSums(stored, NO_WRITES), { ns, id });
	return rows.map((row) => toWrite(row, thread));
}

export function findBases(session: SqliteSession, thread: SqlThread, ns: string, id: string): DeltaBaseRow[] {
	const rows = session.sql.getBases.all(thread.pk, ns, packId(id));
	checkTotal(rows, thread, storedTotal(session, thread, ns, id, "bases"), { ns, id });
	return rows.map((row) => toBase(row, thread));
}

/** Of checkpoints without a row nobody keeps a total. */
function storedTotal(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
	total: Total,
): number | undefined {
	const row = session.sql.getCheckpoint.get(thread.pk, ns, id) as Record<Total, number> | undefined;
	return row?.[total];
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
	return rowsOfThread(session, thread).writes.map((row) => toWrite(row, thread));
}

export function findThreadBases(session: SqliteSession, thread: SqlThread): DeltaBaseRow[] {
	return rowsOfThread(session, thread).bases.map((row) => toBase(row, thread));
}

function rowsOfThread(session: SqliteSession, thread: SqlThread): { writes: unknown[]; bases: unknown[] } {
	const writes = session.sql.getThreadWrites.all(thread.pk);
	const bases = session.sql.getThreadBases.all(thread.pk);
	checkThreadTotal(session, thread, totalOf([...writes, ...bases], thread));
	return { writes, bases };
}

/** Throws unless the total over all writes and delta bases of a thread is what its checkpoints and itself say. */
export function checkThreadTotal(session: SqliteSession, thread: SqlThread, total: number): void {
	const stored = session.sql.getTotals.get(thread.pk) as { total: number | null };
	const expected = addSums(Number(BigInt.asIntN(32, BigInt(stored.total ?? 0))), thread.loose);
	if (total !== expected) throw missing(thread);
}

/** Stores writes of one task. Answers the values of those that were dropped. */
export function putWrites(session: SqliteSession, thread: SqlThread, writes: readonly NewWrite[]): Set<unknown> {
	const dropped = new Set<unknown>();
	const [first] = writes;
	if (first === undefined) return dropped;
	const { ns, id } = first;
	const place = taskOf(thread, first);
	const fresh = session.findFresh(thread.pk, ns, id);
	const known = fresh === undefined ? session.sql.getTaskWrites.all(...place) : (fresh.tasks.get(first.taskId) ?? []);
	const before = known as readonly TaskWrite[];
	const after = [...before];
	// Of more than one task, or of many writes, nobody will ask for the rows.
	const others = fresh === undefined ? 0 : fresh.tasks.size - (fresh.tasks.has(first.taskId) ? 1 : 0);
	const isKept = fresh !== undefined && others === 0 && writes.length <= MOST_KEPT;
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	const taken = new Map<number, number>();
	let change = 0;
	for (const write of writes) {
		const { conflict } = write;
		const isTaken = taken.has(write.idx) || (conflict === "drop" && before.some((row) => row.idx === write.idx));
		if (isTaken && conflict !== "replace") {
			dropped.add(write.value);
			continue;
		}
		const generation = conflict === "add" ? next : 0;
		const older = before.find((row) => row.generation === generation && row.idx === write.idx);
		if (taken.has(write.idx)) change = subtractSums(change, taken.get(write.idx) as number);
		else if (older !== undefined) change = subtractSums(change, ownSum(older, thread));
		const row = inGeneration(write, generation);
		const sum = addWrite(session, thread, row, place);
		taken.set(write.idx, sum);
		change = addSums(change, sum);
		const entry = {
			generation,
			idx: write.idx,
			sum: addSums(sum, sumOfThread(thread.pk)),
			row: isKept ? row : undefined,
		};
		const at = after.findIndex((row) => row.generation === generation && row.idx === write.idx);
		after.splice(at < 0 ? after.length : at, 1, entry);
	}
	if (fresh === undefined) addToTotal(session, thread, ns, id, "writes", change);
	else {
		fresh.tasks.set(first.taskId, after);
		fresh.writes = addSums(fresh.writes, change);
		if (change !== 0) session.sql.setWrites.run(fresh.writes, fresh.pk);
	}
	return dropped;
}

/** The writes of a checkpoint in their order, if they are all of one task and none is unknown. */
export function knownWrites({ tasks }: FreshCheckpoint): WriteRow[] | undefined {
	if (tasks.size > 1) return undefined;
	const [entries = []] = tasks.values();
	const ordered = [...entries].sort((a, b) => a.generation - b.generation || a.idx - b.idx);
	const rows = ordered.flatMap(({ row }) =>
		row === undefined ? [] : { ...row, value: typeof row.value === "number" ? row.value : asRead(row.value) },
	);
	return rows.length === entries.length ? rows : undefined;
}

/** Bytes as the database would answer them. */
export function asRead(bytes: Uint8Array): Buffer {
	return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** The first columns of all writes of a task. */
function taskOf({ pk }: SqlThread, { ns, id, taskId }: CheckpointKey & { taskId: string }): unknown[] {
	return [pk, ns, packId(id), packId(taskId)];
}

/** Answers what the row adds to the total of its checkpoint. */
export function addWrite(session: SqliteSession, thread: SqlThread, row: WriteRow, task = taskOf(thread, row)): number {
	const { generation, idx, channel, runId, actor, type, value } = row;
	const own = sumOfWrite(row);
	session.sql.putWrite.run(
		...task,
		generation,
		idx,
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
	const { ns, id, taskId, generation, idx, channel, runId, actor, type, value } = row;
	const number = typeof value === "number" ? value : undefined;
	return sumOf("write", ns, id, taskId, generation, idx, channel, runId, actor, type, number);
}

export function sumOfBase(ns: string, id: string, channel: string): number {
	return sumOf("base", ns, id, channel);
}

export function toWrite(row: unknown, thread: SqlThread): WriteRow {
	const found = row as SqlWrite;
	const { ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value } = found;
	const write = {
		threadId: thread.thread_id,
		ns,
		id: unpackId(checkpoint),
		taskId: unpackId(task),
		generation,
		idx,
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
