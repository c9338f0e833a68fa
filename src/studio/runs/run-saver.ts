import type { RunnableConfig } from "@langchain/core/runnables";
import {
	BaseCheckpointSaver,
	type ChannelVersions,
	type Checkpoint,
	type CheckpointListOptions,
	type CheckpointMetadata,
	type CheckpointTuple,
	type DeltaChannelHistory,
} from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../saver/delta-saver.ts";

/** LangGraph 1.5 and later pass one argument more than older ones, which do not declare it. */
type PutWritesCall = Parameters<DeltaSaver["putWrites"]>;

/**
 * A saver for one run, which can be taken away from it.
 *
 * A run that is stopped tells so at once, while its graph is still on the way to its end. What it stores after that
 * would come too late: the run may have been rolled back, another may have begun, the saver may be closed.
 *
 * And where storing fails, it is the run that fails. LangGraph would leave a rejection that nobody handles, which ends
 * the process and all other runs with it.
 */
export class RunSaver extends BaseCheckpointSaver {
	readonly #saver: BaseCheckpointSaver;
	readonly #onFailure: () => void;
	readonly #storing = new Set<Promise<unknown>>();
	#isSealed = false;
	#failure: { readonly error: unknown } | undefined;

	/** @param onFailure called when something can't be stored; nothing is stored after that */
	constructor(saver: BaseCheckpointSaver, onFailure: () => void) {
		super(saver.serde);
		this.#saver = saver;
		this.#onFailure = onFailure;
		// LangGraph may call it without `this`.
		this.getNextVersion = saver.getNextVersion.bind(saver);
	}

	/** Why something could not be stored. */
	get failure(): { readonly error: unknown } | undefined {
		return this.#failure;
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
		await this.#store(() => this.#saver.put(config, checkpoint, metadata, newVersions));
		return { configurable: { ...config.configurable, checkpoint_id: checkpoint.id } };
	}

	override async putWrites(...call: PutWritesCall): Promise<void> {
		await this.#store(() => this.#saver.putWrites(...(call as Parameters<BaseCheckpointSaver["putWrites"]>)));
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

	async #store(work: () => Promise<unknown>): Promise<void> {
		if (this.#isSealed) return;
		const storing = work();
		this.#storing.add(storing);
		try {
			await storing;
		} catch (error) {
			this.#isSealed = true;
			this.#failure ??= { error };
			this.#onFailure();
		} finally {
			this.#storing.delete(storing);
		}
	}
}
