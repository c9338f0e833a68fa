import { CheckpointError, locate } from "../../errors.ts";
import { allThreads, rowPages } from "../all-threads.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	NewWrite,
	Replacement,
	Storage,
	ThreadRow,
	WriteRow,
} from "../storage.ts";
import type { Identity, Sealer } from "./sealer.ts";

/** Rows that are looked at together, and while keys are rotated changed in one transaction. */
const BATCH_ROWS = 200;
/** Blobs are of any size: a batch has no more than this, or one. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** The rows of checkpoints are smaller than the values of long threads, and there is one for each step. */
const COMPRESS_HEADS_FROM = 2048;
/** Threads among which the newest checkpoint is looked for. */
const NEWEST_THREADS = 16;

/** Where the bytes of a row are, with what the row is. */
type StoredRow = [Replacement, Identity];

/** A storage whose bytes are in envelopes: checked against damage, compressed, encrypted. */
export class SealedStorage implements Storage {
	readonly #inner: Storage;
	readonly #sealer: Sealer;
	/** Whether it is known that rows may be stored as this storage stores them. */
	#mayStore = false;

	// What has no bytes is passed on.
	readonly reserveIds: Storage["reserveIds"] = (count) => this.#inner.reserveIds(count);
	readonly readOutline: Storage["readOutline"] = (threadId) => this.#inner.readOutline(threadId);
	readonly findRuns: Storage["findRuns"] = (runIds) => this.#inner.findRuns(runIds);
	readonly getThread: Storage["getThread"] = (threadId) => this.#inner.getThread(threadId);
	readonly listThreads: Storage["listThreads"] = (limit, after) => this.#inner.listThreads(limit, after);
	readonly listFamilies: Storage["listFamilies"] = (limit, after) => this.#inner.listFamilies(limit, after);
	readonly totals: Storage["totals"] = () => this.#inner.totals();
	readonly removeThread: Storage["removeThread"] = (threadId) => this.#inner.removeThread(threadId);
	readonly removeBlobs: Storage["removeBlobs"] = (family, ids) => this.#inner.removeBlobs(family, ids);
	readonly replaceBytes: Storage["replaceBytes"] = (replacements) => this.#inner.replaceBytes(replacements);
	readonly clear: Storage["clear"] = () => this.#inner.clear();
	readonly check: Storage["check"] = (repairs) => this.#inner.check(repairs);
	readonly tidy: Storage["tidy"] = () => this.#inner.tidy();
	readonly close: Storage["close"] = () => this.#inner.close();

	constructor(inner: Storage, sealer: Sealer) {
		this.#inner = inner;
		this.#sealer = sealer;
	}

