import type { RunnableConfig } from "@langchain/core/runnables";
import type { Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite } from "@langchain/langgraph-checkpoint";
import { now } from "./clock.ts";
import { Random } from "./random.ts";
import type { Saver } from "./workload.ts";

/** What one step of a graph brings: all values afterwards, which of them are new, and what the next task writes. */
export interface Step {
	readonly values: Record<string, unknown>;
	readonly changed: readonly string[];
	readonly writes: readonly PendingWrite[];
	readonly metadata?: Record<string, unknown>;
}

/** One channel that holds the whole state; the next task writes `update` to it. */
export function oneChannelStep(channel: string, value: unknown, update: unknown): Step {
	return { values: { [channel]: value }, changed: [channel], writes: [[channel, update]] };
}

/** A day in 2025, in the 100-nanosecond units of a UUID. */
const START_TICKS = 0x1f0_0000_0000_0000n;
const TICKS_PER_SECOND = 10_000_000n;

/** Ids as LangGraph makes them, which sort by time. Deterministic. */
class CheckpointIds {
	readonly #random: Random;
	#ticks = START_TICKS;

	constructor(seed: number) {
		this.#random = new Random(seed);
	}

	next(step: number): { id: string; ts: string } {
		this.#ticks += TICKS_PER_SECOND + BigInt(this.#random.below(9_999_999));
		const time = this.#ticks.toString(16).padStart(15, "0");
		const sequence = (0x8000 + (step & 0x3fff)).toString(16);
		const id = `${time.slice(0, 8)}-${time.slice(8, 12)}-6${time.slice(12)}-${sequence}-${this.#random.hex(12)}`;
		const ts = new Date(1_740_000_000_000 + Number((this.#ticks - START_TICKS) / 10_000n)).toISOString();
		return { id, ts };
	}
}

/** Makes the calls that LangGraph makes while a graph runs on a thread, without LangGraph's own cost. */
export class DirectThread {
	readonly threadId: string;
	readonly #saver: Saver;
	readonly #ids: CheckpointIds;
	readonly #random: Random;
	#versions: Record<string, number> = {};
	#seen: Record<string, Record<string, number>> = { __input__: {} };
	#step = -1;
	#head: string | undefined;
	#isRunning = false;

	constructor(saver: Saver, threadId: string, seed = 1) {
		this.#saver = saver;
		this.threadId = threadId;
		this.#ids = new CheckpointIds(seed);
		this.#random = new Random(seed + 1);
	}

	/** Where the newest checkpoint is. */
	get config(): RunnableConfig {
		return { configurable: { thread_id: this.threadId, checkpoint_ns: "", checkpoint_id: this.#head } };
	}

	/** Puts a checkpoint and the writes of the task that runs on it. Returns the milliseconds that the saver took. */
	async step({ values, changed, writes, metadata }: Step): Promise<number> {
		const { config } = this;
		const before = this.#versions;
		const checkpoint = this.#nextCheckpoint(values, changed);
		const isNew = ([channel, version]: [string, number]) => before[channel] !== version;
		const newVersions = Object.fromEntries(Object.entries(this.#versions).filter(isNew));
		const described = { source: "loop", step: this.#step, parents: {}, ...metadata } as CheckpointMetadata;
		const taskId = this.#random.uuid();
		// Every run of a graph begins with a look at where it starts.
		if (!this.#isRunning) await this.#saver.getTuple(config);
		this.#isRunning = true;
		this.#head = checkpoint.id;
		const start = now();
		await this.#saver.put(config, checkpoint, described, newVersions);
		if (writes.length > 0) await this.#saver.putWrites(this.config, [...writes], taskId);
		return now() - start;
	}

	#nextCheckpoint(values: Record<string, unknown>, changed: readonly string[]): Checkpoint {
		this.#step++;
		const version = this.#step + 2;
		const branch = "branch:to:work";
		this.#seen = { ...this.#seen, work: { [branch]: version - 1 } };
		this.#versions = { __start__: 2, ...this.#versions, [branch]: version };
		for (const channel of changed) this.#versions[channel] = version;
		return {
			v: 4,
			...this.#ids.next(this.#step),
			channel_values: { ...values, __pregel_tasks: [], [branch]: null },
			channel_versions: { ...this.#versions },
			versions_seen: structuredClone(this.#seen),
		};
	}

	/** Goes on from an earlier checkpoint of this thread. */
	goBackTo(config: RunnableConfig, step: number): void {
		this.#head = config.configurable?.checkpoint_id;
		this.#step = step;
		this.#isRunning = false;
	}
}

/** Copies a thread with what every saver has: list, put and putWrites. */
export async function copyByHand(from: Saver, source: string, to: Saver, target: string): Promise<void> {
	const tuples: CheckpointTuple[] = [];
	for await (const tuple of from.list({ configurable: { thread_id: source } })) tuples.push(tuple);
	const versions = new Map<string | undefined, Record<string, number>>();
	for (const tuple of tuples.reverse()) {
		const { checkpoint, metadata, pendingWrites = [] } = tuple;
		const at = (id: string | undefined) => ({
			configurable: { thread_id: target, checkpoint_ns: "", checkpoint_id: id },
		});
		const parentId = tuple.parentConfig?.configurable?.checkpoint_id;
		const known = versions.get(parentId) ?? {};
		const current = checkpoint.channel_versions as Record<string, number>;
		versions.set(checkpoint.id, current);
		const newVersions = Object.fromEntries(
			Object.entries(current).filter(([name, version]) => known[name] !== version),
		);
		await to.put(at(parentId), checkpoint, metadata as CheckpointMetadata, newVersions);
		for (const [taskId, writes] of groupByTask(pendingWrites)) await to.putWrites(at(checkpoint.id), writes, taskId);
	}
}

function groupByTask(writes: readonly (readonly [string, string, unknown])[]): Map<string, PendingWrite[]> {
	const tasks = new Map<string, PendingWrite[]>();
	for (const [taskId, channel, value] of writes) tasks.set(taskId, [...(tasks.get(taskId) ?? []), [channel, value]]);
	return tasks;
}
