/** Names one checkpoint. Ids are unique only within a thread and namespace. */
export interface CheckpointKey {
	readonly threadId: string;
	readonly ns: string;
	readonly id: string;
}

export interface CheckpointRow extends CheckpointKey {
	readonly parentId: string | undefined;
	readonly runId: string | undefined;
	/** What made it (`input`, `loop`, `update`, `fork`), for people who look into the database. */
	readonly source: string | undefined;
	readonly step: number | undefined;
	/** Everything else, as the engine packed it: versions, manifest, metadata. */
	readonly head: Uint8Array;
}

/** A row as it is read: with its thread's stamp at that moment. */
export interface FoundCheckpoint extends CheckpointRow {
	readonly stamp: number;
}

/** A checkpoint without its content. */
export interface ListedCheckpoint extends CheckpointKey {
	readonly parentId: string | undefined;
}

/** What a thread consists of. */
export interface ThreadOutline {
	/** In the order of a scan. */
	readonly checkpoints: readonly ListedCheckpoint[];
	/** The channels that its writes are for, by namespace. */
	readonly written: ReadonlyMap<string, ReadonlySet<string>>;
}

/** One channel value or write: whole, or a patch on the blob that `base` names. Never changed once written. */
export interface BlobRow {
	readonly id: number;
	readonly base: number | undefined;
	/** Another blob that a patch takes bytes of, see `engine/byte-delta.ts`. */
	readonly source: number | undefined;
	/** Tag of a custom serializer. */
	readonly type: string | undefined;
	readonly data: Uint8Array;
}

/** A blob without its bytes. */
export interface ListedBlob extends Omit<BlobRow, "data" | "type"> {
	readonly bytes: number;
}

/** Bytes in the row itself, or the id of a blob. */
export type StoredValue = Uint8Array | number;

export interface WriteRow extends CheckpointKey {
	readonly taskId: string;
	readonly idx: number;
	/** Where the task stands in its superstep, which LangGraph 1.5 and later say; older ones do not. */
	readonly taskPath: string | undefined;
	readonly channel: string;
	/**
	 * Zero, or how many calls had stored writes of this task at this checkpoint before. Of several rows with the same
	 * task and index, LangGraph sees the one with the lowest; the others are for the history of delta channels.
	 */
	readonly generation: number;
	readonly runId: string | undefined;
	/** Names the run or state update that stored it, see `engine/attribution.ts`. */
	readonly actor: number | undefined;
	readonly type: string | undefined;
	readonly value: StoredValue;
}

/** A write that finds its place when it is stored. */
export interface NewWrite extends Omit<WriteRow, "generation"> {
	/**
	 * What happens if there is a write with its task and index: it is replaced, or this one is added in a new
	 * generation, or this one is dropped.
	 */
	readonly conflict: "replace" | "add" | "drop";
}

/** What a walk to ancestors that are gone would have found for a channel, as the engine packed it. */
export interface DeltaBaseRow extends CheckpointKey {
	readonly channel: string;
	readonly data: Uint8Array;
}

export interface ThreadRow {
	readonly threadId: string;
	/** Threads of one family may refer to the same blobs: a copy joins the family of its source. */
	readonly family: number;
	/** Changes whenever one of the thread's checkpoints is deleted or replaced; never repeats. */
	readonly stamp: number;
	readonly createdAt: number;
	readonly updatedAt: number;
	readonly checkpoints: number;
	readonly head: string | undefined;
}

/** Which checkpoints {@link Storage.scan} answers. Undefined fields match everything. */
export interface ScanQuery {
	readonly threadId?: string | undefined;
	readonly ns?: string | undefined;
	/** Only ids smaller than this. */
	readonly before?: string | undefined;
	/** Only rows after this one, in the order of the scan. */
	readonly after?: CheckpointKey | undefined;
	/** Rows that were put with other labels than these may be left out, and need not be. */
	readonly labels?: Labels | undefined;
	/** Rows whose head lacks one of these pieces may be left out, and need not be. */
	readonly contains?: HeadPieces | undefined;
	readonly limit: number;
}

export interface HeadPieces {
	readonly pieces: readonly Uint8Array[];
	/** Says nothing of heads that do not begin with this: they may be compressed. */
	readonly ifStartsWith?: Uint8Array | undefined;
}

/** What a checkpoint can be found by, besides its key. */
export type Labels = Readonly<Record<string, string | number | boolean | null>>;

