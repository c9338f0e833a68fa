import { constants, copyFileSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { CheckpointError, quote } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import { codeOf, openDatabase, type SqliteDatabase, SqliteSession } from "./driver.ts";
import { setUp } from "./schema.ts";
import { fileSource } from "./source.ts";
import { addThread, NEWEST } from "./write.ts";

const COUNT = `SELECT count(*) FROM delta_checkpoints c WHERE c.thread_id = delta_threads.thread_id AND head IS NOT NULL`;
const FIND_THREADLESS = `SELECT DISTINCT thread_id AS threadId FROM delta_checkpoints c
	WHERE NOT EXISTS (SELECT 1 FROM delta_threads t WHERE t.thread_id = c.thread_id)`;
const GET_KEYS = "SELECT pk, thread_id, ns, checkpoint_id, parent_id FROM delta_checkpoints NOT INDEXED";
const FIND_KEY = `SELECT 1 FROM delta_checkpoints INDEXED BY delta_checkpoints_key WHERE thread_id = :thread_id
	AND ns = :ns AND checkpoint_id = :checkpoint_id AND parent_id IS :parent_id AND pk = :pk`;
const HEADLESS = "FROM delta_checkpoints INDEXED BY delta_checkpoints_headless WHERE head IS NULL";
const QUESTIONS = {
	"The row of a checkpoint is missing.": `SELECT DISTINCT thread_id AS threadId
		FROM delta_checkpoints k INDEXED BY delta_checkpoints_key
		WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints r NOT INDEXED WHERE r.pk = k.pk AND r.thread_id = k.thread_id
			AND r.ns = k.ns AND r.checkpoint_id = k.checkpoint_id AND r.parent_id IS k.parent_id)`,
	"The thread says another number of checkpoints, newest one or time than it has.": `SELECT thread_id AS threadId
		FROM delta_threads
		WHERE checkpoints <> (${COUNT}) OR newest IS NOT (${NEWEST}) OR updated_minute <> updated_at / 60000`,
	"The index over rows without a head has another row, or lacks one.": `SELECT DISTINCT thread_id AS threadId
		FROM delta_checkpoints NOT INDEXED WHERE iif(head IS NULL,
			(pk, thread_id, ns, checkpoint_id) NOT IN (SELECT pk, thread_id, ns, checkpoint_id ${HEADLESS}),
			pk IN (SELECT pk ${HEADLESS}))`,
	"Checkpoints belong to no thread.": FIND_THREADLESS,
	"Rows of delta_writes or delta_bases belong to no checkpoint.": `SELECT NULL AS threadId
		FROM (SELECT checkpoint_pk FROM delta_writes UNION SELECT checkpoint_pk FROM delta_bases)
		WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints WHERE pk = checkpoint_pk) LIMIT 1`,
};

const FIND_FAMILY = `SELECT family FROM delta_checkpoints, json_each(iif(json_valid(blobs), blobs, '[]')) named
	CROSS JOIN delta_blobs b ON b.id = named.value WHERE thread_id = ? LIMIT 1`;
const RECOUNT = `UPDATE delta_threads
	SET stamp = ?, checkpoints = (${COUNT}), newest = (${NEWEST}), updated_minute = updated_at / 60000`;
/** Processes hand out numbers that they reserved long ago: of those left out, the last are free. */
const SKIP_IDS = `UPDATE delta_format SET next_id = 1000000 + max(next_id,
	(SELECT ifnull(max(id), 0) FROM delta_blobs), (SELECT ifnull(max(family), 0) FROM delta_blobs),
	(SELECT ifnull(max(family), 0) FROM delta_threads), (SELECT ifnull(max(stamp), 0) FROM delta_threads))
	RETURNING next_id AS free`;

/** Looks for damage of the structure, where rows may be lost or hidden, and compares rows with each other. */
export function findDamage(session: SqliteSession): Record<"structure" | "rows", StorageDamage[]> {
	return { structure: checkIntegrity(session), rows: findMismatches(session) };
}

/** SQLite names pages, or nothing if it gives up there: each table that is damaged says more. */
function checkIntegrity(session: SqliteSession): StorageDamage[] {
	const ask = (table: string) =>
		collect("", () => {
			const answers = session.all<{ integrity_check: string }>(`PRAGMA integrity_check${table}`);
			return answers.filter((row) => row.integrity_check !== "ok").map((row) => ({ problem: row.integrity_check }));
		});
	const found = ask("");
	const damaged = found.length === 0 ? [] : Object.keys(KEYS).filter((table) => ask(`(${table})`).length > 0);
	return [...found, ...damaged.map((table) => ({ problem: `Pages of ${table} are damaged.` }))];
}

function findMismatches(session: SqliteSession): StorageDamage[] {
	const ask = ([problem, sql]: [string, string]) =>
		collect(problem, () => session.all<StorageDamage>(sql).map(({ threadId }) => ({ threadId, problem })));
	return [...findHidden(session.db), ...Object.entries(QUESTIONS).flatMap(ask)];
}

/** Each row is searched for by its key: a page that is damaged or out of order hides some. */
function findHidden(db: SqliteDatabase): StorageDamage[] {
	const find = db.prepare(FIND_KEY);
	const threads = new Set<string>();
	readRows<{ thread_id: string }>(db, GET_KEYS, (row) => {
		if (!isReadable(() => find.get(row) ?? threads.add(row.thread_id))) threads.add(row.thread_id);
	});
	return [...threads].map((threadId) => ({ threadId, problem: "The index over keys lacks a checkpoint." }));
}

/** What a check returns, or that it can't be made. */
function collect(question: string, check: () => StorageDamage[]): StorageDamage[] {
	try {
		return check();
	} catch (error) {
		// An application's own SQLite may lack a table that is asked.
		if (!isDamage(error) && codeOf(error) !== "SQLITE_ERROR") throw error;
		return [{ problem: `${question} ${(error as Error).message}`.trim() }];
	}
}

/** Whether SQLite, or this package, could not read what is stored. */
export function isDamage(error: unknown): boolean {
	return /^(SQLITE_)?CORRUPT/.test(codeOf(error));
}

/** Makes right what rows say of others. Whatever builds on rows that were read before is refused afterwards. */
export function recount(session: SqliteSession): void {
	for (const table of ["delta_writes", "delta_bases"])
		session.run(`DELETE FROM ${table} WHERE checkpoint_pk NOT IN (SELECT pk FROM delta_checkpoints)`);
	let { free } = session.get(SKIP_IDS) as { free: number };
	for (const { threadId } of session.all<{ threadId: string }>(FIND_THREADLESS)) {
		const { family = --free } = session.get<{ family: number }>(FIND_FAMILY, threadId) ?? {};
		addThread(session, threadId, family, family, Date.now());
	}
	session.run(RECOUNT, --free);
}

/** Tables in the order they are copied, and where to learn of keys that a scan does not reach, with their threads. */
const KEYS = {
	delta_threads: "SELECT thread_id AS key, thread_id AS threadId FROM delta_threads INDEXED BY delta_threads_family",
	delta_checkpoints: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints INDEXED BY delta_checkpoints_key",
	delta_writes: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints NOT INDEXED",
	delta_bases: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints NOT INDEXED",
	delta_blobs: "SELECT id AS key FROM delta_blobs INDEXED BY delta_blobs_family",
};

/**
 * Copies what SQLite can still read of a damaged file to a new one, and puts that in its place. The damaged file stays
 * beside it, under another name. Killed at any moment it leaves the one or the other in place.
 */
export function rebuildFile(path: string): { lost: StorageDamage[]; damagedFile: string } {
	const unfinished = `${path}.repairing`;
	for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(unfinished + end, { force: true });
	const damaged = openDatabase(path);
	try {
		// Otherwise SQLite refuses a file that is shorter than it should be.
		damaged.unsafeMode(true);
		// Keeps others from the file until it is closed. Throws if they have it open.
		isReadable(() => {
			damaged.pragma("writable_schema = ON");
			damaged.pragma("locking_mode = EXCLUSIVE");
			damaged.exec("BEGIN IMMEDIATE; COMMIT");
		});
		const lost = copyRows(damaged, unfinished);
		const damagedFile = keepFile(path, damaged);
		renameSync(unfinished, path);
		return { lost, damagedFile };
	} finally {
		damaged.close();
	}
}

/** Copies the damaged file. Its log is taken over into it, so that none is left for the new file. */
function keepFile(path: string, db: SqliteDatabase): string {
	let kept = `${path}.damaged`;
	for (let n = 2; existsSync(kept); n++) kept = `${path}.damaged-${n}`;
	if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size) copyFileSync(`${path}-wal`, `${kept}-wal`);
	db.pragma("journal_mode = DELETE");
	copyFileSync(path, kept, constants.COPYFILE_FICLONE);
	return kept;
}

