import type { RunnableConfig } from "@langchain/core/runnables";
import type {
	ChannelVersions,
	Checkpoint,
	CheckpointListOptions,
	CheckpointMetadata,
	CheckpointTuple,
	DeltaChannelHistory,
	PendingWrite,
	SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type {
	CheckpointInfo,
	Copied,
	CopyThreadOptions,
	DeleteForRunsOptions,
	ListThreadsOptions,
	PruneOptions,
	Removed,
	Stats,
	ThreadInfo,
	ThreadPage,
} from "../engine/maintenance/types.ts";

/**
 * What the contract calls on a saver: the methods of `BaseCheckpointSaver` and those that this package adds.
 * Structural on purpose: a saver need not extend any class of this package.
 */
export interface ContractSaver {
	serde: SerializerProtocol;
	get(config: RunnableConfig): Promise<Checkpoint | undefined>;
	getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
	list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
	put(
		config: RunnableConfig,
		checkpoint: Checkpoint,
		metadata: CheckpointMetadata,
		newVersions?: ChannelVersions | null,
	): Promise<RunnableConfig>;
	putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void>;
	deleteThread(threadId: string): Promise<void>;
	getDeltaChannelHistory(options: {
		config: RunnableConfig;
		channels: string[];
	}): Promise<Record<string, DeltaChannelHistory>>;
	getNextVersion(current: number | string | undefined): number | string;
	copyThread(source: string, target: string, options?: CopyThreadOptions): Promise<Copied>;
	prune(threadIds: string[], options?: PruneOptions): Promise<Removed>;
	deleteForRuns(runIds: string[], options?: DeleteForRunsOptions): Promise<Removed>;
	listThreads(options?: ListThreadsOptions): Promise<ThreadPage>;
	getThread(threadId: string): Promise<ThreadInfo | undefined>;
	listCheckpoints(
		config: RunnableConfig,
		options?: Pick<CheckpointListOptions, "before" | "limit">,
	): AsyncGenerator<CheckpointInfo>;
	stats(): Promise<Stats>;
	clear(): Promise<void>;
	close(): Promise<void>;
}

/** What a `setup` is asked for. */
export interface SetupOptions {
	/** The saver must use this serializer instead of its own. */
	serde?: SerializerProtocol;
}

/** A saver over storage of its own, made for one test. */
export interface SaverSetup {
	/** Over empty storage. */
	saver: ContractSaver;
	/**
	 * Opens the same storage with another saver, as a second process would, while the first may still be open.
	 * Leave it out if the storage lives and dies with the saver.
	 */
	reopen?: () => Promise<ContractSaver>;
	/** Called after the test, when every saver of it has been closed. */
	teardown?: () => Promise<void>;
}

/** `describe` and `it` of vitest, jest, mocha or `node:test`. */
export interface TestApi {
	describe: (name: string, body: () => void) => unknown;
	it: ((name: string, body: () => Promise<void>) => unknown) & {
		skip: (name: string, body: () => Promise<void>) => unknown;
	};
}

/** A rule that a saver does not keep, and why. */
export interface Skip {
	/** A rule, such as `"LIST-3"`, or the whole name of one test. */
	rule: string;
	/** Shown beside the skipped tests. */
	reason: string;
}

/** What {@link runSaverContract} needs to know. */
export interface SaverContractOptions {
	/** Heads the tests. */
	name: string;
	test: TestApi;
	/** Called once per test. */
	setup: (options: SetupOptions) => Promise<SaverSetup>;
	skip?: readonly Skip[];
}
