import { CheckpointError, quote } from "../../errors.ts";
import { compareRows } from "../compare-rows.ts";
import type { FoundCheckpoint, HeadPieces, ScanQuery } from "../storage.ts";
import { checkCheckpoint, findLatest, type SqlCheckpoint, toCheckpoint } from "./checkpoints.ts";
import { sqlOfHead } from "./heads.ts";
import { packSource } from "./ids.ts";
import { hasAllRows, proveAll, proveKeys } from "./proofs.ts";
import type { SqliteSession } from "./session.ts";
import { CHECKPOINT, ROWS, SOUND_ROWS } from "./statements.ts";
import { findThread, getThreadByPk, type SqlThread } from "./threads.ts";

/** The keys of all checkpoints. */
const KEYS = "(SELECT thread_pk AS thread, key_ns AS ns, key_id AS id FROM delta_key WHERE row_pk > 0)";

/** A row and its thread. */
type Found = readonly [SqlCheckpoint, SqlThread];

/** A page of checkpoints. */
export function scan(session: SqliteSession, query: ScanQuery): FoundCheckpoint[] {
	return findPage(session, query).map(([row, thread]) => toCheckpoint(session, thread, row));
}

/** Where more than the newest is asked for, it is proven that the index has all of them. */
function findPage(session: SqliteSession, query: ScanQuery): Found[] {
	if (query.threadId === undefined) return findAll(session, query);
	const thread = findThread(session, query.threadId);
	if (thread === undefined) return [];
	const { ns, before, after, limit } = query;
	if (limit === 1 && ns !== undefined && before === undefined && after === undefined) {
		const row = findLatest(session, thread, ns);
		return row === undefined ? [] : [[row, thread]];
	}
	proveKeys(session, thread);
	const where = new Conditions();
	addFilters(where, query);
	// Where nothing is asked of rows, keys tell it all. If a row is lost, it is found when it is read.
	const isSound = where.isEmpty || hasAllRows(session, thread);
	const from = where.isEmpty ? "delta_key" : isSound ? SOUND_ROWS : ROWS;
	if (!isSound) where.orElse("pk IS NULL");
	where.add("thread_pk = ? AND row_pk > 0", thread.pk);
	if (ns !== undefined) where.add("key_ns = ?", ns);
	if (before !== undefined) where.add("key_id < ?", before);
	if (after !== undefined) {
		// With the same id as the last one there can be others only in namespaces behind it, if its thread is this one.
		const { ns: last, id, threadId } = after;
		const rest = threadId < query.threadId ? "TRUE" : threadId > query.threadId ? "FALSE" : "key_ns > ?";
		where.add(`key_id <= ? AND (key_id < ? OR ${rest})`, id, id, ...(rest === "key_ns > ?" ? [last] : []));
	}
	const order = "ORDER BY key_id DESC, key_ns";
	// A short thread is sorted at once.
	const rows =
		thread.checkpoints <= limit
			? session.prepare(`${CHECKPOINT} WHERE ${where.text} ${order}`).all(...where.parameters)
			: find(session, `thread_pk AS thread, key_ns AS ns, key_id AS id FROM ${from}`, where, order, limit);
	return rows.map((row) => [checkCheckpoint(row, thread), thread]);
}

/** Checkpoints of all threads, which nothing but people ask for. */
function findAll(session: SqliteSession, query: ScanQuery): Found[] {
	const { ns, before, after, limit } = query;
	proveAll(session);
	const hasCopies = session.sql.getCopy.get() !== undefined;
	const where = new Conditions();
	addFilters(where, query, hasCopies);
	const from = where.isEmpty ? KEYS : "delta_checkpoint";
	if (ns !== undefined) where.add("ns = ?", ns);
	if (before !== undefined) where.add("id < ?", before);
	const name = "(SELECT thread_id FROM delta_thread t WHERE t.pk = thread)";
	if (after !== undefined)
		where.add(`id <= ? AND (id < ? OR (${name}, ns) > (?, ?))`, after.id, after.id, after.threadId, after.ns);
	if (session.sql.getGone.get() !== undefined) where.add("thread NOT IN (SELECT thread FROM delta_gone)");
	const threads = new Map<number, SqlThread>();
	const toFound = (row: unknown): Found => {
		const { thread: pk, id } = row as SqlCheckpoint;
		const thread = threads.get(pk) ?? getThreadByPk(session, pk);
		if (thread === undefined) throw threadless(id);
		threads.set(pk, thread);
		return [checkCheckpoint(row, thread), thread];
	};
	// Copies have the ids of their originals.
	const keys = `thread, ns, id FROM ${from}`;
	const rows = hasCopies ? undefined : findById(session, keys, where, limit);
	if (rows === undefined) return find(session, keys, where, `ORDER BY id DESC, ${name}, ns`, limit).map(toFound);
	return rows
		.map(toFound)
		.sort(([a, { thread_id: first }], [b, { thread_id: second }]) =>
			compareRows({ threadId: first, ns: a.ns, id: a.id }, { threadId: second, ns: b.ns, id: b.id }),
		);
}

