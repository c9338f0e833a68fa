import { checkHead } from "../guard.ts";
import type {
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	ListedCheckpoint,
	NewWrite,
	PutBatch,
	PutResult,
	WriteRow,
} from "../storage.ts";
import type { SqliteSession } from "./driver.ts";
import { AT_KEY, checkFound, IN_NAMESPACE, KEY } from "./read.ts";

/** A thread, and the row of one of its checkpoints if there is one. */
interface Place extends Partial<CheckpointKey> {
	readonly family: number;
	readonly stamp: number;
	readonly minute: number;
	readonly pk: number | undefined;
	/** Zero if it is the row of a checkpoint, and not of writes only. */
	readonly isMissing: number | undefined;
}

const FIND_ROW = `SELECT pk, head IS NULL AS isMissing, ${KEY} FROM delta_checkpoints WHERE ${AT_KEY}`;
const GET_PLACE = `SELECT family, stamp, updated_minute AS minute, pk, isMissing, threadId, ns, id
	FROM delta_threads LEFT JOIN (${FIND_ROW}) WHERE thread_id = :threadId`;
const GET_HEAD = `SELECT ${KEY}, parent_id AS parentId FROM delta_checkpoints
	WHERE ${IN_NAMESPACE} AND head IS NOT NULL ORDER BY checkpoint_id DESC LIMIT 1`;

const ADD_THREAD = `INSERT INTO delta_threads
	(thread_id, family, stamp, created_at, updated_at, updated_minute, checkpoints) VALUES (?, ?, ?, ?, ?, ?, 0)`;
/** `max` of a text and NULL is NULL. */
const COUNT_CHECKPOINT = `UPDATE delta_threads
	SET stamp = ?, updated_at = ?, checkpoints = checkpoints + ?, newest = coalesce(max(newest, ?), newest, ?)
	WHERE thread_id = ?`;
const SET_MINUTE = "UPDATE delta_threads SET updated_minute = ? WHERE thread_id = ?";

const ADD_CHECKPOINT = `INSERT INTO delta_checkpoints
	(thread_id, ns, checkpoint_id, parent_id, run_id, source, step, blobs, head, labels)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const ADD_MISSING = "INSERT INTO delta_checkpoints (thread_id, ns, checkpoint_id) VALUES (?, ?, ?)";
const REPLACE_CHECKPOINT = `UPDATE delta_checkpoints
	SET parent_id = ?, run_id = ?, source = ?, step = ?, blobs = ?, head = ? WHERE pk = ?`;
const SET_LABELS = "UPDATE delta_checkpoints SET labels = ? WHERE pk = ?";

const GET_TASK = "SELECT generation, idx FROM delta_writes WHERE checkpoint_pk = ? AND task_id = ?";
const PUT_WRITE = `INSERT OR REPLACE INTO delta_writes
	(checkpoint_pk, task_id, generation, idx, task_path, channel, run_id, actor, type, blob, value)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const PUT_BASE = "INSERT OR REPLACE INTO delta_bases (checkpoint_pk, channel, data) VALUES (?, ?, ?)";
const ADD_BLOB = "INSERT INTO delta_blobs (id, family, base, source, type, data) VALUES (?, ?, ?, ?, ?, ?)";

