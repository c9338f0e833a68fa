import { CheckpointError, quote } from "../../errors.ts";
import type {
	CheckpointKey,
	CopyBatch,
	Depth,
	PutBatch,
	RemoveBatch,
	Replacement,
	Scan,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadRow,
} from "../storage.ts";
import { backupTo } from "./backup.ts";
import { SqliteConnection } from "./connection.ts";
import { findDamage, isCorrupt, rebuildFile, recount } from "./damage.ts";
import type { SqliteDatabase, SqliteSession } from "./driver.ts";
import { findBlobs, findRuns, read, readFamily, readOutline, readPath, readThread } from "./read.ts";
import type { SqliteSource } from "./source.ts";
import { copy, minuteOf, put, remove, removeThread, replaceBytes } from "./write.ts";

/** Long enough for any commit of another process, short enough to be noticed. */
export const DEFAULT_BUSY_TIMEOUT = 30_000;
/** Pages that are given back to the file system in one transaction. */
const BATCH_PAGES = 500;

const RESERVE = "UPDATE delta_format SET next_id = max(next_id, ?) + ? RETURNING next_id AS end";
/** Changes with commits of other connections, and with changes through this one. */
const GET_VERSION = "SELECT data_version AS others, total_changes() AS changes FROM pragma_data_version";

const THREADS = `SELECT thread_id AS threadId, family, stamp, created_at AS createdAt, updated_at AS updatedAt, checkpoints, newest
	FROM delta_threads`;
const GET_THREAD = `${THREADS} WHERE thread_id = ?`;
const LIST_THREADS = `${THREADS} WHERE updated_minute <= ? AND (updated_at, thread_id) < (?, ?)
	ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT ?`;
/** After all threads. */
const END_OF_TIME = { updatedAt: Number.POSITIVE_INFINITY, threadId: "" };

/** With a plus the condition does not only guide the search: in a damaged index that may go back. */
const GET_NEXT_FAMILY = "SELECT min(family) AS family FROM delta_blobs WHERE family > :last AND +family > :last";
const REMOVE_BLOB = "DELETE FROM delta_blobs WHERE id = ? AND family = ?";

