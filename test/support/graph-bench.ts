import { isDeepStrictEqual } from "node:util";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointListOptions, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { canonical } from "./graph-canonical.ts";
import { inStableOrder, type Transcript } from "./graph-transcript.ts";

/** How entries begin that are the same in every run, even of a scenario whose calls race. */
export const FACT = "fact:";

export type Durability = "async" | "sync" | "exit";

/** What a scenario needs of a snapshot. */
export interface Snapshot {
	values: Record<string, any>;
	next: string[];
	config: RunnableConfig;
	metadata?: Record<string, unknown>;
	parentConfig?: RunnableConfig;
	tasks: { id: string; name: string; interrupts: { id?: string; value?: unknown }[]; state?: unknown }[];
}

/** The side of a compiled graph that scenarios drive; its own types are tied to each graph's state. */
export interface Graph {
	invoke(input: any, config?: any): Promise<unknown>;
	stream(input: any, config?: any): Promise<AsyncIterable<unknown>>;
	getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<unknown>;
	getStateHistory(config: RunnableConfig, options?: CheckpointListOptions): AsyncIterable<unknown>;
	updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig>;
	bulkUpdateState(
		config: RunnableConfig,
		supersteps: { updates: { values?: Record<string, unknown> | null; asNode?: string }[] }[],
	): Promise<RunnableConfig>;
}

/** Config of a run; the durability of the bench is added. */
export interface RunConfig extends RunnableConfig {
	interruptBefore?: string[] | "all";
	interruptAfter?: string[] | "all";
	streamMode?: string | string[];
	subgraphs?: boolean;
}

export interface BenchOptions {
	durability: Durability;
	reopen: () => Promise<BaseCheckpointSaver>;
	/** Whether what is seen is written down. */
	record: boolean;
}

/**
 * The workbench of one run of a scenario: the saver under test, and methods that drive graphs and write down all that
 * is seen. Errors are results too: they are noted, not thrown.
 */
export class Bench {
	/** The saver to compile graphs with. */
	saver: BaseCheckpointSaver;
	/** How checkpoints are written in this run. */
	readonly durability: Durability;
	/** All that was seen so far. */
	readonly transcript: Transcript = [];

	readonly #reopen: () => Promise<BaseCheckpointSaver>;
	readonly #record: boolean;

	constructor(saver: BaseCheckpointSaver, { durability, reopen, record }: BenchOptions) {
		this.saver = saver;
		this.durability = durability;
		this.#reopen = reopen;
		this.#record = record;
	}

	/** Goes on with another saver on the same data, where the saver under test has such a thing. */
	async reopen(): Promise<BaseCheckpointSaver> {
		this.saver = await this.#reopen();
		return this.saver;
	}

	/** Writes down a value, as it is now. */
	note(label: string, value: unknown): void {
		if (this.#record) this.transcript.push([label, canonical(value)]);
	}

	/** Writes down a value that must be the same however the calls of the scenario interleave. */
	fact(label: string, value: unknown): void {
		this.note(`${FACT} ${label}`, value);
	}

	/** Invokes the graph and notes the result or the error; returns the result. */
	async run(graph: Graph, input: unknown, config: RunConfig): Promise<unknown> {
		return this.attempt("invoke", () => graph.invoke(input, { durability: this.durability, ...config }));
	}

	/** Streams a run and notes every chunk. */
	async stream(graph: Graph, input: unknown, config: RunConfig): Promise<unknown[]> {
		const chunks: unknown[] = [];
		await this.attempt("stream", async () => {
			for await (const chunk of await graph.stream(input, { durability: this.durability, ...config })) {
				this.note("chunk", chunk);
				chunks.push(chunk);
			}
		});
		return chunks;
	}

	/** Updates the state and notes the config it gave; returns it, or the given config if the update failed. */
	async update(graph: Graph, config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig> {
		return (await this.attempt("updateState", () => graph.updateState(config, values, asNode))) ?? config;
	}

	/** Runs a call and notes what it gave or threw. */
	async attempt<T>(label: string, call: () => Promise<T>): Promise<T | undefined> {
		try {
			const result = await call();
			this.note(label, result);
			return result;
		} catch (error) {
			this.note(`${label} error`, { name: (error as Error).name, message: (error as Error).message });
			return undefined;
		}
	}

	/** The current state; notes it. */
	async state(graph: Graph, config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<Snapshot> {
		return this.#seen("state", (await graph.getState(config, options)) as Snapshot);
	}

	/** The history, newest first; notes it. */
	async history(graph: Graph, config: RunnableConfig, options?: CheckpointListOptions): Promise<Snapshot[]> {
		const snapshots: Snapshot[] = [];
		for await (const snapshot of graph.getStateHistory(config, options)) snapshots.push(snapshot as Snapshot);
		return this.#seen("history", snapshots);
	}

	/** The snapshot of the history that had just these nodes ahead; notes the history. */
	async before(graph: Graph, config: RunnableConfig, ...next: string[]): Promise<Snapshot> {
		const found = (await this.history(graph, config)).find((snapshot) => snapshot.next.join() === next.join());
		if (found === undefined) throw new Error(`no checkpoint is followed by ${next}`);
		return found;
	}

	/** Looks at where a thread stands, in the middle of a story. */
	async peek(graph: Graph, config: RunnableConfig): Promise<void> {
		await this.state(graph, config, { subgraphs: true });
		await this.history(graph, config, { limit: 2 });
	}

	/** Reads a thread in every way a user can, through the graph and from the saver, and notes all of it. */
	async survey(graph: Graph, config: RunnableConfig): Promise<void> {
		await this.#surveyNamespace(graph, config);
		const head = await this.state(graph, config, { subgraphs: true });
		for (const nested of nestedConfigs(head)) await this.#surveyNamespace(graph, nested);
		await this.dump(config);
	}

	/** Notes every tuple of the thread in all namespaces, and whether each reads the same when it is asked for alone. */
	async dump({ configurable }: RunnableConfig): Promise<void> {
		const tuples: CheckpointTuple[] = [];
		for await (const tuple of this.saver.list({ configurable: { thread_id: configurable?.thread_id } }))
			tuples.push(tuple);
		if (this.#record) for (const tuple of inStableOrder(tuples)) this.transcript.push(["tuple", tuple]);
		for (const tuple of tuples) {
			const alone = await this.saver.getTuple(tuple.config);
			this.note("reads the same alone", isDeepStrictEqual(alone, tuple));
		}
	}

	async #surveyNamespace(graph: Graph, config: RunnableConfig): Promise<void> {
		await this.state(graph, config);
		const all = await this.history(graph, config);
		const middle = all[Math.floor(all.length / 2)];
		if (middle !== undefined) await this.history(graph, config, { before: middle.config, limit: 2 });
		for (const snapshot of all) await this.state(graph, snapshot.config, { subgraphs: true });
	}

	#seen<T>(label: string, value: T): T {
		this.note(label, value);
		return value;
	}
}

/** Configs of the subgraphs that wait within a snapshot, at any depth. */
function nestedConfigs(snapshot: Snapshot): RunnableConfig[] {
	return snapshot.tasks.flatMap(({ state }) => {
		if (typeof state !== "object" || state === null) return [];
		if (!("tasks" in state)) return "configurable" in state ? [state as RunnableConfig] : [];
		const nested = state as Snapshot;
		const { thread_id, checkpoint_ns } = nested.config?.configurable ?? {};
		return [...(checkpoint_ns ? [{ configurable: { thread_id, checkpoint_ns } }] : []), ...nestedConfigs(nested)];
	});
}
