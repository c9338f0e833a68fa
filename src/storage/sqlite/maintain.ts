import type { CheckpointKey, CopyBatch, RemoveBatch, Replacement, RowCount, WriteKey } from "../storage.ts";
import type { SqliteDatabase, SqliteSession } from "./driver.ts";
import { addCheckpoint, addThread, findPk, putBase, putWrite, replaceCheckpoint } from "./put.ts";

const GET_STAMP = "SELECT family, stamp FROM delta_threads WHERE thread_id = ?";

/** Rows of checkpoints that a list names. */
const LISTED = "SELECT value FROM json_each(?)";
const COUNT_CHECKPOINTS = `SELECT count(head) AS checkpoints, ifnull(sum(length(head)), 0) AS bytes
	FROM delta_checkpoints WHERE pk IN (${LISTED})`;
const COUNT_WRITES = `SELECT count(*) AS writes, ifnull(sum(length(value)), 0) AS bytes
	FROM delta_writes WHERE checkpoint_pk IN (${LISTED})`;
const REMOVE_CHECKPOINTS = `DELETE FROM delta_checkpoints WHERE pk IN (${LISTED})`;
const REMOVE_WRITES = `DELETE FROM delta_writes WHERE checkpoint_pk IN (${LISTED})`;
const REMOVE_BASES = `DELETE FROM delta_bases WHERE checkpoint_pk IN (${LISTED})`;

const WRITE_PLACE = "checkpoint_pk = ? AND task_id = ? AND generation = ? AND idx = ?";
const REMOVE_WRITE = `DELETE FROM delta_writes WHERE ${WRITE_PLACE} RETURNING length(value) AS bytes`;
const REMOVE_EMPTY = `DELETE FROM delta_checkpoints WHERE thread_id = ? AND head IS NULL
	AND NOT EXISTS (SELECT 1 FROM delta_writes WHERE checkpoint_pk = pk)
	AND NOT EXISTS (SELECT 1 FROM delta_bases WHERE checkpoint_pk = pk)`;
const RESTAMP = `UPDATE delta_threads SET stamp = ?, checkpoints = checkpoints + ?, newest = (
		SELECT checkpoint_id FROM delta_checkpoints c
		WHERE c.thread_id = delta_threads.thread_id AND ns = '' AND head IS NOT NULL ORDER BY checkpoint_id DESC LIMIT 1
	) WHERE thread_id = ?`;
const REMOVE_THREAD = "DELETE FROM delta_threads WHERE thread_id = ?";
const REMOVE_BLOB = "DELETE FROM delta_blobs WHERE id = ? AND family = ?";

const LIST_PKS = "SELECT pk FROM delta_checkpoints WHERE thread_id = ?";
/** Of the source those that are listed, or all. */
const CHOSEN = "(:pks IS NULL OR s.pk IN (SELECT value FROM json_each(:pks)))";
const COPY_CHECKPOINTS = `INSERT INTO delta_checkpoints
	(thread_id, ns, checkpoint_id, parent_id, run_id, source, step, labels, blobs, head)
	SELECT :target, ns, checkpoint_id, parent_id, run_id, source, step, labels, blobs, head
	FROM delta_checkpoints s WHERE thread_id = :source AND ${CHOSEN} ORDER BY pk`;
/** Rows of the source with their copies. */
const COPIED = `delta_checkpoints s CROSS JOIN delta_checkpoints t
	ON s.thread_id = :source AND ${CHOSEN} AND t.thread_id = :target AND t.ns = s.ns AND t.checkpoint_id = s.checkpoint_id`;
const COPY_WRITES = `INSERT INTO delta_writes
	(checkpoint_pk, task_id, generation, idx, task_path, channel, run_id, actor, type, blob, value)
	SELECT t.pk, task_id, generation, idx, task_path, channel, w.run_id, actor, type, blob, value
	FROM ${COPIED} CROSS JOIN delta_writes w ON w.checkpoint_pk = s.pk`;
const COPY_BASES = `INSERT INTO delta_bases (checkpoint_pk, channel, data)
	SELECT t.pk, channel, data FROM ${COPIED} CROSS JOIN delta_bases b ON b.checkpoint_pk = s.pk`;

const REPLACE_HEAD = "UPDATE delta_checkpoints SET head = ?, labels = NULL WHERE pk = ? AND head = ?";
const REPLACE_VALUE = `UPDATE delta_writes SET value = ? WHERE ${WRITE_PLACE} AND value = ?`;
const REPLACE_BASE = "UPDATE delta_bases SET data = ? WHERE checkpoint_pk = ? AND channel = ? AND data = ?";
const REPLACE_BLOB = "UPDATE delta_blobs SET data = ? WHERE id = ? AND data = ?";

const RESERVE = "UPDATE delta_format SET next_id = max(next_id, ?) + ? RETURNING next_id";

/** Numbers that were never handed out, and never will be again. Answers the first of them. */
export function reserveIds(session: SqliteSession, count: number): number {
	const { db } = session;
	const { next_id: end } = session.get<{ next_id: number }>(RESERVE, reserved.get(db) ?? 0, count) as {
		next_id: number;
	};
	reserved.set(db, end);
	return end - count;
}

