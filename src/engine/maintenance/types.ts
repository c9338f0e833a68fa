/** What {@link DeltaSaver.copyThread} may leave out. */
export interface CopyThreadOptions {
	/** Copy only this checkpoint (of the root namespace), its ancestors, and the subgraph checkpoints made under them. */
	upTo?: string;
	/** Copy only the newest checkpoint of each namespace. Excludes `upTo`. */
	latestOnly?: boolean;
}

/** What {@link DeltaSaver.prune} keeps. */
export interface PruneOptions {
	/** `"keep_latest"` (default) keeps the newest checkpoints of each namespace, `"delete"` keeps nothing. */
	strategy?: "keep_latest" | "delete";
	/** How many checkpoints of each namespace `"keep_latest"` keeps. Default 1. */
	keepLast?: number;
	/** Stops it after the step that is under way. */
	signal?: AbortSignal | undefined;
}

/** Where {@link DeltaSaver.deleteForRuns} deletes. */
export interface DeleteForRunsOptions {
	/** Only in these threads. A copy of a thread has the run ids of its source. Default: in all. */
	threadIds?: string[];
}

/** What a deletion removed. */
export interface Removed {
	checkpoints: number;
	writes: number;
	blobs: number;
	/** Stored bytes of the removed blobs, writes and checkpoint rows. */
	bytes: number;
}

/** What {@link DeltaSaver.copyThread} copied. */
export type Copied = Pick<Removed, "checkpoints" | "writes">;

/** Which page {@link DeltaSaver.listThreads} returns. */
export interface ListThreadsOptions {
	/** At most this many threads. Default 50. */
	limit?: number;
	/** `next` of the page before. */
	after?: string;
}

/** A thread, as the listing knows it without reading any state. */
export interface ThreadInfo {
	threadId: string;
	/** When its first checkpoint or write was stored. */
	createdAt: Date;
	/** When its last checkpoint was stored. */
	updatedAt: Date;
	/** How many checkpoints it has, in all namespaces. */
	checkpoints: number;
	/** Id of the newest checkpoint of the root namespace, if there is one. */
	head: string | undefined;
}

/** A checkpoint, as the listing knows it without reading any state. */
export interface CheckpointInfo {
	threadId: string;
	checkpointNs: string;
	checkpointId: string;
	parentId: string | undefined;
	/** The run that stored it, see {@link DeltaSaver.deleteForRuns}. */
	runId: string | undefined;
	/** `source` and `step` of its metadata. */
	source: string | undefined;
	step: number | undefined;
}

/** One page of threads, the most recently updated first. */
export interface ThreadPage {
	threads: ThreadInfo[];
	/** Pass as `after` to get the next page; `undefined` on the last one. */
	next: string | undefined;
}

/** What {@link DeltaSaver.stats} counts. Bytes are as stored, without the database's own overhead. */
export interface Stats {
	threads: number;
	checkpoints: number;
	writes: number;
	blobs: { whole: number; patched: number };
	bytes: { checkpoints: number; blobs: number; writes: number };
	/** Bytes of the blobs of each channel, the largest first. */
	channels: { channel: string; blobs: number; bytes: number }[];
}

/** Something stored that can't be read, and where, as far as that is known. */
export interface Damage {
	threadId?: string | undefined;
	ns?: string | undefined;
	checkpointId?: string | undefined;
	/** Whose value, or for which a write is; `metadata` for the metadata. */
	channel?: string | undefined;
	/** The task whose write it is. */
	taskId?: string | undefined;
	/** For people. */
	problem: string;
}

/** What {@link DeltaSaver.verify} found. */
export interface VerifyReport {
	threads: number;
	checkpoints: number;
	writes: number;
	/** Blobs that nothing needs any more, which {@link DeltaSaver.compact} removes; not counted where there is damage. */
	unreachable: number | undefined;
	/** Empty if everything can be read. */
	damage: Damage[];
}

/** What {@link DeltaSaver.repair} did. */
export interface RepairReport {
	/** What could not be read. */
	damage: Damage[];
	/** Checkpoints that were removed, and, where they name a task, writes. */
	removed: { threadId: string; ns: string; checkpointId: string; taskId?: string }[];
}