const GET_TOTALS = `SELECT
	(SELECT count(*) FROM delta_threads) AS threads,
	(SELECT count(*) FROM delta_checkpoints WHERE head IS NOT NULL) AS checkpoints,
	(SELECT count(*) FROM delta_writes) AS writes,
	(SELECT ifnull(sum(length(head)), 0) FROM delta_checkpoints) AS checkpointBytes,
	(SELECT ifnull(sum(length(data)), 0) FROM delta_blobs) AS blobBytes,
	(SELECT ifnull(sum(length(value)), 0) FROM delta_writes) AS writeBytes`;

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
		return this.#connection.change((session) => {
			const { end } = session.get(RESERVE, reserved.get(session.db) ?? 0, count) as { end: number };
			reserved.set(session.db, end);
			return end - count;
		});
	}

	read(which: Scan | readonly CheckpointKey[], depth: Depth, known?: readonly number[]) {
		return this.#connection.read((session) => read(session, which, depth, known));
	}

	readPath(key: CheckpointKey, limit: number) {
		return this.#connection.read((session) => ({ ...readPath(session, key, limit), epoch: this.#readEpoch(session) }));
	}

	readOutline(threadId: string) {
		return this.#connection.read((session) => readOutline(session, threadId));
	}

	readThread(threadId: string) {
		return this.#connection.read((session) => readThread(session, threadId));
	}

	getBlobs(ids: readonly number[]) {
		return this.#connection.read((session) => findBlobs(session, ids));
	}

	findRuns(runIds: readonly string[]) {
		return this.#connection.read((session) => findRuns(session, runIds));
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#connection.read((session) => session.get(GET_THREAD, threadId));
	}

	listThreads(limit: number, after: Pick<ThreadRow, "updatedAt" | "threadId"> = END_OF_TIME): Promise<ThreadRow[]> {
		const { updatedAt, threadId } = after;
		return this.#connection.read((session) =>
			session.all(LIST_THREADS, minuteOf(updatedAt), updatedAt, threadId, limit),
		);
	}

	readFamily(family: number) {
		return this.#connection.read((session) => readFamily(session, family));
	}

	listFamilies(limit: number, after = -1): Promise<number[]> {
		return this.#connection.read((session) => {
			const next = (last: number) => session.get<{ family: number | undefined }>(GET_NEXT_FAMILY, { last })?.family;
			const families: number[] = [];
			for (let last = next(after); last !== undefined && families.length < limit; last = next(last))
				families.push(last);
			return families;
		});
	}

	totals(): Promise<StorageTotals> {
		return this.#connection.read((session) => {
			const { checkpointBytes = 0, blobBytes = 0, writeBytes = 0, ...rows } = session.get(GET_TOTALS) as Totals;
			return { ...rows, bytes: { checkpoints: checkpointBytes, blobs: blobBytes, writes: writeBytes } };
		});
	}

	put(batch: PutBatch) {
		// Of a hundred tasks that end one after the other each has its own writes, and the next checkpoint comes soon.
		return this.#connection.change((session) => put(session, batch), batch.checkpoint === undefined);
	}

	remove(batch: RemoveBatch) {
		return this.#connection.change((session) => remove(session, batch));
	}

	copy(batch: CopyBatch) {
		return this.#connection.change((session) => copy(session, batch));
	}

	removeThread(threadId: string) {
		return this.#connection.change((session) => removeThread(session, threadId));
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#connection.change((session) => {
			for (const id of ids) session.run(REMOVE_BLOB, id, family);
		});
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#connection.change((session) => replacements.filter((one) => replaceBytes(session, one)).length);
	}

	clear(): Promise<void> {
		return this.#connection.change((session) => {
			for (const table of ["threads", "checkpoints", "writes", "bases", "blobs"])
				session.run(`DELETE FROM delta_${table}`);
		});
	}

	async check(): Promise<StorageDamage[]> {
		return Object.values(await this.#findDamage()).flat();
	}

	async repair(): Promise<StorageDamage[]> {
		this.#connection.checkWritable();
		const { structure, counts } = await this.#findDamage();
		const damage = [...structure, ...counts];
		if (structure.length === 0) {
			if (counts.length > 0) await this.#connection.change(recount);
			return damage;
		}
		const { path, name } = this.#source;
		if (path === undefined)
			throw new CheckpointError(
				"CORRUPT",
				`${quote(name)} is open in the application: close it, and call repair() of a saver for its path.`,
			);
		const { lost, damagedFile } = await this.#connection.replace(() => rebuildFile(path));
		return [...damage, ...lost, { problem: `The damaged file is kept as ${quote(damagedFile)}.` }];
	}

	/** A database that can't be opened because of it is damaged as well. */
	#findDamage(): Promise<ReturnType<typeof findDamage>> {
		return this.#connection.read(findDamage).catch((error: unknown) => {
			if (!isCorrupt(error)) throw error;
			return { structure: [{ problem: (error as Error).message }], counts: [] };
		});
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
		const { others, changes } = session.get(GET_VERSION) as { others: number; changes: number };
		// Through a connection that it shares with us, the application may change rows as well: ours and its count alike.
		const version = this.#source.isShared ? `${others} ${changes}` : String(others);
		if (version !== this.#version || session.db !== this.#versionOf) this.#epoch++;
		this.#version = version;
		this.#versionOf = session.db;
		return this.#epoch;
	}
}

type Totals = Omit<StorageTotals, "bytes"> & Record<"checkpointBytes" | "blobBytes" | "writeBytes", number>;

/** Where the numbers handed out end, by database. One of the application may undo the update of its counter. */
const reserved = new WeakMap<SqliteDatabase, number>();
