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
} from "@langchain/langgraph-checkpoint";

/**
 * A saver for one run, which can be taken away from it.
 *
 * A run that is stopped tells so at once, while its graph is still on the way to its end. What it stores after that
 * would come too late: the run may have been rolled back, another may have begun, the saver may be closed.
 */
export class RunSaver extends BaseCheckpointSaver {
	readonly #saver: BaseCheckpointSaver;
	readonly #storing = new Set<Promise<unknown>>();
	#isSealed = false;

	constructor(saver: BaseCheckpointSaver) {
		super(saver.serde);
		this.#saver = saver;
		// LangGraph may call it without `this`.
		this.getNextVersion = saver.getNextVersion.bind(saver);
	}

	/** Stores nothing more. Resolves when all that was accepted is stored. */
	async seal(): Promise<void> {
		this.#isSealed = true;
		await Promise.allSettled(this.#storing);
	}

	override getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		return this.#saver.getTuple(config);
	}

	override list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
		return this.#saver.list(config, options);
	}

	override async put(
		config: RunnableConfig,
		checkpoint: Checkpoint,
		metadata: CheckpointMetadata,
		newVersions: ChannelVersions,
	): Promise<RunnableConfig> {
		if (this.#isSealed) return config;
		return this.#track(this.#saver.put(config, checkpoint, metadata, newVersions));
	}

	override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
		if (!this.#isSealed) await this.#track(this.#saver.putWrites(config, writes, taskId));
	}

	override deleteThread(threadId: string): Promise<void> {
		return this.#saver.deleteThread(threadId);
	}

	override getDeltaChannelHistory(options: {
		config: RunnableConfig;
		channels: string[];
	}): Promise<Record<string, DeltaChannelHistory>> {
		return this.#saver.getDeltaChannelHistory(options);
	}

	async #track<T>(storing: Promise<T>): Promise<T> {
		this.#storing.add(storing);
		try {
			return await storing;
		} finally {
			this.#storing.delete(storing);
		}
	}
}
