import type { SqliteDatabase, SqliteStatement } from "./driver.ts";
import { HEAD, sqlHolder } from "./heads.ts";
import { PENDING_BYTES, PENDING_CHANNELS, PENDING_COUNT } from "./pending.ts";
import { NO_WRITES, sqlSum } from "./sums.ts";

/** Rows of checkpoints by their keys. If a row is lost, or the number leads to another one, its columns are null. */
export const ROWS = `delta_key LEFT JOIN delta_checkpoint
	ON pk = row_pk AND thread = thread_pk AND ns = key_ns AND id = key_id`;
/** The same of a thread whose keys are known to lead to their own rows. */
export const SOUND_ROWS = "delta_key CROSS JOIN delta_checkpoint ON pk = row_pk";
const REST = `parent, fork, run_id, source, step, writes, bases, sum, pending, ${HEAD} AS head`;
export const CHECKPOINT = `SELECT pk, thread_pk AS thread, key_ns AS ns, key_id AS id, ${REST} FROM ${ROWS}`;
const CHECKPOINT_ROW = `SELECT pk, thread, ns, id, ${REST} FROM delta_checkpoint`;
const WRITE = `SELECT thread, ns, checkpoint, task, generation, idx, task_path, channel, run_id, actor, type, sum, value
	FROM delta_write`;
const BASE = "SELECT thread, ns, checkpoint, channel, sum, data FROM delta_base";
/** Keys have texts as namespaces, so that no thread has one like this. */
const TOTALS = "key_ns = x'' AND key_id = ''";
const THREAD = threadsBy("");
const INLINE = "iif(typeof(value) = 'blob', length(value), 0)";
const BYTES = `${INLINE} AS bytes`;
/** What a checkpoint has in its own row. */
const IN_ROW = `length(${HEAD}) + ${PENDING_BYTES} AS bytes, ${PENDING_COUNT} AS pendingWrites`;
/** The same of several. */
const IN_ROWS = `total(length(${HEAD}) + ${PENDING_BYTES}) AS bytes, total(${PENDING_COUNT}) AS pendingWrites`;
const KEY = "thread_pk = ? AND key_ns = ? AND key_id = ?";
/** The row with a key. */
const ROW_OF_KEY = `pk = (SELECT row_pk FROM delta_key WHERE thread_pk = :thread AND key_ns = :ns AND key_id = :id)
	AND thread = :thread AND ns = :ns AND id = :id`;
/** Keys of a run of checkpoints of one namespace; see `sqlite-removal.ts`. */
const KEYS_BETWEEN = "thread_pk = :thread AND key_ns = :ns AND key_id BETWEEN :first AND :last";
/** Their writes or bases. */
const BETWEEN = "thread = :thread AND ns = :ns AND checkpoint BETWEEN :firstPacked AND :lastPacked";

/** Checkpoints with the key of `mine` in other threads of its family. */
const TWINS = `SELECT 1 FROM delta_thread AS other
	CROSS JOIN delta_key AS twin_key ON twin_key.thread_pk = other.pk AND twin_key.key_ns = mine.ns AND twin_key.key_id = mine.id
	CROSS JOIN delta_checkpoint AS twin ON twin.pk = twin_key.row_pk
	WHERE other.family = :family AND other.pk <> :thread`;

