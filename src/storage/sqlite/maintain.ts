import type { CheckpointKey, CopyBatch, RemoveBatch, Replacement, RowCount, WriteKey } from "../storage.ts";
import type { SqliteSession } from "./driver.ts";
import { addThread, findRow, putBase, putCheckpoint, putWrite } from "./put.ts";
import { checkFound, IN_THREAD } from "./read.ts";

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

const LIST_PKS = `SELECT pk, thread_id AS threadId FROM delta_checkpoints WHERE ${IN_THREAD}`;
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

export function remove(session: SqliteSession, batch: RemoveBatch): RowCount | undefined {
	const { threadId } = batch;
	if (session.get<{ stamp: number }>(GET_STAMP, threadId)?.stamp !== batch.stamp) return undefined;
	const removed = removeRows(session, findPks(session, threadId, batch.checkpoints));
	for (const key of batch.writes) removeWrite(session, key, false, removed);
	for (const key of batch.orphans) removeWrite(session, key, true, removed);
	for (const row of batch.relinked) {
		const found = findRow(session, row);
		if (found?.isMissing === 0) putCheckpoint(session, found.pk, row, undefined);
	}
	for (const row of batch.deltaBases) putBase(session, row);
	session.run(REMOVE_EMPTY, threadId);
	session.run(RESTAMP, batch.newStamp, -removed.checkpoints, threadId);
	return removed;
}

function findPks(session: SqliteSession, threadId: string, keys: readonly CheckpointKey[]): number[] {
	return keys.flatMap(({ ns, id }) => findRow(session, { threadId, ns, id })?.pk ?? []);
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
	const found = findRow(session, key);
	if (found === undefined || (isOrphan && found.isMissing === 0)) return;
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
	const pks = keys === undefined ? null : JSON.stringify(findPks(session, source, keys));
	for (const sql of [COPY_CHECKPOINTS, COPY_WRITES, COPY_BASES]) session.run(sql, { source, target, pks });
	for (const row of batch.checkpoints) putCheckpoint(session, findRow(session, row)?.pk, row, undefined);
	for (const row of batch.writes) putWrite(session, row);
	for (const row of batch.deltaBases) putBase(session, row);
	const count = countRows(session, JSON.stringify(listPks(session, target)));
	session.run(RESTAMP, batch.fresh, count.checkpoints, target);
	return count;
}

function listPks(session: SqliteSession, threadId: string): number[] {
	const rows = session.all<{ pk: number; threadId: string }>(LIST_PKS, { threadId });
	return rows.map((row) => checkFound(row, { threadId }).pk);
}

export function removeThread(session: SqliteSession, threadId: string): RowCount {
	session.run(REMOVE_THREAD, threadId);
	return removeRows(session, listPks(session, threadId));
}

/** Answers whether the row still had the bytes that were seen. */
export function replaceBytes(session: SqliteSession, replacement: Replacement): boolean {
	const { from, to } = replacement;
	if (replacement.kind === "blob") return session.run(REPLACE_BLOB, to, replacement.id, from).changes > 0;
	const { pk } = findRow(session, replacement.key) ?? {};
	if (pk === undefined) return false;
	if (replacement.kind === "checkpoint") return session.run(REPLACE_HEAD, to, pk, from).changes > 0;
	if (replacement.kind === "deltaBase") return session.run(REPLACE_BASE, to, pk, replacement.channel, from).changes > 0;
	const { taskId, generation, idx } = replacement.key;
	return session.run(REPLACE_VALUE, to, pk, taskId, generation, idx, from).changes > 0;
}
