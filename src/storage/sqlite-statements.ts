import type { SqliteDatabase, SqliteStatement } from "./sqlite-driver.ts";

export const CHECKPOINT = `SELECT thread_id, stamp, ns, id, parent, run_id, source, step, c.head
	FROM delta_thread t JOIN delta_checkpoint c ON c.thread = t.pk`;
const WRITE = `SELECT thread_id, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
	FROM delta_thread t JOIN delta_write w ON w.thread = t.pk`;
const BASE = "SELECT thread_id, ns, checkpoint, channel, data FROM delta_thread t JOIN delta_base b ON b.thread = t.pk";
const THREAD = "SELECT * FROM delta_thread";

/** Every statement that does not depend on the call. */
const SQL = {
	begin: "BEGIN IMMEDIATE",
	beginRead: "BEGIN",
	commit: "COMMIT",
	rollback: "ROLLBACK",
	reserve: "UPDATE delta_sequence SET next = next + ? RETURNING next",
	/** Change with commits of other connections, and with changes through this one. */
	getVersion: "SELECT data_version AS others, total_changes() AS all_changes FROM pragma_data_version",

	getCheckpoint: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND id = ?`,
	getLatest: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? ORDER BY id DESC LIMIT 1`,
	getChildren: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND parent = ?`,
	findRunCheckpoints: `${CHECKPOINT} WHERE run_id IN (SELECT value FROM json_each(?))`,
	insertCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
	updateCheckpoint: `UPDATE delta_checkpoint SET run_id = ?, source = ?, step = ?, head = ?
		WHERE thread = ? AND ns = ? AND id = ?`,
	relink: "UPDATE delta_checkpoint SET parent = ? WHERE thread = ? AND ns = ? AND id = ?",
	removeCheckpoint:
		"DELETE FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ? RETURNING length(head) AS bytes",
	removeAllCheckpoints: "DELETE FROM delta_checkpoint WHERE thread = ? RETURNING length(head) AS bytes",
	copyCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		SELECT ?, ns, id, ?, run_id, source, step, head FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ?
		RETURNING length(head) AS bytes`,
	copyAllCheckpoints: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		SELECT ?, ns, id, parent, run_id, source, step, head FROM delta_checkpoint WHERE thread = ? ORDER BY pk
		RETURNING length(head) AS bytes`,

	getWrites: `${WRITE} WHERE thread_id = ? AND ns = ? AND checkpoint = ?`,
	getThreadWrites: `${WRITE} WHERE thread_id = ?`,
	findRunWrites: `${WRITE} WHERE run_id IN (SELECT value FROM json_each(?))`,
	getWritesBefore: `${WRITE} WHERE thread_id = ? AND ns = ? AND (checkpoint < ? OR typeof(checkpoint) <> typeof(?))`,
	getTaskWrites: `SELECT generation, idx FROM delta_write
		WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ?`,
	putWrite: "INSERT OR REPLACE INTO delta_write VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	removeWrite: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	removeWrites: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	removeAllWrites: `DELETE FROM delta_write WHERE thread = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	copyWrites: `INSERT INTO delta_write SELECT ?, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
		FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	copyAllWrites: `INSERT INTO delta_write SELECT ?, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
		FROM delta_write WHERE thread = ? RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,

	getBases: `${BASE} WHERE thread_id = ? AND ns = ? AND checkpoint = ?`,
	getThreadBases: `${BASE} WHERE thread_id = ?`,
	putBase: "INSERT OR REPLACE INTO delta_base VALUES (?, ?, ?, ?, ?)",
	removeBases: "DELETE FROM delta_base WHERE thread = ? AND ns = ? AND checkpoint = ?",
	removeAllBases: "DELETE FROM delta_base WHERE thread = ?",
	copyBases: `INSERT INTO delta_base SELECT ?, ns, checkpoint, channel, data FROM delta_base
		WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	copyAllBases: "INSERT INTO delta_base SELECT ?, ns, checkpoint, channel, data FROM delta_base WHERE thread = ?",

	getBlob: "SELECT id, base, source, type, data FROM delta_blob WHERE id = ?",
	insertBlob: "INSERT INTO delta_blob (id, family, base, source, type, data) VALUES (?, ?, ?, ?, ?, ?)",
	listBlobs: "SELECT id, base, source, length(data) AS bytes FROM delta_blob WHERE family = ?",
	listFamilies: "SELECT DISTINCT family FROM delta_blob WHERE family > ? ORDER BY family LIMIT ?",
	removeBlob: "DELETE FROM delta_blob WHERE id = ? AND family = ?",

	replaceHead:
		"UPDATE delta_checkpoint SET head = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?) AND ns = ? AND id = ? AND head = ?",
	replaceValue: `UPDATE delta_write SET value = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?)
		AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ? AND value = ?`,
	replaceBase: `UPDATE delta_base SET data = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?)
		AND ns = ? AND checkpoint = ? AND channel = ? AND data = ?`,
	replaceBlob: "UPDATE delta_blob SET data = ? WHERE id = ? AND data = ?",

	getThread: `${THREAD} WHERE thread_id = ?`,
	getFamily: `${THREAD} WHERE family = ?`,
	listThreads: `${THREAD} ORDER BY updated_at DESC, thread_id DESC LIMIT ?`,
	listThreadsAfter: `${THREAD} WHERE (updated_at, thread_id) < (?, ?) ORDER BY updated_at DESC, thread_id DESC LIMIT ?`,
	insertThread: `INSERT INTO delta_thread (thread_id, family, stamp, created_at, updated_at, checkpoints)
		VALUES (?, ?, ?, ?, ?, 0)`,
	touchThread: "UPDATE delta_thread SET stamp = ?, updated_at = ?, checkpoints = ?, head = ? WHERE pk = ?",
	restamp: `UPDATE delta_thread SET stamp = ?,
		checkpoints = (SELECT count(*) FROM delta_checkpoint WHERE thread = delta_thread.pk),
		head = (SELECT max(id) FROM delta_checkpoint WHERE thread = delta_thread.pk AND ns = '') WHERE pk = ?`,
	removeThread: "DELETE FROM delta_thread WHERE pk = ?",

	totals: `SELECT (SELECT count(*) FROM delta_thread) AS threads,
		(SELECT count(*) FROM delta_checkpoint) AS checkpoints,
		(SELECT count(*) FROM delta_write) AS writes,
		(SELECT total(length(head)) FROM delta_checkpoint) AS checkpointBytes,
		(SELECT total(length(data)) FROM delta_blob) AS blobBytes,
		(SELECT total(length(value)) FROM delta_write WHERE typeof(value) = 'blob') AS writeBytes`,
} as const;

export type Statements = Record<keyof typeof SQL, SqliteStatement>;

export function prepareAll(db: SqliteDatabase): Statements {
	const entries = Object.entries(SQL).map(([name, text]) => [name, prepare(db, text)]);
	return Object.fromEntries(entries) as Statements;
}

/** Numbers come as numbers, whatever the application has chosen for its own statements. */
export function prepare(db: SqliteDatabase, text: string): SqliteStatement {
	const statement = db.prepare(text);
	return /^(SELECT|.*RETURNING)/s.test(text) ? statement.safeIntegers(false) : statement;
}
