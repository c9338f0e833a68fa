import { checkHead } from "../guard.ts";
import type {
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	ListedCheckpoint,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	Replacement,
	RowCount,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { SqliteSession } from "./driver.ts";
import { checkFound, find, GET_NEWEST, IN_THREAD, KEY, LISTED } from "./read.ts";

/** A thread, with the row of one of its checkpoints and the next generation of what a task wrote there, if there are any. */
interface Place extends CheckpointKey {
	readonly family: number;
	readonly stamp: number;
	readonly minute: number;
	readonly pk: number | undefined;
	readonly isHeadless: number;
	readonly next: number | undefined;
}

const FIND_PLACE = `SELECT family, stamp, updated_minute AS minute, pk, head IS NULL AS isHeadless, c.thread_id AS threadId, ns,
	checkpoint_id AS id, (SELECT max(generation) + 1 FROM delta_writes WHERE checkpoint_pk = pk AND task_id = ?) AS next
	FROM delta_threads t LEFT JOIN delta_checkpoints c ON c.thread_id = t.thread_id AND ns = ? AND checkpoint_id = ?
	WHERE t.thread_id = ?`;
const ADD_THREAD = `INSERT INTO delta_threads
	(thread_id, family, stamp, created_at, updated_at, updated_minute, checkpoints) VALUES (?, ?, ?, ?, ?, ?, 0)`;
/** `max` of a text and NULL is NULL. */
const COUNT_CHECKPOINT = `UPDATE delta_threads
	SET stamp = ?, updated_at = ?, checkpoints = checkpoints + ?, newest = coalesce(max(newest, ?), newest, ?)
	WHERE thread_id = ?`;
const SET_MINUTE = "UPDATE delta_threads SET updated_minute = ? WHERE thread_id = ?";

const CHECKPOINT_COLUMNS = "ns, checkpoint_id, parent_id, run_id, source, step, blobs, head, labels";
const ADD_CHECKPOINT = `INSERT INTO delta_checkpoints (thread_id, ${CHECKPOINT_COLUMNS})
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const ADD_HEADLESS = "INSERT INTO delta_checkpoints (thread_id, ns, checkpoint_id) VALUES (?, ?, ?)";
const REPLACE_CHECKPOINT = `UPDATE delta_checkpoints
	SET parent_id = ?, run_id = ?, source = ?, step = ?, blobs = ?, head = ? WHERE pk = ?`;
const SET_LABELS = "UPDATE delta_checkpoints SET labels = ? WHERE pk = ?";

const HAS_WRITE = "SELECT idx FROM delta_writes WHERE checkpoint_pk = ? AND task_id = ? AND idx = ?";
const WRITE_COLUMNS = "task_id, generation, idx, task_path, channel, run_id, actor, type, blob, value";
const PUT_WRITE = `INSERT OR REPLACE INTO delta_writes (checkpoint_pk, ${WRITE_COLUMNS})
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const PUT_BASE = "INSERT OR REPLACE INTO delta_bases (checkpoint_pk, channel, data) VALUES (?, ?, ?)";
const ADD_BLOB = "INSERT INTO delta_blobs (id, family, base, source, type, data) VALUES (?, ?, ?, ?, ?, ?)";

/** Stores a batch. Returns nothing if the thread has another stamp than the batch builds on. */
export function put(session: SqliteSession, batch: PutBatch): PutResult | undefined {
	const { threadId, fresh, now, checkpoint, writes } = batch;
	const look = () => findPlace(session, checkpoint ?? writes[0] ?? { threadId }, writes[0]?.taskId);
	const known = look();
	if (batch.stamp !== undefined && known?.stamp !== batch.stamp) return undefined;
	if (known === undefined) addThread(session, threadId, fresh, fresh, now);
	const found = known ?? (look() as Place);
	const replaced = checkpoint !== undefined && found.isHeadless === 0;
	const stamp = replaced ? fresh : found.stamp;
	if (checkpoint !== undefined) {
		const { ns, id } = checkpoint;
		if (batch.onlyOnHead)
			checkHead(checkpoint, find<ListedCheckpoint>(session, GET_NEWEST, { threadId, ns })[0], replaced);
		if (found.minute !== minuteOf(now)) session.run(SET_MINUTE, minuteOf(now), threadId);
		const newest = ns === "" ? id : undefined;
		session.run(COUNT_CHECKPOINT, stamp, now, replaced ? 0 : 1, newest, newest, threadId);
		const labels = batch.labels && JSON.stringify(batch.labels);
		putCheckpoint(session, checkpoint, found.pk, labels);
		if (found.pk !== undefined) session.run(SET_LABELS, labels, found.pk);
	}
	for (const { id, base, source, type, data } of batch.blobs)
		session.run(ADD_BLOB, id, found.family, base, source, type, data);
	putWrites(session, writes, checkpoint === undefined ? found : undefined);
	for (const base of batch.deltaBases) putBase(session, base);
	return { family: found.family, stamp, replaced };
}

function findPlace(
	session: SqliteSession,
	key: Pick<CheckpointKey, "threadId"> & Partial<CheckpointKey>,
	taskId?: string,
) {
	const place = session.get<Place>(FIND_PLACE, taskId, key.ns, key.id, key.threadId);
	if (place?.pk !== undefined) checkFound(place, key);
	return place;
}

/** The minute that a thread is indexed by. */
function minuteOf(time: number): number {
	return Math.floor(time / 60_000);
}

export function addThread(session: SqliteSession, threadId: string, family: number, stamp: number, now: number): void {
	session.run(ADD_THREAD, threadId, family, stamp, now, now, minuteOf(now));
}

/** Adds a checkpoint, or puts it in the place of the one in this row, whose labels it keeps. */
function putCheckpoint(session: SqliteSession, row: CheckpointRow, pk?: number, labels?: string): void {
	const { threadId, ns, id, parentId, runId, source, step, head } = row;
	const blobs = row.blobs.length === 0 ? undefined : JSON.stringify(row.blobs);
	if (pk !== undefined) session.run(REPLACE_CHECKPOINT, parentId, runId, source, step, blobs, head, pk);
	else session.run(ADD_CHECKPOINT, threadId, ns, id, parentId, runId, source, step, blobs, head, labels);
}

/** The row of a checkpoint that is to have writes or delta bases, if need be without a checkpoint. */
function ensureRow(session: SqliteSession, key: CheckpointKey): number {
	const { threadId, ns, id } = key;
	return findPlace(session, key)?.pk ?? Number(session.run(ADD_HEADLESS, threadId, ns, id).lastInsertRowid);
}

/** @param found the thread and their row, unless the row was only just added */
function putWrites(session: SqliteSession, writes: readonly NewWrite[], found: Place | undefined): void {
	const [first] = writes;
	if (first === undefined) return;
	const place = found ?? findPlace(session, first, first.taskId);
	const { next = 0, pk = ensureRow(session, first) } = place ?? {};
	for (const write of writes) {
		const { conflict, taskId, idx } = write;
		if (conflict === "drop" && next > 0 && session.get(HAS_WRITE, pk, taskId, idx)) continue;
		addWrite(session, pk, conflict === "add" ? next : 0, write);
	}
}

/** Adds a write, or puts it in the place of the one with its key. */
function addWrite(session: SqliteSession, pk: number, generation: number, write: Omit<WriteRow, "generation">): void {
	const { taskId, idx, taskPath, channel, runId, actor, type, blob, value } = write;
	session.run(PUT_WRITE, pk, taskId, generation, idx, taskPath, channel, runId, actor, type, blob, value);
}

function putBase(session: SqliteSession, row: DeltaBaseRow): void {
	session.run(PUT_BASE, ensureRow(session, row), row.channel, row.data);
}

const COUNT_ROWS = `SELECT
	(SELECT count(head) FROM delta_checkpoints WHERE pk IN ${LISTED}) AS checkpoints,
	(SELECT count(*) FROM delta_writes WHERE checkpoint_pk IN ${LISTED}) AS writes,
	(SELECT total(length(head)) FROM delta_checkpoints WHERE pk IN ${LISTED}) +
	(SELECT total(length(value)) FROM delta_writes WHERE checkpoint_pk IN ${LISTED}) AS bytes`;
const REMOVE_CHECKPOINTS = `DELETE FROM delta_checkpoints WHERE pk IN ${LISTED}`;
const REMOVE_WRITES = `DELETE FROM delta_writes WHERE checkpoint_pk IN ${LISTED}`;
const REMOVE_BASES = `DELETE FROM delta_bases WHERE checkpoint_pk IN ${LISTED}`;

const WRITE_PLACE = "checkpoint_pk = ? AND task_id = ? AND generation = ? AND idx = ?";
const REMOVE_WRITE = `DELETE FROM delta_writes WHERE ${WRITE_PLACE} RETURNING length(value) AS bytes`;
const REMOVE_EMPTY = `DELETE FROM delta_checkpoints WHERE thread_id = ? AND head IS NULL
	AND NOT EXISTS (SELECT 1 FROM delta_writes WHERE checkpoint_pk = pk)
	AND NOT EXISTS (SELECT 1 FROM delta_bases WHERE checkpoint_pk = pk)`;
export const NEWEST = `SELECT max(checkpoint_id) FROM delta_checkpoints c
	WHERE c.thread_id = delta_threads.thread_id AND ns = '' AND head IS NOT NULL`;
const RESTAMP = `UPDATE delta_threads SET stamp = ?, checkpoints = checkpoints + ?, newest = (${NEWEST}) WHERE thread_id = ?`;
const REMOVE_THREAD = "DELETE FROM delta_threads WHERE thread_id = ?";

const LIST_KEYS = `SELECT pk, ${KEY} FROM delta_checkpoints WHERE ${IN_THREAD}`;
const COPY_CHECKPOINTS = `INSERT INTO delta_checkpoints (thread_id, ${CHECKPOINT_COLUMNS})
	SELECT :target, ${CHECKPOINT_COLUMNS} FROM delta_checkpoints WHERE pk IN ${LISTED} ORDER BY pk`;
/** Rows of the source, and those of their copies. */
const COPIED = `(SELECT s.pk AS original, t.pk AS copy FROM delta_checkpoints s CROSS JOIN delta_checkpoints t
	ON s.pk IN ${LISTED} AND t.thread_id = :target AND t.ns = s.ns AND t.checkpoint_id = s.checkpoint_id)`;
const COPY_WRITES = `INSERT INTO delta_writes (checkpoint_pk, ${WRITE_COLUMNS})
	SELECT copy, ${WRITE_COLUMNS} FROM ${COPIED} CROSS JOIN delta_writes ON checkpoint_pk = original`;
const COPY_BASES = `INSERT INTO delta_bases (checkpoint_pk, channel, data)
	SELECT copy, channel, data FROM ${COPIED} CROSS JOIN delta_bases ON checkpoint_pk = original`;

const REPLACE_HEAD = "UPDATE delta_checkpoints SET head = ?, labels = NULL WHERE pk = ? AND head = ?";
const REPLACE_VALUE = `UPDATE delta_writes SET value = ? WHERE ${WRITE_PLACE} AND value = ?`;
const REPLACE_BASE = "UPDATE delta_bases SET data = ? WHERE checkpoint_pk = ? AND channel = ? AND data = ?";
const REPLACE_BLOB = "UPDATE delta_blobs SET data = ? WHERE id = ? AND data = ?";

export function remove(session: SqliteSession, batch: RemoveBatch): RowCount | undefined {
	const { threadId } = batch;
	if (findPlace(session, { threadId })?.stamp !== batch.stamp) return undefined;
	const removed = removeRows(session, findPks(session, threadId, batch.checkpoints));
	for (const key of batch.writes) removeWrite(session, key, false, removed);
	for (const key of batch.orphans) removeWrite(session, key, true, removed);
	for (const row of batch.relinked) {
		const found = findPlace(session, row);
		if (found?.isHeadless === 0) putCheckpoint(session, row, found.pk);
	}
	for (const row of batch.deltaBases) putBase(session, row);
	session.run(REMOVE_EMPTY, threadId);
	session.run(RESTAMP, batch.newStamp, -removed.checkpoints, threadId);
	return removed;
}

/** The rows of a thread, or those of these checkpoints: often most of them, so that one look is better than many. */
function findPks(session: SqliteSession, threadId: string, keys?: readonly CheckpointKey[]): number[] {
	const textOf = ({ ns, id }: CheckpointKey) => `${ns.length} ${ns}${id}`;
	const wanted = keys && new Set(keys.map(textOf));
	const rows = find<CheckpointKey & { pk: number }>(session, LIST_KEYS, { threadId });
	return rows.filter((row) => wanted?.has(textOf(row)) ?? true).map(({ pk }) => pk);
}

/** Removes checkpoints with their writes and delta bases. */
function removeRows(session: SqliteSession, pks: readonly number[]): RowCount {
	const listed = { list: JSON.stringify(pks) };
	const removed = session.get(COUNT_ROWS, listed) as RowCount;
	for (const sql of [REMOVE_WRITES, REMOVE_BASES, REMOVE_CHECKPOINTS]) session.run(sql, listed);
	return removed;
}

/** @param isOrphan leaves it alone if its checkpoint is there */
function removeWrite(session: SqliteSession, key: WriteKey, isOrphan: boolean, removed: RowCount): void {
	const found = findPlace(session, key);
	if (isOrphan && found?.isHeadless === 0) return;
	const row = session.get<{ bytes: number }>(REMOVE_WRITE, found?.pk, key.taskId, key.generation, key.idx);
	if (row === undefined) return;
	removed.writes++;
	removed.bytes += row.bytes;
}

export function copy(session: SqliteSession, batch: CopyBatch): RowCount | undefined {
	const { source, target, keys } = batch;
	const found = findPlace(session, { threadId: source });
	if (found?.stamp !== batch.stamp || findPlace(session, { threadId: target }) !== undefined) return undefined;
	addThread(session, target, found.family, batch.fresh, batch.now);
	const list = JSON.stringify(findPks(session, source, keys));
	for (const sql of [COPY_CHECKPOINTS, COPY_WRITES, COPY_BASES]) session.run(sql, { target, list });
	for (const row of batch.checkpoints) putCheckpoint(session, row, findPlace(session, row)?.pk);
	for (const row of batch.writes) addWrite(session, ensureRow(session, row), row.generation, row);
	for (const row of batch.deltaBases) putBase(session, row);
	const count = session.get(COUNT_ROWS, { list: JSON.stringify(findPks(session, target)) }) as RowCount;
	session.run(RESTAMP, batch.fresh, count.checkpoints, target);
	return count;
}

export function removeThread(session: SqliteSession, threadId: string): RowCount {
	session.run(REMOVE_THREAD, threadId);
	return removeRows(session, findPks(session, threadId));
}

/** Returns whether the row still had the bytes that were seen. */
export function replaceBytes(session: SqliteSession, replacement: Replacement): boolean {
	const { from, to } = replacement;
	if (replacement.kind === "blob") return session.run(REPLACE_BLOB, to, replacement.id, from).changes > 0;
	const { pk } = findPlace(session, replacement.key) ?? {};
	if (pk === undefined) return false;
	if (replacement.kind === "checkpoint") return session.run(REPLACE_HEAD, to, pk, from).changes > 0;
	if (replacement.kind === "deltaBase") return session.run(REPLACE_BASE, to, pk, replacement.channel, from).changes > 0;
	const { taskId, generation, idx } = replacement.key;
	return session.run(REPLACE_VALUE, to, pk, taskId, generation, idx, from).changes > 0;
}
