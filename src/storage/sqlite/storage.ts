import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	Depth,
	ListedBlob,
	PathReading,
	PutBatch,
	PutResult,
	Reading,
	RemoveBatch,
	Replacement,
	RowCount,
	Scan,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadReading,
	ThreadRow,
	WriteKey,
} from "../storage.ts";
import { backupTo } from "./backup.ts";
import { SqliteConnection } from "./connection.ts";
import type { SqliteDatabase, SqliteSession } from "./driver.ts";
import { clear, copy, remove, removeBlobs, removeThread, replaceBytes, reserveIds } from "./maintain.ts";
import { put } from "./put.ts";
import {
	findBlobs,
	findRuns,
	getThread,
	getTotals,
	listFamilies,
	listThreads,
	read,
	readFamily,
	readPath,
	readThread,
} from "./read.ts";
import type { SqliteSource } from "./source.ts";

/** Long enough for any commit of another process, short enough to be noticed. */
export const DEFAULT_BUSY_TIMEOUT = 30_000;
/** Pages that are given back to the file system in one transaction. */
const BATCH_PAGES = 500;

/** Changes with commits of other connections, and with changes through this one. */
const GET_VERSION = "SELECT data_version AS others, total_changes() AS all_changes FROM pragma_data_version";

/** Rows in an SQLite database. Opens it with the first call, so that whatever is wrong with it rejects that call. */
export class SqliteStorage implements Storage {
	readonly #source: SqliteSource;
	readonly #connection: SqliteConnection;
	#epoch = 0;
	#version = "";
	#versionOf: SqliteDatabase | undefined;

	/** @param busyTimeout how long a call waits for other processes, in milliseconds */
	constructor(source: SqliteSource, busyTimeout = DEFAULT_BUSY_TIMEOUT) {
		this.#source = source;
		this.#connection = new SqliteConnection(source, busyTimeout);
	}

	reserveIds(count: number): Promise<number> {
		return this.#connection.change((session) => reserveIds(session, count));
	}

	read(which: Scan | readonly CheckpointKey[], depth: Depth, known: readonly number[] = []): Promise<Reading> {
		return this.#connection.read((session) => read(session, which, depth, known));
	}

	readPath(key: CheckpointKey, limit: number): Promise<PathReading> {
		return this.#connection.read((session) => ({
			...readPath(session, key, limit),
			epoch: this.#readEpoch(session),
		}));
	}

	readThread(threadId: string): Promise<ThreadReading> {
		return this.#connection.read((session) => readThread(session, threadId));
	}

	getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return this.#connection.read((session) => findBlobs(session, ids));
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#connection.read((session) => findRuns(session, runIds));
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#connection.read((session) => getThread(session, threadId));
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#connection.read((session) => listThreads(session, limit, after));
	}

	readFamily(family: number): Promise<{ blobs: readonly ListedBlob[]; threads: readonly ThreadRow[] }> {
		return this.#connection.read((session) => readFamily(session, family));
	}

	listFamilies(limit: number, after: number | undefined): Promise<number[]> {
		return this.#connection.read((session) => listFamilies(session, limit, after));
	}

	totals(): Promise<StorageTotals> {
		return this.#connection.read(getTotals);
	}

	put(batch: PutBatch): Promise<PutResult | undefined> {
		// Of a hundred tasks that end one after the other each has its own writes, and the next checkpoint comes soon.
		return this.#connection.change((session) => put(session, batch), batch.checkpoint === undefined);
	}

	remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		return this.#connection.change((session) => remove(session, batch));
	}

	copy(batch: CopyBatch): Promise<RowCount | undefined> {
		return this.#connection.change((session) => copy(session, batch));
	}

	removeThread(threadId: string): Promise<RowCount> {
		return this.#connection.change((session) => removeThread(session, threadId));
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#connection.change((session) => removeBlobs(session, family, ids));
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#connection.change(
			(session) => replacements.filter((replacement) => replaceBytes(session, replacement)).length,
		);
	}

	clear(): Promise<void> {
		return this.#connection.change(clear);
	}

	async check(): Promise<StorageDamage[]> {
		return [];
	}

	async repair(): Promise<StorageDamage[]> {
		return [];
	}

	async tidy(): Promise<boolean> {
		this.#connection.checkWritable();
		return this.#connection.alone(({ db }) => {
			const free = () => Number(db.pragma("freelist_count", { simple: true }));
			const before = free();
			if (before > 0) db.pragma(`incremental_vacuum(${BATCH_PAGES})`);
			const left = free();
			if (left === 0 || left === before) db.pragma("wal_checkpoint(TRUNCATE)");
			return left > 0 && left < before;
		});
	}

	/** See {@link backupTo}. */
	backup(path: string, check: () => void): Promise<void> {
		return this.#connection.alone(({ db }) => backupTo(db, path, check));
	}

	close(): Promise<void> {
		return this.#connection.close();
	}

	#readEpoch(session: SqliteSession): number {
		const { others, all_changes } = session.get(GET_VERSION) as { others: number; all_changes: number };
		// Through a connection that it shares with us, the application may change rows as well: ours and its count alike.
		const version = this.#source.isShared ? `${others} ${all_changes}` : String(others);
		if (version !== this.#version || session.db !== this.#versionOf) this.#epoch++;
		this.#version = version;
		this.#versionOf = session.db;
		return this.#epoch;
	}
}
