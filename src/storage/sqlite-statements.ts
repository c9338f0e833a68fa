import type { SqliteDatabase, SqliteStatement } from "./sqlite-driver.ts";
import { HEAD, sqlHolder } from "./sqlite-heads.ts";
import { PENDING_BYTES, PENDING_CHANNELS, PENDING_COUNT } from "./sqlite-pending.ts";
import { NO_WRITES, sqlSum } from "./sqlite-sums.ts";

export const CHECKPOINT = `SELECT pk, thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, pending, ${HEAD} AS head
	FROM delta_checkpoint`;
const WRITE = `SELECT thread, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, sum, value
	FROM delta_write`;
const BASE = "SELECT thread, ns, checkpoint, channel, sum, data FROM delta_base";
export const THREAD = `SELECT pk, thread_id, family, stamp, created_at, updated_at, era, checkpoints, head, keys, forks, loose, sum
	FROM delta_thread`;
const INLINE = "iif(typeof(value) = 'blob', length(value), 0)";
const BYTES = `${INLINE} AS bytes`;
/** What a checkpoint has in its own row. */
const IN_ROW = `length(${HEAD}) + ${PENDING_BYTES} AS bytes, ${PENDING_COUNT} AS pendingWrites`;
/** The same of several. */
const IN_ROWS = `total(length(${HEAD}) + ${PENDING_BYTES}) AS bytes, total(${PENDING_COUNT}) AS pendingWrites`;
/** Those of a run of checkpoints of one namespace; see `sqlite-removal.ts`. */
const CHECKPOINTS_BETWEEN = "thread = :thread AND ns = :ns AND id BETWEEN :first AND :last";
/** Their writes or bases. */
const BETWEEN = "thread = :thread AND ns = :ns AND checkpoint BETWEEN :firstPacked AND :lastPacked";

