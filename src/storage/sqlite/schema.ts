import { CheckpointError, quote } from "../../errors.ts";
import type { SqliteDatabase } from "./driver.ts";
import { sumOf } from "./sums.ts";

/**
 * Steps from one stored format to the next, in order and never changed once released: the format's version is how
 * many of them a database has seen. Tables carry a prefix because the database may be the application's own.
 *
 * `delta_key` says where the checkpoints of a thread are. What changes of the thread itself with every checkpoint stands
 * there too, behind its keys: a checkpoint that is added then changes one page less than with a row elsewhere.
 */
const MIGRATIONS: readonly string[] = [
	`
	CREATE TABLE delta_thread (
		pk INTEGER PRIMARY KEY,
		thread_id TEXT NOT NULL UNIQUE,
		hash INTEGER NOT NULL,
		family INTEGER NOT NULL,
		created_at INTEGER NOT NULL,
		era INTEGER NOT NULL,
		sum INTEGER NOT NULL
	) STRICT;
	CREATE INDEX delta_thread_hash ON delta_thread (hash);
	CREATE INDEX delta_thread_era ON delta_thread (era);
	CREATE INDEX delta_thread_family ON delta_thread (family);

	CREATE TABLE delta_checkpoint (
		pk INTEGER PRIMARY KEY,
		thread INTEGER NOT NULL,
		ns TEXT NOT NULL,
		id TEXT NOT NULL,
		parent ANY,
		fork INTEGER NOT NULL,
		run_id TEXT,
		source ANY,
		step INTEGER,
		writes INTEGER NOT NULL,
		bases INTEGER NOT NULL,
		sum INTEGER NOT NULL,
		pending BLOB,
		head ANY NOT NULL
	) STRICT;
	CREATE INDEX delta_checkpoint_fork ON delta_checkpoint (thread, ns, parent) WHERE fork = 1;
	CREATE INDEX delta_checkpoint_run ON delta_checkpoint (run_id) WHERE run_id IS NOT NULL;

	CREATE TABLE delta_key (
		thread_pk INTEGER NOT NULL,
		key_ns ANY NOT NULL,
		key_id TEXT NOT NULL,
		row_pk INTEGER NOT NULL,
		stamp INTEGER,
		updated_at INTEGER,
		checkpoints INTEGER,
		newest TEXT,
		keys INTEGER,
		forks INTEGER,
		loose INTEGER,
		totals_sum INTEGER,
		PRIMARY KEY (thread_pk, key_ns, key_id)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE delta_blob (
		id INTEGER PRIMARY KEY,
		family INTEGER NOT NULL,
		base INTEGER,
		source INTEGER,
		type TEXT,
		sum INTEGER NOT NULL,
		data BLOB NOT NULL
	) STRICT;
	CREATE INDEX delta_blob_family ON delta_blob (family);

	CREATE TABLE delta_write (
		thread INTEGER NOT NULL,
		ns TEXT NOT NULL,
		checkpoint ANY NOT NULL,
		task ANY NOT NULL,
		generation INTEGER NOT NULL,
		idx INTEGER NOT NULL,
		task_path TEXT,
		channel TEXT NOT NULL,
		run_id TEXT,
		actor INTEGER,
		type TEXT,
		sum INTEGER NOT NULL,
		value ANY NOT NULL,
		PRIMARY KEY (thread, ns, checkpoint, task, generation, idx)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX delta_write_run ON delta_write (run_id) WHERE run_id IS NOT NULL;

	CREATE TABLE delta_base (
		thread INTEGER NOT NULL,
		ns TEXT NOT NULL,
		checkpoint ANY NOT NULL,
		channel TEXT NOT NULL,
		sum INTEGER NOT NULL,
		data BLOB NOT NULL,
		PRIMARY KEY (thread, ns, checkpoint, channel)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE delta_gone (thread INTEGER PRIMARY KEY, family INTEGER NOT NULL) STRICT;
	CREATE TABLE delta_format (version INTEGER NOT NULL, next INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;
	INSERT INTO delta_format VALUES (1, 1, ${sumOf("sequence", 1)});
	`,
];

