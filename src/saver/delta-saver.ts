import type { RunnableConfig } from "@langchain/core/runnables";
import {
	BaseCheckpointSaver,
	type ChannelVersions,
	type Checkpoint,
	type CheckpointListOptions,
	type CheckpointMetadata,
	type CheckpointTuple,
	type DeltaChannelHistory,
	type PendingWrite,
	type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { type CodecOptions, DeltaCodec, SerdeCodec } from "../codec/codec.ts";
import { readHistory } from "../engine/delta-channels/history.ts";
import { Engine } from "../engine/engine.ts";
import { type Compacted, type CompactProgress, compact } from "../engine/maintenance/compact.ts";
import { copyThread } from "../engine/maintenance/copy.ts";
import { deleteForRuns, deleteThread, prune } from "../engine/maintenance/remove.ts";
import { repair } from "../engine/maintenance/repair.ts";
import { getThread, listThreads, readStats } from "../engine/maintenance/threads.ts";
import type {
	CheckpointInfo,
	Copied,
	CopyThreadOptions,
	DeleteForRunsOptions,
	ListThreadsOptions,
	PruneOptions,
	Removed,
	RepairReport,
	Stats,
	ThreadInfo,
	ThreadPage,
	VerifyReport,
} from "../engine/maintenance/types.ts";
import { type Progress, verify } from "../engine/maintenance/verify.ts";
import { nextTurn, type Pause } from "../engine/pause.ts";
import { type PutInput, put } from "../engine/put.ts";
import { type PutWritesInput, putWrites } from "../engine/put-writes.ts";
import { list, listRows, readOne, type StoredCheckpoint } from "../engine/read.ts";
import { CheckpointError, quote } from "../errors.ts";
import type { Storage } from "../storage/storage.ts";
import { Actors } from "./actors.ts";
import { ChosenPasts, type Past } from "./chosen-pasts.ts";
import {
	mustReadThreadId,
	readAddress,
	readArguments,
	readCheckpointId,
	readRunId,
	readWritableAddress,
	writeConfig,
} from "./config.ts";
import { matchesFilter, readFilter } from "./filter.ts";
import { checkOptions, type Options, readLimit } from "./options.ts";

/** What every saver can be told. */
export interface SaverOptions extends CodecOptions {
	/** Stores values in its own way instead of the built-in codec's. */
	serde?: SerializerProtocol;
	/**
	 * How many bytes are held in memory to know what was stored last, whatever the number of threads. Default 32 MiB. The
	 * codec holds up to 1 MiB besides, of what tasks wrote last.
	 */
	cacheBytes?: number;
	/**
	 * What happens to a put whose parent is no longer the newest checkpoint of its namespace, because another run went on
	 * from there: it starts a branch (`"fork"`, the default, as with every saver), or it is refused with a
	 * `ConcurrencyError` (`"reject"`). Going back in time on purpose is never refused.
	 */
	onConflict?: "fork" | "reject";
}

/** The options of {@link SaverOptions}. */
export const SAVER_OPTIONS = {
	serde: "anything",
	classes: "anything",
	strict: "anything",
	cacheBytes: "bytes",
	onConflict: ["fork", "reject"],
} as const satisfies Options;

const DEFAULT_CACHE_BYTES = 32 * 1024 * 1024;

/** For calls that take a while. */
export interface ProgressOptions {
	/** Called after each thread. */
	onProgress?: (done: Progress) => void;
}

export interface CompactOptions {
	/** Called after each thread, and after each group of threads that share values. */
	onProgress?: (done: CompactProgress) => void;
	/** Stops it after the step that is under way. */
	signal?: AbortSignal | undefined;
}

/**
 * A checkpoint saver that stores what changed, over any {@link Storage}.
 *
 * Does all that LangGraph asks of a saver; besides, copies, prunes, lists and counts threads.
 *
 * Its fields are private to TypeScript only: a saver behind a `Proxy` would have no access to real private fields.
 */
export class DeltaSaver extends BaseCheckpointSaver {
	private readonly _engine: Engine;
	private readonly _storage: Storage;
	private readonly _actors = new Actors();
	/** LangGraph copies a checkpoint by a put with the very `parentConfig` of the tuple that it copies. */
	private readonly _tuples = new WeakMap<object, string>();
	/** Only where puts are guarded. */
	private readonly _chosenPasts: ChosenPasts | undefined;
	/** How many calls were accepted and are not done, and who waits for there to be none. */
	private _running = 0;
	private readonly _whenIdle: (() => void)[] = [];
	private _isClosed = false;

	constructor(storage: Storage, options: SaverOptions = {}) {
		const { serde, cacheBytes = DEFAULT_CACHE_BYTES, onConflict } = options;
		checkOptions("DeltaSaver", { cacheBytes, onConflict }, SAVER_OPTIONS);
		super(serde);
		const codec = serde === undefined ? new DeltaCodec(options) : new SerdeCodec(serde);
		this._storage = storage;
		this._engine = new Engine(storage, codec, cacheBytes);
		this._chosenPasts = onConflict === "reject" ? new ChosenPasts() : undefined;
	}

	/** Prepares the storage now instead of at the first use. Idempotent. */
	async setup(): Promise<void> {
		await this.run(() => this._storage.getThread(""));
	}

	override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		const { threadId, ns = "", id } = readArguments("getTuple", () => readAddress(config));
		if (threadId === undefined) return undefined;
		const past = { threadId, ns, id };
		const newest = id === undefined ? undefined : await this._findNewest(past);
		const stored = await this.run(() => readOne(this._engine, past));
		const tuple = stored && this._toTuple(stored);
		if (id !== undefined) this._noteChoice(config, tuple, past, newest);
		return tuple;
	}

	override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
		this._checkOpen();
		const { threadId, ns, id, before, limit, filter } = readArguments("list", () => ({
			...readAddress(config),
			before: readAddress(options.before).id,
			limit: readLimit(options.limit),
			filter: readFilter(options.filter),
		}));
		if (limit <= 0) return;
		const accepts = filter && ((metadata: unknown) => matchesFilter(metadata, filter));
		const start =
			before === undefined || threadId === undefined ? undefined : { threadId, ns: ns ?? "", id: undefined };
		const newest = start && (await this._findNewest(start));
		let isEmpty = true;
		for await (const stored of list(this._engine, { threadId, ns, id, before, limit, filter, accepts })) {
			isEmpty = false;
			const tuple = this._toTuple(stored);
			if (start?.ns === stored.key.ns) this._noteChoice(config, tuple, stored.key, newest);
			yield tuple;
		}
		// A subgraph that is to be replayed from a time before its first checkpoint.
		if (isEmpty && start !== undefined) this._noteChoice(config, undefined, start, newest);
	}

	/**
	 * The newest checkpoint of a namespace, if puts are guarded. To be asked for before another one is: a checkpoint that
	 * others make an old one meanwhile was not chosen for its age.
	 */
	private async _findNewest({ threadId, ns }: Past): Promise<string | undefined> {
		if (this._chosenPasts === undefined) return undefined;
		const { checkpoints } = await this.run(() => this._storage.read({ threadId, ns, limit: 1 }, "rows"));
		return checkpoints[0]?.id;
	}

	/** Remembers that a caller has asked for a checkpoint of the past, if puts are guarded. */
	private _noteChoice(
		config: RunnableConfig,
		tuple: CheckpointTuple | undefined,
		past: Past,
		newest: string | undefined,
	): void {
		if (newest !== past.id) this._chosenPasts?.remember(config, tuple?.metadata, past);
	}

	/**
	 * Stores a checkpoint.
	 *
	 * @param newVersions the channels whose values are new. `{}` says that none is. Left out, or `null`, it is not said, and
	 * every value is stored: LangGraph's own MemorySaver takes three arguments, and so do calls that were written for it.
	 */
	override async put(
		config: RunnableConfig,
		checkpoint: Checkpoint,
		metadata: CheckpointMetadata,
		newVersions?: ChannelVersions | null,
	): Promise<RunnableConfig> {
		const input = readArguments("put", () => this._readPut(config, checkpoint, metadata, newVersions ?? undefined));
		await this.run(() => put(this._engine, input));
		return writeConfig(input.key);
	}

	private _readPut(
		config: RunnableConfig,
		checkpoint: Checkpoint,
		metadata: CheckpointMetadata,
		newVersions: ChannelVersions | undefined,
	): PutInput {
		const { threadId, ns = "", id: parentId } = readWritableAddress(config, "put");
		const id = readCheckpointId(checkpoint?.id || undefined);
		if (id === undefined)
			throw new CheckpointError("INVALID_CONFIG", `put needs a checkpoint with an id, got ${quote(checkpoint?.id)}.`);
		const key = { threadId, ns, id };
		const runId = readRunId(config, metadata as { run_id?: unknown });
		const actor = this._actorOf(config, metadata);
		const copyOf = this._tuples.get(config);
		const onlyOnHead = this._chosenPasts?.isChosen(config, metadata, { threadId, ns, id: parentId }) === false;
		return { key, parentId, runId, checkpoint, metadata, newVersions, actor, copyOf, onlyOnHead };
	}

	/** @param taskPath where the task stands in its superstep: LangGraph 1.5 and later pass it, older ones do not */
	override async putWrites(
		config: RunnableConfig,
		writes: PendingWrite[],
		taskId: string,
		taskPath?: string,
	): Promise<void> {
		const input = readArguments("putWrites", () => this._readWrites(config, writes, taskId, taskPath));
		await this.run(() => putWrites(this._engine, input));
	}

	private _readWrites(
		config: RunnableConfig,
		writes: PendingWrite[],
		taskId: string,
		taskPath: string | undefined,
	): PutWritesInput {
		const { threadId, ns = "", id } = readWritableAddress(config, "putWrites");
		if (id === undefined)
			throw new CheckpointError(
				"INVALID_CONFIG",
				"putWrites needs `configurable.checkpoint_id`: writes belong to a checkpoint.",
			);
		return {
			key: { threadId, ns, id },
			runId: readRunId(config),
			actor: this._actors.numberOf(config),
			taskId: String(taskId),
			taskPath: taskPath === undefined ? undefined : String(taskPath),
			writes: Array.from(writes, ([channel, value]) => [channel, value]),
		};
	}

	override async deleteThread(threadId: string): Promise<void> {
		const id = mustReadThreadId(threadId, "deleteThread");
		await this.run(() => deleteThread(this._engine, id));
	}

	/** One walk for all channels, which counts only the writes that made the checkpoints on the way. */
	override async getDeltaChannelHistory(options: {
		config: RunnableConfig;
		channels: string[];
	}): Promise<Record<string, DeltaChannelHistory>> {
		const { threadId, ns = "", id } = readArguments("getDeltaChannelHistory", () => readAddress(options.config));
		return this.run(() => readHistory(this._engine, { threadId, ns, id }, options.channels));
	}

	/** Integers that count up. LangGraph may call it without `this`. */
	override getNextVersion(current: number | undefined): number {
		if (typeof current === "string")
			throw new CheckpointError("INVALID_CONFIG", `Versions are numbers here, got ${quote(current)}.`);
		return current === undefined ? 1 : current + 1;
	}

	/**
	 * Copies a thread: all checkpoints with their ids, namespaces, metadata and pending writes. Values are shared, not
	 * stored again, and yet neither thread depends on the other: either can be pruned or deleted.
	 *
	 * A source that does not exist copies nothing. A target that exists is refused with code THREAD_EXISTS.
	 *
	 * @example
	 * ```ts
	 * await saver.copyThread("main", "experiment");
	 * await saver.copyThread("main", "from-here", { upTo: checkpointId });
	 * ```
	 */
	async copyThread(source: string, target: string, options: CopyThreadOptions = {}): Promise<Copied> {
		checkOptions("copyThread", options, { upTo: "checkpoint id", latestOnly: "true or false" });
		if (options.upTo !== undefined && options.latestOnly)
			throw new CheckpointError("INVALID_OPTION", "copyThread takes `upTo` or `latestOnly`, not both.");
		const from = mustReadThreadId(source, "copyThread");
		const to = mustReadThreadId(target, "copyThread");
		if (from === to)
			throw new CheckpointError(
				"INVALID_OPTION",
				`copyThread can't copy thread ${quote(from)} onto itself: name another target.`,
			);
		return this.run(() => copyThread(this._engine, from, to, options));
	}

	/**
	 * Removes checkpoints of these threads, with all that only they need. What stays reads as before: values, pending
	 * writes, delta channels.
	 *
	 * @example
	 * ```ts
	 * await saver.prune(["main"]);                         // keeps the newest of each namespace
	 * await saver.prune(["main"], { keepLast: 10 });
	 * await saver.prune(["old"], { strategy: "delete" });  // keeps nothing
	 * ```
	 */
	async prune(threadIds: string[], options: PruneOptions = {}): Promise<Removed> {
		checkOptions("prune", options, { strategy: ["keep_latest", "delete"], keepLast: "count", signal: "signal" });
		const { strategy, keepLast = 1 } = options;
		const keep = strategy === "delete" ? 0 : keepLast;
		const ids = threadIds.map((id) => mustReadThreadId(id, "prune"));
		return this.runLong(options.signal, (pause) => prune(this._engine, ids, keep, pause));
	}

	/**
	 * Removes what these runs stored, so that each thread is as it was without them. A run's id is the `run_id` of the
	 * metadata, or else of the config's `metadata` or `configurable`, when it was put.
	 */
	async deleteForRuns(runIds: string[], options: DeleteForRunsOptions = {}): Promise<Removed> {
		checkOptions("deleteForRuns", options, { threadIds: "anything" });
		const threadIds = options.threadIds?.map((id) => mustReadThreadId(id, "deleteForRuns"));
		const ids = runIds.map(String);
		return this.runLong(undefined, (pause) => deleteForRuns(this._engine, ids, threadIds, pause));
	}

	/**
	 * Threads, the most recently updated first, without reading any state.
	 *
	 * @example
	 * ```ts
	 * let page = await saver.listThreads({ limit: 20 });
	 * while (page.next) page = await saver.listThreads({ limit: 20, after: page.next });
	 * ```
	 */
	async listThreads(options: ListThreadsOptions = {}): Promise<ThreadPage> {
		checkOptions("listThreads", options, { limit: "anything", after: "anything" });
		return this.run(() => listThreads(this._engine, options.limit ?? 50, options.after));
	}

	/** One thread, as {@link listThreads} lists it; `undefined` if nothing is stored under its id. */
	async getThread(threadId: string): Promise<ThreadInfo | undefined> {
		const id = mustReadThreadId(threadId, "getThread");
		return this.run(() => getThread(this._engine, id));
	}

	/**
	 * Checkpoints with their parents and runs, newest first, without reading any state. Takes what {@link list} takes,
	 * but no `filter`.
	 *
	 * @example
	 * ```ts
	 * for await (const { checkpointId, parentId, runId } of saver.listCheckpoints({ configurable: { thread_id: "main" } }))
	 * 	console.log(checkpointId, parentId, runId);
	 * ```
	 */
	async *listCheckpoints(
		config: RunnableConfig,
		options: Pick<CheckpointListOptions, "before" | "limit"> = {},
	): AsyncGenerator<CheckpointInfo> {
		this._checkOpen();
		checkOptions("listCheckpoints", options, { before: "anything", limit: "anything" });
		const query = readArguments("listCheckpoints", () => ({
			...readAddress(config),
			before: readAddress(options.before).id,
			limit: readLimit(options.limit),
		}));
		if (query.limit <= 0) return;
		for await (const row of listRows(this._engine, query))
			yield {
				threadId: row.threadId,
				checkpointNs: row.ns,
				checkpointId: row.id,
				parentId: row.parentId,
				runId: row.runId,
				source: row.source,
				step: row.step,
			};
	}

	/** Counts everything. Reads all checkpoint rows, but no values. */
	async stats(): Promise<Stats> {
		return this.run(() => readStats(this._engine));
	}

	/**
	 * Reads everything that is stored: all rows, values, patches, writes and histories, and what the database itself keeps
	 * to find them. Changes nothing, and can run beside others.
	 *
	 * @example
	 * ```ts
	 * const { damage } = await saver.verify();
	 * for (const { threadId, checkpointId, channel, problem } of damage) console.error(threadId, checkpointId, channel, problem);
	 * ```
	 */
	async verify(options: ProgressOptions = {}): Promise<VerifyReport> {
		checkOptions("verify", options, { onProgress: "anything" });
		return this.runLong(undefined, (pause) => verify(this._engine, (done) => options.onProgress?.(done), pause));
	}

	/**
	 * Removes what can't be read, so that all the rest can: a checkpoint of which anything is lost, and a write. Threads
	 * without damage stay as they are. If no checkpoint at all can be read it is refused: then the options are more likely
	 * wrong than the data. A database file that is damaged itself is written anew from all that is sound in it,
	 * for which no other process may have it open; the damaged one is kept beside it.
	 */
	async repair(options: ProgressOptions = {}): Promise<RepairReport> {
		checkOptions("repair", options, { onProgress: "anything" });
		return this.runLong(undefined, (pause) => repair(this._engine, (done) => options.onProgress?.(done), pause));
	}

	/**
	 * Removes what nothing needs any more: values that only replaced or deleted checkpoints had, writes whose checkpoint was
	 * not stored within an hour, what a killed process left half deleted. Then gives free space back to the file system.
	 * Works in batches beside running graphs, in any process. If it is stopped, what was done stays done.
	 *
	 * @example
	 * ```ts
	 * const { bytes } = await saver.compact({ onProgress: ({ threads }) => console.log(`${threads} threads`) });
	 * ```
	 */
	async compact(options: CompactOptions = {}): Promise<Compacted> {
		checkOptions("compact", options, { onProgress: "anything", signal: "signal" });
		return this.runLong(options.signal, (pause) => compact(this._engine, (done) => options.onProgress?.(done), pause));
	}

	/** Removes all threads. */
	async clear(): Promise<void> {
		await this.run(() => {
			this._engine.clearCaches();
			return this._storage.clear();
		});
	}

	/**
	 * Waits for calls that are under way, then lets go of the storage. Later calls are rejected with code CLOSED; so are
	 * long ones that it ends at their next step: prune, compact, verify and the like.
	 */
	async close(): Promise<void> {
		this._isClosed = true;
		if (this._running > 0) await new Promise<void>((resolve) => this._whenIdle.push(resolve));
		this._engine.clearCaches();
		await this._storage.close();
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.close();
	}

	/** Runs a call, unless the saver was closed; `close` waits for it. */
	protected async run<T>(work: () => Promise<T>): Promise<T> {
		this._checkOpen();
		this._running++;
		try {
			return await work();
		} finally {
			this._running--;
			if (this._running === 0) for (const resolve of this._whenIdle) resolve();
		}
	}

	/** Runs a call that takes a while, and can be stopped where it pauses. */
	protected async runLong<T>(
		signal: AbortSignal | undefined,
		work: (pause: Pause, check: () => void) => Promise<T>,
	): Promise<T> {
		const check = () => {
			signal?.throwIfAborted();
			this._checkOpen();
		};
		const pause = async () => {
			await nextTurn();
			check();
		};
		check();
		return this.run(() => work(pause, check));
	}

	private _checkOpen(): void {
		if (this._isClosed) throw new CheckpointError("CLOSED", "The saver was closed: make a new one.");
	}

	/** Steps follow writes of the same run; if there were none, the caller is not LangGraph. */
	private _actorOf(config: RunnableConfig, metadata: CheckpointMetadata | undefined): number | undefined {
		const actor = metadata?.source === "loop" ? this._actors.knownNumberOf(config) : this._actors.numberOf(config);
		if (metadata?.source === "update") this._actors.end(config);
		return actor;
	}

	private _toTuple(stored: StoredCheckpoint): CheckpointTuple {
		const { key, parentId, checkpoint, metadata, pendingWrites } = stored;
		this._actors.follow(stored.lastActor);
		const tuple: CheckpointTuple = { config: writeConfig(key), checkpoint, metadata, pendingWrites };
		if (parentId !== undefined) {
			tuple.parentConfig = writeConfig({ threadId: key.threadId, ns: key.ns, id: parentId });
			this._tuples.set(tuple.parentConfig, key.id);
		}
		return tuple;
	}
}