/** Every statement that does not depend on the call. */
const SQL = {
	begin: "BEGIN IMMEDIATE",
	beginRead: "BEGIN",
	commit: "COMMIT",
	rollback: "ROLLBACK",
	getSequence: "SELECT next, sum FROM delta_sequence",
	setSequence: "UPDATE delta_sequence SET next = ?, sum = ?",
	/** Change with commits of other connections, and with changes through this one. */
	getVersion: "SELECT data_version AS others, total_changes() AS all_changes FROM pragma_data_version",

	/** Changes with commits of other connections. */
	getDataVersion: "PRAGMA data_version",

	getCheckpoint: `${CHECKPOINT} WHERE thread = ? AND ns = ? AND id = ?`,
	getCheckpointByPk: `${CHECKPOINT} WHERE pk = ?`,
	getLatest: `${CHECKPOINT} WHERE thread = ? AND ns = ? ORDER BY id DESC LIMIT 1`,
	getNext: `${CHECKPOINT} WHERE thread = ? AND ns = ? AND id > ? ORDER BY id LIMIT 1`,
	getForks: `${CHECKPOINT} WHERE thread = ? AND ns = ? AND parent = ? AND fork = 1`,
	getNewestId: "SELECT max(id) AS id FROM delta_checkpoint WHERE thread = ? AND ns = ?",
	findRunCheckpoints: `${CHECKPOINT} WHERE run_id IN (SELECT value FROM json_each(?))`,
	listKeys: "SELECT thread, ns, id FROM delta_checkpoint INDEXED BY delta_checkpoint_key WHERE thread = ?",
	listNamespaces: "SELECT DISTINCT ns FROM delta_checkpoint INDEXED BY delta_checkpoint_key WHERE thread = ?",
	listIds: "SELECT id FROM delta_checkpoint INDEXED BY delta_checkpoint_key WHERE thread = ? AND ns = ? ORDER BY id",
	listForks:
		"SELECT thread, ns, parent, pk FROM delta_checkpoint INDEXED BY delta_checkpoint_fork WHERE thread = ? AND fork = 1",
	outlineForks: `SELECT thread, ns, id, parent, fork, run_id, source, step, sum FROM delta_checkpoint
		INDEXED BY delta_checkpoint_fork WHERE thread = ? AND fork = 1`,
	insertCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, head)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
	updateCheckpoint: "UPDATE delta_checkpoint SET run_id = ?, source = ?, step = ?, sum = ?, head = ? WHERE pk = ?",
	relink: "UPDATE delta_checkpoint SET parent = ?, fork = 1, sum = ? WHERE pk = ?",
	setPending: "UPDATE delta_checkpoint SET writes = ?, pending = ? WHERE pk = ?",
	/** The same for a row that is still as it was. */
	setPendingIf: "UPDATE delta_checkpoint SET writes = ?, pending = ? WHERE pk = ? AND writes = ? AND sum = ?",
	addToWrites: `UPDATE delta_checkpoint SET writes = ${sqlSum("writes", ":change")} WHERE thread = :thread AND ns = :ns AND id = :id`,
	addToBases: `UPDATE delta_checkpoint SET bases = ${sqlSum("bases", ":change")} WHERE thread = :thread AND ns = :ns AND id = :id`,
	/** Of writes, the total of those that have rows of their own. */
	getTotals: `SELECT sum(iif(pending IS NULL, writes - ${NO_WRITES}, 0) + bases) AS total
		FROM delta_checkpoint WHERE thread = ?`,
	/** Where the writes of a checkpoint are, and how many. */
	getPlace: "SELECT pk, run_id, writes, bases, pending FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ?",
	getThreadPending:
		"SELECT ns, id, run_id, writes, pending FROM delta_checkpoint WHERE thread = ? AND pending IS NOT NULL",
	findEntry: `SELECT pk, ns, id, parent, fork, ${IN_ROW} FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ?`,
	removeCheckpoint: "DELETE FROM delta_checkpoint WHERE pk = ?",
	/** Writes are those that have rows of their own. */
	countCheckpoints: `SELECT count(*) AS count, sum(iif(pending IS NULL, writes - ${NO_WRITES}, 0)) AS writes,
		sum(bases) AS bases, sum(typeof(head) = 'blob') AS holders, ${IN_ROWS} FROM delta_checkpoint WHERE ${CHECKPOINTS_BETWEEN}`,
	listHolders: `SELECT pk FROM delta_checkpoint WHERE ${CHECKPOINTS_BETWEEN} AND typeof(head) = 'blob'`,
	removeCheckpoints: `DELETE FROM delta_checkpoint WHERE ${CHECKPOINTS_BETWEEN}`,
	listForksBetween: `SELECT ns, parent, pk, fork FROM delta_checkpoint INDEXED BY delta_checkpoint_fork
		WHERE ${CHECKPOINTS_BETWEEN} AND fork = 1`,
	/**
	 * A checkpoint that has its own head and no twin in another thread of its family, whose head it would be too. The newest
	 * come first: they are the thread's own.
	 */
	findOnlyCheckpoint: `SELECT 1 FROM delta_checkpoint AS mine WHERE ${CHECKPOINTS_BETWEEN} AND typeof(head) = 'blob'
		AND NOT EXISTS (SELECT 1 FROM delta_thread AS other CROSS JOIN delta_checkpoint AS twin
		ON twin.thread = other.pk AND twin.ns = mine.ns AND twin.id = mine.id
		WHERE other.family = :family AND other.pk <> :thread AND twin.head = mine.pk) ORDER BY id DESC LIMIT 1`,
	/** The same for writes that stand in its row. Those of a copy have a twin where its head is, as a rule. */
	findOnlyPending: `SELECT 1 FROM delta_checkpoint AS mine WHERE ${CHECKPOINTS_BETWEEN} AND pending IS NOT NULL
		AND pending IS NOT (SELECT holder.pending FROM delta_checkpoint AS holder WHERE holder.pk = mine.head)
		AND NOT EXISTS (SELECT 1 FROM delta_thread AS other CROSS JOIN delta_checkpoint AS twin
		ON twin.thread = other.pk AND twin.ns = mine.ns AND twin.id = mine.id
		WHERE other.family = :family AND other.pk <> :thread AND twin.pending = mine.pending) ORDER BY id DESC LIMIT 1`,
	listSome: `SELECT pk, ${IN_ROW} FROM delta_checkpoint WHERE thread = ? LIMIT ?`,
	removeListed: "DELETE FROM delta_checkpoint WHERE pk IN (SELECT value FROM json_each(?))",
	copyCheckpoints: `INSERT INTO delta_checkpoint (thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, pending, head)
		SELECT :target, ns, id, parent, fork, run_id, source, step, writes, bases, ${sqlSum("sum", ":between")}, pending, ${sqlHolder("delta_checkpoint")}
		FROM delta_checkpoint WHERE thread = :source ORDER BY pk RETURNING pk, ns, id, parent, fork`,
	countInRows: `SELECT ${IN_ROWS} FROM delta_checkpoint WHERE thread = ?`,
	getRelative: "SELECT pk FROM delta_thread WHERE family = ? AND pk <> ? LIMIT 1",
	findHeirs: `SELECT mine.pk AS holder, other.pk AS row FROM json_each(:rows) AS listed
		CROSS JOIN delta_checkpoint AS mine ON mine.pk = listed.value AND typeof(mine.head) = 'blob'
		CROSS JOIN delta_thread AS relative ON relative.family = :family AND relative.pk <> :thread
		CROSS JOIN delta_checkpoint AS other ON other.thread = relative.pk AND other.ns = mine.ns AND other.id = mine.id
		WHERE other.head = mine.pk`,
	takeHead: `UPDATE delta_checkpoint SET head = ${HEAD} WHERE pk = ?`,
	setHead: "UPDATE delta_checkpoint SET head = ? WHERE pk = ?",

	getWrites: `${WRITE} WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	getThreadWrites: `${WRITE} WHERE thread = ?`,
	outlinePending: `SELECT DISTINCT ns, ${PENDING_CHANNELS} AS channels FROM delta_checkpoint
		WHERE thread = ? AND pending IS NOT NULL`,
	outlineWrites: `SELECT ns, channel, count(*) AS count, sum(sum) AS sums FROM delta_write WHERE thread = ? GROUP BY ns, channel`,
	findRunWrites: `${WRITE} WHERE run_id IN (SELECT value FROM json_each(?))`,
	getTaskWrites: `SELECT generation, idx, sum FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ?`,
	getWrite: `${WRITE} WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?`,
	putWrite: "INSERT OR REPLACE INTO delta_write VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
		SELECT :target, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, ${sqlSum("sum", ":between")}, value
		FROM delta_write WHERE thread = :source RETURNING ${BYTES}`,
	copyWritesOf: `INSERT INTO delta_write
		SELECT :target, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, ${sqlSum("sum", ":between")}, value
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
	getThreadsByHash: `${THREAD} INDEXED BY delta_thread_hash WHERE hash = ?`,
	getFamily: `${THREAD} WHERE family = ?`,
	getAllThreads: `${THREAD} NOT INDEXED`,
	listThreadsByPk: `${THREAD} NOT INDEXED WHERE pk > ? ORDER BY pk LIMIT ?`,
	listThreads: `${THREAD} ORDER BY era DESC, updated_at DESC, thread_id DESC LIMIT ?`,
	listThreadsAfter: `${THREAD} WHERE era <= ? AND (updated_at, thread_id) < (?, ?)
		ORDER BY era DESC, updated_at DESC, thread_id DESC LIMIT ?`,
	insertThread: "INSERT INTO delta_thread VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, 0, 0, 0, 0)",
	saveThread: `UPDATE delta_thread SET stamp = ?, updated_at = ?, checkpoints = ?, head = ?, keys = ?, forks = ?, loose = ?,
		sum = ? WHERE pk = ? AND sum = ?`,
	setEra: "UPDATE delta_thread SET era = ? WHERE pk = ?",
	removeThread: "DELETE FROM delta_thread WHERE pk = ?",
	addGone: "INSERT INTO delta_gone VALUES (?, ?)",
	getGone: "SELECT thread AS pk, family FROM delta_gone LIMIT 1",
	removeGone: "DELETE FROM delta_gone WHERE thread = ?",

	totals: `SELECT (SELECT count(*) FROM delta_thread) AS threads,
		(SELECT count(*) FROM delta_checkpoint) AS checkpoints,
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