	readonly read: Storage["read"] = async (which, depth, known) => {
		// Labels tell what encrypted metadata says, and the rows have none to compare them with.
		const isTelling = this.#sealer.encrypts && "labels" in which;
		const asked = isTelling ? { ...which, labels: undefined } : which;
		const { checkpoints, writes, blobs } = await this.#inner.read(asked, depth, known);
		return {
			checkpoints: checkpoints.map(this.#openCheckpoint),
			writes: writes.map(this.#openWrite),
			blobs: blobs.map(this.#openBlob),
		};
	};

	readonly readPath: Storage["readPath"] = async (key, limit) => {
		const { path, siblings, writes, deltaBases, orphans, epoch } = await this.#inner.readPath(key, limit);
		return {
			path: path.map(this.#openCheckpoint),
			siblings: siblings.map(this.#openCheckpoint),
			writes: writes.map(this.#openWrite),
			deltaBases: deltaBases.map(this.#openBase),
			orphans: orphans?.map(this.#openWrite),
			epoch,
		};
	};

	readonly readThread: Storage["readThread"] = async (threadId) => {
		const { writes, deltaBases } = await this.#inner.readThread(threadId);
		return {
			writes: writes.map(this.#openWrite),
			deltaBases: deltaBases.map(this.#openBase),
		};
	};

	readonly getBlobs: Storage["getBlobs"] = async (ids) => {
		return (await this.#inner.getBlobs(ids)).map(this.#openBlob);
	};

	readonly readFamily: Storage["readFamily"] = async (family) => {
		const { blobs, named, deltaBases } = await this.#inner.readFamily(family);
		return { blobs, named, deltaBases: deltaBases.map(this.#openBase) };
	};

	readonly put: Storage["put"] = async (batch) => {
		if (!this.#mayStore) await this.#checkNewest();
		this.#mayStore = true;
		const { checkpoint, blobs, writes, deltaBases } = batch;
		return this.#inner.put({
			...batch,
			checkpoint: checkpoint && this.#sealCheckpoint(checkpoint),
			// Metadata is encrypted, and labels would tell what it says.
			labels: this.#sealer.encrypts ? undefined : batch.labels,
			blobs: sealAll(blobs, this.#sealBlob),
			writes: sealAll(writes, this.#sealWrite),
			deltaBases: sealAll(deltaBases, this.#sealBase),
		});
	};

	/**
	 * Refuses to store in clear, or under a key of its own, where others encrypt: they could not read such rows. As nobody
	 * stores anything without having read the newest checkpoint, that one tells for all.
	 */
	async #checkNewest(): Promise<void> {
		// A thread may have nothing but writes.
		const threads = await this.#inner.listThreads(NEWEST_THREADS, undefined);
		const keys = threads.flatMap(({ threadId, newest: id }) => (id === undefined ? [] : [{ threadId, ns: "", id }]));
		const { checkpoints } = await this.#inner.read(keys.slice(0, 1), "rows");
		for (const row of checkpoints) this.#sealer.checkKey(row.head, checkpointIdentity(row));
	}

	readonly remove: Storage["remove"] = async (batch) => {
		return this.#inner.remove({
			...batch,
			relinked: sealAll(batch.relinked, this.#sealCheckpoint),
			deltaBases: sealAll(batch.deltaBases, this.#sealBase),
		});
	};

	/** An encrypted row opens only in its own thread, so that a copy of it has to be sealed for the other. */
	readonly copy: Storage["copy"] = async (batch) => {
		// Throws if it is encrypted without a key, rather than make a copy that nobody could read.
		await this.read({ threadId: batch.source, limit: 1 }, "rows");
		const { checkpoints, writes, deltaBases, ...rest } = this.#sealer.encrypts ? await this.#openCopy(batch) : batch;
		return this.#inner.copy({
			...rest,
			checkpoints: sealAll(checkpoints, this.#sealCheckpoint),
			writes: sealAll(writes, this.#sealWrite),
			deltaBases: sealAll(deltaBases, this.#sealBase),
		});
	};

	/** The same copy, of nothing but rows that are given. */
	async #openCopy(batch: CopyBatch): Promise<CopyBatch> {
		const { source, target: threadId, keys } = batch;
		const chosen = keys && new Set(keys.map(keyOf));
		const move = <T extends CheckpointKey>(rows: readonly T[]) =>
			rows.filter((row) => chosen?.has(keyOf(row)) ?? true).map((row) => ({ ...row, threadId }));
		const checkpoints = new Map<string, CheckpointRow>();
		for await (const page of rowPages(this, keys ?? (await this.readOutline(source)).checkpoints))
			for (const row of move(page)) checkpoints.set(keyOf(row), row);
		for (const row of batch.checkpoints) checkpoints.set(keyOf(row), row);
		const { writes, deltaBases } = await this.readThread(source);
		return {
			...batch,
			keys: [],
			checkpoints: [...checkpoints.values()],
			writes: [...move(writes), ...batch.writes],
			deltaBases: [...move(deltaBases), ...batch.deltaBases],
		};
	}

	/**
	 * Seals every row again that is not under the current key, a batch at a time. Rows that change meanwhile are sealed
	 * by whoever changes them. Can be stopped and started again at any time: what is done is not sealed twice. Rows that
	 * can't be opened stay as they are; at the end it throws what was wrong with the first of them.
	 */
	async *rotate(pause: () => Promise<void>): AsyncGenerator<{ threadId: string; rows: number }> {
		if (!this.#sealer.encrypts)
			throw new CheckpointError("INVALID_OPTION", "There is no key to encrypt with: pass `encryption`.");
		const failures: unknown[] = [];
		const families = new Set<number>();
		for await (const thread of allThreads(this.#inner)) {
			let rows = 0;
			for await (const page of this.#storedPages(thread, !families.has(thread.family))) {
				const replacements = page.flatMap((row) => this.#sealAgain(row, failures));
				for (let i = 0; i < replacements.length; i += BATCH_ROWS)
					rows += await this.#inner.replaceBytes(replacements.slice(i, i + BATCH_ROWS));
				await pause();
			}
			families.add(thread.family);
			yield { threadId: thread.threadId, rows };
		}
		if (failures.length > 0) throw failures[0];
	}

	#sealAgain([row, identity]: StoredRow, failures: unknown[]): Replacement[] {
		try {
			const to = this.#sealer.sealAgain(row.from, identity);
			return to === undefined ? [] : [{ ...row, to }];
		} catch (error) {
			failures.push(error);
			return [];
		}
	}

	/** All that is stored of a thread, and of its family's blobs. */
	async *#storedPages({ threadId, family }: ThreadRow, withBlobs: boolean): AsyncGenerator<StoredRow[]> {
		for await (const page of rowPages(this.#inner, (await this.#inner.readOutline(threadId)).checkpoints))
			yield page.map((key) => [{ kind: "checkpoint", key, from: key.head, to: key.head }, checkpointIdentity(key)]);
		const { writes, deltaBases } = await this.#inner.readThread(threadId);
		yield writes.map((key) => [{ kind: "write", key, from: key.value, to: key.value }, writeIdentity(key)]);
		yield deltaBases.map((key) => [
			{ kind: "deltaBase", key, channel: key.channel, from: key.data, to: key.data },
			baseIdentity(key),
		]);
		for (const ids of withBlobs ? inBatches((await this.#inner.readFamily(family)).blobs) : []) {
			const rows = await this.#inner.getBlobs([...ids]);
			// What they are built on comes along, and has its own turn.
			const own = rows.filter(({ id }) => ids.has(id));
			yield own.map((row) => [{ kind: "blob", id: row.id, from: row.data, to: row.data }, blobIdentity(row)]);
		}
	}

	readonly #openCheckpoint = (row: FoundCheckpoint): FoundCheckpoint => ({
		...row,
		head: this.#open(row.head, checkpointIdentity(row), row),
	});
	readonly #openBlob = (row: BlobRow): BlobRow => ({ ...row, data: this.#open(row.data, blobIdentity(row), row) });
	readonly #openWrite = (row: WriteRow): WriteRow => ({
		...row,
		value: this.#open(row.value, writeIdentity(row), row),
	});
	readonly #openBase = (row: DeltaBaseRow): DeltaBaseRow => ({
		...row,
		data: this.#open(row.data, baseIdentity(row), row),
	});

	#open(envelope: Uint8Array, identity: Identity, row: BlobRow | (CheckpointKey & Partial<WriteRow>)): Uint8Array {
		try {
			return this.#sealer.open(envelope, identity);
		} catch (error) {
			if (!("ns" in row)) throw locate(error, { blobId: row.id });
			const { threadId, ns, id: checkpointId, channel, taskId, idx, generation } = row;
			throw locate(error, { threadId, ns, checkpointId, channel, taskId, idx, generation });
		}
	}

	readonly #sealCheckpoint = <T extends CheckpointRow>(row: T): T => ({
		...row,
		head: this.#sealer.seal(row.head, checkpointIdentity(row), COMPRESS_HEADS_FROM),
	});
	readonly #sealBlob = (row: BlobRow): BlobRow => ({ ...row, data: this.#sealer.seal(row.data, blobIdentity(row)) });
	readonly #sealWrite = <T extends NewWrite | WriteRow>(row: T): T => ({
		...row,
		value: this.#sealer.seal(row.value, writeIdentity(row)),
	});
	readonly #sealBase = (row: DeltaBaseRow) => ({ ...row, data: this.#sealer.seal(row.data, baseIdentity(row)) });
}

function sealAll<T>(rows: readonly T[], seal: (row: T) => T): readonly T[] {
	const sealed: T[] = [];
	for (const row of rows) sealed.push(seal(row));
	return sealed;
}

/** Unique for a checkpoint of one thread. */
function keyOf({ ns, id }: CheckpointKey): string {
	return JSON.stringify([ns, id]);
}

function* inBatches(blobs: readonly ListedBlob[]): Generator<Set<number>> {
	for (let start = 0, end = 0; start < blobs.length; start = end) {
		for (let size = 0; end < blobs.length && end < start + BATCH_ROWS; end++) {
			size += blobs[end]?.bytes ?? 0;
			if (end > start && size > BATCH_BYTES) break;
		}
		yield new Set(blobs.slice(start, end).map(({ id }) => id));
	}
}

/** In JSON: half of a surrogate pair, or what a database makes of it. */
const MAY_BE_ILL_FORMED = /\\ud|\ufffd/;

// Everything that a row says besides its bytes is part of its identity, so that a change of it is damage too. Not the
// generation of a write, which is not known when it is sealed.

function checkpointIdentity(row: Omit<CheckpointRow, "head">): Identity {
	const { threadId, ns, id, parentId, runId, source, step, blobs } = row;
	return (isBound) => identify("checkpoint", isBound ? threadId : null, ns, id, parentId, runId, source, step, blobs);
}

function writeIdentity(row: NewWrite | WriteRow): Identity {
	const { threadId, ns, id, taskId, idx, taskPath, channel, runId, actor, type, blob } = row;
	return (isBound) =>
		identify("write", isBound ? threadId : null, ns, id, taskId, idx, taskPath, channel, runId, actor, type, blob);
}

function baseIdentity({ threadId, ns, id, channel }: DeltaBaseRow): Identity {
	return (isBound) => identify("delta base", isBound ? threadId : null, ns, id, channel);
}

/** Blobs belong to no thread. */
function blobIdentity({ id, base, source, type }: Omit<BlobRow, "data">): Identity {
	return () => identify("blob", id, base, source, type);
}

/** What kind of row it is and its parts, as a JSON array. A database may have made one or several U+FFFD of a half surrogate pair. */
function identify(...parts: (string | number | readonly number[] | null | undefined)[]): string {
	const text = JSON.stringify(parts);
	if (!MAY_BE_ILL_FORMED.test(text)) return text;
	const clean = (part: string) => part.toWellFormed().replace(/\ufffd+/g, "\ufffd");
	return JSON.stringify(parts.map((part) => (typeof part === "string" ? clean(part) : part)));
}
