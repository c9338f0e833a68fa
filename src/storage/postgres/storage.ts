import { randomInt } from "node:crypto";
import { compareRows } from "../compare-ids.ts";
import { IdStash } from "../id-stash.ts";
import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	Depth,
	FamilyReading,
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
	ThreadOutline,
	ThreadReading,
	ThreadRow,
	WriteKey,
} from "../storage.ts";
import { minuteOf, putStatement, putValues, toPutResult } from "./put.ts";
import { readStatement, scanValues, toPathReading, toReading } from "./read.ts";
import {
	addCount,
	asBuffer,
	baseColumns,
	checkpointColumns,
	keyColumns,
	toBase,
	toBlob,
	toListedBlob,
	toListedCheckpoint,
	toThread,
	toWrite,
	toWriteKey,
	writeColumns,
	writeKeyColumns,
} from "./rows.ts";
import { migrate, type Tables, tablesOf } from "./schema.ts";
import { inTransaction, type PostgresSession, type Query } from "./session.ts";
import { type SqlRow, splitUnion, type Values } from "./statement.ts";
import { type Statements, statementsOn } from "./statements.ts";
import { fromText, toText } from "./text.ts";

/** Blobs that are removed in one statement, so that none takes long. */
const REMOVED_AT_ONCE = 1_000;
/** A place before every thread in the list: later than any time, and still a bigint. */
const START = { updatedAt: 2 ** 62, threadId: "" };

