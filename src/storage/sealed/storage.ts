import { CheckpointError, locate } from "../../errors.ts";
import { allThreads } from "../all-threads.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	NewWrite,
	PathReading,
	PutBatch,
	PutResult,
	Reading,
	RemoveBatch,
	RemovedRows,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageDamage,
	StorageTotals,
	StoredValue,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { Identity, Sealer } from "./sealer.ts";

/** Rows that are looked at together, and while keys are rotated changed in one transaction. */
const BATCH_ROWS = 200;
/** Blobs are of any size: a batch has no more than this, or one. */
const BATCH_BYTES = 4 * 1024 * 1024;

/** The rows of checkpoints are smaller than the values of long threads, and there is one for each step. */
const COMPRESS_HEADS_FROM = 2048;

/** What an envelope begins with that is neither compressed nor encrypted. */
const PLAIN = Uint8Array.of(0);

/** A row's bytes in their place, replaced by themselves, and what the row is. */
type StoredRow = [Replacement, Identity];

/** A storage whose bytes are in envelopes: checked against damage, compressed, encrypted. */
export class SealedStorage implements Storage {
	readonly #inner: Storage;
	readonly #sealer: Sealer;

	/** Whether it is known that rows may be stored as this storage stores them. */
	#isChecked: boolean;

	readonly read: Storage["read"];
	readonly readPath: Storage["readPath"];
	readonly getOutline: Storage["getOutline"];

