import { setImmediate as nextTurn } from "node:timers/promises";
import { CheckpointError, quote } from "../../errors.ts";
import { compareIds } from "../compare-ids.ts";
import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	PutBatch,
	PutResult,
	RemoveBatch,
	RemovedRows,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadOutline,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import { backupTo } from "./backup.ts";
import { checkBlob, toBlob } from "./blobs.ts";
import { checkBlobs, checkFile, checkThreads } from "./check.ts";
import {
	checkCheckpoint,
	findCheckpoint,
	findChildren,
	findFreshHead,
	findLatest,
	type SqlCheckpoint,
	toCheckpoint,
} from "./checkpoints.ts";
import { SqliteConnection } from "./connection.ts";
import type { SqliteDatabase } from "./driver.ts";
import { copy, type GoneThread, removeGone, removeThread, replaceBytes } from "./maintenance.ts";
import { findOutline } from "./outline.ts";
import { proveThreads } from "./proofs.ts";
import { isWritesAlone, put, putAlone } from "./put.ts";
import { isDamage, rebuildFile } from "./rebuild.ts";
import { remove } from "./removal.ts";
import { scan } from "./scan.ts";
import { reserveNumbers } from "./sequence.ts";
import type { SqliteSession } from "./session.ts";
import type { SqliteSource } from "./source.ts";
import { Tally } from "./tally.ts";
import { eraOf, findThread, getThreadByPk, type SqlThread, toThread } from "./threads.ts";
import {
	findBases,
	findRecentWrites,
	findThreadBases,
	findThreadWrites,
	findWritesOf,
	hasPending,
	openPending,
	type Pending,
	toWrite,
} from "./writes.ts";

/** Long enough for a whole maintenance of other processes, short enough to be noticed. */
export const DEFAULT_BUSY_TIMEOUT = 30_000;
/** Pages that are given back to the file system in one transaction. */
const BATCH_PAGES = 500;

/** Rows in an SQLite database. Opens it with the first call, so that whatever is wrong with it rejects that call. */
export class SqliteStorage implements Storage {
	readonly #source: SqliteSource;
	readonly #connection: SqliteConnection;
	#epoch = 0;
	#version = "";
	#versionOf: SqliteDatabase | undefined;

	/**
	 * @param busyTimeout how long a call waits for other processes, in milliseconds
	 * @param cacheBytes how much it may remember of what it stored last
	 */
	constructor(source: SqliteSource, busyTimeout = DEFAULT_BUSY_TIMEOUT, cacheBytes?: number) {
		this.#source = source;
		this.#connection = new SqliteConnection(source, busyTimeout, cacheBytes);
	}

	reserveIds(count: number): Promise<number> {
		return this.#connection.change((session) => reserveNumbers(session, count));
	}

