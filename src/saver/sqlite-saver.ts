import { CheckpointError, quote } from "../errors.ts";
import type { SqliteDatabase } from "../storage/sqlite/driver.ts";
import {
	type Durability,
	fileSource,
	readOnlySource,
	type SqliteSource,
	sharedSource,
} from "../storage/sqlite/source.ts";
import { SqliteStorage } from "../storage/sqlite/storage.ts";
import { checkOptions } from "./options.ts";
import { SEALED_OPTIONS, SealedSaver, type SealedSaverOptions } from "./sealed-saver.ts";

export interface SqliteSaverOptions extends SealedSaverOptions {
	/** How long a call waits for other processes to let go of the file, in milliseconds. Default 30,000. */
	busyTimeout?: number;
	/**
	 * What a stored checkpoint survives: the death of the process (`"process"`, the default), or of the machine too
	 * (`"power"`), for which commits wait for the disk.
	 */
	durability?: Durability;
	/** Never writes: not to the file, nor to its folder. Calls that would are refused with code READ_ONLY. */
	readOnly?: boolean;
}

const SQLITE_OPTIONS = {
	...SEALED_OPTIONS,
	busyTimeout: "milliseconds",
	durability: ["process", "power"],
	readOnly: "true or false",
} as const;

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
	private readonly _sqlite: SqliteStorage;

	/** @param database a path, `":memory:"`, or an open better-sqlite3 `Database`, which stays the caller's to close */
	constructor(database: string | SqliteDatabase, options: SqliteSaverOptions = {}) {
		checkOptions("SqliteSaver", options, SQLITE_OPTIONS);
		const storage = new SqliteStorage(sourceFor(database, options), options.busyTimeout);
		super(storage, options);
		this._sqlite = storage;
	}

	/**
	 * Copies the database to a file while writing goes on, here and in other processes. The copy is what was stored at one
	 * moment; it is there once it is complete, in the place of an older one. To restore it is to open it.
	 *
	 * @example
	 * ```ts
	 * await checkpointer.backup("backups/monday.db");
	 * ```
	 */
	async backup(path: string): Promise<void> {
		await this.runLong(undefined, (_, check) => this._sqlite.backup(path, check));
	}

	static fromConnString(path: string, options?: SqliteSaverOptions): SqliteSaver {
		return new this(path, options);
	}
}

function sourceFor(database: string | SqliteDatabase, { durability, readOnly }: SqliteSaverOptions): SqliteSource {
	if (typeof database !== "string" && typeof database?.prepare !== "function")
		throw new CheckpointError(
			"INVALID_OPTION",
			`SqliteSaver takes a path, ":memory:" or an open better-sqlite3 Database, got ${quote(database)}.`,
		);
	if (typeof database === "string") return readOnly ? readOnlySource(database) : fileSource(database, durability);
	if (durability !== undefined || readOnly !== undefined)
		throw new CheckpointError(
			"INVALID_OPTION",
			"An open Database keeps its own settings: open it as you want it, and leave out `durability` and `readOnly`.",
		);
	return sharedSource(database);
}
