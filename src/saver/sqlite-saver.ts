import { CheckpointError, quote } from "../errors.ts";
import { openDatabase, type SqliteDatabase } from "../storage/sqlite-driver.ts";
import { SqliteStorage } from "../storage/sqlite-storage.ts";
import { checkOptions } from "./options.ts";
import { SEALED_OPTIONS, SealedSaver, type SealedSaverOptions } from "./sealed-saver.ts";

export interface SqliteSaverOptions extends SealedSaverOptions {
	/** How long a call waits for another process to let go of the file, in milliseconds. Default 10,000. */
	busyTimeout?: number;
}

/**
 * Keeps checkpoints in an SQLite file, each step's changes only.
 *
 * The file is opened and set up by the first call; what is wrong with it rejects that call.
 *
 * @example
 * ```ts
 * const checkpointer = new SqliteSaver("checkpoints.db");
 * const graph = builder.compile({ checkpointer });
 * ```
 */
export class SqliteSaver extends SealedSaver {
	/** @param database a path, `":memory:"`, or an open better-sqlite3 `Database`, which stays the caller's to close */
	constructor(database: string | SqliteDatabase, options: SqliteSaverOptions = {}) {
		checkOptions("SqliteSaver", options, [...SEALED_OPTIONS, "busyTimeout"]);
		super(storageFor(database, options.busyTimeout ?? 10_000), options);
	}

	static fromConnString(path: string, options?: SqliteSaverOptions): SqliteSaver {
		return new SqliteSaver(path, options);
	}
}

function storageFor(database: string | SqliteDatabase, busyTimeout: number): SqliteStorage {
	if (typeof database !== "string" && typeof database?.prepare !== "function")
		throw new CheckpointError(
			"INVALID_OPTION",
			`SqliteSaver takes a path, ":memory:" or an open better-sqlite3 Database, got ${quote(database)}.`,
		);
	const name = typeof database === "string" ? database : database.name;
	const open = () => (typeof database === "string" ? prepare(openDatabase(database, busyTimeout)) : database);
	return new SqliteStorage(name, open, typeof database !== "string");
}

/**
 * Readers and a writer beside each other, and commits that survive the death of the process without waiting for the
 * disk. A database of the application keeps the settings that it has.
 */
function prepare(db: SqliteDatabase): SqliteDatabase {
	if (!db.readonly) db.pragma("journal_mode = WAL");
	db.pragma("synchronous = NORMAL");
	return db;
}
