import { CheckpointError, quote } from "../errors.ts";
import type { EncryptionOptions } from "../seal/keyring.ts";
import { Sealer } from "../seal/sealer.ts";
import { SealedStorage } from "../storage/sealed-storage.ts";
import { openDatabase, type SqliteDatabase } from "../storage/sqlite-driver.ts";
import { SqliteStorage } from "../storage/sqlite-storage.ts";
import { DeltaSaver, type SaverOptions } from "./delta-saver.ts";
import { checkOptions } from "./options.ts";

export interface SqliteSaverOptions extends SaverOptions {
	/** How long a call waits for another process to let go of the file, in milliseconds. Default 10,000. */
	busyTimeout?: number;
	/** Encrypts values, writes and metadata with AES-256-GCM. */
	encryption?: EncryptionOptions;
	/** Whether large values are compressed where it pays. Default true. */
	compression?: boolean;
}

const OPTIONS = ["serde", "classes", "strict", "cacheBytes", "busyTimeout", "encryption", "compression"];

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
export class SqliteSaver extends DeltaSaver {
	readonly #sealed: SealedStorage;

	/** @param database a path, `":memory:"`, or an open better-sqlite3 `Database`, which stays the caller's to close */
	constructor(database: string | SqliteDatabase, options: SqliteSaverOptions = {}) {
		checkOptions("SqliteSaver", options, OPTIONS);
		const { busyTimeout = 10_000, encryption, compression = true } = options;
		const sealed = new SealedStorage(storageFor(database, busyTimeout), new Sealer({ encryption, compression }));
		super(sealed, options);
		this.#sealed = sealed;
	}

	/**
	 * Encrypts everything again that is not under the current key, or not encrypted at all (with `migrate`). Works in
	 * batches beside running graphs, and goes on where it was if it is stopped and called again.
	 *
	 * @returns how many rows were encrypted
	 */
	async rotateKeys(options: { onProgress?: (done: { threads: number; rows: number }) => void } = {}): Promise<number> {
		checkOptions("rotateKeys", options, ["onProgress"]);
		const done = { threads: 0, rows: 0 };
		await this.run(async () => {
			for await (const { rows } of this.#sealed.rotate()) {
				done.threads++;
				done.rows += rows;
				options.onProgress?.({ ...done });
			}
		});
		return done.rows;
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