	constructor(inner: Storage, sealer: Sealer) {
		this.#inner = inner;
		this.#sealer = sealer;
		this.#isChecked = sealer.encrypts;
		const read = inner.read?.bind(inner);
		this.read = read && (async (which, known) => this.#openReading(await read(which, known)));
		const readPath = inner.readPath?.bind(inner);
		this.readPath = readPath && (async (key, limit) => this.#openPath(await readPath(key, limit)));
		this.getOutline = inner.getOutline?.bind(inner);
	}

	/**
	 * Refuses to store in clear where others encrypt: they would take such rows for damaged. As nothing in clear is stored
	 * after something encrypted, the newest checkpoint tells.
	 */
	async #checkMayStore(): Promise<void> {
		const [thread] = await this.#inner.listThreads(1, undefined);
		const newest = thread && (await this.#inner.getLatest(thread.threadId, ""));
		if (newest !== undefined) this.#sealer.checkKey(newest.head, checkpointIdentity(newest));
		this.#isChecked = true;
	}

	reserveIds(count: number): Promise<number> {
		return this.#inner.reserveIds(count);
	}

	getEpoch(): Promise<number> {
		return this.#inner.getEpoch();
	}

	async getCheckpoint(key: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#openCheckpoint(await this.#inner.getCheckpoint(key));
	}

	async getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#openCheckpoint(await this.#inner.getLatest(threadId, ns));
	}

	async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.scan(this.#sealQuery(query)));
	}

	/** What is in a head shows only in an envelope that neither hides nor shortens it. */
	#sealQuery(query: ScanQuery): ScanQuery {
		if (query.contains === undefined) return query;
		const { pieces } = query.contains;
		return { ...query, contains: this.#sealer.encrypts ? undefined : { pieces, ifStartsWith: PLAIN } };
	}

	async getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.getPath(key, limit));
	}

	async getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.getChildren(threadId, ns, parentIds));
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#inner.findRuns(runIds);
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return (await this.#inner.getWrites(keys)).map((row) => this.#openWrite(row));
	}

	async getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		return (await this.#inner.getOrphanWrites(threadId, ns, before)).map((row) => this.#openWrite(row));
	}

	async getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return (await this.#inner.getThreadWrites(threadId)).map((row) => this.#openWrite(row));
	}

	async getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return (await this.#inner.getDeltaBases(keys)).map((row) => this.#openBase(row));
	}

	async getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return (await this.#inner.getThreadDeltaBases(threadId)).map((row) => this.#openBase(row));
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return (await this.#inner.getBlobs(ids)).map((row) => this.#openBlob(row));
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#inner.getThread(threadId);
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#inner.listThreads(limit, after);
	}

	getFamily(family: number): Promise<ThreadRow[]> {
		return this.#inner.getFamily(family);
	}

	listFamilies(limit: number, after: number | undefined): Promise<number[]> {
		return this.#inner.listFamilies(limit, after);
	}

	listBlobs(family: number): Promise<ListedBlob[]> {
		return this.#inner.listBlobs(family);
	}

	totals(): Promise<StorageTotals> {
		return this.#inner.totals();
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		if (!this.#isChecked) await this.#checkMayStore();
		const { threadId, stamp, fresh, now, checkpoint, namedBlobs, labels, onlyOnHead } = batch;
		const writes = batch.writes.map((row) => this.#sealWrite(row));
		const result = await this.#inner.put({
			threadId,
			stamp,
			fresh,
			now,
			checkpoint: checkpoint && this.#sealCheckpoint(checkpoint),
			namedBlobs,
			labels: this.#sealer.encrypts ? undefined : labels,
			onlyOnHead,
			blobs: batch.blobs.map((row) => ({ ...row, data: this.#sealer.seal(row.data, blobIdentity(row)) })),
			writes,
			deltaBases: batch.deltaBases?.map((row) => this.#sealBase(row)),
		});
		if (result !== undefined && this.#sealer.encrypts) await this.#removeDropped(batch.writes, writes, result.family);
		return result;
	}

	/** A backend leaves out the blobs of writes that it drops, if it can read which blobs they name. */
	async #removeDropped(writes: readonly NewWrite[], sealed: readonly NewWrite[], family: number): Promise<void> {
		const mayBeDropped = writes.map(
			({ value, conflict, idx }, i) =>
				typeof value === "number" && (conflict === "drop" || writes.findIndex((other) => other.idx === idx) < i),
		);
		const [first] = writes;
		if (first === undefined || !mayBeDropped.includes(true)) return;
		const stored = (await this.#inner.getWrites([first])).filter(({ value }) => typeof value !== "number");
		const isStored = ({ value }: NewWrite) =>
			stored.some((row) => Buffer.compare(row.value as Uint8Array, value as Uint8Array) === 0);
		const dropped = writes.filter((_, i) => mayBeDropped[i] && !isStored(sealed[i] as NewWrite));
		await this.#inner.removeBlobs(
			family,
			dropped.map(({ value }) => value as number),
		);
	}

	async remove(batch: RemoveBatch): Promise<RemovedRows | undefined> {
		return this.#inner.remove({ ...batch, deltaBases: batch.deltaBases.map((row) => this.#sealBase(row)) });
	}

	/** An encrypted row opens only in its own thread, so that a copy of it has to be sealed for the other. */
	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const threadId = batch.target;
		const deltaBases = batch.deltaBases.map((row) => this.#sealBase({ ...row, threadId }));
		if (!this.#sealer.encrypts) {
			// Throws if it is encrypted, rather than make a copy that nobody could read.
			await this.scan({ threadId: batch.source, limit: 1 });
			return this.#inner.copy({ ...batch, deltaBases });
		}
		const rows = await this.#rowsToCopy(batch);
		return this.#inner.copy({
			...batch,
			deltaBases: [...rows.deltaBases.map((row) => this.#sealBase({ ...row, threadId })), ...deltaBases],
			rows: {
				checkpoints: rows.checkpoints.map((row) => this.#sealCheckpoint({ ...row, threadId })),
				writes: rows.writes.map((row) => this.#sealWrite({ ...row, threadId })),
			},
		});
	}

	async #rowsToCopy({ source, checkpoints }: CopyBatch) {
		const all: FoundCheckpoint[] = [];
		for await (const page of this.#checkpointPages(source)) all.push(...this.#openCheckpoints(page));
		const parents =
			checkpoints && new Map(checkpoints.map(({ key, parentId }) => [JSON.stringify([key.ns, key.id]), parentId]));
		const isChosen = ({ ns, id }: CheckpointKey) => parents === undefined || parents.has(JSON.stringify([ns, id]));
		const chosen = all.filter(isChosen);
		return {
			checkpoints: chosen.map((row) =>
				parents ? { ...row, parentId: parents.get(JSON.stringify([row.ns, row.id])) } : row,
			),
			writes: (await this.getThreadWrites(source)).filter(isChosen),
			deltaBases: (await this.getThreadDeltaBases(source)).filter(isChosen),
		};
	}

	removeThread(threadId: string): Promise<RowCount> {
		return this.#inner.removeThread(threadId);
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#inner.removeBlobs(family, ids);
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#inner.replaceBytes(replacements);
	}

	clear(): Promise<void> {
		return this.#inner.clear();
	}

	check(): Promise<StorageDamage[]> {
		return this.#inner.check();
	}

	/** Answers nothing if the backend can't repair anything. */
	async repair(): Promise<StorageDamage[]> {
		return (await this.#inner.repair?.()) ?? [];
	}

	tidy(): Promise<boolean> {
		return this.#inner.tidy();
	}

	close(): Promise<void> {
		return this.#inner.close();
	}

	/**
	 * Seals every row again that is not under the current key, a batch at a time. Rows that change meanwhile are sealed
	 * by whoever changes them. Can be stopped and started again at any time: what is done is not sealed twice. Rows that
	 * can't be opened stay as they are; at the end it throws what was wrong with the first of them.
	 */
	async *rotate(pause: () => Promise<void>): AsyncGenerator<{ threadId: string; rows: number }> {
		if (!this.#sealer.encrypts)
			throw new CheckpointError("INVALID_OPTION", "There is no key to encrypt with: pass `encryption`.");
		const failed: { first?: unknown } = {};
		const families = new Set<number>();
		for await (const thread of allThreads(this.#inner)) {
			let rows = 0;
			for await (const page of this.#storedPages(thread, !families.has(thread.family))) {
				const replacements = page.flatMap((row) => this.#sealAgain(row, failed));
				for (let i = 0; i < replacements.length; i += BATCH_ROWS)
					rows += await this.#inner.replaceBytes(replacements.slice(i, i + BATCH_ROWS));
				await pause();
			}
			families.add(thread.family);
			yield { threadId: thread.threadId, rows };
		}
		if (failed.first !== undefined) throw failed.first;
	}

	#sealAgain([row, identity]: StoredRow, failed: { first?: unknown }): Replacement[] {
		try {
			if (!this.#sealer.isOutdated(row.from, identity)) return [];
			const value = this.#sealer.openValue(row.from, identity);
			return [{ ...row, to: this.#sealer.sealValue(value, identity) as Uint8Array }];
		} catch (error) {
			failed.first ??= error;
			return [];
		}
	}

	/** All that is stored of a thread, and of its family's blobs. */
	async *#storedPages({ threadId, family }: ThreadRow, withBlobs: boolean): AsyncGenerator<StoredRow[]> {
		for await (const page of this.#checkpointPages(threadId))
			yield page.map((row) => [{ kind: "checkpoint", key: row, ...unchanged(row.head) }, checkpointIdentity(row)]);
		const writes = await this.#inner.getThreadWrites(threadId);
		yield writes.map((row) => [{ kind: "write", key: row, ...unchanged(row.value) }, writeIdentity(row)]);
		const bases = await this.#inner.getThreadDeltaBases(threadId);
		yield bases.map((row) => [
			{ kind: "deltaBase", key: row, channel: row.channel, ...unchanged(row.data) },
			baseIdentity(row),
		]);
		for (const ids of withBlobs ? inBatches(await this.#inner.listBlobs(family)) : []) {
			const rows = await this.#inner.getBlobs([...ids]);
			// What they are built on comes along, and has its own turn.
			const own = rows.filter(({ id }) => ids.has(id));
			yield own.map((row) => [{ kind: "blob", id: row.id, ...unchanged(row.data) }, blobIdentity(row)]);
		}
	}

	async *#checkpointPages(threadId: string): AsyncGenerator<FoundCheckpoint[]> {
		let after: FoundCheckpoint | undefined;
		do {
			const page = await this.#inner.scan({ threadId, after, limit: BATCH_ROWS });
			yield page;
			after = page.at(BATCH_ROWS - 1);
		} while (after !== undefined);
	}

	#openCheckpoints(rows: readonly FoundCheckpoint[]): FoundCheckpoint[] {
		return rows.map((row) => this.#openCheckpoint(row) as FoundCheckpoint);
	}

	#openCheckpoint(row: FoundCheckpoint | undefined): FoundCheckpoint | undefined {
		if (row === undefined) return undefined;
		try {
			return { ...row, head: this.#sealer.open(row.head, checkpointIdentity(row)) };
		} catch (error) {
			throw locate(error, { threadId: row.threadId, ns: row.ns, checkpointId: row.id });
		}
	}

	#sealCheckpoint<T extends CheckpointRow>(row: T): T {
		return { ...row, head: this.#sealer.seal(row.head, checkpointIdentity(row), COMPRESS_HEADS_FROM) };
	}

	#openBlob(row: BlobRow): BlobRow {
		try {
			return { ...row, data: this.#sealer.open(row.data, blobIdentity(row)) };
		} catch (error) {
			throw locate(error, { blobId: row.id });
		}
	}

	#openReading({ checkpoints, writes, blobs }: Reading): Reading {
		return {
			checkpoints: this.#openCheckpoints(checkpoints),
			writes: writes.map((row) => this.#openWrite(row)),
			blobs: blobs.map((row) => this.#openBlob(row)),
		};
	}

	#openPath({ path, siblings, writes, deltaBases, orphans, epoch }: PathReading): PathReading {
		return {
			path: this.#openCheckpoints(path),
			siblings: this.#openCheckpoints(siblings),
			writes: writes.map((row) => this.#openWrite(row)),
			deltaBases: deltaBases.map((row) => this.#openBase(row)),
			orphans: orphans?.map((row) => this.#openWrite(row)),
			epoch,
		};
	}

	#openWrite(row: WriteRow): WriteRow {
		try {
			return { ...row, value: this.#sealer.openValue(row.value, writeIdentity(row)) };
		} catch (error) {
			const { threadId, ns, id: checkpointId, channel, taskId, idx, generation } = row;
			throw locate(error, { threadId, ns, checkpointId, channel, taskId, idx, generation });
		}
	}

	#sealWrite<T extends Omit<WriteRow, "generation">>(row: T): T {
		return { ...row, value: this.#sealer.sealValue(row.value, writeIdentity(row)) };
	}

	#openBase(row: DeltaBaseRow): DeltaBaseRow {
		try {
			return { ...row, data: this.#sealer.open(row.data, baseIdentity(row)) };
		} catch (error) {
			const { threadId, ns, id: checkpointId, channel } = row;
			throw locate(error, { threadId, ns, checkpointId, channel });
		}
	}

	#sealBase(row: DeltaBaseRow): DeltaBaseRow {
		return { ...row, data: this.#sealer.seal(row.data, baseIdentity(row)) };
	}
}

/** The bytes of a row that may also name a blob: then it is the number that is replaced. */
function unchanged(stored: StoredValue): { from: Uint8Array; to: Uint8Array } {
	return { from: stored as Uint8Array, to: stored as Uint8Array };
}

function* inBatches(blobs: readonly { id: number; bytes: number }[]): Generator<Set<number>> {
	let batch = new Set<number>();
	let size = 0;
	for (const { id, bytes } of blobs) {
		if (batch.size === BATCH_ROWS || (batch.size > 0 && size + bytes > BATCH_BYTES)) {
			yield batch;
			batch = new Set();
			size = 0;
		}
		batch.add(id);
		size += bytes;
	}
	if (batch.size > 0) yield batch;
}

function checkpointIdentity({ threadId, ns, id }: CheckpointKey): Identity {
	return (isBound) => identify("checkpoint", isBound ? threadId : null, ns, id);
}

function writeIdentity({
	threadId,
	ns,
	id,
	taskId,
	idx,
	taskPath,
	channel,
	type,
}: Omit<WriteRow, "generation">): Identity {
	return (isBound) =>
		identify("write", isBound ? threadId : null, ns, id, taskId, idx, taskPath ?? null, channel, type ?? null);
}

function baseIdentity({ threadId, ns, id, channel }: DeltaBaseRow): Identity {
	return (isBound) => identify("delta base", isBound ? threadId : null, ns, id, channel);
}

/** Blobs belong to no thread. */
function blobIdentity({ id, base, source, type }: Omit<BlobRow, "data">): Identity {
	const parts = [id, base ?? null, type ?? null];
	return () => identify("blob", ...(source === undefined ? parts : [...parts, source]));
}

/** Most names and ids are of such characters. */
const NEEDS_NO_ESCAPE = /^[\w:-]*$/;

/** What kind of row it is and its parts, as a JSON array. */
function identify(kind: string, ...parts: (string | number | null)[]): string {
	let text = `["${kind}"`;
	for (const part of parts) text += `,${typeof part === "string" ? quoteText(part) : part}`;
	return `${text}]`;
}

/** A database may have made one or several U+FFFD of a half surrogate pair. */
function quoteText(text: string): string {
	if (NEEDS_NO_ESCAPE.test(text)) return `"${text}"`;
	const isPlain = text.isWellFormed() && !text.includes("\ufffd");
	return JSON.stringify(isPlain ? text : text.toWellFormed().replace(/\ufffd+/g, "\ufffd"));
}
