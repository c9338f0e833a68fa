import assert from "node:assert/strict";
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
	ChannelVersions,
	Checkpoint,
	CheckpointListOptions,
	CheckpointMetadata,
	CheckpointPendingWrite,
	CheckpointTuple,
	DeltaChannelHistory,
	PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { ContractSaver } from "./types.ts";

/** What a test says about a checkpoint; the rest is filled in. */
export interface Draft {
	id?: string;
	/** Id of the parent checkpoint. */
	parent?: string;
	values?: Record<string, unknown>;
	/** Default: every channel of `values`, at the number of puts so far. */
	versions?: ChannelVersions;
	/** Default: the same object as the channel versions. */
	newVersions?: ChannelVersions;
	seen?: Checkpoint["versions_seen"];
	source?: CheckpointMetadata["source"];
	/** Further metadata; may also replace `step` and `parents`. */
	metadata?: Record<string, unknown>;
	/** Further keys of the config, beside `configurable`. */
	config?: RunnableConfig;
	v?: number;
}

/** The arguments of one `put`. */
export type PutArguments = [RunnableConfig, Checkpoint, CheckpointMetadata, ChannelVersions];

/** A task id in the form that core gives them. */
export const TASK = "0a52a4a4-6b0c-5a83-8d27-3f5f4ec9d0a1";

/** One namespace of one thread, and short ways to put and read there. */
export class Thread {
	readonly saver: ContractSaver;
	readonly threadId: string;
	readonly ns: string;
	readonly #nextId: () => string;
	#puts = 0;

	constructor(saver: ContractSaver, threadId: string, ns: string, nextId: () => string) {
		this.saver = saver;
		this.threadId = threadId;
		this.ns = ns;
		this.#nextId = nextId;
	}

	/** Another namespace of this thread. */
	within(ns: string): Thread {
		return new Thread(this.saver, this.threadId, ns, this.#nextId);
	}

	/** The same thread and namespace, seen by another saver. */
	through(saver: ContractSaver): Thread {
		return new Thread(saver, this.threadId, this.ns, this.#nextId);
	}

	config(checkpointId?: string): { configurable: Record<string, string> } {
		const configurable: Record<string, string> = { thread_id: this.threadId, checkpoint_ns: this.ns };
		if (checkpointId !== undefined) configurable.checkpoint_id = checkpointId;
		return { configurable };
	}

	/** The arguments that {@link put} would pass. */
	draft(draft: Draft = {}): PutArguments {
		const n = this.#puts++;
		const values = draft.values ?? {};
		const versions = draft.versions ?? Object.fromEntries(Object.keys(values).map((channel) => [channel, n + 1]));
		const checkpoint: Checkpoint = {
			v: draft.v ?? 4,
			id: draft.id ?? this.#nextId(),
			ts: new Date(Date.UTC(2025, 0, 1) + n * 1000).toISOString(),
			channel_values: values,
			channel_versions: versions,
			versions_seen: draft.seen ?? {},
		};
		const { configurable } = this.config(draft.parent);
		const config = { ...draft.config, configurable: { ...configurable, ...draft.config?.configurable } };
		const metadata = { source: draft.source ?? "loop", step: n - 1, parents: {}, ...draft.metadata };
		return [config, checkpoint, metadata as CheckpointMetadata, draft.newVersions ?? versions];
	}

	/** Puts a checkpoint and gives its id. */
	async put(draft: Draft = {}): Promise<string> {
		const [config, checkpoint, metadata, newVersions] = this.draft(draft);
		await this.saver.put(config, checkpoint, metadata, newVersions);
		return checkpoint.id;
	}

	/** Puts `length` checkpoints, each the child of the one before, and gives their ids, the oldest first. */
	async chain(length: number, draft: (n: number) => Draft = (n) => ({ values: { step: n } })): Promise<string[]> {
		const ids: string[] = [];
		for (let n = 0; n < length; n++) ids.push(await this.put({ parent: ids.at(-1), ...draft(n) }));
		return ids;
	}

	async write(
		checkpointId: string,
		writes: PendingWrite[],
		taskId = TASK,
		extra: RunnableConfig = {},
		...taskPath: [taskPath?: string]
	): Promise<void> {
		const { configurable } = this.config(checkpointId);
		const config = { ...extra, configurable: { ...configurable, ...extra.configurable } };
		await this.saver.putWrites(config, writes, taskId, ...taskPath);
	}

	/** A checkpoint that must be there; the newest one without an id. */
	async read(checkpointId?: string): Promise<CheckpointTuple> {
		const tuple = await this.saver.getTuple(this.config(checkpointId));
		assert.ok(tuple, `checkpoint ${checkpointId ?? "(newest)"} is missing`);
		return tuple;
	}

	async has(checkpointId: string): Promise<boolean> {
		return (await this.saver.getTuple(this.config(checkpointId))) !== undefined;
	}

	async values(checkpointId?: string): Promise<Record<string, unknown>> {
		return (await this.read(checkpointId)).checkpoint.channel_values;
	}

	async pending(checkpointId?: string): Promise<CheckpointPendingWrite[]> {
		const { pendingWrites } = await this.read(checkpointId);
		assert.ok(Array.isArray(pendingWrites), "pendingWrites is not an array");
		return pendingWrites;
	}

	async parentOf(checkpointId: string): Promise<string | undefined> {
		return (await this.read(checkpointId)).parentConfig?.configurable?.checkpoint_id;
	}

	/** The ids that `list` gives for this namespace, in its order. */
	async ids(options?: CheckpointListOptions): Promise<string[]> {
		return (await collect(this.saver.list(this.config(), options))).map(({ checkpoint }) => checkpoint.id);
	}

	async history(checkpointId: string, channel: string): Promise<DeltaChannelHistory> {
		const config = this.config(checkpointId);
		const histories = await this.saver.getDeltaChannelHistory({ config, channels: [channel] });
		assert.deepEqual(Object.keys(histories), [channel]);
		return histories[channel] as DeltaChannelHistory;
	}

	/** The values of the writes in a channel's history, and its seed if there is one. */
	async replay(checkpointId: string, channel: string): Promise<{ writes: unknown[]; seed?: unknown }> {
		const { writes, ...seed } = await this.history(checkpointId, channel);
		return { writes: writes.map(([, , value]) => value), ...seed };
	}
}

/** Everything an async iterable gives. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
	const all: T[] = [];
	for await (const item of items) all.push(item);
	return all;
}
