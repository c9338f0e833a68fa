import { compareIds } from "./compare-ids.ts";
import { checkHead } from "./guard.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import type { SqliteDatabase, SqliteStatement } from "./sqlite-driver.ts";
import { packId } from "./sqlite-ids.ts";
import {
	addCheckpoint,
	addWrite,
	putBase,
	putCheckpoint,
	putWrites,
	replaceBytes,
	type SqlThread,
	toBase,
	toBlob,
	toCheckpoint,
	toThread,
	toWrite,
} from "./sqlite-rows.ts";
import type { SqliteSource } from "./sqlite-source.ts";
import { CHECKPOINT, prepare, type Statements } from "./sqlite-statements.ts";
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
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "./storage.ts";

/** Long enough for a whole maintenance of other processes, short enough to be noticed. */
export const DEFAULT_BUSY_TIMEOUT = 30_000;

/** Rows in an SQLite database. Opens it with the first call, so that whatever is wrong with it rejects that call. */
export class SqliteStorage implements Storage {
	readonly #connection: SqliteConnection;
	readonly #isShared: boolean;
	/** Statements of scans, by their text, and the database that they are for. */
	#scans = new Map<string, SqliteStatement>();
	#scansOf: SqliteDatabase | undefined;
	#epoch = 0;
	#version = "";
	#versionOf: SqliteDatabase | undefined;

	/** @param busyTimeout how long a call waits for other processes, in milliseconds */
	constructor(source: SqliteSource, busyTimeout = DEFAULT_BUSY_TIMEOUT) {
		this.#connection = new SqliteConnection(source, busyTimeout);
		this.#isShared = source.isShared;
	}

	reserveIds(count: number): Promise<number> {
		return this.#connection.change((sql) => (sql.reserve.get(count) as { next: number }).next - count);
	}