	getEpoch(): Promise<number> {
		return this.#connection.read(({ sql, db }) => {
			const { others, all_changes } = sql.getVersion.get() as { others: number; all_changes: number };
			// Through a connection that it shares with us, the application may change rows as well: ours and its count alike.
			const version = this.#source.isShared ? `${others} ${all_changes}` : String(others);
			if (version !== this.#version || db !== this.#versionOf) this.#epoch++;
			this.#version = version;
			this.#versionOf = db;
			return this.#epoch;
		});
	}

	getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#ofThread(threadId, undefined, (session, thread) => {
			const row = findCheckpoint(session, thread, ns, id);
			return row && toCheckpoint(session, thread, row);
		});
	}

	getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#ofThread(threadId, undefined, (session, thread) => {
			const fresh = findFreshHead(session, thread, ns);
			if (fresh !== undefined) return fresh;
			const row = findLatest(session, thread, ns);
			return row && toCheckpoint(session, thread, row);
		});
	}

	scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#connection.read((session) => scan(session, query));
	}

	getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		return this.#ofThread(key.threadId, [], (session, thread) => {
			const path = new Map<string, FoundCheckpoint>();
			let id: string | undefined = key.id;
			while (id !== undefined && !path.has(id) && path.size < limit) {
				const row = findCheckpoint(session, thread, key.ns, id);
				if (row === undefined) break;
				const found = toCheckpoint(session, thread, row);
				path.set(id, found);
				id = found.parentId;
			}
			return [...path.values()];
		});
	}

	getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		return this.#ofThread(threadId, [], (session, thread) => {
			const rows = [...new Set(parentIds)].flatMap((id) => findChildren(session, thread, ns, id));
			return rows.map((row) => toCheckpoint(session, thread, row));
		});
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#connection.read((session) => {
			const threads = new Map<number, SqlThread | undefined>();
			/** Of a thread that is being removed there may still be rows. */
			const withThread = <T>(rows: unknown[], use: (row: unknown, thread: SqlThread) => T): T[] =>
				rows.flatMap((row) => {
					const { thread: pk } = row as { thread: number };
					if (!threads.has(pk)) threads.set(pk, getThreadByPk(session, pk));
					const thread = threads.get(pk);
					return thread === undefined ? [] : [use(row, thread)];
				});
			const { sql } = session;
			const found = sql.findRunCheckpoints.all(JSON.stringify(runIds)) as SqlCheckpoint[];
			const toKey = (row: unknown, thread: SqlThread) => toCheckpoint(session, thread, checkCheckpoint(row, thread));
			const toWrites = (row: unknown, thread: SqlThread) => openPending(thread, row as SqlCheckpoint & Pending);
			const writes = withThread(sql.findRunWrites.all(JSON.stringify(runIds)), toWrite);
			for (const { row } of withThread(found.filter(hasPending), toWrites).flat())
				if (row.runId !== undefined) writes.push(row);
			return { checkpoints: withThread(found, toKey), writes };
		});
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		const [only] = keys;
		if (only === undefined) return [];
		const recent =
			keys.length === 1 &&
			(await this.#connection.alone((session) => {
				session.refresh();
				return findRecentWrites(session, only);
			}));
		if (recent) return recent;
		return this.#connection.read((session) => {
			session.refresh();
			return keys.flatMap((key) => findWritesOf(session, key));
		});
	}

	getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return this.#connection.read((session) => {
			let thread: SqlThread | undefined;
			return keys.flatMap(({ threadId, ns, id }) => {
				if (thread?.thread_id !== threadId) thread = findThread(session, threadId);
				return thread === undefined ? [] : findBases(session, thread, ns, id);
			});
		});
	}

	getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		return this.#ofThread(threadId, [], (session, thread) => {
			if (thread.loose === 0) return [];
			const isOrphan = (write: WriteRow) =>
				write.ns === ns &&
				compareIds(write.id, before) < 0 &&
				findCheckpoint(session, thread, ns, write.id) === undefined;
			return findThreadWrites(session, thread).filter(isOrphan);
		});
	}

	getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return this.#ofThread(threadId, [], findThreadWrites);
	}

	getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return this.#ofThread(threadId, [], findThreadBases);
	}

	getOutline(threadId: string): Promise<ThreadOutline> {
		return this.#ofThread<ThreadOutline>(threadId, { checkpoints: [], written: new Map() }, findOutline);
	}

	getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return this.#connection.read(({ sql }) => {
			const found = new Map<number, BlobRow>();
			const open = [...ids];
			for (let id = open.pop(); id !== undefined; id = open.pop()) {
				const row = found.has(id) ? undefined : toBlob(sql.getBlob.get(id));
				if (row === undefined) continue;
				found.set(id, row);
				if (row.base !== undefined) open.push(row.base);
				if (row.source !== undefined) open.push(row.source);
			}
			return [...found.values()];
		});
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#ofThread(threadId, undefined, (_, thread) => toThread(thread));
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#connection.read((session) => {
			proveThreads(session, "era");
			const { sql } = session;
			if (after === undefined) return sql.listThreads.all(limit).map(toThread);
			const { updatedAt, threadId } = after;
			return sql.listThreadsAfter.all(eraOf(updatedAt), updatedAt, threadId, limit).map(toThread);
		});
	}

	getFamily(family: number): Promise<ThreadRow[]> {
		return this.#connection.read((session) => {
			proveThreads(session, "family");
			return session.sql.getFamily.all(family).map(toThread);
		});
	}

	listFamilies(limit: number, after = -1): Promise<number[]> {
		return this.#connection.read(({ sql }) =>
			(sql.listFamilies.all(after, limit) as { family: number }[]).map((row) => row.family),
		);
	}

	listBlobs(family: number): Promise<ListedBlob[]> {
		return this.#connection.read(({ sql }) =>
			sql.listBlobs.all(family).map((row) => {
				const { id, base, source } = checkBlob(row, family);
				return { id, base: base ?? undefined, source: source ?? undefined, bytes: (row as ListedBlob).bytes };
			}),
		);
	}

	totals(): Promise<StorageTotals> {
		return this.#connection.read(({ sql }) => {
			const row = sql.totals.get() as Record<string, number>;
			const { threads = 0, checkpoints = 0, writes = 0 } = row;
			const { checkpointBytes = 0, blobBytes = 0, writeBytes = 0 } = row;
			return {
				threads,
				checkpoints,
				writes,
				bytes: { checkpoints: checkpointBytes, blobs: blobBytes, writes: writeBytes },
			};
		});
	}

	put(batch: PutBatch): Promise<PutResult | undefined> {
		// Of a hundred tasks that end one after the other each has its own writes, and the next checkpoint comes soon.
		const canWait = batch.checkpoint === undefined;
		const alone = isWritesAlone(batch) ? (session: SqliteSession) => putAlone(session, batch) : undefined;
		return this.#connection.change((session) => put(session, batch), canWait, alone);
	}

	remove(batch: RemoveBatch): Promise<RemovedRows | undefined> {
		return this.#alter((session) => remove(session, batch));
	}

	copy(batch: CopyBatch): Promise<RowCount | undefined> {
		return this.#alter((session) => copy(session, batch));
	}

	/** Its row goes at once, and so the thread; what it had goes a batch at a time. */
	async removeThread(threadId: string): Promise<RowCount> {
		const removed = new Tally();
		const left = await this.#alter((session) => removeThread(session, threadId, removed));
		for (let isDone = left === undefined; !isDone; )
			isDone = await this.#alter((session) => removeGone(session, left as GoneThread, removed));
		return removed.count;
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#alter(({ sql }) => {
			for (const id of ids) sql.removeBlob.run(id, family);
		});
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#alter((session) => replacements.filter((replacement) => replaceBytes(session, replacement)).length);
	}

	clear(): Promise<void> {
		return this.#alter(({ db }) => {
			for (const table of ["thread", "checkpoint", "key", "blob", "write", "base", "gone"])
				db.exec(`DELETE FROM delta_${table}`);
		});
	}

	/** A part at a time, so that others have their turn. */
	async check(): Promise<StorageDamage[]> {
		const damage = await this.#connection.read(checkFile);
		for (const checkNext of [checkBlobs, checkThreads]) {
			let after: number | undefined = Number.MIN_SAFE_INTEGER;
			while (after !== undefined) {
				await nextTurn();
				const from: number = after;
				const part = await this.#connection.read((session) => checkNext(session, from));
				damage.push(...part.damage);
				after = part.last !== undefined && part.last > from ? part.last : undefined;
			}
		}
		return damage;
	}

	async repair(): Promise<StorageDamage[]> {
		this.#connection.checkWritable();
		const damage = await this.check().catch((error: unknown) => {
			if (!isDamage(error)) throw error;
			return [{ problem: error.message }];
		});
		const { path, name } = this.#source;
		if (damage.length === 0) return [];
		if (path === undefined)
			throw new CheckpointError(
				"CORRUPT",
				`${quote(name)} is open in the application: close it, and call repair() of a saver for its path.`,
			);
		const { lost, damagedFile } = await this.#connection.replace(() => rebuildFile(path));
		return [...damage, ...lost, { problem: `The damaged file is kept as ${quote(damagedFile)}.` }];
	}

	/** See {@link backupTo}. */
	backup(path: string, check: () => void): Promise<void> {
		return this.#connection.alone(({ db }) => backupTo(db, path, check));
	}

	async tidy(): Promise<boolean> {
		const gone = await this.#alter((session) => {
			const found = session.sql.getGone.get() as GoneThread | undefined;
			if (found !== undefined) removeGone(session, found, new Tally());
			return found !== undefined;
		});
		if (gone) return true;
		return this.#connection.alone(({ db }) => {
			const free = () => Number(db.pragma("freelist_count", { simple: true }));
			const before = free();
			if (before > 0) db.pragma(`incremental_vacuum(${BATCH_PAGES})`);
			const left = free();
			if (left === 0 || left === before) db.pragma("wal_checkpoint(TRUNCATE)");
			return left > 0 && left < before;
		});
	}

	close(): Promise<void> {
		return this.#connection.close();
	}

	/** A change that does more than to add. */
	#alter<T>(work: (session: SqliteSession) => T): Promise<T> {
		return this.#connection.change((session) => {
			session.forget();
			return work(session);
		});
	}

	/** Reads something of a thread, or answers for one that is not there. */
	#ofThread<T>(threadId: string, none: T, work: (session: SqliteSession, thread: SqlThread) => T): Promise<T> {
		return this.#connection.read((session) => {
			const thread = session.findKnown(threadId) ?? findThread(session, threadId);
			return thread === undefined ? none : work(session, thread);
		});
	}
}
