import { CheckpointError, quote } from "../../errors.ts";
import { compareIds } from "../compare-ids.ts";
import { keepBytes, readBytes } from "../memory/kept-bytes.ts";
import type { CheckpointRow, FoundCheckpoint } from "../storage.ts";
import { handOn } from "./heads.ts";
import {
	type PackedId,
	type PackedSource,
	packId,
	packOptional,
	packSource,
	unpackOptional,
	unpackSource,
} from "./ids.ts";
import { keepProof, proveForks, proveKeys } from "./proofs.ts";
import { spreadPending } from "./put-writes.ts";
import type { FreshCheckpoint, SqliteSession } from "./session.ts";
import { addSums, NO_WRITES, subtractSums, sumOf, sumOfFork, sumOfKey, sumOfThread } from "./sums.ts";
import type { SqlThread } from "./threads.ts";
import { asBuffer, takeLoose } from "./writes.ts";

export interface SqlCheckpoint {
	pk: number;
	thread: number;
	ns: string;
	id: string;
	parent: PackedId | null;
	/**
	 * 0 if it comes right after its parent in the order of ids, or is the first and has none: then it is found there. All
	 * others, 1, are in an index by their parents; a thread that nobody took back in time needs none.
	 */
	fork: number;
	run_id: string | null;
	source: PackedSource | null;
	step: number | null;
	/** Totals over its writes and delta bases. */
	writes: number;
	bases: number;
	sum: number;
	/** Writes that have no rows of their own, see `sqlite-pending.ts`. */
	pending: Uint8Array | null;
	/** Null if it is another row's and that one is lost, see `sqlite-heads.ts`. */
	head: Uint8Array;
}

/** What is left of a row that was removed, or was made. */
export interface Entry {
	pk: number;
	ns: string;
	id: string;
	parent: PackedId | null;
	fork: number;
	bytes: number;
	/** How many writes stand in it. */
	pendingWrites: number;
}

export function findCheckpoint(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
): SqlCheckpoint | undefined {
	const row = session.sql.getCheckpoint.get(thread.pk, ns, id);
	if (row !== undefined) return checkCheckpoint(row, thread);
	proveKeys(session, thread);
	return undefined;
}

export function findLatest(session: SqliteSession, thread: SqlThread, ns: string): SqlCheckpoint | undefined {
	const row = session.sql.getLatest.get(thread.pk, ns) as SqlCheckpoint | undefined;
	// The thread names the newest of its root; of other namespaces the index must tell.
	if (ns !== "") proveKeys(session, thread);
	else if (thread.head !== (row?.id ?? null)) throw damaged(thread, ns, thread.head ?? (row?.id as string));
	return row && checkCheckpoint(row, thread);
}

export function findChildren(session: SqliteSession, thread: SqlThread, ns: string, parentId: string): SqlCheckpoint[] {
	proveKeys(session, thread);
	proveForks(session, thread);
	const found = session.sql.getNext.get(thread.pk, ns, parentId);
	const next = found === undefined ? undefined : checkCheckpoint(found, thread);
	const forks = session.sql.getForks.all(thread.pk, ns, packId(parentId)).map((row) => checkCheckpoint(row, thread));
	return next?.fork === 0 && unpackOptional(next.parent) === parentId ? [next, ...forks] : forks;
}

/** The greatest id of a namespace, as its keys have it. */
export function newestId(session: SqliteSession, thread: SqlThread, ns: string): string | undefined {
	return (session.sql.getNewestId.get(thread.pk, ns) as { id: string | null }).id ?? undefined;
}

/** The newest checkpoint of a thread, if this connection has added it and nobody has changed anything since. */
export function findFreshHead(session: SqliteSession, thread: SqlThread, ns: string): FoundCheckpoint | undefined {
	if (ns !== "" || thread.head === null) return undefined;
	const fresh = session.findFresh(thread, ns, thread.head);
	if (fresh === undefined) return undefined;
	const { threadId, id, parentId, runId, source, step } = fresh.row;
	session.recent.set(id, { thread, ns, writes: fresh.writes, runId, pending: fresh.pending ?? null });
	const head = asBuffer(readBytes(fresh.head));
	return { threadId, stamp: thread.stamp, ns, id, parentId, runId, source, step, head };
}

/** Throws unless a row is as it was stored. */
export function checkCheckpoint(row: unknown, thread: SqlThread): SqlCheckpoint {
	const found = row as SqlCheckpoint;
	const isSound = found.thread === thread.pk && found.sum === sumOfCheckpoint(found) && found.head !== null;
	if (!isSound) throw damaged(thread, found.ns, found.id);
	return found;
}

/** What the sum of a row must be. */
export function sumOfCheckpoint({ thread, ns, id, parent, fork, run_id, source, step }: SqlCheckpoint): number {
	const columns = { ns, id, parentId: unpackOptional(parent), fork, runId: run_id, source: unpackSource(source), step };
	return sumOfRow(thread, columns);
}

function damaged({ thread_id: threadId }: SqlThread, ns: string, id: string): CheckpointError {
	return new CheckpointError(
		"CORRUPT",
		`The row of checkpoint ${quote(id)} in thread ${quote(threadId)}, namespace ${quote(ns)}, is damaged or missing: call repair().`,
		{ place: { threadId, ns, checkpointId: id } },
	);
}

type Columns = Pick<CheckpointRow, "ns" | "id" | "parentId"> & { readonly fork: number } & {
	readonly [K in "runId" | "source" | "step"]: CheckpointRow[K] | null;
};

function sumOfRow(thread: number, { ns, id, parentId, fork, runId, source, step }: Columns): number {
	return addSums(sumOf("checkpoint", ns, id, parentId, fork, runId, source, step), sumOfThread(thread));
}

