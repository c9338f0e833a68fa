/** Names one checkpoint. Ids are unique only within a thread and namespace. */
export interface CheckpointKey {
	readonly threadId: string;
	readonly ns: string;
	readonly id: string;
}

/** A checkpoint without its content. */
export interface ListedCheckpoint extends CheckpointKey {
	readonly parentId: string | undefined;
}

export interface CheckpointRow extends ListedCheckpoint {
	readonly runId: string | undefined;
	/** `source` (`input`, `loop`, `update`, `fork`) and `step` of its metadata. */
	readonly source: string | undefined;
	readonly step: number | undefined;
	/** Every blob that the head names. */
	readonly blobs: readonly number[];
	/** Versions, manifest and metadata, packed by the engine. */
	readonly head: Uint8Array;
}

/** A row as it is read: with its thread's stamp at that moment. */
export interface FoundCheckpoint extends CheckpointRow {
	readonly stamp: number;
}

/** One channel value or write: whole, or a patch on the blob that `base` names. Never changed once written. */
export interface BlobRow {
	readonly id: number;
	readonly base: number | undefined;
	/** Another blob that a patch copies bytes from, see `engine/blobs/byte-delta.ts`. */
	readonly source: number | undefined;
	/** Tag of a custom serializer. */
	readonly type: string | undefined;
	readonly data: Uint8Array;
}

/** A blob without its bytes. */
export interface ListedBlob extends Omit<BlobRow, "data" | "type"> {
	readonly bytes: number;
}

/** Names one write of a task at a checkpoint. */
export interface WriteKey extends CheckpointKey {
	readonly taskId: string;
	readonly idx: number;
	/**
	 * Zero, or how many calls had stored writes of this task at this checkpoint before. Of several rows with the same
	 * task and index, LangGraph sees the one with the lowest; the others are for the history of delta channels.
	 */
	readonly generation: number;
}

export interface WriteRow extends WriteKey {
	/** Where the task stands in its superstep: LangGraph 1.5 and later give it, older ones do not. */
	readonly taskPath: string | undefined;
	readonly channel: string;
	readonly runId: string | undefined;
	/** Names the run or state update that stored it, see `engine/delta-channels/attribution.ts`. */
	readonly actor: number | undefined;
	/** Tag of a custom serializer; `undefined` if the value is in a blob. */
	readonly type: string | undefined;
	/** The blob that holds the value, if it is too large for the row. */
	readonly blob: number | undefined;
	/** The value; without content if it is in a blob. */
	readonly value: Uint8Array;
}

/** A write whose generation is found when it is stored. */
export interface NewWrite extends Omit<WriteRow, "generation"> {
	/**
	 * `"add"` stores it in the generation after the last one of its task at this checkpoint, or in 0 if the task has none.
	 * The others store it in generation 0: `"replace"` in place of a write that is there, `"drop"` only if the task has
	 * none with this index in any generation. Only a write that is added may name a blob.
	 */
	readonly conflict: "replace" | "add" | "drop";
}

/** What a walk to ancestors that are gone would have found for a channel, packed by the engine. */
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
	/** When a checkpoint was stored last; when the thread was created if it has none. */
	readonly updatedAt: number;
	/** How many checkpoints it has, in all namespaces. */
	readonly checkpoints: number;
	/** The greatest checkpoint id in the root namespace. */
	readonly newest: string | undefined;
}

/** Top-level metadata that a checkpoint can be found by, other than the `source` and `step` of its row. */
export type Labels = Readonly<Record<string, string | number | boolean | null>>;

/** A page of checkpoints by descending id; rows with the same id by ascending thread and namespace. */
export interface Scan {
	/** Undefined fields match everything. */
	readonly threadId?: string | undefined;
	readonly ns?: string | undefined;
	/** Only ids smaller than this. */
	readonly before?: string | undefined;
	/** Only rows after this one, in the order of the scan. */
	readonly after?: CheckpointKey | undefined;
	/** Only rows with this source and step. */
	readonly source?: string | undefined;
	readonly step?: number | undefined;
	/** Rows that were put with other labels than these may be left out, and need not be. */
	readonly labels?: Labels | undefined;
	readonly limit: number;
}