/** Rows in tables of a PostgreSQL schema. Sets them up with the first call, if they are not there. */
export class PostgresStorage implements Storage {
	readonly #session: PostgresSession;
	readonly #schema: string;
	readonly #tables: Tables;
	readonly #sql: Statements;
	readonly #ids = new IdStash(async (count) => {
		const [row] = await this.#query(this.#sql.reserve, { count });
		return Number(row?.[0]);
	});
	/** Tells this object from others that change the same threads. */
	readonly #writer = randomInt(2 ** 48 - 1);
	#ready: Promise<void> | undefined;
	#lastEpoch = 0;

	constructor(session: PostgresSession, schema: string) {
		this.#session = session;
		this.#schema = schema;
		this.#tables = tablesOf(schema);
		this.#sql = statementsOn(this.#tables);
	}

	reserveIds(count: number): Promise<number> {
		return this.#ids.take(count);
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known: readonly number[] = []): Promise<Reading> {
		const sql = readStatement(this.#tables, isKeys(which) ? undefined : which, depth);
		const values = isKeys(which) ? keyColumns(which) : scanValues(which);
		return toReading(await this.#query(sql, { ...values, known }));
	}

	async readPath({ threadId, ns, id }: CheckpointKey, limit: number): Promise<PathReading> {
		const values = { thread: toText(threadId), ns: toText(ns), id: toText(id), limit };
		return toPathReading(await this.#query(this.#sql.readPath, values), (writer, since) => {
			// Another writer may change the thread again and again without a change of its row. Batches are positive.
			return writer === this.#writer ? since : --this.#lastEpoch;
		});
	}

	async readOutline(threadId: string): Promise<ThreadOutline> {
		const rows = splitUnion(await this.#query(this.#sql.readOutline, { thread: toText(threadId) }));
		const written = rows("written").map(([ns, channel]) => ({
			ns: fromText(ns as string),
			channel: fromText(channel as string),
		}));
		return { checkpoints: rows("checkpoint").map(toListedCheckpoint).sort(compareRows), written };
	}

	async readThread(threadId: string): Promise<ThreadReading> {
		const rows = splitUnion(await this.#query(this.#sql.readThread, { thread: toText(threadId) }));
		return { writes: rows("write").map(toWrite), deltaBases: rows("base").map(toBase) };
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return (await this.#query(this.#sql.getBlobs, { ids, known: [] })).map(toBlob);
	}

	async findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		const rows = splitUnion(await this.#query(this.#sql.findRuns, { runs: runIds.map(toText) }));
		return { checkpoints: rows("checkpoint").map(toListedCheckpoint), writes: rows("write").map(toWriteKey) };
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		return (await this.#query(this.#sql.getThread, { thread: toText(threadId) })).map(toThread)[0];
	}

	async listThreads(limit: number, after: { updatedAt: number; threadId: string } = START): Promise<ThreadRow[]> {
		const { updatedAt, threadId } = after;
		const values = { minute: minuteOf(updatedAt), updated: updatedAt, thread: toText(threadId), limit };
		return (await this.#query(this.#sql.listThreads, values)).map(toThread);
	}

	async readFamily(family: number): Promise<FamilyReading> {
		const rows = splitUnion(await this.#query(this.#sql.readFamily, { family }));
		const named = rows("named").map(([id]) => Number(id));
		return { blobs: rows("blob").map(toListedBlob), named, deltaBases: rows("base").map(toBase) };
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		return (await this.#query(this.#sql.listFamilies, { limit, after })).map(([family]) => Number(family));
	}

	async totals(): Promise<StorageTotals> {
		const [row = []] = await this.#query(this.#sql.totals);
		const [checkpoints = 0, headBytes = 0, writes = 0, valueBytes = 0, threads = 0, blobs = 0] = row.map(Number);
		return { threads, checkpoints, writes, bytes: { checkpoints: headBytes, blobs, writes: valueBytes } };
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		const values = { ...putValues(batch), writer: this.#writer };
		await this.#open();
		return this.#session.run((query, isRetry) => {
			const store = async () => toPutResult(await query(putStatement(this.#tables, batch, isRetry), values), batch);
			// The first sending may still be under way: once the thread is locked it has ended.
			return isRetry ? inTransaction(query, () => query(this.#sql.lockThread, values).then(store)) : store();
		});
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		const thread = toText(batch.threadId);
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.lockThread, { thread });
			const [number, , stamp] = found?.map(Number) ?? [];
			if (earlier !== undefined && stamp === batch.newStamp) return earlier;
			if (number === undefined || stamp !== batch.stamp) return undefined;
			const removed = noRows();
			const { checkpoints, writes, orphans, relinked, deltaBases } = batch;
			if (checkpoints.length > 0)
				addCount(removed, await query(this.#sql.removeRows, { number, ...keyColumns(checkpoints) }));
			if (writes.length + orphans.length > 0) {
				const areOrphans = [...writes.map(() => false), ...orphans.map(() => true)];
				const keys = writeKeyColumns([...writes, ...orphans]);
				addCount(removed, await query(this.#sql.removeWrites, { number, ...keys, areOrphans }));
			}
			await this.#putRows(query, number, { checkpoints: relinked, writes: [], deltaBases });
			await query(this.#sql.restamp, { number, thread, stamp: batch.newStamp, writer: this.#writer });
			return removed;
		});
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const { fresh, now, keys } = batch;
		const target = {
			thread: toText(batch.target),
			number: fresh,
			fresh,
			now,
			minute: minuteOf(now),
			writer: this.#writer,
		};
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.lockThread, { thread: toText(batch.source) });
			const [source, family, stamp] = found?.map(Number) ?? [];
			const isCurrent = source !== undefined && stamp === batch.stamp;
			const added = isCurrent ? await query(this.#sql.addThread, { ...target, family }) : [];
			if (added.length === 0) {
				if (earlier === undefined) return undefined;
				const [there] = await query(this.#sql.lockThread, target);
				return Number(there?.[0]) === fresh ? earlier : undefined;
			}
			await query(this.#sql.copyRows, { ...target, source, ...(keys && keyColumns(keys)) });
			await this.#putRows(query, fresh, batch);
			await query(this.#sql.restamp, { ...target, stamp: fresh });
			const copied = noRows();
			addCount(copied, await query(this.#sql.countRows, target));
			return copied;
		});
	}

	/** Adds rows to a thread, or puts them in place of those with their keys. */
	async #putRows(
		query: Query,
		number: number,
		{ checkpoints, writes, deltaBases }: Pick<CopyBatch, "checkpoints" | "writes" | "deltaBases">,
	): Promise<void> {
		if (checkpoints.length > 0) await query(this.#sql.putCheckpoints, { number, ...checkpointColumns(checkpoints) });
		if (writes.length > 0) await query(this.#sql.addWrites, { number, fresh: number, ...writeColumns(writes) });
		if (deltaBases.length > 0) await query(this.#sql.putBases, { number, ...baseColumns(deltaBases) });
	}

	async removeThread(threadId: string): Promise<RowCount> {
		return this.#transact<RowCount>(async (query, earlier) => {
			const [found] = await query(this.#sql.removeThread, { thread: toText(threadId) });
			if (found === undefined) return earlier ?? noRows();
			const removed = noRows();
			addCount(removed, await query(this.#sql.removeRows, { number: Number(found[0]) }));
			return removed;
		});
	}

	async removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		for (let i = 0; i < ids.length; i += REMOVED_AT_ONCE)
			await this.#query(this.#sql.removeBlobs, { family, ids: ids.slice(i, i + REMOVED_AT_ONCE) });
	}

	async replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		// Rows that a try before has replaced are not found again.
		return this.#transact<number>(async (query, earlier = 0) => {
			let count = 0;
			for (const replacement of replacements) count += (await this.#replace(query, replacement)).length;
			return Math.max(count, earlier);
		});
	}

	#replace(query: Query, { from, to, ...place }: Replacement): Promise<SqlRow[]> {
		const bytes = { from: asBuffer(from), to: asBuffer(to) };
		if (place.kind === "blob") return query(this.#sql.replaceBlob, { ...bytes, id: place.id });
		const { threadId, ns, id } = place.key;
		const key = { ...bytes, thread: toText(threadId), ns: toText(ns), id: toText(id) };
		if (place.kind === "checkpoint") return query(this.#sql.replaceHead, key);
		if (place.kind === "deltaBase") return query(this.#sql.replaceBase, { ...key, channel: toText(place.channel) });
		const { taskId, generation, idx } = place.key;
		return query(this.#sql.replaceValue, { ...key, task: toText(taskId), generation, idx });
	}

	async clear(): Promise<void> {
		await this.#transact(async (query) => {
			// Waits for calls that are storing; what they stored is seen by the statement after it.
			await query(this.#sql.clearThreads);
			await query(this.#sql.sweep);
		});
	}

	async check(): Promise<StorageDamage[]> {
		const rows = splitUnion(await this.#query(this.#sql.check));
		return [
			...rows("miscounted").map(([threadId]) => ({
				threadId: fromText(threadId as string),
				problem: "The thread's row miscounts its checkpoints, or names another than the newest.",
			})),
			...rows("lost").map(([number, table]) => ({
				problem: `Thread number ${number} has rows in delta_${table}, but no own row.`,
			})),
		];
	}

	/** Counts again, and removes rows of which only the number of their thread is left. */
	async repair(): Promise<StorageDamage[]> {
		const damage = await this.check();
		for (const { threadId } of damage) if (threadId !== undefined) await this.#recount(threadId);
		if (damage.some(({ threadId }) => threadId === undefined)) await this.#query(this.#sql.sweep);
		return damage;
	}

	/** The thread is locked before its rows are counted: nobody adds one meanwhile. */
	async #recount(threadId: string): Promise<void> {
		const thread = toText(threadId);
		const stamp = await this.reserveIds(1);
		await this.#transact(async (query) => {
			const [found] = await query(this.#sql.lockThread, { thread });
			if (found === undefined) return;
			await query(this.#sql.restamp, { number: Number(found[0]), thread, stamp, writer: this.#writer });
		});
	}

	/** Nothing is ever left half removed, and the server gives space back by itself. */
	async tidy(): Promise<boolean> {
		return false;
	}

	async close(): Promise<void> {
		await this.#session.close();
	}

	async #query(sql: string, values?: Values): Promise<SqlRow[]> {
		await this.#open();
		return this.#session.query(sql, values);
	}

	async #transact<T>(work: (query: Query, earlier: T | undefined) => Promise<T>): Promise<T> {
		await this.#open();
		return this.#session.transact(work);
	}

	/** An error rejects the calls that wait for it; the next one begins anew. */
	#open(): Promise<void> {
		this.#ready ??= migrate(this.#session, this.#schema).catch((error) => {
			this.#ready = undefined;
			throw error;
		});
		return this.#ready;
	}
}

function isKeys(which: Scan | readonly CheckpointKey[]): which is readonly CheckpointKey[] {
	return Array.isArray(which);
}

function noRows(): RowCount {
	return { checkpoints: 0, writes: 0, bytes: 0 };
}
