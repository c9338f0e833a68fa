import { CheckpointError } from "../errors.ts";
import { type SqliteDatabase, type SqliteStatement, translateError } from "./sqlite-driver.ts";
import { packId, unpackId } from "./sqlite-ids.ts";
import { migrate } from "./sqlite-schema.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageTotals,
	StoredValue,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "./storage.ts";

type PackedId = Buffer | string;

interface SqlCheckpoint {
	thread_id: string;
	stamp: number;
	ns: string;
	id: string;
	parent: PackedId | null;
	run_id: string | null;
	source: string | null;
	step: number | null;
	head: Uint8Array;
}

interface SqlWrite {
	thread_id: string;
	ns: string;
	checkpoint: PackedId;
	task: PackedId;
	generation: number;
	idx: number;
	channel: string;
	run_id: string | null;
	actor: number | null;
	type: string | null;
	value: StoredValue;
}

interface SqlThread {
	pk: number;
	thread_id: string;
	family: number;
	stamp: number;
	created_at: number;
	updated_at: number;
	checkpoints: number;
	head: string | null;
}

const CHECKPOINT = `SELECT thread_id, stamp, ns, id, parent, run_id, source, step, c.head
	FROM delta_thread t JOIN delta_checkpoint c ON c.thread = t.pk`;
const WRITE = `SELECT thread_id, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
	FROM delta_thread t JOIN delta_write w ON w.thread = t.pk`;
const BASE = "SELECT thread_id, ns, checkpoint, channel, data FROM delta_thread t JOIN delta_base b ON b.thread = t.pk";
const THREAD = "SELECT * FROM delta_thread";