	getEpoch(): Promise<number> {
		return this.#connection.read((sql, db) => {
			const { others, all_changes } = sql.getVersion.get() as { others: number; all_changes: number };
			// Through a connection that it shares with us, the application may change rows as well: ours and its count alike.
			const version = this.#isShared ? `${others} ${all_changes}` : String(others);
			if (version !== this.#version || db !== this.#versionOf) this.#epoch++;
			this.#version = version;
			this.#versionOf = db;
			return this.#epoch;
		});
	}

	getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#connection.alone((sql) => toCheckpoint(sql.getCheckpoint.get(threadId, ns, id)));
	}

	getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#connection.alone((sql) => toCheckpoint(sql.getLatest.get(threadId, ns)));
	}

	scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#connection.read((_, db) => {
			const { threadId, ns, before, after, limit } = query;
			const where: string[] = [];
			const parameters: unknown[] = [];
			const add = (condition: string, ...values: unknown[]) => {
				where.push(condition);
				parameters.push(...values);
			};
			if (threadId !== undefined) add("thread_id = ?", threadId);
			if (ns !== undefined) add("ns = ?", ns);
			if (before !== undefined) add("id < ?", before);
			// The first condition follows from the second; it is there for the index.
			if (after !== undefined)
				add("id <= ? AND (id < ? OR (thread_id, ns) > (?, ?))", after.id, after.id, after.threadId, after.ns);
			const filter = where.length > 0 ? `WHERE ${where.join(" AND ")}` : "";
			const text = `${CHECKPOINT} ${filter} ORDER BY id DESC, thread_id, ns LIMIT ?`;
			return this.#scanStatement(db, text)
				.all(...parameters, limit)
				.map(toCheckpoint) as FoundCheckpoint[];
		});
	}

	#scanStatement(db: SqliteDatabase, text: string): SqliteStatement {
		if (this.#scansOf !== db) this.#scans = new Map();
		this.#scansOf = db;
		const known = this.#scans.get(text);
		if (known !== undefined) return known;
		const statement = prepare(db, text);
		this.#scans.set(text, statement);
		return statement;
	}

	getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		return this.#connection.read((sql) => {
			const path = new Map<string, FoundCheckpoint>();
			let id: string | undefined = key.id;
			while (id !== undefined && !path.has(id) && path.size < limit) {
				const row = toCheckpoint(sql.getCheckpoint.get(key.threadId, key.ns, id));
				if (row === undefined) break;
				path.set(id, row);
				id = row.parentId;
			}
			return [...path.values()];
		});
	}

	getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		return this.#connection.read((sql) =>
			[...new Set(parentIds)].flatMap(
				(id) => sql.getChildren.all(threadId, ns, packId(id)).map(toCheckpoint) as FoundCheckpoint[],
			),
		);
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#connection.read((sql) => ({
			checkpoints: sql.findRunCheckpoints.all(JSON.stringify(runIds)).map(toCheckpoint) as FoundCheckpoint[],
			writes: sql.findRunWrites.all(JSON.stringify(runIds)).map(toWrite),
		}));
	}

	getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		const run = (sql: Statements) =>
			keys.flatMap(({ threadId, ns, id }) => sql.getWrites.all(threadId, ns, packId(id)).map(toWrite));
		return keys.length === 1 ? this.#connection.alone(run) : this.#connection.read(run);
	}

	getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		return this.#connection.read((sql) => {
			// Ids in their packed form sort as they do in full, but before or after those that can't be packed.
			const rows = sql.getWritesBefore.all(threadId, ns, packId(before), packId(before)).map(toWrite);
			const isOrphan = ({ id }: WriteRow) =>
				compareIds(id, before) < 0 && sql.getCheckpoint.get(threadId, ns, id) === undefined;
			return rows.filter(isOrphan);
		});
	}

	getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return this.#connection.alone((sql) => sql.getThreadWrites.all(threadId).map(toWrite));
	}

	getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return this.#connection.read((sql) =>
			keys.flatMap(({ threadId, ns, id }) => sql.getBases.all(threadId, ns, packId(id)).map(toBase)),
		);
	}

	getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return this.#connection.alone((sql) => sql.getThreadBases.all(threadId).map(toBase));
	}

	getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return this.#connection.read((sql) => {
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
		return this.#connection.alone((sql) => {
			const row = sql.getThread.get(threadId);
			return row === undefined ? undefined : toThread(row);
		});
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#connection.read((sql) => {
			if (after === undefined) return sql.listThreads.all(limit).map(toThread);
			return sql.listThreadsAfter.all(after.updatedAt, after.threadId, limit).map(toThread);
		});
	}

	getFamily(family: number): Promise<ThreadRow[]> {
		return this.#connection.alone((sql) => sql.getFamily.all(family).map(toThread));
	}

	listFamilies(limit: number, after = -1): Promise<number[]> {
		return this.#connection.read((sql) =>
			(sql.listFamilies.all(after, limit) as { family: number }[]).map((row) => row.family),
		);
	}

	listBlobs(family: number): Promise<ListedBlob[]> {
		type Row = { id: number; base: number | null; source: number | null; bytes: number };
		return this.#connection.read((sql) =>
			(sql.listBlobs.all(family) as Row[]).map((row) => ({
				...row,
				base: row.base ?? undefined,
				source: row.source ?? undefined,
			})),
		);
	}

	totals(): Promise<StorageTotals> {
		return this.#connection.read((sql) => {
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
		return this.#connection.change((sql) => {
			const thread = this.#threadFor(sql, batch);
			if (thread === undefined) return undefined;
			if (batch.checkpoint && batch.onlyOnHead) {
				const { threadId, ns, id } = batch.checkpoint;
				const isStored = sql.getCheckpoint.get(threadId, ns, id) !== undefined;
				checkHead(batch.checkpoint, toCheckpoint(sql.getLatest.get(threadId, ns)), isStored);
			}
			const dropped = putWrites(sql, thread.pk, batch.writes);
			for (const { id, base, source, type, data } of batch.blobs)
				if (!dropped.has(id)) sql.insertBlob.run(id, thread.family, base ?? null, source ?? null, type ?? null, data);
			for (const row of batch.deltaBases ?? []) putBase(sql, thread.pk, row);
			const { checkpoint, fresh, now } = batch;
			const stamp = checkpoint === undefined ? thread.stamp : putCheckpoint(sql, thread, checkpoint, fresh, now);
			return { family: thread.family, stamp, replaced: checkpoint !== undefined && stamp !== thread.stamp };
		});
	}

	/** The thread of a batch, made if need be; `undefined` if the batch is out of date. */
	#threadFor(sql: Statements, batch: PutBatch): SqlThread | undefined {
		const thread = sql.getThread.get(batch.threadId) as SqlThread | undefined;
		if (batch.stamp !== undefined && thread?.stamp !== batch.stamp) return undefined;
		if (thread !== undefined) return thread;
		const { threadId, fresh, now } = batch;
		sql.insertThread.run(threadId, fresh, fresh, now, now);
		return sql.getThread.get(threadId) as SqlThread;
	}

	remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		return this.#connection.change((sql) => {
			const thread = sql.getThread.get(batch.threadId) as SqlThread | undefined;
			if (thread === undefined || thread.stamp !== batch.stamp) return undefined;
			const { pk } = thread;
			const removed = new Tally();
			for (const { ns, id } of batch.checkpoints) {
				removed.checkpoints(sql.removeCheckpoint.all(pk, ns, id));
				removed.writes(sql.removeWrites.all(pk, ns, packId(id)));
				sql.removeBases.run(pk, ns, packId(id));
			}
			for (const { ns, id, taskId, generation, idx } of batch.writes)
				removed.writes(sql.removeWrite.all(pk, ns, packId(id), packId(taskId), generation, idx));
			for (const { key, parentId } of batch.relink)
				sql.relink.run(parentId === undefined ? null : packId(parentId), pk, key.ns, key.id);
			for (const row of batch.deltaBases) putBase(sql, pk, row);
			sql.restamp.run(batch.newStamp, pk);
			return removed.count;
		});
	}

	copy(batch: CopyBatch): Promise<RowCount | undefined> {
		return this.#connection.change((sql) => {
			const source = sql.getThread.get(batch.source) as SqlThread | undefined;
			if (source === undefined || source.stamp !== batch.stamp) return undefined;
			if (sql.getThread.get(batch.target) !== undefined) return undefined;
			sql.insertThread.run(batch.target, source.family, batch.fresh, batch.now, batch.now);
			const { pk } = sql.getThread.get(batch.target) as SqlThread;
			const copied = new Tally();
			const { rows } = batch;
			for (const row of rows?.checkpoints ?? [])
				if (addCheckpoint(sql, pk, row) > 0) copied.checkpoints([{ bytes: row.head.length }]);
			for (const row of rows?.writes ?? [])
				if (addWrite(sql, pk, row) > 0)
					copied.writes([{ bytes: typeof row.value === "number" ? 0 : row.value.length }]);
			if (batch.checkpoints === undefined && rows === undefined) {
				copied.checkpoints(sql.copyAllCheckpoints.all(pk, source.pk));
				copied.writes(sql.copyAllWrites.all(pk, source.pk));
				sql.copyAllBases.run(pk, source.pk);
			}
			for (const { key, parentId } of rows === undefined ? (batch.checkpoints ?? []) : []) {
				const parent = parentId === undefined ? null : packId(parentId);
				copied.checkpoints(sql.copyCheckpoint.all(pk, parent, source.pk, key.ns, key.id));
				copied.writes(sql.copyWrites.all(pk, source.pk, key.ns, packId(key.id)));
				sql.copyBases.run(pk, source.pk, key.ns, packId(key.id));
			}
			for (const row of batch.deltaBases) putBase(sql, pk, row);
			sql.restamp.run(batch.fresh, pk);
			return copied.count;
		});
	}

	removeThread(threadId: string): Promise<RowCount> {
		return this.#connection.change((sql) => {
			const removed = new Tally();
			const thread = sql.getThread.get(threadId) as SqlThread | undefined;
			if (thread === undefined) return removed.count;
			removed.checkpoints(sql.removeAllCheckpoints.all(thread.pk));
			removed.writes(sql.removeAllWrites.all(thread.pk));
			sql.removeAllBases.run(thread.pk);
			sql.removeThread.run(thread.pk);
			return removed.count;
		});
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#connection.change((sql) => {
			for (const id of ids) sql.removeBlob.run(id, family);
		});
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#connection.change((sql) =>
			replacements.reduce((sum, replacement) => sum + replaceBytes(sql, replacement), 0),
		);
	}

	clear(): Promise<void> {
		return this.#connection.change((_, db) => {
			for (const table of ["thread", "checkpoint", "blob", "write", "base"]) db.exec(`DELETE FROM delta_${table}`);
		});
	}

	check(): Promise<StorageDamage[]> {
		return this.#connection.read((_, db) => {
			const found = db.pragma("integrity_check") as { integrity_check: string }[];
			return found.map(({ integrity_check: problem }) => ({ problem })).filter(({ problem }) => problem !== "ok");
		});
	}

	async tidy(): Promise<boolean> {
		return false;
	}

	close(): Promise<void> {
		return this.#connection.close();
	}
}

/** Counts what RETURNING answered. */
class Tally {
	readonly count: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };

	checkpoints(rows: unknown[]): void {
		this.count.checkpoints += rows.length;
		this.#bytes(rows);
	}

	writes(rows: unknown[]): void {
		this.count.writes += rows.length;
		this.#bytes(rows);
	}

	#bytes(rows: unknown[]): void {
		for (const row of rows as { bytes: number }[]) this.count.bytes += row.bytes;
	}
}
