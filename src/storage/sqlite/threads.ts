import { CheckpointError, quote } from "../../errors.ts";
import type { ThreadRow } from "../storage.ts";
import { startProofs } from "./proofs.ts";
import { Outdated, type SqliteSession } from "./session.ts";
import { sumOf } from "./sums.ts";

/** Milliseconds, as a power of two: threads are indexed by the hour or so of their last change, not by its moment, which would move them within the index all the time. */
const ERA = 2 ** 22;

/** A row of `delta_thread` with the totals of the thread. What may change is changed here first, and then saved. */
export interface SqlThread {
	/** The number that the thread was given when it was made; no other thread ever has it. */
	readonly pk: number;
	readonly thread_id: string;
	readonly family: number;
	readonly created_at: number;
	/** Of what never changes. */
	readonly name_sum: number;
	stamp: number;
	updated_at: number;
	era: number;
	checkpoints: number;
	head: string | null;
	/** Totals over the entries of the indexes of its checkpoints. */
	keys: number;
	forks: number;
	/** Total over its writes and delta bases whose checkpoint has no row; the others are in the totals of that row. */
	loose: number;
	/** Of what does. */
	sum: number;
}

/** The thread with this id. That there is none is believed only if two indexes say so. */
export function findThread(session: SqliteSession, threadId: string): SqlThread | undefined {
	const row = session.sql.getThread.get(threadId);
	if (row !== undefined) return checkThread(row);
	const hidden = session.sql.getThreadsByHash.all(hashOf(threadId)) as SqlThread[];
	if (hidden.some(({ thread_id }) => thread_id === threadId)) throw damaged(threadId);
	return undefined;
}

export function getThreadByPk(session: SqliteSession, pk: number): SqlThread | undefined {
	const row = session.sql.getThreadByPk.get(pk);
	return row === undefined ? undefined : checkThread(row);
}

/** Throws unless a row is as it was saved. */
export function checkThread(row: unknown): SqlThread {
	const thread = row as SqlThread;
	const isSound = thread.name_sum === sumOfName(thread) && thread.sum === sumOfTotals(thread);
	if (!isSound || thread.era !== eraOf(thread.updated_at)) throw damaged(thread.thread_id);
	return thread;
}

function damaged(threadId: string): CheckpointError {
	return new CheckpointError("CORRUPT", `The row of thread ${quote(threadId)} is damaged: call repair().`, {
		place: { threadId },
	});
}

export function createThread(
	session: SqliteSession,
	{ threadId, family, stamp, now }: { threadId: string; family: number; stamp: number; now: number },
): SqlThread {
	const thread = emptyThread(stamp, threadId, family, now);
	startProofs(session, thread);
	insertThread(session, thread);
	return thread;
}

/** Adds the rows of a thread, to be saved afterwards. */
export function insertThread({ sql }: SqliteSession, thread: SqlThread): void {
	const { pk, thread_id, family, created_at, updated_at, name_sum } = thread;
	sql.insertThread.run(pk, thread_id, hashOf(thread_id), family, created_at, eraOf(updated_at), name_sum);
	sql.insertTotals.run(pk);
	thread.sum = 0;
}

/** A thread without rows, to be saved. */
export function emptyThread(pk: number, thread_id: string, family: number, now: number): SqlThread {
	return {
		pk,
		thread_id,
		family,
		created_at: now,
		name_sum: sumOfName({ pk, thread_id, family, created_at: now }),
		stamp: pk,
		updated_at: now,
		era: eraOf(now),
		checkpoints: 0,
		head: null,
		keys: 0,
		forks: 0,
		loose: 0,
		sum: 0,
	};
}

/** Throws if the totals are no longer as they were when they were read, or saved last. */
export function saveThread(session: SqliteSession, thread: SqlThread): void {
	const { pk, stamp, updated_at, checkpoints, head, keys, forks, loose, sum: before } = thread;
	const sum = sumOfTotals(thread);
	const { saveTotals } = session.sql;
	const saved = saveTotals.run(stamp, updated_at, checkpoints, head, keys, forks, loose, sum, pk, before);
	if (saved.changes === 0) throw new Outdated();
	thread.sum = sum;
	const era = eraOf(updated_at);
	if (era !== thread.era) session.sql.setEra.run(era, pk);
	thread.era = era;
}

/** What the sum of a row must be. */
export function sumOfName({ pk, thread_id, family, created_at }: ThreadName): number {
	return sumOf("thread", pk, thread_id, family, created_at);
}

type ThreadName = Pick<SqlThread, "pk" | "thread_id" | "family" | "created_at">;

/** What the sum of a thread's totals must be. */
export function sumOfTotals({ pk, stamp, updated_at, checkpoints, head, keys, forks, loose }: ThreadTotals): number {
	return sumOf("totals", pk, stamp, updated_at, head, checkpoints, keys, forks, loose);
}

/** What changes of a thread. */
export type ThreadTotals = Omit<SqlThread, keyof ThreadName | "name_sum" | "era" | "sum"> & Pick<SqlThread, "pk">;

export function hashOf(threadId: string): number {
	return sumOf("thread id", threadId);
}

export function eraOf(time: number): number {
	return Math.floor(time / ERA);
}

export function toThread(row: unknown): ThreadRow {
	const { thread_id, family, stamp, created_at, updated_at, checkpoints, head } = checkThread(row);
	return {
		threadId: thread_id,
		family,
		stamp,
		createdAt: created_at,
		updatedAt: updated_at,
		checkpoints,
		head: head ?? undefined,
	};
}