/** One atomic addition to a thread. */
export interface PutBatch {
	readonly threadId: string;
	/** Refused unless the thread's stamp is this: the rows that the batch builds on may be gone. */
	readonly stamp?: number | undefined;
	/** Family and stamp of the thread if this batch creates it; its stamp if the batch replaces a checkpoint. */
	readonly fresh: number;
	readonly now: number;
	/** Added, or put in place of the row with its key; a row that is replaced keeps its parent. */
	readonly checkpoint?: CheckpointRow | undefined;
	/** Every blob that the checkpoint's head names, for backends that have {@link Storage.read}. */
	readonly namedBlobs?: readonly number[] | undefined;
	/** For {@link ScanQuery.labels}; without them the checkpoint is found by any. */
	readonly labels?: Labels | undefined;
	/** Refused with a `ConcurrencyError` if the checkpoint would start a branch, see `checkHead` in `storage/guard.ts`. */
	readonly onlyOnHead?: boolean | undefined;
	readonly blobs: readonly BlobRow[];
	/** All of one task at one checkpoint. The blob of one that is dropped is not stored. */
	readonly writes: readonly NewWrite[];
	readonly deltaBases?: readonly DeltaBaseRow[] | undefined;
}

export interface PutResult {
	readonly family: number;
	/** The thread's stamp after the batch. */
	readonly stamp: number;
	/** Whether the checkpoint took the place of an older one, whose blobs nothing may need any more. */
	readonly replaced: boolean;
}

/** One atomic removal from a thread, with what its surviving rows need instead. */
export interface RemoveBatch {
	readonly threadId: string;
	/** Refused unless the thread's stamp is this. */
	readonly stamp: number;
	/** The thread's stamp afterwards. */
	readonly newStamp: number;
	/** Removed with their writes and delta bases. */
	readonly checkpoints: readonly CheckpointKey[];
	/** Writes of checkpoints that stay. */
	readonly writes: readonly WriteKey[];
	/** Writes whose checkpoint has no row. They stay if it has come meanwhile. */
	readonly orphans?: readonly WriteKey[];
	readonly relink: readonly { readonly key: CheckpointKey; readonly parentId: string | undefined }[];
	readonly deltaBases: readonly DeltaBaseRow[];
}

export interface WriteKey extends CheckpointKey {
	readonly taskId: string;
	readonly idx: number;
	readonly generation: number;
}

/** One atomic creation of a thread from rows of another. */
export interface CopyBatch {
	readonly source: string;
	/** Refused unless the source's stamp is this. */
	readonly stamp: number;
	readonly target: string;
	/** Stamp of the target. */
	readonly fresh: number;
	readonly now: number;
	/** Keys in the source and the parent each has in the target; `undefined` copies everything, rows without a checkpoint too. */
	readonly checkpoints: readonly { readonly key: CheckpointKey; readonly parentId: string | undefined }[] | undefined;
	/** Besides those that the copied rows have in the source. */
	readonly deltaBases: readonly DeltaBaseRow[];
	/** Added instead of copying any rows of the source. */
	readonly rows?: { readonly checkpoints: readonly CheckpointRow[]; readonly writes: readonly WriteRow[] } | undefined;
}

/** Other bytes for a row, if it still has those that were seen. */
export type Replacement = { readonly from: Uint8Array; readonly to: Uint8Array } & (
	| { readonly kind: "checkpoint"; readonly key: CheckpointKey }
	| { readonly kind: "write"; readonly key: WriteKey }
	| { readonly kind: "deltaBase"; readonly key: CheckpointKey; readonly channel: string }
	| { readonly kind: "blob"; readonly id: number }
);

/** How many rows, and how many bytes of content they held. */
export interface RowCount {
	checkpoints: number;
	writes: number;
	bytes: number;
}

export interface RemovedRows extends RowCount {
	/**
	 * Whether each of them has a twin in another thread of its family, which names the same blobs: then none of those has
	 * become unreachable. Not said by a backend that does not know.
	 */
	hasTwins?: boolean;
}

export interface StorageTotals {
	readonly threads: number;
	readonly checkpoints: number;
	readonly writes: number;
	readonly bytes: { readonly checkpoints: number; readonly blobs: number; readonly writes: number };
}

/** Checkpoints, and what it takes to read their values. */
export interface Reading {
	/** In the order of a scan, or of the keys. */
	readonly checkpoints: readonly FoundCheckpoint[];
	/** All their writes, in any order. */
	readonly writes: readonly WriteRow[];
	/** Blobs that the checkpoints and writes name, and all that those are built on. May lack some. */
	readonly blobs: readonly BlobRow[];
}

/** A checkpoint with its ancestors, and what tells how they came to be. */
export interface PathReading {
	/** As {@link Storage.getPath} answers it. */
	readonly path: readonly FoundCheckpoint[];
	/** Checkpoints whose parent is on the path, and who are not on it themselves, in any order. */
	readonly siblings: readonly FoundCheckpoint[];
	/** Of the path, in any order. */
	readonly writes: readonly WriteRow[];
	readonly deltaBases: readonly DeltaBaseRow[];
	/** What {@link Storage.getOrphanWrites} answers for the last of the path; `undefined` if its parent is stored too. */
	readonly orphans: readonly WriteRow[] | undefined;
	/** As {@link Storage.getEpoch}, for this thread alone. */
	readonly epoch: number;
}

