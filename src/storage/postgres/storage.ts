import { CheckpointError } from "../../errors.ts";
import { IdStash } from "../id-stash.ts";
import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	PathReading,
	PutBatch,
	PutResult,
	Reading,
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
} from "../storage.ts";
import { putStatement, shapeOf } from "./put.ts";
import { minuteOf, putValues, readPut, withoutRepeats } from "./put-values.ts";
import {
	pathStatement,
	readStatement,
	scanStatement,
	scanValues,
	shapeOfScan,
	toPathReading,
	toReading,
	withoutCycle,
} from "./read.ts";
import {
	addCount,
	asBuffer,
	baseColumns,
	checkpointColumns,
	keyColumns,
	text,
	toBase,
	toBlob,
	toCheckpoint,
	toThread,
	toWrite,
	writeColumns,
	writeKeyColumns,
} from "./rows.ts";
import { migrate } from "./schema.ts";
import { inTransaction, type PostgresSession, type Query, type SqlRow } from "./session.ts";
import type { Statement, Values } from "./statement.ts";
import { type Statements, statementsOn } from "./statements.ts";
import { fromText, toText } from "./text.ts";
import { ThreadEpochs } from "./thread-epochs.ts";

/** Blobs that are removed in one statement, so that none takes long. */
const REMOVED_AT_ONCE = 1_000;

