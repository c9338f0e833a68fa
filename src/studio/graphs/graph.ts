import type { RunnableConfig } from "@langchain/core/runnables";
import type { Graph as DrawableGraph } from "@langchain/core/runnables/graph";
import type { StateSnapshot } from "@langchain/langgraph";
import type { BaseCheckpointSaver, BaseStore, CheckpointListOptions } from "@langchain/langgraph-checkpoint";

/** A compiled graph, as far as the server uses it. */
export interface Graph {
	checkpointer?: BaseCheckpointSaver | boolean;
	store?: BaseStore;
	channels: object;
	stream(input: unknown, options?: object): Promise<AsyncIterable<unknown>>;
	streamEvents(input: unknown, options: { version: "v2" } & object): AsyncIterable<unknown>;
	/** The events of the thread protocol. */
	streamEvents(input: unknown, options: { version: "v3" } & object): Promise<AsyncIterable<unknown>>;
	getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
	getStateHistory(config: RunnableConfig, options?: CheckpointListOptions): AsyncIterable<StateSnapshot>;
	updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig>;
	bulkUpdateState(config: RunnableConfig, supersteps: Superstep[]): Promise<RunnableConfig>;
	getGraphAsync(config: RunnableConfig & { xray?: boolean | number }): Promise<DrawableGraph>;
	getSubgraphsAsync(namespace?: string, recurse?: boolean): AsyncIterable<[string, unknown]>;
}

export interface Superstep {
	updates: { values?: unknown; asNode?: string }[];
}

/** Makes a graph for one request, from its config. */
export type GraphFactory = (config: RunnableConfig) => Graph | Promise<Graph>;

/**
 * A graph like the given one, which keeps its state elsewhere. The given one stays as it is: it may be in use.
 *
 * LangGraph's own `withConfig` copies a graph the same way, but shares with the copy what the constructor changes.
 */
export function copyGraph(graph: Graph, checkpointer: BaseCheckpointSaver, store: BaseStore | undefined): Graph {
	const { autoValidate, triggerToNodes } = graph as Graph & { autoValidate: boolean; triggerToNodes: object };
	const Constructor = graph.constructor as new (fields: object) => Graph;
	return new Constructor({
		...graph,
		channels: { ...graph.channels },
		triggerToNodes: autoValidate ? {} : triggerToNodes,
		checkpointer,
		store,
	});
}
