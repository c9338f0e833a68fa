import { isDeepStrictEqual } from "node:util";
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
import { type Canonical, canonical, differencesBetween } from "./graph-canonical.ts";
import { canonicalTuple, configFaults, formFaults } from "./graph-tuple.ts";

/** One place where the candidate's answer is not the reference's. */
export interface Difference {
	where: string;
	expected: unknown;
	actual: unknown;
}

interface Known {
	threadId: string;
	ns: string;
	ids: Set<string>;
	sources: Set<string>;
	steps: Set<number>;
}

/** LangGraph 1.5 and later pass a task path. */
type PutWritesCall = [config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string];
type PathSaver = { putWrites(...call: PutWritesCall): Promise<void> };

type Outcome<T> = { value: T } | { error: unknown };

const settle = async <T>(call: () => Promise<T>): Promise<Outcome<T>> => {
	try {
		return { value: await call() };
	} catch (error) {
		return { error };
	}
};

const collect = async (tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> => {
	const all: CheckpointTuple[] = [];
	for await (const tuple of tuples) all.push(tuple);
	return all;
};

/**
 * A saver that hands every call to a reference and to a candidate, compares the two answers to every read, and
 * answers with the candidate's own objects, so that the graph truly runs on the candidate. Both see the same calls
 * with the same ids in the same order; a read waits until the writes in flight have settled in both.
 */
export class TeeSaver extends BaseCheckpointSaver {
	/** Reads that the two answered differently. */
	readonly differences: Difference[] = [];
	/** Answers of the candidate whose form core could not rely on. */
	readonly faults: string[] = [];
	/** How many reads were compared. */
	reads = 0;

	readonly #reference: BaseCheckpointSaver;
	#candidate: BaseCheckpointSaver;
	readonly #inFlight = new Set<Promise<unknown>>();
	/** How many writes were begun. */
	#writes = 0;
	readonly #known = new Map<string, Known>();
	readonly #deltaChannels = new Set<string>();

	constructor(reference: BaseCheckpointSaver, candidate: BaseCheckpointSaver) {
		super();
		this.#reference = reference;
		this.#candidate = candidate;
	}

	/** Goes on with another instance of the candidate, for example on a database opened again. */
	async replaceCandidate(open: () => Promise<BaseCheckpointSaver>): Promise<void> {
		await this.#settled();
		this.#candidate = await open();
	}

	/** Core calls this without `this` in places; so is the candidate's called here. */
	override getNextVersion = (current: number | undefined): number => {
		const [{ getNextVersion: expected }, { getNextVersion: actual }] = [this.#reference, this.#candidate];
		const version = Reflect.apply(actual, undefined, [current]);
		const same = version === Reflect.apply(expected, undefined, [current]);
		if (!same) this.differences.push({ where: `getNextVersion(${current})`, expected: "the same", actual: version });
		return version;
	};

	override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		return this.#compare(`getTuple(${brief(config)})`, canonicalTuple, (saver) => saver.getTuple(config));
	}

	override async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
		const oneNamespace =
			config.configurable?.thread_id !== undefined && config.configurable.checkpoint_ns !== undefined;
		const label = `list(${brief(config)}, ${JSON.stringify({ ...options, before: options?.before && brief(options.before) })})`;
		yield* await this.#compare(label, oneNamespace ? tuplesInOrder : tuplesByKey, (saver) =>
			collect(saver.list(config, options)),
		);
	}

	override async put(
		config: RunnableConfig,
		checkpoint: Checkpoint,
		metadata: CheckpointMetadata,
		newVersions: ChannelVersions,
	): Promise<RunnableConfig> {
		this.#remember(config, checkpoint.id, metadata);
		const returned = await this.#write(`put(${brief(config)}, ${checkpoint.id})`, (saver) =>
			saver.put(config, checkpoint, metadata, newVersions),
		);
		this.faults.push(...configFaults("the config returned by put", returned));
		return returned;
	}

	override async putWrites(...call: PutWritesCall): Promise<void> {
		const [config, , taskId] = call;
		this.#remember(config, `${config.configurable?.checkpoint_id}`);
		await this.#write(`putWrites(${brief(config)}, ${taskId})`, (saver) => (saver as PathSaver).putWrites(...call));
	}

	override async deleteThread(threadId: string): Promise<void> {
		await this.#settled();
		await this.#write(`deleteThread(${threadId})`, (saver) => saver.deleteThread(threadId));
	}

	override async getDeltaChannelHistory(options: {
		config: RunnableConfig;
		channels: string[];
	}): Promise<Record<string, DeltaChannelHistory>> {
		for (const channel of options.channels) this.#deltaChannels.add(channel);
		const label = `getDeltaChannelHistory(${brief(options.config)}, ${options.channels})`;
		return this.#compare(label, canonical, (saver) => saver.getDeltaChannelHistory(options));
	}

	/** Compares every way to read what was ever written, then deletes one thread, compares again, and deletes the rest. */
	async audit(): Promise<void> {
		for (const known of this.#known.values()) await this.#auditNamespace(known);
		const threads = new Set([...this.#known.values()].map((known) => known.threadId));
		for (const threadId of threads) await collect(this.list({ configurable: { thread_id: threadId } }));
		for (const [at, threadId] of [...threads].entries()) {
			await this.deleteThread(threadId);
			if (at === 0) for (const known of this.#known.values()) await this.getTuple(configOf(known));
		}
		await collect(this.list({}));
	}

	async #auditNamespace(known: Known): Promise<void> {
		const config = configOf(known);
		await this.getTuple(config);
		await this.getTuple(configOf(known, "no such checkpoint"));
		for (const limit of [0, 2]) await collect(this.list(config, { limit }));
		for (const source of known.sources) await collect(this.list(config, { filter: { source } }));
		await collect(this.list(config, { filter: { source: "loop", step: Math.max(...known.steps) }, limit: 2 }));
		for (const id of [...known.ids].slice(0, 1)) await collect(this.list(configOf(known, id)));
		for (const id of known.ids) await this.#auditCheckpoint(config, configOf(known, id));
	}

	async #auditCheckpoint(namespace: RunnableConfig, config: RunnableConfig): Promise<void> {
		await this.getTuple(config);
		await collect(this.list(namespace, { before: config, limit: 1 }));
		const channels = [...this.#deltaChannels];
		if (channels.length > 0) await this.getDeltaChannelHistory({ config, channels });
	}

	#remember(config: RunnableConfig, checkpointId: string, metadata?: CheckpointMetadata): void {
		const { thread_id, checkpoint_ns: ns = "" } = config.configurable ?? {};
		const key = JSON.stringify([thread_id, ns]);
		const known = this.#known.get(key) ?? {
			threadId: `${thread_id}`,
			ns,
			ids: new Set(),
			sources: new Set(),
			steps: new Set(),
		};
		known.ids.add(checkpointId);
		if (metadata !== undefined) {
			known.sources.add(metadata.source);
			known.steps.add(metadata.step);
		}
		this.#known.set(key, known);
	}

	async #settled(): Promise<void> {
		while (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
	}

	/** Starts a write in both at once, before anyone can change its arguments. */
	async #write<T>(label: string, call: (saver: BaseCheckpointSaver) => Promise<T>): Promise<T> {
		this.#writes++;
		const both = Promise.all([settle(() => call(this.#reference)), settle(() => call(this.#candidate))]);
		this.#inFlight.add(both);
		const [expected, actual] = await both;
		this.#inFlight.delete(both);
		return this.#answer(label, canonical, expected, actual);
	}

	async #compare<T>(
		label: string,
		toCanonical: (value: T) => Canonical,
		call: (saver: BaseCheckpointSaver) => Promise<T>,
	): Promise<T> {
		for (;;) {
			await this.#settled();
			const writes = this.#writes;
			const [expected, actual] = await Promise.all([
				settle(() => call(this.#reference)),
				settle(() => call(this.#candidate)),
			]);
			// A write that was begun meanwhile may be seen by one and not by the other.
			if (this.#writes !== writes) continue;
			this.reads += 1;
			return this.#answer(label, toCanonical, expected, actual);
		}
	}

	#answer<T>(label: string, toCanonical: (value: T) => Canonical, expected: Outcome<T>, actual: Outcome<T>): T {
		if ("value" in expected && "value" in actual) {
			for (const tuple of tuplesIn(actual.value))
				this.faults.push(...formFaults(tuple).map((fault) => `${label}: ${fault}`));
			if (isDeepStrictEqual(expected.value, actual.value)) return actual.value;
			for (const found of differencesBetween(toCanonical(expected.value), toCanonical(actual.value))) {
				this.differences.push({ where: `${label} ${found.path}`, expected: found.expected, actual: found.actual });
			}
		} else if ("value" in expected !== "value" in actual) {
			this.differences.push({ where: `${label} outcome`, expected, actual });
		}
		if ("error" in actual) throw actual.error;
		return actual.value;
	}
}

const configOf = ({ threadId, ns }: Known, checkpointId?: string): RunnableConfig => ({
	configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpointId },
});

const brief = ({ configurable: { thread_id, checkpoint_ns, checkpoint_id } = {} }: RunnableConfig): string =>
	JSON.stringify({ thread_id, checkpoint_ns, checkpoint_id });

const isTuple = (value: unknown): value is CheckpointTuple =>
	typeof value === "object" && value !== null && "checkpoint" in value;

const tuplesIn = (value: unknown): CheckpointTuple[] => (Array.isArray(value) ? value : [value]).filter(isTuple);

const tuplesInOrder = (tuples: CheckpointTuple[]): Canonical => tuples.map((tuple) => canonicalTuple(tuple));

/** Over several namespaces the official saver groups by namespace, so only what is listed is compared. */
const tuplesByKey = (tuples: CheckpointTuple[]): Canonical =>
	tuplesInOrder(tuples.toSorted((left, right) => (brief(left.config) < brief(right.config) ? -1 : 1)));
