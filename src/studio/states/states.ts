import type { RunnableConfig } from "@langchain/core/runnables";
import { nextTurn } from "../../engine/pause.ts";
import { CheckpointError } from "../../errors.ts";
import type { Graph, Superstep } from "../graphs/graph.ts";
import type { Graphs } from "../graphs/graphs.ts";
import { contains } from "../http/contains.ts";
import type { Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { describeError } from "../runs/run-end.ts";
import { readPages } from "../threads/read-pages.ts";
import { readThreadRecord } from "../threads/records.ts";
import type { FoundThread, Threads } from "../threads/threads.ts";
import { emptyState, serializeState } from "./serialize-state.ts";
import { StateOrigins } from "./state-origins.ts";

/** What a history is asked for. */
export interface HistoryQuery {
	readonly limit: number;
	/** Only states older than this checkpoint. */
	readonly before: string | undefined;
	readonly metadata: Json | undefined;
}

/** Reads and changes the states of threads, through the graphs that made them. */
export class States {
	readonly #graphs: Graphs;
	readonly #threads: Threads;

	constructor(graphs: Graphs, threads: Threads) {
		this.#graphs = graphs;
		this.#threads = threads;
	}

	/** @param checkpoint keys for a config; the newest state if it is empty */
	async get(thread: FoundThread, checkpoint: Json, withSubgraphs: boolean): Promise<Json> {
		if (thread.info.head === undefined) return emptyState();
		const { graph, graphId } = await this.#graphFor(thread);
		const state = await graph.getState(configFor(thread, checkpoint), { subgraphs: withSubgraphs });
		const origins = new StateOrigins(thread, graphId);
		return serializeState(state, (one) => origins.describe(one));
	}

	/** The states of a thread or of one of its subgraphs, the newest first. */
	async *history(thread: FoundThread, checkpoint: Json, query: HistoryQuery): AsyncGenerator<Json> {
		const { limit, before, metadata: { source, step, ...others } = {} } = query;
		if (thread.info.head === undefined || limit === 0) return;
		const { graph, graphId } = await this.#graphFor(thread);
		const origins = new StateOrigins(thread, graphId);
		const isFiltered = Object.keys(others).length > 0;
		const config = configFor(thread, { checkpoint_ns: "", ...checkpoint });
		const options = {
			...(before !== undefined && { before: { configurable: { checkpoint_id: before } } }),
			// The saver knows these two. What comes from the run can only be looked at here.
			filter: { source, step } as Json,
			...(!isFiltered && { limit }),
		};
		let found = 0;
		for await (const state of readPages((page) => graph.getStateHistory(config, page), options)) {
			// A storage may answer without ever waiting, and others want their turn.
			await nextTurn();
			const metadata = await origins.describe(state);
			if (isFiltered && !contains(metadata, others)) continue;
			yield serializeState(state, async () => metadata);
			if (++found === limit) return;
		}
	}

	/** Changes a state, or forks it. Returns the config of the checkpoint that this made. */
	async update(thread: FoundThread, checkpoint: Json, values: unknown, asNode: string | undefined): Promise<Json> {
		const { graph } = await this.#graphFor(thread);
		const config = configFor(thread, { checkpoint_ns: "", ...checkpoint });
		return nameOf(await refuseMistakes(() => graph.updateState(config, values, asNode)));
	}

	/** Replays updates onto a thread, as long as somebody waits for it. */
	async bulkUpdate(thread: FoundThread, supersteps: Superstep[], signal: AbortSignal): Promise<void> {
		const { graph } = await this.#graphFor(thread);
		let config = configFor(thread, { checkpoint_ns: "" });
		for (const superstep of supersteps) {
			// A storage may answer without ever waiting: then nobody else has a turn, and nobody learns that the client has gone.
			await nextTurn();
			if (signal.aborted) throw new HttpError(499, "The client has gone.");
			const last = config;
			config = await refuseMistakes(() => graph.bulkUpdateState(last, [superstep]));
		}
	}

	async #graphFor(thread: FoundThread): Promise<{ graph: Graph; graphId: string }> {
		const record = await readThreadRecord(thread.saver, thread.threadId);
		const graphId = await this.#threads.graphOf(thread, record);
		return { graph: await this.#graphs.get(graphId, record.config), graphId };
	}
}

function configFor(thread: FoundThread, checkpoint: Json): RunnableConfig {
	return { configurable: { ...checkpoint, thread_id: thread.threadId } };
}

function nameOf({ configurable }: RunnableConfig): Json {
	const { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map } = configurable ?? {};
	return { thread_id, checkpoint_ns, checkpoint_id, ...(checkpoint_map !== undefined && { checkpoint_map }) };
}

/** What a graph refuses to do to its state is the client's mistake: a node that is not there, a value of the wrong kind. */
async function refuseMistakes<T>(update: () => Promise<T>): Promise<T> {
	try {
		return await update();
	} catch (error) {
		if (error instanceof CheckpointError) throw error;
		const { error: name, message } = describeError(error);
		throw new HttpError(422, `${name}: ${message}`);
	}
}