/** How much of a checkpoint is read: its row, or also its writes, and the blobs that both name. */
export type Depth = "rows" | "values";

/** Checkpoints, and what it takes to decode their values. */
export interface Reading {
	/** In the order of the scan, or of the keys; keys that are not there are left out. */
	readonly checkpoints: readonly FoundCheckpoint[];
	/** All their writes, in any order. */
	readonly writes: readonly WriteRow[];
	/** Blobs that the checkpoints and writes name, and all that those are built on. */
	readonly blobs: readonly BlobRow[];
}

/** A checkpoint with its ancestors, and what tells how they came to be. */
export interface PathReading {
	/** The checkpoint, then its parent, and so on. Ends at the limit, at a missing row or before a row seen before. */
	readonly path: readonly FoundCheckpoint[];
	/** Checkpoints whose parent is on the path and that are not on it themselves, in any order. */
	readonly siblings: readonly FoundCheckpoint[];
	/** Of the path, in any order. */
	readonly writes: readonly WriteRow[];
	readonly deltaBases: readonly DeltaBaseRow[];
	/** Writes of the namespace without a checkpoint, before the last of the path; `undefined` if that has a stored parent. */
	readonly orphans: readonly WriteRow[] | undefined;
	/** Another one than before if the thread may have been changed by others than the methods of this object. */
	readonly epoch: number | string;
}

/** What a thread has, without any content. */
export interface ThreadOutline {
	/** In the order of a scan. */
	readonly checkpoints: readonly ListedCheckpoint[];
	/** The channels that its writes are for, in any order; one may be there several times. */
	readonly written: readonly { readonly ns: string; readonly channel: string }[];
}

/** All of a thread but its checkpoints. */
export interface ThreadReading {
	/** Those of checkpoints that have no row too, in any order. */
	readonly writes: readonly WriteRow[];
	readonly deltaBases: readonly DeltaBaseRow[];
}

/** The blobs of a family, and all that names them. */
export interface FamilyReading {
	readonly blobs: readonly ListedBlob[];
	/** Ids of the blobs that checkpoints and writes of its threads name, in any order; one may be there several times. */
	readonly named: readonly number[];
	/** Of all its threads, in any order. They may name more. */
	readonly deltaBases: readonly DeltaBaseRow[];
}

/** One atomic addition to a thread. */
export interface PutBatch {
	readonly threadId: string;
	/** Refused unless the thread's stamp is this: the rows that the batch builds on may be gone. */
	readonly stamp?: number | undefined;
	/** Family and stamp of the thread if this batch creates it; its stamp if the batch replaces a checkpoint. */
	readonly fresh: number;
	readonly now: number;
	/** Added, or put in place of the row with its key. */
	readonly checkpoint?: CheckpointRow | undefined;
	/** For {@link Scan.labels}; without them the checkpoint is found by any. */
	readonly labels?: Labels | undefined;
	/** Refused with a `ConcurrencyError` if the checkpoint would start a branch, see `checkHead` in `storage/guard.ts`. */
	readonly onlyOnHead?: boolean | undefined;
	readonly blobs: readonly BlobRow[];
	/** All of one task at one checkpoint, each with an index of its own. */
	readonly writes: readonly NewWrite[];
	/** Added, or put in place of those with their keys. */
	readonly deltaBases: readonly DeltaBaseRow[];
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
	readonly orphans: readonly WriteKey[];
	/** Rows of the thread that stay, with another parent, and a head to go with it. */
	readonly relinked: readonly CheckpointRow[];
	/** Added, or put in place of those with their keys. */
	readonly deltaBases: readonly DeltaBaseRow[];
}

/** One atomic creation of a thread from another. */
export interface CopyBatch {
	readonly source: string;
	/** Refused unless the source's stamp is this. */
	readonly stamp: number;
	readonly target: string;
	/** Stamp of the target. */
	readonly fresh: number;
	readonly now: number;
	/**
	 * The checkpoints of the source that are copied, with their writes and delta bases; `undefined` copies everything,
	 * also writes and delta bases that have no checkpoint.
	 */
	readonly keys: readonly CheckpointKey[] | undefined;
	/**
	 * Rows of the target, besides what is copied. A checkpoint takes the place of the copied one with its namespace and id,
	 * and keeps the labels of that; one that was not copied has none.
	 */
	readonly checkpoints: readonly CheckpointRow[];
	readonly writes: readonly WriteRow[];
	readonly deltaBases: readonly DeltaBaseRow[];
}

