import { randomInt } from "node:crypto";
import type {
	CheckpointKey,
	CopyBatch,
	Depth,
	PutBatch,
	PutResult,
	RemoveBatch,
	Replacement,
	RowCount,
	Scan,
	Storage,
	StorageDamage,
} from "../storage.ts";
import { putStatement, putValues, toPutResult } from "./put.ts";
import { askReading, scanValues } from "./read.ts";
import { BASE, CHECKPOINT, CHECKPOINT_KEY, NEW_WRITE, OLD_WRITE, send, toText } from "./rows.ts";
import { setUp, type Tables, tablesOf } from "./schema.ts";
import { inTransaction, type PostgresSession, type Query } from "./session.ts";
import type { Question, SqlRow, Values } from "./statement.ts";
import { statementsOn } from "./statements.ts";

/** Blobs that are removed in one statement, so that none takes long. */
const REMOVED_AT_ONCE = 1_000;

/** Rows in tables of a PostgreSQL schema. Sets them up with the first call, if they are not there. */
export class PostgresStorage implements Storage {
	readonly #session: PostgresSession;
	readonly #schema: string;
	readonly #tables: Tables;
	readonly #sql: ReturnType<typeof statementsOn>;
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

	async reserveIds(count: number): Promise<number> {
		const [row] = await this.#query(this.#sql.reserve, { count });
		return Number(row?.[0]);
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known: readonly number[] = []) {
		const isScan = "limit" in which;
		const question = askReading(this.#tables, isScan ? which : undefined, depth);
		const values = isScan ? scanValues(which) : send("k", CHECKPOINT_KEY, which);
		return { writes: [], blobs: [], ...(await this.#ask(question, { known, ...values })) };
	}

	async readPath({ threadId, ns, id }: CheckpointKey, limit: number) {
		const found = await this.#ask(this.#sql.path, { threadId, ns, id, limit });
		const { path, siblings, writes, deltaBases, orphans, states } = found;
		const [state] = states;
		// Another writer may change the thread again and again without a change of its row. Batches are positive.
		const epoch = state?.writer === this.#writer ? state.writerSince : --this.#lastEpoch;
		return { path, siblings, writes, deltaBases, orphans: state?.roots === 1 ? orphans : undefined, epoch };
	}

	readOutline(threadId: string) {
		return this.#ask(this.#sql.outline, { threadId });
	}

	readThread(threadId: string) {
		return this.#ask(this.#sql.thread, { threadId });
	}

	async getBlobs(ids: readonly number[]) {
		return (await this.#ask(this.#sql.blobs, { ids, known: [] })).blobs;
	}

	findRuns(runIds: readonly string[]) {
		return this.#ask(this.#sql.runs, { runs: runIds.map(toText) });
	}

	async getThread(threadId: string) {
		return (await this.#ask(this.#sql.threadRow, { threadId })).threads[0];
	}

	/** Without a place it begins before every thread: later than any time, and still a bigint. */
	async listThreads(limit: number, after = { updatedAt: 2 ** 62, threadId: "" }) {
		return (await this.#ask(this.#sql.threadRows, { limit, ...after })).threads;
	}

	async readFamily(family: number) {
		const { blobs, named, deltaBases } = await this.#ask(this.#sql.family, { family });
		return { blobs, named: named.map(({ id }) => id), deltaBases };
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		return (await this.#query(this.#sql.families, { limit, after })).map(([family]) => Number(family));
	}

	async totals() {
		const [row = []] = await this.#query(this.#sql.totals);
		const [checkpoints = 0, headBytes = 0, writes = 0, valueBytes = 0, threads = 0, blobs = 0] = row.map(Number);
		return { threads, checkpoints, writes, bytes: { checkpoints: headBytes, blobs, writes: valueBytes } };
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		const values = putValues(batch, this.#writer);
		return this.#run((query, isRetry) => {
			const store = async () => toPutResult(await query(putStatement(this.#tables, batch), values), batch);
			if (!isRetry) return store();
			return inTransaction(query, async () => {
				await query(this.#sql.lockThread, values);
				const stored = await query(this.#sql.findStored, values);
				return stored.length > 0 ? toPutResult(stored, batch) : store();
			});
		});
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		const { threadId, newStamp, checkpoints, writes, orphans, relinked, deltaBases } = batch;
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.lockThread, { threadId });
			const [number, , stamp] = found?.map(Number) ?? [];
			if (earlier !== undefined && stamp === newStamp) return earlier;
			if (number === undefined || stamp !== batch.stamp) return undefined;
			const old = [...writes, ...orphans.map((key) => ({ ...key, orphan: true }))];
			const keys = { ...send("key", CHECKPOINT_KEY, checkpoints), ...send("old", OLD_WRITE, old) };
			const removed = toRowCount(await query(this.#sql.removeRows, { number, ...keys }));
			const rows = { ...send("checkpoint", CHECKPOINT, relinked), ...send("base", BASE, deltaBases) };
			await query(this.#sql.putRows, { number, ...rows });
			await query(this.#sql.restamp, { threadId, stamp: newStamp, writer: this.#writer });
			return removed;
		});
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const { fresh, now, keys } = batch;
		const target = { threadId: batch.target, number: fresh, fresh, now, writer: this.#writer };
		return this.#transact<RowCount | undefined>(async (query, earlier) => {
			const [found] = await query(this.#sql.lockThread, { threadId: batch.source });
			const [source, family, stamp] = found?.map(Number) ?? [];
			const isCurrent = source !== undefined && stamp === batch.stamp;
			const added = isCurrent ? await query(this.#sql.addThread, { ...target, family }) : [];
			if (added.length === 0) {
				if (earlier === undefined) return undefined;
				const [there] = await query(this.#sql.lockThread, target);
				return Number(there?.[0]) === fresh ? earlier : undefined;
			}
			await query(this.#sql.copyRows, { ...target, source, ...(keys && send("key", CHECKPOINT_KEY, keys)) });
			const rows = { ...send("checkpoint", CHECKPOINT, batch.checkpoints), ...send("base", BASE, batch.deltaBases) };
			await query(this.#sql.putRows, { ...target, ...rows, ...send("write", NEW_WRITE, batch.writes) });
			return toRowCount(await query(this.#sql.countRows, target));
		});
	}

	async removeThread(threadId: string): Promise<RowCount> {
		return this.#transact<RowCount>(async (query, earlier) => {
			const [found] = await query(this.#sql.removeThread, { threadId });
			if (found === undefined) return earlier ?? toRowCount([]);
			return toRowCount(await query(this.#sql.removeRows, { number: Number(found[0]) }));
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
			for (const replacement of replacements) {
				const key = "key" in replacement ? replacement.key : undefined;
				count += (await query(this.#sql.replace[replacement.kind], { ...replacement, ...key })).length;
			}
			return Math.max(count, earlier);
		});
	}

	async clear(): Promise<void> {
		await this.#transact(async (query) => {
			// Waits for calls that are storing; what they stored is seen by the statement after it.
			await query(this.#sql.clearThreads);
			await query(this.#sql.sweep);
		});
	}

	/** Repairs by removing rows of which only the number of their thread is left. */
	async check(repairs = false): Promise<StorageDamage[]> {
		const lost = await this.#query(this.#sql.findLost);
		if (repairs && lost.length > 0) await this.#query(this.#sql.sweep);
		return lost.map(([thread, name]) => ({
			problem: `Thread number ${thread} has rows in delta_${name}, but no own row.`,
		}));
	}

	/** Nothing is ever left half removed, and the server gives space back by itself. */
	readonly tidy = async () => false;

	async close(): Promise<void> {
		await this.#session.close();
	}

	async #ask<Answer>({ sql, read }: Question<Answer>, values?: Values): Promise<Answer> {
		return read(await this.#query(sql, values));
	}

	/** One statement, in one round trip. If it changes anything, it must bear to be run twice. */
	#query(sql: string, values?: Values): Promise<SqlRow[]> {
		return this.#run((query) => query(sql, values));
	}

	/**
	 * Several statements as one transaction.
	 *
	 * @param work is told, when it is tried again, what the try before answered whose commit may have come through
	 */
	#transact<T>(work: (query: Query, earlier: T | undefined) => Promise<T>): Promise<T> {
		let earlier: T | undefined;
		return this.#run((query) =>
			inTransaction(query, async () => {
				earlier = await work(query, earlier);
				return earlier;
			}),
		);
	}

	/** Sets up the tables first. An error of that rejects the calls that wait for it; the next one begins anew. */
	async #run<T>(work: (query: Query, isRetry: boolean) => Promise<T>): Promise<T> {
		this.#ready ??= setUp(this.#session, this.#schema).catch((error) => {
			this.#ready = undefined;
			throw error;
		});
		await this.#ready;
		return this.#session.run(work);
	}
}

/** Of how many checkpoints and their bytes, writes and theirs. */
function toRowCount([row]: SqlRow[]): RowCount {
	const [checkpoints = 0, headBytes = 0, writes = 0, valueBytes = 0] = row?.map(Number) ?? [];
	return { checkpoints, writes, bytes: headBytes + valueBytes };
}
