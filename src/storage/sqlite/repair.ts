import { copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { CheckpointError, quote } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import { findDamage, isCorrupt, recount } from "./check.ts";
import { isBusy, openDatabase, type SqliteDatabase, SqliteSession } from "./driver.ts";
import { setUp } from "./schema.ts";

/** Tables in the order they are copied, and where to learn of keys that a scan does not reach, with their threads. */
const KEYS = {
	delta_threads: "SELECT thread_id AS key, thread_id AS threadId FROM delta_threads INDEXED BY delta_threads_family",
	delta_checkpoints: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints INDEXED BY delta_checkpoints_key",
	delta_writes: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints NOT INDEXED",
	delta_bases: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints NOT INDEXED",
	delta_blobs: "SELECT id AS key, NULL AS threadId FROM delta_blobs INDEXED BY delta_blobs_family",
};

/**
 * Copies what SQLite can still read of a damaged file to a new one, and puts that in its place. The damaged file stays
 * beside it, under another name. Killed at any moment it leaves the one or the other.
 *
 * @returns what is missing now, and where the damaged file is
 */
export function rebuildFile(path: string): { lost: StorageDamage[]; damagedFile: string } {
	const unfinished = `${path}.repairing`;
	for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(unfinished + end, { force: true });
	const damaged = openAlone(path);
	try {
		const lost = copyRows(damaged, unfinished);
		const damagedFile = keepFile(path, damaged);
		renameSync(unfinished, path);
		return { lost, damagedFile };
	} finally {
		damaged.close();
	}
}

/** Keeps others from the file until it is closed. Throws if they have it open. */
function openAlone(path: string): SqliteDatabase {
	const db = openDatabase(path);
	try {
		// Otherwise SQLite refuses a file that is shorter than it should be.
		db.unsafeMode(true);
		db.pragma("writable_schema = ON");
		db.pragma("locking_mode = EXCLUSIVE");
		db.exec("BEGIN IMMEDIATE; COMMIT");
	} catch (error) {
		if (!isBusy(error)) return db;
		db.close();
		throw error;
	}
	return db;
}

/** Gives the damaged file a second name. Its log is taken over into it, so that none is left for the new file. */
function keepFile(path: string, db: SqliteDatabase): string {
	let kept = `${path}.damaged`;
	for (let n = 2; existsSync(kept); n++) kept = `${path}.damaged-${n}`;
	if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size) copyFileSync(`${path}-wal`, `${kept}-wal`);
	db.pragma("journal_mode = DELETE");
	try {
		linkSync(path, kept);
	} catch {
		copyFileSync(path, kept);
	}
	return kept;
}

function copyRows(damaged: SqliteDatabase, path: string): StorageDamage[] {
	const target = openDatabase(path);
	try {
		target.pragma("auto_vacuum = INCREMENTAL");
		setUp(target, { name: path, isShared: false, isReadOnly: false });
		const session = new SqliteSession(target);
		return target
			.transaction(() => {
				const lost = Object.entries(KEYS).flatMap(([table, keys]) => copyTable(damaged, session, table, keys));
				if (lost.length > 0 && session.get("SELECT 1 FROM delta_checkpoints") === undefined)
					throw new CheckpointError(
						"CORRUPT",
						`SQLite can read nothing of ${quote(damaged.name)}: restore a backup, or choose another file.`,
					);
				readRows(damaged, "SELECT next_id FROM delta_format", [], ({ next_id }) =>
					session.run("UPDATE delta_format SET next_id = ?", next_id),
				);
				lost.push(...findDamage(session).counts);
				recount(session);
				return lost;
			})
			.immediate();
	} finally {
		target.close();
	}
}

/** From both ends as far as rows can be read, and between by their keys. */
function copyTable(damaged: SqliteDatabase, target: SqliteSession, table: string, keys: string): StorageDamage[] {
	const columns = target.db.pragma(`table_info(${table})`) as { name: string; pk: number }[];
	const names = columns.map(({ name }) => name).join(", ");
	const insert = `INSERT OR IGNORE INTO ${table} (${names}) VALUES (${columns.map(() => "?").join(", ")})`;
	const key = columns.filter(({ pk }) => pk > 0).map(({ name }) => name);
	const copy = (rest: string, ...parameters: unknown[]) =>
		readRows(damaged, `SELECT ${names} FROM ${table} NOT INDEXED ${rest}`, parameters, (row) =>
			target.run(insert, ...Object.values(row)),
		);
	if (copy(`ORDER BY ${key.join(", ")}`)) return [];
	copy(`ORDER BY ${key.join(" DESC, ")} DESC`);
	const known = new Map<unknown, unknown>();
	for (const db of [damaged, target.db])
		readRows(db, keys, [], ({ key: value, threadId }) => known.set(value, threadId ?? undefined));
	const lost = new Set<unknown>([undefined]);
	for (const [value, threadId] of known) if (!copy(`WHERE ${key[0]} = ?`, value)) lost.add(threadId);
	const problem = `Rows of ${table} can't be read, and are lost.`;
	return [...lost].map((threadId) => ({ threadId: threadId as string | undefined, problem }));
}

/** Answers whether all rows could be read and used. */
function readRows(
	db: SqliteDatabase,
	sql: string,
	parameters: readonly unknown[],
	use: (row: Record<string, unknown>) => void,
): boolean {
	return isReadable(() => {
		for (const row of db.prepare(sql).iterate(...parameters)) isReadable(() => use(row as Record<string, unknown>));
	});
}

/** Runs what may meet damage. A row that has become impossible is damaged too. */
function isReadable(work: () => void): boolean {
	try {
		work();
		return true;
	} catch (error) {
		const { code } = error as { code?: unknown };
		if (!isCorrupt(error) && !/^SQLITE_(CONSTRAINT|MISMATCH|ERROR)/.test(String(code))) throw error;
		return false;
	}
}
