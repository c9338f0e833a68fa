import { CheckpointError, quote } from "../../errors.ts";
import type {
	CheckpointKey,
	PutBatch,
	Replacement,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadRow,
} from "../storage.ts";
import { backupTo } from "./backup.ts";
import { SqliteConnection } from "./connection.ts";
import { findDamage, isDamage, rebuildFile, recount } from "./damage.ts";
import type { SqliteDatabase, SqliteSession } from "./driver.ts";
import { findBlobs, findRuns, read, readFamily, readOutline, readPath, readThread } from "./read.ts";
import type { SqliteSource } from "./source.ts";
import { copy, put, remove, removeThread, replaceBytes } from "./write.ts";

/** Long enough for any commit of another process, short enough to be noticed. */
const DEFAULT_BUSY_TIMEOUT = 30_000;
/** Pages that are given back to the file system in one transaction. */
const BATCH_PAGES = 500;

const RESERVE = "UPDATE delta_format SET next_id = max(next_id, ?) + ? RETURNING next_id AS end";
/** Changes with commits of other connections, and, if that is asked for, with changes through this one. */
const GET_VERSION = "SELECT data_version || iif(?, ' ' || total_changes(), '') AS version FROM pragma_data_version";

const THREADS = `SELECT thread_id AS threadId, family, stamp, created_at AS createdAt, updated_at AS updatedAt, checkpoints, newest
	FROM delta_threads`;
const GET_THREAD = `${THREADS} WHERE thread_id = ?`;
const LIST_THREADS = `${THREADS} WHERE updated_minute <= :updatedAt / 60000 AND (updated_at, thread_id) < (:updatedAt, :threadId)
	ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT :limit`;

/** With a plus the condition does not only guide the search: in a damaged index that may go back. */
const LIST_FAMILIES = `SELECT DISTINCT family FROM delta_blobs WHERE family > :after AND +family > :after
	ORDER BY family LIMIT :limit`;
const REMOVE_BLOB = "DELETE FROM delta_blobs WHERE id = ? AND family = ?";

const GET_TOTALS = `SELECT
	(SELECT count(*) FROM delta_threads) AS threads,
	(SELECT count(*) FROM delta_checkpoints WHERE head IS NOT NULL) AS checkpoints,
	(SELECT count(*) FROM delta_writes) AS writes,
	json_object('checkpoints', (SELECT total(length(head)) FROM delta_checkpoints),
		'blobs', (SELECT total(length(data)) FROM delta_blobs),
		'writes', (SELECT total(length(value)) FROM delta_writes)) AS bytes`;

/** Rows in an SQLite database. Opens it with the first call, so that whatever is wrong with it rejects that call. */
export class SqliteStorage implements Storage {
	readonly #source: SqliteSource;
	readonly #connection: SqliteConnection;
	readonly read = this.#reading(read);
	readonly readOutline = this.#reading(readOutline);
	readonly readThread = this.#reading(readThread);
	readonly readFamily = this.#reading(readFamily);
	readonly getBlobs = this.#reading(findBlobs);
	readonly findRuns = this.#reading(findRuns);
	readonly remove = this.#changing(remove);
	readonly copy = this.#changing(copy);
	readonly removeThread = this.#changing(removeThread);

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

	readPath(key: CheckpointKey, limit: number) {
		return this.#connection.read((session) => {
			// Through a connection that it shares with us, the application may change rows as well: ours and its count alike.
			const { version } = session.get(GET_VERSION, this.#source.isShared ? 1 : 0) as { version: string };
			return { ...readPath(session, key, limit), epoch: `${session.name} ${version}` };
		});
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#connection.read((session) => session.get(GET_THREAD, threadId));
	}

	listThreads(limit: number, after?: { updatedAt: number; threadId: string }): Promise<ThreadRow[]> {
		const { updatedAt, threadId } = after ?? { updatedAt: Number.POSITIVE_INFINITY, threadId: "" };
		return this.#connection.read((session) => session.all(LIST_THREADS, { updatedAt, threadId, limit }));
	}

	listFamilies(limit: number, after = -1): Promise<number[]> {
		return this.#connection.read((session) =>
			session.all<{ family: number }>(LIST_FAMILIES, { after, limit }).map(({ family }) => family),
		);
	}

	totals(): Promise<StorageTotals> {
		return this.#connection.read((session) => {
			const totals = session.get(GET_TOTALS) as Omit<StorageTotals, "bytes"> & { bytes: string };
			return { ...totals, bytes: JSON.parse(totals.bytes) };
		});
	}

	put(batch: PutBatch) {
		// Of a hundred tasks that end one after the other each has its own writes, and the next checkpoint comes soon.
		return this.#connection.change((session) => put(session, batch), batch.checkpoint === undefined);
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

	async check(repairs = false): Promise<StorageDamage[]> {
		// A database that can't be opened because of it is damaged as well. A transaction that met damage could not be ended.
		const { structure, rows } = await this.#connection.alone(findDamage, repairs).catch((error: unknown) => {
			if (!isDamage(error)) throw error;
			return { structure: [{ problem: (error as Error).message }], rows: [] };
		});
		if (repairs && structure.length === 0 && rows.length > 0) await this.#connection.change(recount);
		if (!repairs || structure.length === 0) return [...structure, ...rows];
		const { path, name } = this.#source;
		if (path === undefined)
			throw new CheckpointError(
				"CORRUPT",
				`${quote(name)} is open in the application: close it, and call repair() of a saver for its path.`,
			);
		const { lost, damagedFile } = await this.#connection.replace(() => rebuildFile(path));
		return [...structure, ...rows, ...lost, { problem: `The damaged file is kept as ${quote(damagedFile)}.` }];
	}

	tidy(): Promise<boolean> {
		return this.#connection.alone(({ db }) => {
			const free = () => Number(db.pragma("freelist_count", { simple: true }));
			const before = free();
			db.pragma(`incremental_vacuum(${BATCH_PAGES})`);
			if (free() > 0 && free() < before) return true;
			db.pragma("wal_checkpoint(TRUNCATE)");
			return false;
		}, true);
	}

	/** See {@link backupTo}. */
	backup(path: string, check: () => void): Promise<void> {
		return this.#connection.alone(({ db }) => backupTo(db, path, check));
	}

	close(): Promise<void> {
		return this.#connection.close();
	}

	#reading<Asked extends unknown[], T>(work: (session: SqliteSession, ...asked: Asked) => T) {
		return (...asked: Asked) => this.#connection.read((session) => work(session, ...asked));
	}

	#changing<Asked extends unknown[], T>(work: (session: SqliteSession, ...asked: Asked) => T) {
		return (...asked: Asked) => this.#connection.change((session) => work(session, ...asked));
	}
}

/** Where the numbers handed out end, by database. One of the application may undo the update of its counter. */
const reserved = new WeakMap<SqliteDatabase, number>();