/** Every statement that does not depend on the call. */
const SQL = {
	begin: "BEGIN IMMEDIATE",
	beginRead: "BEGIN",
	commit: "COMMIT",
	rollback: "ROLLBACK",
	getSequence: "SELECT next, sum FROM delta_format",
	setSequence: "UPDATE delta_format SET next = ?, sum = ?",
	/** Change with commits of other connections, and with changes through this one. */
	getVersion: "SELECT data_version AS others, total_changes() AS all_changes FROM pragma_data_version",

	/** Changes with commits of other connections. */
	getDataVersion: "PRAGMA data_version",

	getCheckpoint: `${CHECKPOINT} WHERE ${KEY}`,
	getLatest: `${CHECKPOINT} WHERE thread_pk = ? AND key_ns = ? ORDER BY key_id DESC LIMIT 1`,
	getNext: `${CHECKPOINT} WHERE thread_pk = ? AND key_ns = ? AND key_id > ? ORDER BY key_id LIMIT 1`,
	getForks: `${CHECKPOINT_ROW} WHERE thread = ? AND ns = ? AND parent = ? AND fork = 1`,
	getNewestId: "SELECT max(key_id) AS id FROM delta_key WHERE thread_pk = ? AND key_ns = ?",
	findRunCheckpoints: `${CHECKPOINT_ROW} WHERE run_id IN (SELECT value FROM json_each(?))`,
	/** With the one that has the totals, which leads to no row. */
	listKeys: "SELECT thread_pk AS thread, key_ns AS ns, key_id AS id, row_pk AS pk FROM delta_key WHERE thread_pk = ?",
	/** A key that leads to no row, or to another one. */
	getLost: `SELECT 1 FROM ${ROWS} WHERE thread_pk = ? AND row_pk > 0 AND pk IS NULL LIMIT 1`,
	listNamespaces: "SELECT DISTINCT key_ns FROM delta_key WHERE thread_pk = ? AND row_pk > 0",
	listIds: "SELECT key_id FROM delta_key WHERE thread_pk = ? AND key_ns = ? ORDER BY key_id",
	insertKey: "INSERT INTO delta_key (thread_pk, key_ns, key_id, row_pk) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
	/** Each is searched for once more, by all that it has. */
	listForks: `SELECT thread, ns, parent, pk, EXISTS (
		SELECT 1 FROM delta_checkpoint AS again INDEXED BY delta_checkpoint_fork WHERE again.thread = listed.thread
		AND again.ns = listed.ns AND again.parent IS listed.parent AND again.pk = listed.pk AND again.fork = 1) AS isFound
		FROM delta_checkpoint AS listed INDEXED BY delta_checkpoint_fork WHERE thread = ? AND fork = 1`,
	outlineForks: `SELECT thread, ns, id, parent, fork, run_id, source, step, sum FROM delta_checkpoint
		INDEXED BY delta_checkpoint_fork WHERE thread = ? AND fork = 1`,
	insertCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, head)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	updateCheckpoint: "UPDATE delta_checkpoint SET run_id = ?, source = ?, step = ?, sum = ?, head = ? WHERE pk = ?",
	relink: "UPDATE delta_checkpoint SET parent = ?, fork = 1, sum = ? WHERE pk = ?",
	setPending: "UPDATE delta_checkpoint SET writes = ?, pending = ? WHERE pk = ?",
	/** The same for a row that is still as it was. */
	setPendingIf: "UPDATE delta_checkpoint SET writes = ?, pending = ? WHERE pk = ? AND writes = ? AND sum = ?",
	addToWrites: `UPDATE delta_checkpoint SET writes = ${sqlSum("writes", ":change")} WHERE ${ROW_OF_KEY}`,
	addToBases: `UPDATE delta_checkpoint SET bases = ${sqlSum("bases", ":change")} WHERE ${ROW_OF_KEY}`,
	/** Of writes, the total of those that have rows of their own. */
	getTotals: `SELECT count(pk) AS count, sum(iif(pending IS NULL, writes - ${NO_WRITES}, 0) + bases) AS total
		FROM ${ROWS} WHERE thread_pk = ?`,
	/** Where the writes of a checkpoint are, and how many. */
	getPlace: `SELECT pk, run_id, writes, bases, pending FROM ${ROWS} WHERE ${KEY}`,
	getThreadPending: `SELECT ns, id, run_id, writes, pending FROM ${ROWS} WHERE thread_pk = ? AND pending IS NOT NULL`,
	findEntry: `SELECT pk, ns, id, parent, fork, ${IN_ROW} FROM ${ROWS} WHERE ${KEY}`,
	removeCheckpoint: "DELETE FROM delta_checkpoint WHERE pk = ?",
	removeKey: `DELETE FROM delta_key WHERE ${KEY}`,
	/** Writes are those that have rows of their own. */
	countCheckpoints: `SELECT count(pk) AS count, sum(iif(pending IS NULL, writes - ${NO_WRITES}, 0)) AS writes,
		sum(bases) AS bases, sum(typeof(head) = 'blob') AS holders, ${IN_ROWS} FROM ${ROWS} WHERE ${KEYS_BETWEEN}`,
	listHolders: `SELECT pk FROM ${ROWS} WHERE ${KEYS_BETWEEN} AND typeof(head) = 'blob'`,
	removeCheckpoints: `DELETE FROM delta_checkpoint WHERE pk IN (SELECT pk FROM ${ROWS} WHERE ${KEYS_BETWEEN})`,
	removeKeys: `DELETE FROM delta_key WHERE ${KEYS_BETWEEN}`,
	listForksBetween: `SELECT ns, parent, pk, fork FROM delta_checkpoint INDEXED BY delta_checkpoint_fork
		WHERE thread = :thread AND ns = :ns AND id BETWEEN :first AND :last AND fork = 1`,
	/**
	 * A checkpoint that has its own head and no twin in another thread of its family, whose head it would be too. The newest
	 * come first: they are the thread's own.
	 */
	findOnlyCheckpoint: `SELECT 1 FROM delta_key CROSS JOIN delta_checkpoint AS mine ON mine.pk = row_pk
		WHERE ${KEYS_BETWEEN} AND typeof(mine.head) = 'blob'
		AND NOT EXISTS (${TWINS} AND twin.head = mine.pk) ORDER BY key_id DESC LIMIT 1`,
	/** The same for writes that stand in its row. Those of a copy have a twin where its head is, as a rule. */
	findOnlyPending: `SELECT 1 FROM delta_key CROSS JOIN delta_checkpoint AS mine ON mine.pk = row_pk
		WHERE ${KEYS_BETWEEN} AND mine.pending IS NOT NULL
		AND mine.pending IS NOT (SELECT holder.pending FROM delta_checkpoint AS holder WHERE holder.pk = mine.head)
		AND NOT EXISTS (${TWINS} AND twin.pending = mine.pending) ORDER BY key_id DESC LIMIT 1`,
	listSome: `SELECT pk, ${IN_ROW} FROM ${ROWS} WHERE thread_pk = ? AND pk IS NOT NULL ORDER BY key_ns, key_id LIMIT ?`,
	removeListed: "DELETE FROM delta_checkpoint WHERE pk IN (SELECT value FROM json_each(?))",
	/** The keys of those that {@link listSome} lists. */
	removeSomeKeys: `DELETE FROM delta_key WHERE (thread_pk, key_ns, key_id) IN
		(SELECT thread_pk, key_ns, key_id FROM delta_key WHERE thread_pk = ? ORDER BY key_ns, key_id LIMIT ?)`,
	copyCheckpoints: `INSERT INTO delta_checkpoint (thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, pending, head)
		SELECT :target, ns, id, parent, fork, run_id, source, step, writes, bases, ${sqlSum("sum", ":between")}, pending, ${sqlHolder("delta_checkpoint")}
		FROM ${ROWS} WHERE thread_pk = :source AND pk IS NOT NULL ORDER BY pk RETURNING pk, ns, id, parent, fork`,
	copyKeys: `INSERT INTO delta_key (thread_pk, key_ns, key_id, row_pk)
		SELECT thread, ns, id, pk FROM delta_checkpoint WHERE pk BETWEEN ? AND ? AND thread = ?`,
	countInRows: `SELECT ${IN_ROWS} FROM ${ROWS} WHERE thread_pk = ?`,
	getRelative: "SELECT pk FROM delta_thread WHERE family = ? AND pk <> ? LIMIT 1",
	findHeirs: `SELECT mine.pk AS holder, other.pk AS row FROM json_each(:rows) AS listed
		CROSS JOIN delta_checkpoint AS mine ON mine.pk = listed.value AND typeof(mine.head) = 'blob'
		CROSS JOIN delta_thread AS relative ON relative.family = :family AND relative.pk <> :thread
		CROSS JOIN delta_key ON thread_pk = relative.pk AND key_ns = mine.ns AND key_id = mine.id
		CROSS JOIN delta_checkpoint AS other ON other.pk = row_pk
		WHERE other.head = mine.pk`,
	takeHead: `UPDATE delta_checkpoint SET head = ${HEAD} WHERE pk = ?`,
	setHead: "UPDATE delta_checkpoint SET head = ? WHERE pk = ?",

	getWrites: `${WRITE} WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	getThreadWrites: `${WRITE} WHERE thread = ?`,
	outlinePending: `SELECT DISTINCT ns, ${PENDING_CHANNELS} AS channels FROM ${ROWS}
		WHERE thread_pk = ? AND pending IS NOT NULL`,
	outlineWrites: `SELECT ns, channel, count(*) AS count, sum(sum) AS sums FROM delta_write WHERE thread = ? GROUP BY ns, channel`,
	findRunWrites: `${WRITE} WHERE run_id IN (SELECT value FROM json_each(?))`,
	getTaskWrites: `SELECT generation, idx, sum FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ?`,
	getWrite: `${WRITE} WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?`,
	putWrite: "INSERT OR REPLACE INTO delta_write VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	removeWrite: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?
		RETURNING sum, ${BYTES}`,
	removeWrites: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? RETURNING sum, ${BYTES}`,
	countWrites: `SELECT count(*) AS count, sum(sum) AS sums, total(${INLINE}) AS bytes FROM delta_write
		WHERE ${BETWEEN}`,
	removeWritesBetween: `DELETE FROM delta_write WHERE ${BETWEEN}`,
	/** A write that names a blob, and has no twin in another thread of its family. */
	findOnlyWrite: `SELECT 1 FROM delta_write AS mine WHERE ${BETWEEN} AND typeof(value) = 'integer' AND NOT EXISTS (
		SELECT 1 FROM delta_thread AS other CROSS JOIN delta_write AS twin
		ON twin.thread = other.pk AND twin.ns = mine.ns AND twin.checkpoint = mine.checkpoint AND twin.task = mine.task
		AND twin.generation = mine.generation AND twin.idx = mine.idx
		WHERE other.family = :family AND other.pk <> :thread AND twin.value = mine.value
		) ORDER BY checkpoint DESC LIMIT 1`,
	removeSomeWrites: `DELETE FROM delta_write WHERE (thread, ns, checkpoint, task, generation, idx) IN
		(SELECT thread, ns, checkpoint, task, generation, idx FROM delta_write WHERE thread = ? LIMIT ?) RETURNING ${BYTES}`,
	copyWrites: `INSERT INTO delta_write
		SELECT :target, ns, checkpoint, task, generation, idx, task_path, channel, run_id, actor, type, ${sqlSum("sum", ":between")}, value
		FROM delta_write WHERE thread = :source RETURNING ${BYTES}`,
	copyWritesOf: `INSERT INTO delta_write
		SELECT :target, ns, checkpoint, task, generation, idx, task_path, channel, run_id, actor, type, ${sqlSum("sum", ":between")}, value
		FROM delta_write WHERE thread = :source AND ns = :ns AND checkpoint = :checkpoint RETURNING sum, ${BYTES}`,

	getBases: `${BASE} WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	getThreadBases: `${BASE} WHERE thread = ?`,
	outlineBases: "SELECT count(*) AS count, sum(sum) AS sums FROM delta_base WHERE thread = ?",
	getBaseSum: "SELECT sum FROM delta_base WHERE thread = ? AND ns = ? AND checkpoint = ? AND channel = ?",
	putBase: "INSERT OR REPLACE INTO delta_base VALUES (?, ?, ?, ?, ?, ?)",
	removeBases: "DELETE FROM delta_base WHERE thread = ? AND ns = ? AND checkpoint = ? RETURNING sum",
	countBases: `SELECT count(*) AS count, sum(sum) AS sums FROM delta_base WHERE ${BETWEEN}`,
	removeBasesBetween: `DELETE FROM delta_base WHERE ${BETWEEN}`,
	removeAllBases: "DELETE FROM delta_base WHERE thread = ?",
	copyBases: `INSERT INTO delta_base SELECT :target, ns, checkpoint, channel, ${sqlSum("sum", ":between")}, data FROM delta_base
		WHERE thread = :source`,
	copyBasesOf: `INSERT INTO delta_base SELECT :target, ns, checkpoint, channel, ${sqlSum("sum", ":between")}, data FROM delta_base
		WHERE thread = :source AND ns = :ns AND checkpoint = :checkpoint RETURNING sum`,

	getBlob: "SELECT id, family, base, source, type, sum, data FROM delta_blob WHERE id = ?",
	insertBlob: "INSERT INTO delta_blob (id, family, base, source, type, sum, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
	listBlobsAfter:
		"SELECT id, family, base, source, type, sum FROM delta_blob NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?",
	listBlobs: "SELECT id, family, base, source, type, sum, length(data) AS bytes FROM delta_blob WHERE family = ?",
	listFamilies: "SELECT DISTINCT family FROM delta_blob WHERE family > ? ORDER BY family LIMIT ?",
	removeBlob: "DELETE FROM delta_blob WHERE id = ? AND family = ?",

	replaceValue: `UPDATE delta_write SET value = ?, sum = ? WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ?
		AND generation = ? AND idx = ? AND value = ?`,
	replaceBase:
		"UPDATE delta_base SET data = ? WHERE thread = ? AND ns = ? AND checkpoint = ? AND channel = ? AND data = ?",
	replaceBlob: "UPDATE delta_blob SET data = ? WHERE id = ? AND data = ?",

	getThread: `${THREAD} WHERE thread_id = ?`,
	getThreadByPk: `${THREAD} WHERE pk = ?`,
	getThreadsByHash: `${threadsBy("INDEXED BY delta_thread_hash")} WHERE hash = ?`,
	getFamily: `${THREAD} WHERE family = ?`,
	getAllThreads: threadsBy("NOT INDEXED"),
	/** Checkpoints of threads that are not about to be removed. */
	countAll: `SELECT (SELECT count(*) FROM delta_key WHERE row_pk > 0 AND thread_pk NOT IN (SELECT thread FROM delta_gone)) AS keys,
		(SELECT count(*) FROM delta_checkpoint WHERE thread NOT IN (SELECT thread FROM delta_gone)) AS rows`,
	/** A thread that is a copy of another, or has one. */
	getCopy: "SELECT family FROM delta_thread GROUP BY family HAVING count(*) > 1 LIMIT 1",
	listThreadsByPk: `${threadsBy("NOT INDEXED")} WHERE pk > ? ORDER BY pk LIMIT ?`,
	listThreads: `${THREAD} ORDER BY era DESC, updated_at DESC, thread_id DESC LIMIT ?`,
	listThreadsAfter: `${THREAD} WHERE era <= ? AND (updated_at, thread_id) < (?, ?)
		ORDER BY era DESC, updated_at DESC, thread_id DESC LIMIT ?`,
	insertThread: "INSERT INTO delta_thread VALUES (?, ?, ?, ?, ?, ?, ?)",
	insertTotals: "INSERT INTO delta_key VALUES (?, x'', '', 0, 0, 0, 0, NULL, 0, 0, 0, 0)",
	saveTotals: `UPDATE delta_key SET stamp = ?, updated_at = ?, checkpoints = ?, newest = ?, keys = ?, forks = ?, loose = ?,
		totals_sum = ? WHERE thread_pk = ? AND ${TOTALS} AND totals_sum = ?`,
	setEra: "UPDATE delta_thread SET era = ? WHERE pk = ?",
	removeThread: "DELETE FROM delta_thread WHERE pk = ?",
	removeTotals: `DELETE FROM delta_key WHERE thread_pk = ? AND ${TOTALS}`,
	addGone: "INSERT INTO delta_gone VALUES (?, ?)",
	getGone: "SELECT thread AS pk, family FROM delta_gone LIMIT 1",
	removeGone: "DELETE FROM delta_gone WHERE thread = ?",

	totals: `SELECT (SELECT count(*) FROM delta_thread) AS threads,
		(SELECT count(*) FROM delta_key WHERE row_pk > 0) AS checkpoints,
		(SELECT count(*) FROM delta_write) + (SELECT total(${PENDING_COUNT}) FROM delta_checkpoint) AS writes,
		(SELECT total(length(${HEAD})) FROM delta_checkpoint) AS checkpointBytes,
		(SELECT total(length(data)) FROM delta_blob) AS blobBytes,
		(SELECT total(length(value)) FROM delta_write WHERE typeof(value) = 'blob')
		+ (SELECT total(${PENDING_BYTES}) FROM delta_checkpoint) AS writeBytes`,
} as const;

export type Statements = Record<keyof typeof SQL, SqliteStatement>;

/** Each is prepared when it is first used: most sessions need few of them. */
export function statementsOn(db: SqliteDatabase): Statements {
	const statements = {};
	for (const [name, text] of Object.entries(SQL))
		Object.defineProperty(statements, name, {
			configurable: true,
			get: () => {
				const value = prepare(db, text);
				Object.defineProperty(statements, name, { value });
				return value;
			},
		});
	return statements as Statements;
}

/** Numbers come as numbers, whatever the application has chosen for its own statements. */
export function prepare(db: SqliteDatabase, text: string): SqliteStatement {
	const statement = db.prepare(text);
	return /^(SELECT|.*RETURNING)/s.test(text) ? statement.safeIntegers(false) : statement;
}

/** @param way how the table is to be read */
function threadsBy(way: string): string {
	return `SELECT pk, thread_id, family, created_at, era, sum AS name_sum,
		stamp, updated_at, checkpoints, newest AS head, keys, forks, loose, totals_sum AS sum
		FROM delta_thread ${way} LEFT JOIN delta_key ON thread_pk = pk AND ${TOTALS}`;
}