/** Every statement that does not depend on the call. */
const SQL = {
	begin: "BEGIN IMMEDIATE",
	commit: "COMMIT",
	rollback: "ROLLBACK",
	reserve: "UPDATE delta_sequence SET next = next + ? RETURNING next",

	getCheckpoint: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND id = ?`,
	getLatest: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? ORDER BY id DESC LIMIT 1`,
	getChildren: `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND parent = ?`,
	findRunCheckpoints: `${CHECKPOINT} WHERE run_id IN (SELECT value FROM json_each(?))`,
	insertCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
	updateCheckpoint: `UPDATE delta_checkpoint SET run_id = ?, source = ?, step = ?, head = ?
		WHERE thread = ? AND ns = ? AND id = ?`,
	relink: "UPDATE delta_checkpoint SET parent = ? WHERE thread = ? AND ns = ? AND id = ?",
	removeCheckpoint:
		"DELETE FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ? RETURNING length(head) AS bytes",
	removeAllCheckpoints: "DELETE FROM delta_checkpoint WHERE thread = ? RETURNING length(head) AS bytes",
	copyCheckpoint: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		SELECT ?, ns, id, ?, run_id, source, step, head FROM delta_checkpoint WHERE thread = ? AND ns = ? AND id = ?`,
	copyAllCheckpoints: `INSERT INTO delta_checkpoint (thread, ns, id, parent, run_id, source, step, head)
		SELECT ?, ns, id, parent, run_id, source, step, head FROM delta_checkpoint WHERE thread = ? ORDER BY pk`,

	getWrites: `${WRITE} WHERE thread_id = ? AND ns = ? AND checkpoint = ?`,
	getThreadWrites: `${WRITE} WHERE thread_id = ?`,
	findRunWrites: `${WRITE} WHERE run_id IN (SELECT value FROM json_each(?))`,
	getWritesBefore: `${WRITE} WHERE thread_id = ? AND ns = ? AND checkpoint < ?`,
	getTaskWrites: `SELECT generation, idx FROM delta_write
		WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ?`,
	putWrite: "INSERT OR REPLACE INTO delta_write VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	removeWrite: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	removeWrites: `DELETE FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	removeAllWrites: `DELETE FROM delta_write WHERE thread = ?
		RETURNING iif(typeof(value) = 'blob', length(value), 0) AS bytes`,
	copyWrites: `INSERT INTO delta_write SELECT ?, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
		FROM delta_write WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	copyAllWrites: `INSERT INTO delta_write SELECT ?, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value
		FROM delta_write WHERE thread = ?`,

	getBases: `${BASE} WHERE thread_id = ? AND ns = ? AND checkpoint = ?`,
	getThreadBases: `${BASE} WHERE thread_id = ?`,
	putBase: "INSERT OR REPLACE INTO delta_base VALUES (?, ?, ?, ?, ?)",
	removeBases: "DELETE FROM delta_base WHERE thread = ? AND ns = ? AND checkpoint = ?",
	removeAllBases: "DELETE FROM delta_base WHERE thread = ?",
	copyBases: `INSERT INTO delta_base SELECT ?, ns, checkpoint, channel, data FROM delta_base
		WHERE thread = ? AND ns = ? AND checkpoint = ?`,
	copyAllBases: "INSERT INTO delta_base SELECT ?, ns, checkpoint, channel, data FROM delta_base WHERE thread = ?",

	getBlob: "SELECT id, base, type, data FROM delta_blob WHERE id = ?",
	insertBlob: "INSERT INTO delta_blob (id, family, base, type, data) VALUES (?, ?, ?, ?, ?)",
	listBlobs: "SELECT id, base, length(data) AS bytes FROM delta_blob WHERE family = ?",
	removeBlob: "DELETE FROM delta_blob WHERE id = ? AND family = ?",

	replaceHead:
		"UPDATE delta_checkpoint SET head = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?) AND ns = ? AND id = ? AND head = ?",
	replaceValue: `UPDATE delta_write SET value = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?)
		AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ? AND value = ?`,
	replaceBase: `UPDATE delta_base SET data = ? WHERE thread = (SELECT pk FROM delta_thread WHERE thread_id = ?)
		AND ns = ? AND checkpoint = ? AND channel = ? AND data = ?`,
	replaceBlob: "UPDATE delta_blob SET data = ? WHERE id = ? AND data = ?",

	getThread: `${THREAD} WHERE thread_id = ?`,
	getFamily: `${THREAD} WHERE family = ?`,
	listThreads: `${THREAD} ORDER BY updated_at DESC, thread_id DESC LIMIT ?`,
	listThreadsAfter: `${THREAD} WHERE (updated_at, thread_id) < (?, ?) ORDER BY updated_at DESC, thread_id DESC LIMIT ?`,
	insertThread: `INSERT INTO delta_thread (thread_id, family, stamp, created_at, updated_at, checkpoints)
		VALUES (?, ?, ?, ?, ?, 0)`,
	touchThread: "UPDATE delta_thread SET updated_at = ?, checkpoints = ?, head = ? WHERE pk = ?",
	restamp: `UPDATE delta_thread SET stamp = ?,
		checkpoints = (SELECT count(*) FROM delta_checkpoint WHERE thread = delta_thread.pk),
		head = (SELECT max(id) FROM delta_checkpoint WHERE thread = delta_thread.pk AND ns = '') WHERE pk = ?`,
	removeThread: "DELETE FROM delta_thread WHERE pk = ?",

	totals: `SELECT (SELECT count(*) FROM delta_thread) AS threads,
		(SELECT count(*) FROM delta_checkpoint) AS checkpoints,
		(SELECT count(*) FROM delta_write) AS writes,
		(SELECT total(length(head)) FROM delta_checkpoint) AS checkpointBytes,
		(SELECT total(length(data)) FROM delta_blob) AS blobBytes,
		(SELECT total(length(value)) FROM delta_write WHERE typeof(value) = 'blob') AS writeBytes`,
} as const;

type Statements = Record<keyof typeof SQL, SqliteStatement>;

/** Rows in an SQLite database. Opens it with the first call, so that whatever is wrong with it rejects that call. */
export class SqliteStorage implements Storage {
	readonly #name: string;
	readonly #open: () => SqliteDatabase;
	readonly #isShared: boolean;
	#db: SqliteDatabase | undefined;
	#statements: Statements | undefined;
	readonly #scans = new Map<string, SqliteStatement>();
	#isClosed = false;

	/**
	 * @param name of the database, for error messages
	 * @param open opens it
	 * @param isShared it belongs to the application, which will also close it
	 */
	constructor(name: string, open: () => SqliteDatabase, isShared: boolean) {
		this.#name = name;
		this.#open = open;
		this.#isShared = isShared;
	}

	reserveIds(count: number): Promise<number> {
		return this.#use((sql) => (sql.reserve.get(count) as { next: number }).next - count);
	}

	getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#use((sql) => toCheckpoint(sql.getCheckpoint.get(threadId, ns, id)));
	}

	getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#use((sql) => toCheckpoint(sql.getLatest.get(threadId, ns)));
	}

	scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#use((_, db) => {
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
			let statement = this.#scans.get(text);
			if (statement === undefined) {
				statement = db.prepare(text);
				this.#scans.set(text, statement);
			}
			return statement.all(...parameters, limit).map(toCheckpoint) as FoundCheckpoint[];
		});
	}

	getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		return this.#use((sql) => {
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
		return this.#use((sql) =>
			parentIds.flatMap((id) => sql.getChildren.all(threadId, ns, packId(id)).map(toCheckpoint) as FoundCheckpoint[]),
		);
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#use((sql) => ({
			checkpoints: sql.findRunCheckpoints.all(JSON.stringify(runIds)).map(toCheckpoint) as FoundCheckpoint[],
			writes: sql.findRunWrites.all(JSON.stringify(runIds)).map(toWrite),
		}));
	}

	getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return this.#use((sql) =>
			keys.flatMap(({ threadId, ns, id }) => sql.getWrites.all(threadId, ns, packId(id)).map(toWrite)),
		);
	}

	getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		return this.#use((sql) => {
			// Ids in their packed form sort as they do in full, but before or after those that can't be packed.
			const rows = sql.getWritesBefore.all(threadId, ns, packId(before)).map(toWrite);
			const isOrphan = ({ id }: WriteRow) => id < before && sql.getCheckpoint.get(threadId, ns, id) === undefined;
			return rows.filter(isOrphan);
		});
	}

	getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return this.#use((sql) => sql.getThreadWrites.all(threadId).map(toWrite));
	}

	getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return this.#use((sql) =>
			keys.flatMap(({ threadId, ns, id }) => sql.getBases.all(threadId, ns, packId(id)).map(toBase)),
		);
	}

	getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return this.#use((sql) => sql.getThreadBases.all(threadId).map(toBase));
	}

	getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return this.#use((sql) => {
			const found = new Map<number, BlobRow>();
			for (const start of ids) {
				let id: number | undefined = start;
				while (id !== undefined && !found.has(id)) {
					const row = toBlob(sql.getBlob.get(id));
					if (row === undefined) break;
					found.set(id, row);
					id = row.base;
				}
			}
			return [...found.values()];
		});
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#use((sql) => {
			const row = sql.getThread.get(threadId);
			return row === undefined ? undefined : toThread(row);
		});
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#use((sql) => {
			if (after === undefined) return sql.listThreads.all(limit).map(toThread);
			return sql.listThreadsAfter.all(after.updatedAt, after.threadId, limit).map(toThread);
		});
	}

	getFamily(family: number): Promise<ThreadRow[]> {
		return this.#use((sql) => sql.getFamily.all(family).map(toThread));
	}

	listBlobs(family: number): Promise<{ id: number; base: number | undefined; bytes: number }[]> {
		type Row = { id: number; base: number | null; bytes: number };
		return this.#use((sql) =>
			(sql.listBlobs.all(family) as Row[]).map((row) => ({ ...row, base: row.base ?? undefined })),
		);
	}

	totals(): Promise<StorageTotals> {
		return this.#use((sql) => {
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
		return this.#change((sql) => {
			const thread = this.#threadFor(sql, batch);
			if (thread === undefined) return undefined;
			const dropped = putWrites(sql, thread.pk, batch.writes);
			for (const { id, base, type, data } of batch.blobs)
				if (!dropped.has(id)) sql.insertBlob.run(id, thread.family, base ?? null, type ?? null, data);
			for (const row of batch.deltaBases ?? []) putBase(sql, thread.pk, row);
			const replaced = batch.checkpoint !== undefined && putCheckpoint(sql, thread, batch.checkpoint, batch.now);
			return { family: thread.family, stamp: thread.stamp, replaced };
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
		return this.#change((sql) => {
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
		return this.#change((sql) => {
			const source = sql.getThread.get(batch.source) as SqlThread | undefined;
			if (source === undefined || source.stamp !== batch.stamp) return undefined;
			if (sql.getThread.get(batch.target) !== undefined) return undefined;
			sql.insertThread.run(batch.target, source.family, batch.fresh, batch.now, batch.now);
			const { pk } = sql.getThread.get(batch.target) as SqlThread;
			const copied: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
			const { rows } = batch;
			for (const row of rows?.checkpoints ?? []) copied.checkpoints += addCheckpoint(sql, pk, row);
			for (const row of rows?.writes ?? []) copied.writes += addWrite(sql, pk, row);
			if (batch.checkpoints === undefined && rows === undefined) {
				copied.checkpoints = sql.copyAllCheckpoints.run(pk, source.pk).changes;
				copied.writes = sql.copyAllWrites.run(pk, source.pk).changes;
				sql.copyAllBases.run(pk, source.pk);
			}
			for (const { key, parentId } of rows === undefined ? (batch.checkpoints ?? []) : []) {
				const parent = parentId === undefined ? null : packId(parentId);
				copied.checkpoints += sql.copyCheckpoint.run(pk, parent, source.pk, key.ns, key.id).changes;
				copied.writes += sql.copyWrites.run(pk, source.pk, key.ns, packId(key.id)).changes;
				sql.copyBases.run(pk, source.pk, key.ns, packId(key.id));
			}
			for (const row of batch.deltaBases) putBase(sql, pk, row);
			sql.restamp.run(batch.fresh, pk);
			return copied;
		});
	}

	removeThread(threadId: string): Promise<RowCount> {
		return this.#change((sql) => {
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
		return this.#change((sql) => {
			for (const id of ids) sql.removeBlob.run(id, family);
		});
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#change((sql) => replacements.reduce((sum, replacement) => sum + replaceBytes(sql, replacement), 0));
	}

	clear(): Promise<void> {
		return this.#change((_, db) => {
			for (const table of ["thread", "checkpoint", "blob", "write", "base"]) db.exec(`DELETE FROM delta_${table}`);
		});
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		this.#statements = undefined;
		this.#scans.clear();
		if (!this.#isShared) this.#db?.close();
		this.#db = undefined;
	}

	/** Runs a read. */
	async #use<T>(run: (sql: Statements, db: SqliteDatabase) => T): Promise<T> {
		try {
			const [sql, db] = this.#ready();
			return run(sql, db);
		} catch (error) {
			throw translateError(error, this.#name);
		}
	}

	/** Runs a write as one transaction, or as part of the one that the application has open on its own database. */
	#change<T>(run: (sql: Statements, db: SqliteDatabase) => T): Promise<T> {
		return this.#use((sql, db) => {
			if (db.inTransaction) return db.transaction(() => run(sql, db)).immediate();
			sql.begin.run();
			try {
				const result = run(sql, db);
				sql.commit.run();
				return result;
			} catch (error) {
				// SQLite has already rolled back after some errors, a full disk for one.
				if (db.inTransaction) sql.rollback.run();
				throw error;
			}
		});
	}

	#ready(): [Statements, SqliteDatabase] {
		if (this.#isClosed) throw new CheckpointError("CLOSED", "The saver was closed: make a new one.");
		if (this.#statements !== undefined && this.#db !== undefined) return [this.#statements, this.#db];
		this.#db ??= this.#open();
		migrate(this.#db, this.#name, this.#isShared);
		const db = this.#db;
		const entries = Object.entries(SQL).map(([name, text]) => [name, db.prepare(text)]);
		this.#statements = Object.fromEntries(entries) as Statements;
		return [this.#statements, db];
	}
}

/** Answers whether it took the place of another. */
function putCheckpoint(sql: Statements, thread: SqlThread, row: CheckpointRow, now: number): boolean {
	const { ns, id } = row;
	const added = addCheckpoint(sql, thread.pk, row);
	if (added === 0)
		sql.updateCheckpoint.run(row.runId ?? null, row.source ?? null, row.step ?? null, row.head, thread.pk, ns, id);
	const isHead = ns === "" && (thread.head === null || thread.head < id);
	sql.touchThread.run(now, thread.checkpoints + added, isHead ? id : thread.head, thread.pk);
	return added === 0;
}

/** Answers how many were added: none if the key is taken. */
function addCheckpoint(sql: Statements, thread: number, row: CheckpointRow): number {
	const { ns, id, parentId, runId, source, step, head } = row;
	const parent = parentId === undefined ? null : packId(parentId);
	return sql.insertCheckpoint.run(thread, ns, id, parent, runId ?? null, source ?? null, step ?? null, head).changes;
}

function addWrite(sql: Statements, thread: number, row: WriteRow): number {
	const { ns, id, taskId, generation, idx, channel, runId, actor, type, value } = row;
	const place = [thread, ns, packId(id), packId(taskId), generation, idx];
	// better-sqlite3 binds a number as a float unless it is told otherwise, and a column of type ANY keeps that.
	const stored = typeof value === "number" ? BigInt(value) : value;
	return sql.putWrite.run(...place, channel, runId ?? null, actor ?? null, type ?? null, stored).changes;
}

function putBase(sql: Statements, thread: number, { ns, id, channel, data }: DeltaBaseRow): void {
	sql.putBase.run(thread, ns, packId(id), channel, data);
}

function replaceBytes(sql: Statements, replacement: Replacement): number {
	const { from, to } = replacement;
	if (replacement.kind === "blob") return sql.replaceBlob.run(to, replacement.id, from).changes;
	const { threadId, ns, id } = replacement.key;
	if (replacement.kind === "checkpoint") return sql.replaceHead.run(to, threadId, ns, id, from).changes;
	if (replacement.kind === "deltaBase")
		return sql.replaceBase.run(to, threadId, ns, packId(id), replacement.channel, from).changes;
	const { taskId, generation, idx } = replacement.key;
	return sql.replaceValue.run(to, threadId, ns, packId(id), packId(taskId), generation, idx, from).changes;
}

/** Answers the values of the writes that were dropped. */
function putWrites(sql: Statements, thread: number, writes: readonly NewWrite[]): Set<unknown> {
	const dropped = new Set<unknown>();
	const [first] = writes;
	if (first === undefined) return dropped;
	const place = [thread, first.ns, packId(first.id), packId(first.taskId)];
	const before = sql.getTaskWrites.all(...place) as { generation: number; idx: number }[];
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	const taken = new Set<number>();
	for (const { conflict, ...write } of writes) {
		const isTaken = taken.has(write.idx) || (conflict === "drop" && before.some((row) => row.idx === write.idx));
		if (isTaken && conflict !== "replace") {
			dropped.add(write.value);
			continue;
		}
		taken.add(write.idx);
		addWrite(sql, thread, { ...write, generation: conflict === "add" ? next : 0 });
	}
	return dropped;
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

function toCheckpoint(row: unknown): FoundCheckpoint | undefined {
	if (row === undefined) return undefined;
	const { thread_id, stamp, ns, id, parent, run_id, source, step, head } = row as SqlCheckpoint;
	return {
		threadId: thread_id,
		stamp,
		ns,
		id,
		parentId: parent === null ? undefined : unpackId(parent),
		runId: run_id ?? undefined,
		source: source ?? undefined,
		step: step ?? undefined,
		head,
	};
}

function toWrite(row: unknown): WriteRow {
	const { thread_id, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value } = row as SqlWrite;
	return {
		threadId: thread_id,
		ns,
		id: unpackId(checkpoint),
		taskId: unpackId(task),
		generation,
		idx,
		channel,
		runId: run_id ?? undefined,
		actor: actor ?? undefined,
		type: type ?? undefined,
		value,
	};
}

function toBase(row: unknown): DeltaBaseRow {
	const { thread_id, ns, checkpoint, channel, data } = row as Record<string, string> & {
		checkpoint: PackedId;
		data: Uint8Array;
	};
	return {
		threadId: thread_id as string,
		ns: ns as string,
		id: unpackId(checkpoint),
		channel: channel as string,
		data,
	};
}

function toBlob(row: unknown): BlobRow | undefined {
	if (row === undefined) return undefined;
	const { id, base, type, data } = row as { id: number; base: number | null; type: string | null; data: Uint8Array };
	return { id, base: base ?? undefined, type: type ?? undefined, data };
}

function toThread(row: unknown): ThreadRow {
	const { thread_id, family, stamp, created_at, updated_at, checkpoints, head } = row as SqlThread;
	return {
		threadId: thread_id,
		family,
		stamp,
		createdAt: created_at,
		updatedAt: updated_at,
		checkpoints,
		head: head ?? undefined,
	};
}
