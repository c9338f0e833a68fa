import { CheckpointError, type CheckpointErrorCode, quote } from "../../errors.ts";
import type { SqliteSession } from "./driver.ts";
import type { SqliteSource } from "./source.ts";

/** The stored format that this version of the package reads and writes. */
const FORMAT_VERSION = 1;

/**
 * Names carry a prefix because the database may be the application's own. The index over keys also has the parents, so
 * that children are found without reading rows. See README.md for why there are no more indexes.
 */
const SCHEMA = `
CREATE TABLE delta_threads (
	thread_id TEXT NOT NULL PRIMARY KEY,
	family INTEGER NOT NULL, -- threads that may share blobs, see delta_blobs
	stamp INTEGER NOT NULL, -- another number after every removal or replacement
	created_at INTEGER NOT NULL, -- milliseconds since 1970
	updated_at INTEGER NOT NULL,
	updated_minute INTEGER NOT NULL,
	checkpoints INTEGER NOT NULL,
	newest TEXT -- the greatest checkpoint_id of the root namespace
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_threads_updated ON delta_threads (updated_minute);
CREATE INDEX delta_threads_family ON delta_threads (family);

CREATE TABLE delta_checkpoints (
	pk INTEGER PRIMARY KEY,
	thread_id TEXT NOT NULL,
	ns TEXT NOT NULL,
	checkpoint_id TEXT NOT NULL,
	parent_id TEXT,
	run_id TEXT,
	source TEXT,
	step INTEGER,
	labels TEXT, -- JSON object of top-level metadata, NULL if unknown
	blobs TEXT, -- JSON array of the ids of its values in delta_blobs, NULL if it has none
	head BLOB -- NULL as long as only writes have been stored for this checkpoint
) STRICT;
CREATE UNIQUE INDEX delta_checkpoints_key ON delta_checkpoints (thread_id, ns, checkpoint_id, parent_id);
CREATE INDEX delta_checkpoints_headless ON delta_checkpoints (thread_id, ns, checkpoint_id) WHERE head IS NULL;
CREATE INDEX delta_checkpoints_run ON delta_checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE delta_writes (
	checkpoint_pk INTEGER NOT NULL,
	task_id TEXT NOT NULL,
	generation INTEGER NOT NULL,
	idx INTEGER NOT NULL,
	task_path TEXT,
	channel TEXT NOT NULL,
	run_id TEXT,
	actor INTEGER,
	type TEXT,
	blob INTEGER, -- id of the value in delta_blobs, if it is too large for this row
	value BLOB NOT NULL,
	PRIMARY KEY (checkpoint_pk, task_id, generation, idx)
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_writes_run ON delta_writes (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE delta_bases (
	checkpoint_pk INTEGER NOT NULL,
	channel TEXT NOT NULL,
	data BLOB NOT NULL, -- the history of a delta channel up to removed ancestors
	PRIMARY KEY (checkpoint_pk, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE delta_blobs (
	id INTEGER PRIMARY KEY,
	family INTEGER NOT NULL,
	base INTEGER, -- the blob that this one is a patch on
	source INTEGER, -- another blob that the patch copies from
	type TEXT,
	data BLOB NOT NULL
) STRICT;
CREATE INDEX delta_blobs_family ON delta_blobs (family);

CREATE TABLE delta_format (
	version INTEGER NOT NULL,
	next_id INTEGER NOT NULL -- for blobs, families and stamps
) STRICT;
`;

/** Tables and indexes by name, each with the statement that makes it. */
const STATEMENTS = new Map(
	[...SCHEMA.matchAll(/CREATE (?:UNIQUE )?(?:TABLE|INDEX) (\w+)[^;]*/g)].map(([sql, name = ""]) => [name, sql]),
);

/** Returns whether a database has our tables. Refuses one of something else, unless it is shared, or of a newer version. */
function checkFormat(session: SqliteSession, name: string, isShared?: boolean): boolean {
	const rows = session.all<Record<string, string>>("SELECT type, name, sql FROM sqlite_schema");
	const found = new Map(rows.map((row) => [row.name, row.sql]));
	const refuse = (code: CheckpointErrorCode, why: string) => new CheckpointError(code, `${quote(name)} ${why}.`);
	if (!found.has("delta_format")) {
		const official =
			"is of @langchain/langgraph-checkpoint-sqlite: copy its threads to another with list, put and putWrites";
		const foreign = "is a database of something else: choose another file, or pass the open Database to share it";
		if (found.has("checkpoints") && found.has("writes")) throw refuse("OFFICIAL_DATABASE", official);
		if (rows.some(({ type }) => type === "table") && !isShared) throw refuse("FOREIGN_DATABASE", foreign);
		return false;
	}
	const { version = 0 } = session.get<{ version: number }>("SELECT * FROM delta_format") ?? {};
	const changed = [...STATEMENTS.keys()].find((table) => found.get(table) !== STATEMENTS.get(table));
	const hasMore = rows.filter((row) => row.name?.startsWith("delta_")).length > STATEMENTS.size;
	// A newer format has other tables: with these, it is the number that is damaged.
	if (version > FORMAT_VERSION && (changed !== undefined || hasMore))
		throw refuse(
			"NEWER_FORMAT",
			`has format ${version}, this version reads up to ${FORMAT_VERSION}: install a newer one`,
		);
	if (version !== FORMAT_VERSION || changed !== undefined)
		throw refuse("CORRUPT", `has a damaged schema, at ${changed ?? "delta_format"}: call repair()`);
	return true;
}

/** Makes sure that a database has our tables, and its settings. One that is not ours stays as it is. */
export function setUp(session: SqliteSession, { name, isShared, isReadOnly, configure }: SqliteSource): void {
	const { db } = session;
	const isSetUp = checkFormat(session, name, isShared);
	configure?.(db);
	if (isSetUp) return;
	if (db.readonly || isReadOnly)
		throw new CheckpointError("READ_ONLY", `${quote(name)} has to be set up, but is open for reading only.`);
	// Another process may do the same at this moment: the second one to get the lock finds the tables.
	session.transaction.immediate(() => {
		if (!checkFormat(session, name, isShared))
			db.exec(`${SCHEMA}; INSERT INTO delta_format VALUES (${FORMAT_VERSION}, 1)`);
	});
}
