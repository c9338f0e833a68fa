import { checkHead } from "../guard.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	Labels,
	NewWrite,
	PutBatch,
	PutResult,
	WriteRow,
} from "../storage.ts";
import type { SqliteSession } from "./driver.ts";
import { minuteOf } from "./read.ts";

/** A thread, and the row of one of its checkpoints if there is one. */
interface PlaceSql {
	family: number;
	stamp: number;
	updated_minute: number;
	pk: number | null;
	is_missing: number;
}

const GET_PLACE = `SELECT family, stamp, updated_minute, pk, head IS NULL AS is_missing
	FROM delta_threads t LEFT JOIN delta_checkpoints c ON c.thread_id = t.thread_id AND ns = ? AND checkpoint_id = ?
	WHERE t.thread_id = ?`;
const GET_NEWEST_KEY = `SELECT checkpoint_id, parent_id FROM delta_checkpoints
	WHERE thread_id = ? AND ns = ? AND head IS NOT NULL ORDER BY checkpoint_id DESC LIMIT 1`;
const FIND_PK =
	"SELECT pk, head IS NULL AS is_missing FROM delta_checkpoints WHERE thread_id = ? AND ns = ? AND checkpoint_id = ?";

const ADD_THREAD = `INSERT INTO delta_threads
	(thread_id, family, stamp, created_at, updated_at, updated_minute, checkpoints, newest)
	VALUES (?, ?, ?, ?, ?, ?, 0, NULL)`;
/** `max` of anything and NULL is NULL. */
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
	const key = checkpoint ?? writes[0] ?? { ns: "", id: "" };
	const found = session.get<PlaceSql>(GET_PLACE, key.ns, key.id, threadId);
	if (batch.stamp !== undefined && found?.stamp !== batch.stamp) return undefined;
	if (found === undefined) addThread(session, threadId, fresh, fresh, now);
	const { family, stamp, pk, is_missing, updated_minute } = found ?? { family: fresh, stamp: fresh, pk: null };
	const replaced = checkpoint !== undefined && pk !== null && !is_missing;
	const result = { family, stamp: replaced ? fresh : stamp, replaced };
	if (checkpoint !== undefined) {
		if (batch.onlyOnHead) guard(session, checkpoint, replaced);
		const minute = minuteOf(now);
		if (updated_minute !== undefined && minute !== updated_minute) session.run(SET_MINUTE, minute, threadId);
		const newest = checkpoint.ns === "" ? checkpoint.id : null;
		session.run(COUNT_CHECKPOINT, result.stamp, now, replaced ? 0 : 1, newest, newest, threadId);
		if (pk === null) addCheckpoint(session, checkpoint, batch.labels);
		else {
			replaceCheckpoint(session, pk, checkpoint);
			session.run(SET_LABELS, toText(batch.labels), pk);
		}
	}
	for (const blob of batch.blobs) addBlob(session, family, blob);
	if (writes.length > 0) putWrites(session, checkpoint === undefined ? (pk ?? undefined) : undefined, writes);
	for (const base of batch.deltaBases) putBase(session, base);
	return result;
}

function guard(session: SqliteSession, checkpoint: CheckpointRow, isStored: boolean): void {
	const { threadId, ns } = checkpoint;
	const head = session.get<{ checkpoint_id: string; parent_id: string | null }>(GET_NEWEST_KEY, threadId, ns);
	checkHead(
		checkpoint,
		head && { threadId, ns, id: head.checkpoint_id, parentId: head.parent_id ?? undefined },
		isStored,
	);
}

export function addThread(session: SqliteSession, threadId: string, family: number, stamp: number, now: number): void {
	session.run(ADD_THREAD, threadId, family, stamp, now, now, minuteOf(now));
}

/** @param labels `undefined` if they are unknown */
export function addCheckpoint(session: SqliteSession, row: CheckpointRow, labels: Labels | undefined): void {
	session.run(ADD_CHECKPOINT, row.threadId, row.ns, row.id, ...columnsOf(row), toText(labels));
}

/** Another row, with the labels of the old one. */
export function replaceCheckpoint(session: SqliteSession, pk: number, row: CheckpointRow): void {
	session.run(REPLACE_CHECKPOINT, ...columnsOf(row), pk);
}

function columnsOf({ parentId, runId, source, step, blobs, head }: CheckpointRow): unknown[] {
	const ids = blobs.length === 0 ? null : JSON.stringify(blobs);
	return [parentId ?? null, runId ?? null, source ?? null, step ?? null, ids, head];
}

function toText(labels: Labels | undefined): string | null {
	return labels === undefined ? null : JSON.stringify(labels);
}

/** The row of a checkpoint, which may have writes only. */
export function findPk(
	session: SqliteSession,
	{ threadId, ns, id }: CheckpointKey,
): { pk: number; isMissing: boolean } | undefined {
	const found = session.get<{ pk: number; is_missing: number }>(FIND_PK, threadId, ns, id);
	return found && { pk: found.pk, isMissing: found.is_missing !== 0 };
}

/** The row of a checkpoint that is to have writes or delta bases, if need be without a checkpoint. */
function ensurePk(session: SqliteSession, key: CheckpointKey): number {
	const { threadId, ns, id } = key;
	return findPk(session, key)?.pk ?? Number(session.run(ADD_MISSING, threadId, ns, id).lastInsertRowid);
}

/** @param known the row of their checkpoint, if it was found already */
function putWrites(session: SqliteSession, known: number | undefined, writes: readonly NewWrite[]): void {
	const first = writes[0] as NewWrite;
	const pk = known ?? ensurePk(session, first);
	const before = session.all<{ generation: number; idx: number }>(GET_TASK, pk, first.taskId);
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	for (const write of writes) {
		const { conflict, idx } = write;
		if (conflict === "drop" && before.some((older) => older.idx === idx)) continue;
		insertWrite(session, pk, write, conflict === "add" ? next : 0);
	}
}

/** Adds a write, or puts it in the place of the one with its key. */
export function putWrite(session: SqliteSession, write: WriteRow): void {
	insertWrite(session, ensurePk(session, write), write, write.generation);
}

function insertWrite(
	session: SqliteSession,
	pk: number,
	write: Omit<WriteRow, "generation">,
	generation: number,
): void {
	const { taskId, idx, taskPath, channel, runId, actor, type, blob, value } = write;
	session.run(
		PUT_WRITE,
		pk,
		taskId,
		generation,
		idx,
		taskPath ?? null,
		channel,
		runId ?? null,
		actor ?? null,
		type ?? null,
		blob ?? null,
		value,
	);
}

export function putBase(session: SqliteSession, row: DeltaBaseRow): void {
	session.run(PUT_BASE, ensurePk(session, row), row.channel, row.data);
}

function addBlob(session: SqliteSession, family: number, { id, base, source, type, data }: BlobRow): void {
	session.run(ADD_BLOB, id, family, base ?? null, source ?? null, type ?? null, data);
}
