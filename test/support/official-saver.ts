import type { RunnableConfig } from "@langchain/core/runnables";
import {
	type CheckpointListOptions,
	type CheckpointPendingWrite,
	type CheckpointTuple,
	type DeltaChannelHistory,
	MemorySaver,
	type PendingWrite,
	WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { compareWritesSortKeys, writesSortKey } from "../langgraph-next/checkpoint.mjs";

/**
 * The official MemorySaver with the order of writes that LangGraph asks for, by task path, task id and index: the one of
 * checkpoint 1.1 has the order in which they came, and knows no paths.
 */
export class OfficialSaver extends MemorySaver {
	readonly #paths = new Map<string, string>();

	override async putWrites(
		config: RunnableConfig,
		writes: PendingWrite[],
		taskId: string,
		taskPath = "",
	): Promise<void> {
		const key = pathKey(config, taskId);
		if (!this.#paths.has(key)) this.#paths.set(key, taskPath);
		await super.putWrites(config, writes, taskId);
	}

	override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		const tuple = await super.getTuple(config);
		return tuple && this.#inOrder(tuple);
	}

	override async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
		for await (const tuple of super.list(config, options)) yield this.#inOrder(tuple);
	}

	/** The walk of checkpoint 1.2: every write at every ancestor, in the order of its tuple. */
	override async getDeltaChannelHistory(options: {
		config: RunnableConfig;
		channels: string[];
	}): Promise<Record<string, DeltaChannelHistory>> {
		const found = options.channels.map(
			async (channel) => [channel, await this.#walk(options.config, channel)] as const,
		);
		return Object.fromEntries(await Promise.all(found));
	}

	async #walk(config: RunnableConfig, channel: string): Promise<DeltaChannelHistory> {
		const writes: CheckpointPendingWrite[] = [];
		if (!config.configurable?.checkpoint_id) return { writes };
		let next = (await this.getTuple(config))?.parentConfig;
		while (next !== undefined) {
			const tuple = await this.getTuple(next);
			if (tuple === undefined) break;
			writes.unshift(...(tuple.pendingWrites ?? []).filter((write) => write[1] === channel));
			const { channel_values } = tuple.checkpoint;
			if (channel_values[channel] !== undefined) return { writes, seed: channel_values[channel] };
			next = tuple.parentConfig;
		}
		return { writes };
	}

	#inOrder(tuple: CheckpointTuple): CheckpointTuple {
		const writes = (tuple.pendingWrites ?? []).map((write, at) => {
			const path = this.#paths.get(pathKey(tuple.config, write[0]));
			return { write, key: writesSortKey(path, write[0], WRITES_IDX_MAP[write[1]] ?? at) };
		});
		writes.sort((left, right) => compareWritesSortKeys(left.key, right.key));
		return { ...tuple, pendingWrites: writes.map(({ write }) => write) };
	}
}

function pathKey({ configurable }: RunnableConfig, taskId: string): string {
	const { thread_id, checkpoint_ns = "", checkpoint_id } = configurable ?? {};
	return JSON.stringify([thread_id, checkpoint_ns, checkpoint_id, taskId]);
}