/** @param session where it is remembered, since its writes will be asked for next */
export function toCheckpoint(session: SqliteSession, thread: SqlThread, row: SqlCheckpoint): FoundCheckpoint {
	const { ns, id, parent, run_id, source, step, writes, pending, head } = row;
	const runId = run_id ?? undefined;
	session.recent.set(id, { thread, ns, writes, runId, pending });
	return {
		threadId: thread.thread_id,
		stamp: thread.stamp,
		ns,
		id,
		parentId: unpackOptional(parent),
		runId,
		source: unpackSource(source),
		step: step ?? undefined,
		head,
	};
}

/** Adds a row to a thread, whose own row is to be saved afterwards. Answers nothing if the key is taken. */
export function addCheckpoint(
	session: SqliteSession,
	thread: SqlThread,
	row: CheckpointRow,
): FreshCheckpoint | undefined {
	const { threadId, ns, id, parentId, runId, source, step, head } = row;
	const loose = takeLoose(session, thread, ns, id);
	const newest = ns === "" ? (thread.head ?? undefined) : newestId(session, thread, ns);
	const isLast = newest === undefined || compareIds(newest, id) < 0;
	const fork = isLast && newest === parentId ? 0 : 1;
	const writes = addSums(NO_WRITES, loose.writes);
	const sum = sumOfRow(thread.pk, { ns, id, parentId, fork, runId, source, step });
	const parent = packOptional(parentId);
	const { lastInsertRowid } = session.sql.insertCheckpoint.run(
		thread.pk,
		ns,
		id,
		parent,
		fork,
		runId ?? null,
		packSource(source),
		step ?? null,
		writes,
		loose.bases,
		sum,
		head,
	);
	const pk = Number(lastInsertRowid);
	if (session.sql.insertKey.run(thread.pk, ns, id, pk).changes === 0) {
		session.sql.removeCheckpoint.run(pk);
		return undefined;
	}
	if (!isLast) separate(session, thread, ns, id);
	thread.loose = subtractSums(thread.loose, addSums(loose.writes, loose.bases));
	countIn(session, thread, { pk, ns, id, parent, fork });
	return {
		pk,
		row: { threadId, ns, id, parentId, runId, source, step },
		head: keepBytes(head),
		runId,
		sum,
		writes,
		pending: writes === NO_WRITES ? [] : undefined,
		tasks: undefined,
	};
}

/** A row that is put between two others, or removed there, may part a child from its parent. */
export function separate(session: SqliteSession, thread: SqlThread, ns: string, id: string): void {
	const next = session.sql.getNext.get(thread.pk, ns, id) as SqlCheckpoint | undefined;
	if (next?.fork === 0) relinkCheckpoint(session, thread, ns, next.id, unpackOptional(next.parent));
}

/** Puts a row in the place of the one with its key, whose parent it keeps. */
export function replaceCheckpoint(session: SqliteSession, thread: SqlThread, row: CheckpointRow): void {
	const { ns, id, runId, source, step, head } = row;
	const { pk, parent, fork, run_id } = checkCheckpoint(session.sql.getCheckpoint.get(thread.pk, ns, id), thread);
	// What stands in a row is of its own run.
	if (run_id !== (runId ?? null)) spreadPending(session, thread, ns, id);
	const sum = sumOfRow(thread.pk, { ns, id, parentId: unpackOptional(parent), fork, runId, source, step });
	handOn(session, thread, [pk]);
	session.sql.updateCheckpoint.run(runId ?? null, packSource(source), step ?? null, sum, head, pk);
}

export function relinkCheckpoint(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
	parentId: string | undefined,
): void {
	const row = findCheckpoint(session, thread, ns, id);
	if (row === undefined) return;
	const { pk, run_id: runId, source, step } = row;
	const columns = { ns, id, parentId, fork: 1, runId, source: unpackSource(source), step };
	session.sql.relink.run(packOptional(parentId), sumOfRow(thread.pk, columns), pk);
	const before = sumOfFork(row);
	const after = sumOfFork({ ...row, parent: packOptional(parentId), fork: 1 });
	setForks(session, thread, addSums(thread.forks, subtractSums(after, before)));
}

/** Counts a row that was added to a thread. */
export function countIn(
	session: SqliteSession,
	thread: SqlThread,
	entry: Pick<Entry, "pk" | "ns" | "id" | "parent" | "fork">,
): void {
	const { ns, id } = entry;
	thread.checkpoints++;
	setKeys(session, thread, addSums(thread.keys, sumOfKey(ns, id)));
	setForks(session, thread, addSums(thread.forks, sumOfFork(entry)));
	if (ns === "" && (thread.head === null || compareIds(thread.head, id) < 0)) thread.head = id;
}

/** Counts rows of a namespace that were removed; the thread's head is to be found anew. */
export function countOut(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	ids: readonly string[],
	forks: readonly Pick<Entry, "ns" | "parent" | "pk" | "fork">[],
): void {
	thread.checkpoints -= ids.length;
	const keys = ids.reduce((total, id) => subtractSums(total, sumOfKey(ns, id)), thread.keys);
	setKeys(session, thread, keys);
	setForks(
		session,
		thread,
		forks.reduce((total, fork) => subtractSums(total, sumOfFork(fork)), thread.forks),
	);
}

function setKeys(session: SqliteSession, thread: SqlThread, total: number): void {
	keepProof(session.keys, thread, thread.keys, total);
	keepProof(session.rows, thread, thread.keys, total);
	thread.keys = total;
}

function setForks(session: SqliteSession, thread: SqlThread, total: number): void {
	keepProof(session.forks, thread, thread.forks, total);
	thread.forks = total;
}