/** Stores a batch. Answers nothing if the thread has another stamp than the batch builds on. */
export function put(session: SqliteSession, batch: PutBatch): PutResult | undefined {
	const { threadId, fresh, now, checkpoint, writes } = batch;
	const key = checkpoint ?? writes[0];
	const asked = { threadId, ns: key?.ns, id: key?.id };
	const found = session.get<Place>(GET_PLACE, asked);
	if (found?.pk !== undefined) checkFound(found, asked);
	if (batch.stamp !== undefined && found?.stamp !== batch.stamp) return undefined;
	if (found === undefined) addThread(session, threadId, fresh, fresh, now);
	const place = found ?? { family: fresh, stamp: fresh, minute: minuteOf(now), pk: undefined, isMissing: undefined };
	const replaced = checkpoint !== undefined && place.isMissing === 0;
	const stamp = replaced ? fresh : place.stamp;
	if (checkpoint !== undefined) {
		if (batch.onlyOnHead) guard(session, checkpoint, replaced);
		if (place.minute !== minuteOf(now)) session.run(SET_MINUTE, minuteOf(now), threadId);
		const newest = checkpoint.ns === "" ? checkpoint.id : undefined;
		session.run(COUNT_CHECKPOINT, stamp, now, replaced ? 0 : 1, newest, newest, threadId);
		const labels = batch.labels && JSON.stringify(batch.labels);
		putCheckpoint(session, place.pk, checkpoint, labels);
		if (place.pk !== undefined) session.run(SET_LABELS, labels, place.pk);
	}
	for (const { id, base, source, type, data } of batch.blobs)
		session.run(ADD_BLOB, id, place.family, base, source, type, data);
	if (writes.length > 0) putWrites(session, checkpoint === undefined ? place.pk : undefined, writes);
	for (const base of batch.deltaBases) putBase(session, base);
	return { family: place.family, stamp, replaced };
}

function guard(session: SqliteSession, checkpoint: CheckpointRow, isStored: boolean): void {
	const { threadId, ns } = checkpoint;
	const head = session.get<ListedCheckpoint>(GET_HEAD, { threadId, ns });
	checkHead(checkpoint, checkFound(head, { threadId, ns }), isStored);
}

/** The minute that a thread is indexed by. */
export function minuteOf(time: number): number {
	return Math.floor(time / 60_000);
}

export function addThread(session: SqliteSession, threadId: string, family: number, stamp: number, now: number): void {
	session.run(ADD_THREAD, threadId, family, stamp, now, now, minuteOf(now));
}

/** Adds a checkpoint, or puts it in the place of the one in this row, whose labels it keeps. */
export function putCheckpoint(
	session: SqliteSession,
	pk: number | undefined,
	row: CheckpointRow,
	labels: string | undefined,
): void {
	const { threadId, ns, id, parentId, runId, source, step, head } = row;
	const blobs = row.blobs.length === 0 ? undefined : JSON.stringify(row.blobs);
	if (pk !== undefined) session.run(REPLACE_CHECKPOINT, parentId, runId, source, step, blobs, head, pk);
	else session.run(ADD_CHECKPOINT, threadId, ns, id, parentId, runId, source, step, blobs, head, labels);
}

/** The row of a checkpoint, which may have writes only. */
export function findRow(session: SqliteSession, key: CheckpointKey) {
	return checkFound(session.get<CheckpointKey & { readonly pk: number; isMissing: number }>(FIND_ROW, key), key);
}

/** The row of a checkpoint that is to have writes or delta bases, if need be without a checkpoint. */
function ensureRow(session: SqliteSession, key: CheckpointKey): number {
	const { threadId, ns, id } = key;
	return findRow(session, key)?.pk ?? Number(session.run(ADD_MISSING, threadId, ns, id).lastInsertRowid);
}

/** @param known the row of their checkpoint, if it was found already */
function putWrites(session: SqliteSession, known: number | undefined, writes: readonly NewWrite[]): void {
	const first = writes[0] as NewWrite;
	const pk = known ?? ensureRow(session, first);
	const before = session.all<{ generation: number; idx: number }>(GET_TASK, pk, first.taskId);
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	for (const write of writes) {
		const isTaken = before.some(({ idx }) => idx === write.idx);
		if (write.conflict === "drop" && isTaken) continue;
		addWrite(session, pk, write.conflict === "add" ? next : 0, write);
	}
}

/** Adds a write, or puts it in the place of the one with its key. */
export function putWrite(session: SqliteSession, write: WriteRow): void {
	addWrite(session, ensureRow(session, write), write.generation, write);
}

function addWrite(session: SqliteSession, pk: number, generation: number, write: Omit<WriteRow, "generation">): void {
	const { taskId, idx, taskPath, channel, runId, actor, type, blob, value } = write;
	session.run(PUT_WRITE, pk, taskId, generation, idx, taskPath, channel, runId, actor, type, blob, value);
}

export function putBase(session: SqliteSession, row: DeltaBaseRow): void {
	session.run(PUT_BASE, ensureRow(session, row), row.channel, row.data);
}