function copyRows(damaged: SqliteDatabase, path: string): StorageDamage[] {
	const session = new SqliteSession(openDatabase(path));
	try {
		// Without a log, which would become as large as the file.
		setUp(session, { ...fileSource(path), configure: (db) => db.pragma("auto_vacuum = INCREMENTAL") });
		return session.transaction.immediate(() => {
			const lost = Object.entries(KEYS).flatMap(([table, keys]) => copyTable(damaged, session, table, keys));
			if (lost.length > 0 && session.get("SELECT 1 FROM delta_checkpoints") === undefined)
				throw new CheckpointError("CORRUPT", `SQLite can read nothing of ${quote(damaged.name)}: restore a backup.`);
			const setNextId = (row: object) => session.run("UPDATE delta_format SET next_id = :next_id", row);
			readRows(damaged, "SELECT next_id FROM delta_format", setNextId);
			lost.push(...findMismatches(session));
			recount(session);
			return lost;
		}) as StorageDamage[];
	} finally {
		session.db.close();
	}
}

type Key = { key: unknown; threadId?: string };

/** From both ends as far as rows can be read, and between by their keys. */
function copyTable(damaged: SqliteDatabase, target: SqliteSession, table: string, keys: string): StorageDamage[] {
	const columns = target.db.pragma(`table_info(${table})`) as { name: string; pk: number }[];
	const names = columns.map(({ name }) => name).join(", ");
	const insert = `INSERT OR IGNORE INTO ${table} (${names}) VALUES (${columns.map(() => "?").join(", ")})`;
	const key = columns.filter(({ pk }) => pk > 0).map(({ name }) => name);
	const select = `SELECT ${names} FROM ${table} NOT INDEXED`;
	const add = (row: object) => target.run(insert, ...Object.values(row));
	const copy = (rest: string, ...keys: unknown[]) => readRows(damaged, `${select} ${rest}`, add, ...keys);
	if (copy(`ORDER BY ${key.join(", ")}`)) return [];
	copy(`ORDER BY ${key.join(" DESC, ")} DESC`);
	const known = new Map<unknown, string | undefined>();
	for (const db of [damaged, target.db]) readRows<Key>(db, keys, (row) => known.set(row.key, row.threadId));
	const lost = [...known].filter(([value]) => !copy(`WHERE ${key[0]} = ?`, value));
	const threads = new Set([undefined, ...lost.map(([, threadId]) => threadId)]);
	return [...threads].map((threadId) => ({ threadId, problem: `Rows of ${table} can't be read, and are lost.` }));
}

/** Returns whether all rows could be read and used. */
function readRows<Row>(db: SqliteDatabase, sql: string, use: (row: Row) => void, ...parameters: unknown[]): boolean {
	return isReadable(() => {
		for (const row of db.prepare(sql).iterate(...parameters)) isReadable(() => use(row as Row));
	});
}

/** Runs what may meet damage. A row that has become impossible is damaged too. */
function isReadable(work: () => void): boolean {
	try {
		work();
		return true;
	} catch (error) {
		if (!isDamage(error) && !/^SQLITE_(CONSTRAINT|MISMATCH|ERROR)/.test(codeOf(error))) throw error;
		return false;
	}
}
