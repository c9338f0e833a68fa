import { copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { CheckpointError, quote } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import { findDamage, isCorrupt, recount } from "./check.ts";
import { isBusy, openDatabase, type SqliteDatabase, SqliteSession } from "./driver.ts";
import { setUp } from "./schema.ts";

/** A table, and where to learn of keys that a scan does not reach, with the threads they belong to. */
interface Table {
	readonly name: string;
	readonly columns: readonly string[];
	/** How many of the columns are the primary key. */
	readonly keyLength: number;
	readonly keys: string;
	/** Whether the keys are in the new file: those of checkpoints that have been copied. */
	readonly areCopied?: boolean;
}

const COPIED_KEYS = "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints";
const TABLES: readonly Table[] = [
	{
		name: "delta_threads",
		columns: "thread_id family stamp created_at updated_at updated_minute checkpoints newest".split(" "),
		keyLength: 1,
		keys: "SELECT thread_id AS key, thread_id AS threadId FROM delta_threads INDEXED BY delta_threads_family",
	},
	{
		name: "delta_checkpoints",
		columns: "pk thread_id ns checkpoint_id parent_id run_id source step labels blobs head".split(" "),
		keyLength: 1,
		keys: "SELECT pk AS key, thread_id AS threadId FROM delta_checkpoints INDEXED BY delta_checkpoints_key",
	},
	{
		name: "delta_writes",
		columns: "checkpoint_pk task_id generation idx task_path channel run_id actor type blob value".split(" "),
		keyLength: 4,
		keys: COPIED_KEYS,
		areCopied: true,
	},
	{
		name: "delta_bases",
		columns: "checkpoint_pk channel data".split(" "),
		keyLength: 2,
		keys: COPIED_KEYS,
		areCopied: true,
	},
	{
		name: "delta_blobs",
		columns: "id family base source type data".split(" "),
		keyLength: 1,
		keys: "SELECT id AS key, NULL AS threadId FROM delta_blobs INDEXED BY delta_blobs_family",
	},
];

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
	if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${kept}-wal`);
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
				const lost = TABLES.flatMap((table) => copyTable(damaged, session, table));
				if (lost.length > 0 && session.get("SELECT 1 FROM delta_checkpoints") === undefined)
					throw new CheckpointError(
						"CORRUPT",
						`SQLite can read nothing of ${quote(damaged.name)}: restore a backup, or choose another file.`,
					);
				isReadable(() => {
					const [{ next_id } = { next_id: 0 }] = damaged.prepare("SELECT next_id FROM delta_format").all() as Format[];
					session.run("UPDATE delta_format SET next_id = ?", next_id);
				});
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
function copyTable(damaged: SqliteDatabase, target: SqliteSession, table: Table): StorageDamage[] {
	const { name, columns, keyLength, keys, areCopied = false } = table;
	const places = columns.map(() => "?").join(", ");
	const insert = `INSERT OR IGNORE INTO ${name} (${columns.join(", ")}) VALUES (${places})`;
	const select = `SELECT ${columns.join(", ")} FROM ${name} NOT INDEXED`;
	const key = columns.slice(0, keyLength);
	const copy = (sql: string, ...parameters: unknown[]) =>
		isReadable(() => {
			for (const row of damaged
				.prepare(sql)
				.safeIntegers(true)
				.iterate(...parameters))
				isReadable(() => target.run(insert, ...Object.values(row as object)));
		});
	if (copy(`${select} ORDER BY ${key.join(", ")}`)) return [];
	copy(`${select} ORDER BY ${key.join(" DESC, ")} DESC`);
	const threads = new Set<string | undefined>([undefined]);
	for (const { key: value, threadId } of areCopied ? target.all<Key>(keys) : readKeys(damaged, keys))
		if (!copy(`${select} WHERE ${key[0]} = ?`, value)) threads.add(threadId);
	return [...threads].map((threadId) => ({ threadId, problem: `Rows of ${name} can't be read, and are lost.` }));
}

interface Format {
	readonly next_id: number;
}

interface Key {
	readonly key: unknown;
	readonly threadId: string | undefined;
}

function readKeys(damaged: SqliteDatabase, sql: string): Key[] {
	const found: Key[] = [];
	isReadable(() => {
		for (const row of damaged.prepare(sql).iterate()) found.push(row as Key);
	});
	return found;
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