/**
 * The first rows by their ids alone, which is quicker than to look up the name of every thread for the sake of copies.
 * Nothing if some with the last id would be left out, since others of them may come first.
 */
function findById(session: SqliteSession, keys: string, where: Conditions, limit: number): unknown[] | undefined {
	const rows = find(session, keys, where, "ORDER BY id DESC", limit + 1) as SqlCheckpoint[];
	if (rows.length <= limit) return rows;
	return rows[limit]?.id === rows[limit - 1]?.id ? undefined : rows.slice(0, limit);
}

function threadless(id: string): CheckpointError {
	return new CheckpointError("CORRUPT", `The row of checkpoint ${quote(id)} belongs to no thread: call repair().`);
}

/** Leaves out what can't match. */
function addFilters(where: Conditions, { labels = {}, contains }: ScanQuery, hasCopies = true): void {
	const { source, step } = labels;
	if (typeof source === "string") where.add("source = ?", packSource(source));
	if (Number.isSafeInteger(step)) where.add("step = ?", step);
	for (const piece of contains?.pieces ?? []) {
		const { ifStartsWith } = contains as HeadPieces;
		const values = ifStartsWith === undefined ? [piece] : [piece, ifStartsWith, endOf(ifStartsWith)];
		const isOther = (head: string) => (ifStartsWith === undefined ? "" : ` OR ${head} < ? OR ${head} >= ?`);
		const isPossible = (head: string) => `(instr(${head}, ?) > 0${isOther(head)})`;
		if (hasCopies) where.add(sqlOfHead(isPossible), ...values, ...values);
		else where.add(isPossible("head"), ...values);
	}
}

/** Bytes that come after all that begin with these, and before all others that come after them. */
function endOf(start: Uint8Array): Uint8Array {
	const end = Uint8Array.from(start);
	const last = end.findLastIndex((byte) => byte < 0xff);
	if (last < 0) throw new RangeError("Nothing comes after these bytes.");
	end[last] = (end[last] as number) + 1;
	return end.subarray(0, last + 1);
}

/** Rows are chosen by their keys alone, and then read: sorting them whole would take their bytes along. */
function find(session: SqliteSession, keys: string, where: Conditions, order: string, limit: number): unknown[] {
	const statement = session.prepare(`SELECT ${keys} WHERE ${where.text} ${order} LIMIT ?`);
	const found = statement.all(...where.parameters, limit) as { thread: number; ns: string; id: string }[];
	return found.map(({ thread, ns, id }) => {
		const row = session.sql.getCheckpoint.get(thread, ns, id);
		if (row === undefined) throw threadless(id);
		return row;
	});
}

class Conditions {
	readonly #conditions: string[] = [];
	readonly parameters: unknown[] = [];

	get isEmpty(): boolean {
		return this.#conditions.length === 0;
	}

	get text(): string {
		return this.#conditions.join(" AND ") || "TRUE";
	}

	/** Makes all so far one condition, which another one may take the place of. */
	orElse(other: string): void {
		this.#conditions.splice(0, Number.POSITIVE_INFINITY, `((${this.text}) OR ${other})`);
	}

	add(condition: string, ...values: unknown[]): void {
		this.#conditions.push(condition);
		this.parameters.push(...values);
	}
}