/** Other bytes for a row, if it still has those that were seen. The labels of a checkpoint are forgotten. */
export type Replacement = { readonly from: Uint8Array; readonly to: Uint8Array } & (
	| { readonly kind: "checkpoint"; readonly key: CheckpointKey }
	| { readonly kind: "write"; readonly key: WriteKey }
	| { readonly kind: "deltaBase"; readonly key: CheckpointKey; readonly channel: string }
	| { readonly kind: "blob"; readonly id: number }
);

/** How many rows, and how many bytes of content they held: heads of checkpoints and values of writes. */
export interface RowCount {
	checkpoints: number;
	writes: number;
	bytes: number;
}

export interface StorageTotals {
	readonly threads: number;
	readonly checkpoints: number;
	readonly writes: number;
	readonly bytes: { readonly checkpoints: number; readonly blobs: number; readonly writes: number };
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
 *   there, changes nothing and returns `undefined`.
 * - A read sees every batch whose promise had resolved before, all of it at one moment. A missing row is left out, or
 *   `undefined`; never an error.
 * - Rows are returned as they were given, with ids compared by their bytes in UTF-8. Returned bytes may be shared: callers
 *   do not change them.
 * - Nothing is thrown synchronously.
 */
export interface Storage {
	/** Numbers never handed out before, by this or any other process: the first of `count` in a row. */
	reserveIds(count: number): Promise<number>;

	/**
	 * The checkpoints of a scan or with these keys.
	 *
	 * @param known blobs that the caller has: neither they nor what only they are built on need be read
	 */
	read(which: Scan | readonly CheckpointKey[], depth: Depth, known?: readonly number[]): Promise<Reading>;
	/** A checkpoint and its ancestors, at most `limit` rows in all. */
	readPath(key: CheckpointKey, limit: number): Promise<PathReading>;
	readOutline(threadId: string): Promise<ThreadOutline>;
	readThread(threadId: string): Promise<ThreadReading>;
	/** These blobs and all that they are built on, in any order. */
	getBlobs(ids: readonly number[]): Promise<BlobRow[]>;
	/** Rows whose run id is one of these. */
	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }>;

	getThread(threadId: string): Promise<ThreadRow | undefined>;
	/** Threads by descending update time and then descending id, after the given place. */
	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]>;
	readFamily(family: number): Promise<FamilyReading>;
	/** Families that have blobs, with or without threads, by ascending number after the given one. */
	listFamilies(limit: number, after: number | undefined): Promise<number[]>;
	totals(): Promise<StorageTotals>;

	put(batch: PutBatch): Promise<PutResult | undefined>;
	remove(batch: RemoveBatch): Promise<RowCount | undefined>;
	copy(batch: CopyBatch): Promise<RowCount | undefined>;
	/** Removes a thread with all its rows, not its blobs. */
	removeThread(threadId: string): Promise<RowCount>;
	/** Removes these blobs of a family. */
	removeBlobs(family: number, ids: readonly number[]): Promise<void>;
	/** Changes how rows are stored, not what they say: all at once. Returns how many rows still had the bytes seen. */
	replaceBytes(replacements: readonly Replacement[]): Promise<number>;
	clear(): Promise<void>;

	/**
	 * Looks for damage in the backend's own structures: indexes, counters, pages. Empty if there is none.
	 *
	 * @param repairs makes them right again, without what can't be read; the answer also says what was lost
	 */
	check(repairs?: boolean): Promise<StorageDamage[]>;
	/**
	 * Gives space of removed rows back to the file system: one batch of it, so that writers wait for moments only. Returns
	 * whether there may be more to do.
	 */
	tidy(): Promise<boolean>;
	/** Lets go of what the backend holds. Idempotent. */
	close(): Promise<void>;
}