/** Rows in tables of a PostgreSQL schema. Sets them up with the first call, if they are not there. */
export class PostgresStorage implements Storage {
	readonly #session: PostgresSession;
	readonly #schema: string;
	readonly #sql: Statements;
	/** By what they are made for. */
	readonly #built = new Map<string, Statement>();
	readonly #ids = new IdStash(async (count) => {
		const [row] = await this.#query(this.#sql.reserve, { count });
		return Number(row?.[0]);
	});
	readonly #epochs = new ThreadEpochs();
	#ready: Promise<void> | undefined;
	#epoch = 0;

	constructor(session: PostgresSession, schema: string) {
		this.#session = session;
		this.#schema = schema;
		this.#sql = statementsOn(schema);
	}

	reserveIds(count: number): Promise<number> {
		return this.#ids.take(count);
	}

	/** Nothing tells that no other server has changed anything. */
	async getEpoch(): Promise<number> {
		return this.#epoch++;
	}

	async getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		const values = { thread: toText(threadId), ns: toText(ns), id: toText(id) };
		return (await this.#query(this.#sql.getCheckpoint, values)).map(toCheckpoint)[0];
	}

	async getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return (await this.scan({ threadId, ns, limit: 1 }))[0];
	}

	async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		const statement = this.#build(`scan ${shapeOfScan(query)}`, () => scanStatement(this.#schema, query));
		return (await this.#query(statement, scanValues(query))).map(toCheckpoint);
	}

	async read(which: ScanQuery | readonly CheckpointKey[], known: readonly number[]): Promise<Reading> {
		const query = isKeys(which) ? undefined : which;
		const shape = query === undefined ? "keys" : shapeOfScan(query);
		const statement = this.#build(`read ${shape}`, () => readStatement(this.#schema, query));
		const values = isKeys(which) ? keyColumns(which) : scanValues(which);
		return toReading(await this.#query(statement, { ...values, known }), isKeys(which) ? which : undefined);
	}

	async getPath({ threadId, ns, id }: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		const values = { thread: toText(threadId), ns: toText(ns), id: toText(id), limit };
		return withoutCycle((await this.#query(this.#sql.getPath, values)).map(toCheckpoint));
	}

	async readPath({ threadId, ns, id }: CheckpointKey, limit: number): Promise<PathReading> {
		const statement = this.#build("path", () => pathStatement(this.#schema));
		const values = { thread: toText(threadId), ns: toText(ns), id: toText(id), limit };
		const { state, ...reading } = toPathReading(await this.#query(statement, values));
		return { ...reading, epoch: this.#epochs.see(threadId, state) };
	}

	async getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		const values = { thread: toText(threadId), ns: toText(ns), parents: parentIds.map(toText) };
		return (await this.#query(this.#sql.getChildren, values)).map(toCheckpoint);
	}

	async findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		const values = { runs: runIds.map(toText) };
		return {
			checkpoints: (await this.#query(this.#sql.findRunCheckpoints, values)).map(toCheckpoint),
			writes: (await this.#query(this.#sql.findRunWrites, values)).map(toWrite),
		};
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return (await this.#query(this.#sql.getWrites, keyColumns(keys))).map(toWrite);
	}

	async getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		const values = { thread: toText(threadId), ns: toText(ns), before: toText(before) };
		return (await this.#query(this.#sql.getOrphanWrites, values)).map(toWrite);
	}

	async getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return (await this.#query(this.#sql.getThreadWrites, { thread: toText(threadId) })).map(toWrite);
	}

	async getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return (await this.#query(this.#sql.getBases, keyColumns(keys))).map(toBase);
	}

	async getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return (await this.#query(this.#sql.getThreadBases, { thread: toText(threadId) })).map(toBase);
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return (await this.#query(this.#sql.getBlobs, { ids })).map(toBlob);
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		return (await this.#query(this.#sql.getThread, { thread: toText(threadId) })).map(toThread)[0];
	}

	async listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		if (after === undefined) return (await this.#query(this.#sql.listThreads, { limit })).map(toThread);
		const { updatedAt, threadId } = after;
		const values = { minute: minuteOf(updatedAt), updated: updatedAt, thread: toText(threadId), limit };
		return (await this.#query(this.#sql.listThreadsAfter, values)).map(toThread);
	}

	async getFamily(family: number): Promise<ThreadRow[]> {
		return (await this.#query(this.#sql.getFamily, { family })).map(toThread);
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		return (await this.#query(this.#sql.listFamilies, { limit, after })).map(([family]) => Number(family));
	}

	async listBlobs(family: number): Promise<ListedBlob[]> {
		const rows = await this.#query(this.#sql.listBlobs, { family });
		return rows.map(([id, base, source, bytes]) => ({
			id: Number(id),
			base: base === null ? undefined : Number(base),
			source: source === null ? undefined : Number(source),
			bytes: Number(bytes),
		}));
	}

	async totals(): Promise<StorageTotals> {
		const [row = []] = await this.#query(this.#sql.totals);
		const [threads = 0, checkpoints = 0, writes = 0, headBytes = 0, blobs = 0, writeBytes = 0] = row.map(Number);
		return { threads, checkpoints, writes, bytes: { checkpoints: headBytes, blobs, writes: writeBytes } };
	}

	async put(given: PutBatch): Promise<PutResult | undefined> {
		const batch = withoutRepeats(given);
		if (new Set(batch.blobs.map(({ id }) => id)).size < batch.blobs.length)
			throw new CheckpointError("STORAGE", "A blob id was given twice.");
		const values = putValues(batch);
		await this.#open();
		let tries = 0;
		const stored = await this.#session.run(async (query, isAgain) => {
			tries++;
			const send = (mayCreate: boolean) => query(this.#putStatement(batch, mayCreate, isAgain), values);
			const store = async () => {
				// Only a checkpoint without a parent is likely to be the first that comes of its thread.
				const isFirst = batch.checkpoint !== undefined && batch.checkpoint.parentId === undefined;
				const rows = await send(isFirst);
				const isMissing = rows.length === 0 && !isFirst && batch.stamp === undefined;
				return readPut(isMissing ? await send(true) : rows, batch);
			};
			// The first sending may still be under way: whoever has the thread locked knows how it ended.
			return isAgain ? inTransaction(query, () => query(this.#sql.lockThread, values).then(store)) : store();
		});
		if (stored !== undefined) this.#noteChange(batch, stored.replaced || tries > 1);
		return stored;
	}

	/** @param isUnclear it is not known what exactly was added */
	#noteChange({ threadId, fresh, checkpoint, writes, deltaBases = [] }: PutBatch, isUnclear: boolean): void {
		const isAdded = deltaBases.length === 0 && writes.every(({ conflict }) => conflict === "add");
		if (isUnclear || !isAdded) return this.#epochs.forget(threadId);
		this.#epochs.add(threadId, { checkpoints: checkpoint ? 1 : 0, writes: writes.length, batch: fresh });
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		const thread = toText(batch.threadId);
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.lockThread, { thread });
			const [number, , stamp] = found?.map(Number) ?? [];
			if (earlier !== undefined && stamp === batch.newStamp) return earlier;
			if (number === undefined || stamp !== batch.stamp) return undefined;
			const removed = noRows();
			const { checkpoints, writes, orphans = [], relink, deltaBases } = batch;
			if (checkpoints.length > 0)
				addCount(removed, await query(this.#sql.removeRows, { number, ...keyColumns(checkpoints) }));
			if (writes.length > 0)
				addCount(removed, await query(this.#sql.removeWrites, { number, ...writeKeyColumns(writes) }));
			if (orphans.length > 0)
				addCount(removed, await query(this.#sql.removeOrphans, { number, ...writeKeyColumns(orphans) }));
			if (relink.length > 0) {
				const parents = relink.map(({ parentId }) => text(parentId));
				await query(this.#sql.relink, { number, ...keyColumns(relink.map(({ key }) => key)), parents });
			}
			if (deltaBases.length > 0) await query(this.#sql.putBases, { number, ...baseColumns(deltaBases) });
			await query(this.#sql.restamp, { number, thread, stamp: batch.newStamp });
			return removed;
		});
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const { fresh: number, now } = batch;
		const thread = toText(batch.target);
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.shareThread, { thread: toText(batch.source) });
			const [source, family, stamp] = found?.map(Number) ?? [];
			if (earlier === undefined && (source === undefined || stamp !== batch.stamp)) return undefined;
			const added = await query(this.#sql.addThread, { thread, number, family, now, minute: minuteOf(now) });
			if (added.length === 0) {
				const [target] = await query(this.#sql.lockThread, { thread });
				return earlier !== undefined && Number(target?.[0]) === number ? earlier : undefined;
			}
			if (source === undefined || stamp !== batch.stamp) return undefined;
			const copied = noRows();
			const { checkpoints, rows, deltaBases } = batch;
			if (rows !== undefined) await this.#addRows(query, number, source, rows, copied);
			else if (checkpoints === undefined) addCount(copied, await query(this.#sql.copyAll, { number, source }));
			else {
				const parents = checkpoints.map(({ parentId }) => text(parentId));
				const keys = keyColumns(checkpoints.map(({ key }) => key));
				addCount(copied, await query(this.#sql.copyRows, { number, source, ...keys, parents }));
			}
			if (deltaBases.length > 0) await query(this.#sql.putBases, { number, ...baseColumns(deltaBases) });
			await query(this.#sql.restamp, { number, thread, stamp: number });
			return copied;
		});
	}

	async #addRows(query: Query, number: number, source: number, rows: NonNullable<CopyBatch["rows"]>, sum: RowCount) {
		const { checkpoints, writes } = rows;
		const points = { number, source, ...checkpointColumns(checkpoints) };
		if (checkpoints.length > 0) addCount(sum, await query(this.#sql.addCheckpoints, points));
		const written = { number, ...writeKeyColumns(writes), ...writeColumns(writes) };
		if (writes.length > 0) addCount(sum, await query(this.#sql.addWrites, written));
	}

	async removeThread(threadId: string): Promise<RowCount> {
		return this.#transact<RowCount>(async (query, earlier) => {
			const [found] = await query(this.#sql.removeThread, { thread: toText(threadId) });
			if (found === undefined) return earlier ?? noRows();
			const removed = noRows();
			addCount(removed, await query(this.#sql.removeAll, { number: Number(found[0]) }));
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
		const bytes = { from: typeof from === "number" ? from : asBuffer(from), to: asBuffer(to) };
		if (place.kind === "blob") return query(this.#sql.replaceBlob, { ...bytes, id: place.id });
		const { threadId, ns, id } = place.key;
		const key = { ...bytes, thread: toText(threadId), ns: toText(ns), id: toText(id) };
		if (place.kind === "checkpoint") return query(this.#sql.replaceHead, key);
		if (place.kind === "deltaBase") return query(this.#sql.replaceBase, { ...key, channel: toText(place.channel) });
		const { taskId, generation, idx } = place.key;
		const statement = typeof from === "number" ? this.#sql.replaceReference : this.#sql.replaceValue;
		return query(statement, { ...key, task: toText(taskId), generation, idx });
	}

	async clear(): Promise<void> {
		await this.#transact(async (query) => {
			// Waits for whoever is storing; what they stored is seen by the statement after it.
			await query(this.#sql.clearThreads);
			await query(this.#sql.sweep);
		});
	}

	async check(): Promise<StorageDamage[]> {
		const counted = await this.#query(this.#sql.findMiscounted);
		const lost = await this.#query(this.#sql.findLost);
		return [
			...counted.map(([threadId]) => ({
				threadId: fromText(threadId as string),
				problem: "The thread's row miscounts its checkpoints, or names another than the newest.",
			})),
			...lost.map(([number, table]) => ({
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
			if (found !== undefined) await query(this.#sql.restamp, { number: Number(found[0]), thread, stamp });
		});
	}

	/** Nothing is ever left half removed, and the server gives space back by itself. */
	async tidy(): Promise<boolean> {
		return false;
	}

	async close(): Promise<void> {
		await this.#session.close();
	}

	#putStatement(batch: PutBatch, mayCreate: boolean, isAgain: boolean): Statement {
		const shape = shapeOf(batch, mayCreate, isAgain);
		return this.#build(`put ${Object.values(shape).map(Number).join("")}`, () => putStatement(this.#schema, shape));
	}

	#build(name: string, make: () => Statement): Statement {
		let statement = this.#built.get(name);
		if (statement === undefined) {
			statement = make();
			this.#built.set(name, statement);
		}
		return statement;
	}

	async #query(statement: Statement, values?: Values): Promise<SqlRow[]> {
		await this.#open();
		return this.#session.query(statement, values);
	}

	async #transact<T>(work: (query: Query, earlier: T | undefined) => Promise<T>): Promise<T> {
		await this.#open();
		return this.#session.transact(work);
	}

	/** What goes wrong rejects the calls that wait for it; the next one begins anew. */
	#open(): Promise<void> {
		this.#ready ??= migrate(this.#session, this.#schema).catch((error) => {
			this.#ready = undefined;
			throw error;
		});
		return this.#ready;
	}
}

function isKeys(which: ScanQuery | readonly CheckpointKey[]): which is readonly CheckpointKey[] {
	return Array.isArray(which);
}

function noRows(): RowCount {
	return { checkpoints: 0, writes: 0, bytes: 0 };
}