/** Something that a backend found wrong with how it keeps rows; values and histories are none of its business. */
export interface StorageDamage {
	/** The thread whose rows it concerns, where that can be told. */
	readonly threadId?: string | undefined;
	/** For people. */
	readonly problem: string;
}

/**
 * Rows and bytes. A backend knows nothing of values, deltas or histories.
 *
 * What every backend promises:
 * - `put`, `remove` and `copy` are atomic: all of the batch is stored or nothing, and once the promise has resolved
 *   it survives the death of the process (as far as the backend stores anything at all).
 * - A batch whose `stamp` is not the thread's, or whose thread is not there, or that copies onto a thread that is
 *   there, changes nothing and answers `undefined`.
 * - A read sees every batch whose promise had resolved before. A missing row is left out, or `undefined`; never an error.
 * - Rows are returned as they were given, with ids compared by their bytes in UTF-8. Returned bytes may be shared: callers
 *   do not change them.
 * - Nothing is thrown synchronously.
 */
export interface Storage {
	/** Whether rows are in the memory of this process, so that nothing is gained by keeping whole ones elsewhere as well. */
	readonly isInMemory?: boolean;

	/** Numbers never handed out before, by this or any other process: the first of `count` in a row. */
	reserveIds(count: number): Promise<number>;

	/** Another number than before if anything may have been changed meanwhile by others than the methods of this object. */
	getEpoch(): Promise<number>;

	getCheckpoint(key: CheckpointKey): Promise<FoundCheckpoint | undefined>;
	/** The row with the greatest id. */
	getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined>;
	/** Rows by descending id; rows with the same id by ascending thread and namespace. */
	scan(query: ScanQuery): Promise<FoundCheckpoint[]>;
	/**
	 * The rows of a scan or with these keys, with all that would be asked for next. For backends where it matters how
	 * often they are asked; others have no need of it.
	 *
	 * @param known blobs that the caller has: neither they nor what they are built on are wanted
	 */
	read?(which: ScanQuery | readonly CheckpointKey[], known: readonly number[]): Promise<Reading>;
	/** The row with this key, then its parent, and so on, at most `limit` rows. Ends at a missing row or a row seen before. */
	getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]>;
	/** A path, with all that would be asked for next, for backends that have {@link read}. */
	readPath?(key: CheckpointKey, limit: number): Promise<PathReading>;
	/** The rows whose parent is one of these, in any order. */
	getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]>;
	/** Rows whose run id is one of these. */
	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }>;

	/** All writes of these checkpoints, in any order. */
	getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]>;
	/** Writes of a namespace whose checkpoint has no row and an id smaller than `before`, in any order. */
	getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]>;
	/** All writes of a thread, those of checkpoints that are not there too, in any order. */
	getThreadWrites(threadId: string): Promise<WriteRow[]>;
	getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]>;
	getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]>;
	/** For backends that can tell it at less cost than by reading all checkpoints and writes of the thread. */
	getOutline?(threadId: string): Promise<ThreadOutline>;
	/** These blobs and all that they are built on, in any order. */
	getBlobs(ids: readonly number[]): Promise<BlobRow[]>;

	getThread(threadId: string): Promise<ThreadRow | undefined>;
	/** Threads by descending update time and then descending id, after the given place. */
	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]>;
	getFamily(family: number): Promise<ThreadRow[]>;
	/** Families that have blobs, with or without threads, by ascending number after the given one. */
	listFamilies(limit: number, after: number | undefined): Promise<number[]>;
	/** Every blob of a family without its bytes. */
	listBlobs(family: number): Promise<ListedBlob[]>;
	totals(): Promise<StorageTotals>;

	put(batch: PutBatch): Promise<PutResult | undefined>;
	remove(batch: RemoveBatch): Promise<RemovedRows | undefined>;
	copy(batch: CopyBatch): Promise<RowCount | undefined>;
	/** Removes a thread with all its rows, not its blobs. */
	removeThread(threadId: string): Promise<RowCount>;
	/** Removes these blobs of a family. */
	removeBlobs(family: number, ids: readonly number[]): Promise<void>;
	/** Changes how rows are stored, not what they say: all at once. Answers how many rows still had the bytes seen. */
	replaceBytes(replacements: readonly Replacement[]): Promise<number>;
	clear(): Promise<void>;
	/** Looks for damage in the backend's own structures: indexes, counters, pages. Empty if there is none. */
	check(): Promise<StorageDamage[]>;
	/**
	 * Makes its own structures right again, leaving out what is damaged beyond repair, for backends that can. Answers what
	 * {@link check} found and what was lost; nothing if there was nothing to do.
	 */
	repair?(): Promise<StorageDamage[]>;
	/**
	 * Finishes what a killed process left half removed, and gives space of removed rows back to the file system: one batch
	 * of it, so that writers wait for moments only. Answers whether there may be more to do.
	 */
	tidy(): Promise<boolean>;
	/** Lets go of what the backend holds. Idempotent. */
	close(): Promise<void>;
}