/** Where they end by database, which may belong to the application: it may undo the update of the counter. */
const reserved = new WeakMap<SqliteDatabase, number>();

export function remove(session: SqliteSession, batch: RemoveBatch): RowCount | undefined {
	const { threadId } = batch;
	if (session.get<{ stamp: number }>(GET_STAMP, threadId)?.stamp !== batch.stamp) return undefined;
	const removed = removeRows(session, findPks(session, batch.checkpoints));
	for (const key of batch.writes) removeWrite(session, key, false, removed);
	for (const key of batch.orphans) removeWrite(session, key, true, removed);
	for (const row of batch.relinked) {
		const found = findPk(session, row);
		if (found !== undefined && !found.isMissing) replaceCheckpoint(session, found.pk, row);
	}
	for (const row of batch.deltaBases) putBase(session, row);
	session.run(REMOVE_EMPTY, threadId);
	session.run(RESTAMP, batch.newStamp, -removed.checkpoints, threadId);
	return removed;
}

function findPks(session: SqliteSession, keys: readonly CheckpointKey[]): number[] {
	return keys.flatMap((key) => findPk(session, key)?.pk ?? []);
}

/** Removes checkpoints with their writes and delta bases. */
function removeRows(session: SqliteSession, pks: readonly number[]): RowCount {
	const list = JSON.stringify(pks);
	const removed = countRows(session, list);
	for (const sql of [REMOVE_WRITES, REMOVE_BASES, REMOVE_CHECKPOINTS]) session.run(sql, list);
	return removed;
}

function countRows(session: SqliteSession, list: string): RowCount {
	const found = session.get<Omit<RowCount, "writes">>(COUNT_CHECKPOINTS, list) ?? { checkpoints: 0, bytes: 0 };
	const { writes, bytes } = session.get<Omit<RowCount, "checkpoints">>(COUNT_WRITES, list) ?? { writes: 0, bytes: 0 };
	return { checkpoints: found.checkpoints, writes, bytes: found.bytes + bytes };
}

/** @param isOrphan leaves it alone if its checkpoint is there */
function removeWrite(session: SqliteSession, key: WriteKey, isOrphan: boolean, removed: RowCount): void {
	const found = findPk(session, key);
	if (found === undefined || (isOrphan && !found.isMissing)) return;
	const row = session.get<{ bytes: number }>(REMOVE_WRITE, found.pk, key.taskId, key.generation, key.idx);
	if (row === undefined) return;
	removed.writes++;
	removed.bytes += row.bytes;
}

export function copy(session: SqliteSession, batch: CopyBatch): RowCount | undefined {
	const { source, target, keys } = batch;
	const found = session.get<{ family: number; stamp: number }>(GET_STAMP, source);
	if (found?.stamp !== batch.stamp || session.get(GET_STAMP, target) !== undefined) return undefined;
	addThread(session, target, found.family, batch.fresh, batch.now);
	const pks = keys === undefined ? null : JSON.stringify(findPks(session, keys));
	for (const sql of [COPY_CHECKPOINTS, COPY_WRITES, COPY_BASES]) session.run(sql, { source, target, pks });
	for (const row of batch.checkpoints) {
		const copied = findPk(session, row);
		if (copied === undefined) addCheckpoint(session, row, undefined);
		else replaceCheckpoint(session, copied.pk, row);
	}
	for (const row of batch.writes) putWrite(session, row);
	for (const row of batch.deltaBases) putBase(session, row);
	const count = countRows(session, JSON.stringify(listPks(session, target)));
	session.run(RESTAMP, batch.fresh, count.checkpoints, target);
	return count;
}

function listPks(session: SqliteSession, threadId: string): number[] {
	return session.all<{ pk: number }>(LIST_PKS, threadId).map(({ pk }) => pk);
}

export function removeThread(session: SqliteSession, threadId: string): RowCount {
	session.run(REMOVE_THREAD, threadId);
	return removeRows(session, listPks(session, threadId));
}

export function removeBlobs(session: SqliteSession, family: number, ids: readonly number[]): void {
	for (const id of ids) session.run(REMOVE_BLOB, id, family);
}

/** Answers whether the row still had the bytes that were seen. */
export function replaceBytes(session: SqliteSession, replacement: Replacement): boolean {
	const { from, to } = replacement;
	if (replacement.kind === "blob") return session.run(REPLACE_BLOB, to, replacement.id, from).changes > 0;
	const { pk } = findPk(session, replacement.key) ?? {};
	if (pk === undefined) return false;
	if (replacement.kind === "checkpoint") return session.run(REPLACE_HEAD, to, pk, from).changes > 0;
	if (replacement.kind === "deltaBase") return session.run(REPLACE_BASE, to, pk, replacement.channel, from).changes > 0;
	const { taskId, generation, idx } = replacement.key;
	return session.run(REPLACE_VALUE, to, pk, taskId, generation, idx, from).changes > 0;
}

export function clear(session: SqliteSession): void {
	for (const table of ["threads", "checkpoints", "writes", "bases", "blobs"]) session.run(`DELETE FROM delta_${table}`);
}