/** The stored format that this version of the package writes. */
export const FORMAT_VERSION = MIGRATIONS.length;

/** What kind of database it is, judged by its tables. */
function inspect(db: SqliteDatabase): { version: number | undefined; tables: Set<unknown> } {
	const tables = new Set(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all());
	if (!tables.has("delta_format")) return { version: undefined, tables };
	return { version: Number(db.prepare("SELECT version FROM delta_format").pluck().get()), tables };
}

/**
 * Refuses a database that is not one of this package, or of a newer version of it. Changes nothing.
 *
 * @param isShared the application handed over its own open database, so that other tables are no surprise
 * @returns whether it has the current format
 */
export function checkFormat(db: SqliteDatabase, name: string, isShared: boolean): boolean {
	const { version, tables } = inspect(db);
	if (version === FORMAT_VERSION) {
		checkSchema(db, name);
		return true;
	}
	if (version !== undefined && hasSchema(db))
		throw new CheckpointError("CORRUPT", `The version of ${quote(name)} is damaged: call repair().`);
	if (version !== undefined && version > FORMAT_VERSION)
		throw new CheckpointError(
			"NEWER_FORMAT",
			`${quote(name)} has stored format ${version}, this version of langgraph-checkpoint-delta reads up to ${FORMAT_VERSION}: install a newer one.`,
		);
	if (version === undefined && tables.has("checkpoints") && tables.has("writes"))
		throw new CheckpointError(
			"OFFICIAL_DATABASE",
			`${quote(name)} is a database of @langchain/langgraph-checkpoint-sqlite: choose another file, and copy its threads with list, put and putWrites.`,
		);
	if (version === undefined && tables.size > 0 && !isShared)
		throw new CheckpointError(
			"FOREIGN_DATABASE",
			`${quote(name)} is a database of something else: choose another file, or pass the open Database to share it.`,
		);
	return false;
}

/** A changed byte in the description of a table or an index would make SQLite see other rows than there are. */
function checkSchema(db: SqliteDatabase, name: string): void {
	const table = differenceOf(db);
	if (table !== undefined)
		throw new CheckpointError("CORRUPT", `The schema of ${quote(name)} is damaged, at ${table}: call repair().`);
}

/** Whether the tables are those of the current format and no others, whatever the version says. */
function hasSchema(db: SqliteDatabase): boolean {
	const ours = db.prepare("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'delta#_%' ESCAPE '#'").pluck().get();
	return differenceOf(db) === undefined && ours === expectedSchema().length;
}

function expectedSchema(): RegExpExecArray[] {
	return [...MIGRATIONS.join("").matchAll(/CREATE (?:UNIQUE )?(?:TABLE|INDEX) (\w+)[^;]*/g)];
}

function differenceOf(db: SqliteDatabase): string | undefined {
	const rows = db.prepare("SELECT name, sql FROM sqlite_schema").all() as { name: string; sql: string }[];
	const found = new Map(rows.map((row) => [row.name, row.sql]));
	for (const [sql, table = ""] of expectedSchema()) if (found.get(table) !== sql) return table;
	return undefined;
}

/** Brings a database to the current format, from nothing or from an older one. */
export function migrate(db: SqliteDatabase, name: string, isShared: boolean): void {
	if (checkFormat(db, name, isShared)) return;
	if (db.readonly)
		throw new CheckpointError("READ_ONLY", `${quote(name)} has to be set up, but is open for reading only.`);
	// Another process may do the same at this moment: whoever gets the lock second looks again.
	db.transaction(() => {
		const from = inspect(db).version ?? 0;
		for (const step of MIGRATIONS.slice(from)) db.exec(step);
		db.prepare("UPDATE delta_format SET version = ?").run(FORMAT_VERSION);
	}).immediate();
}
