import type { RunnableConfig } from "@langchain/core/runnables";
import { v5 as uuid5 } from "@langchain/core/utils/uuid";
import { type BaseCheckpointSaver, type BaseStore, InMemoryStore } from "@langchain/langgraph-checkpoint";
import { CheckpointError, quote } from "../../errors.ts";
import type { DeltaSaver } from "../../saver/delta-saver.ts";
import { MemorySaver } from "../../saver/memory-saver.ts";
import { copyGraph, type Graph, type GraphFactory } from "./graph.ts";

/** LangGraph's servers derive the id of a graph's assistant from its name with this namespace. */
const ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** What the server needs of a saver, beyond what LangGraph does. */
const SAVER_METHODS = ["listThreads", "getThread", "listCheckpoints", "copyThread", "prune", "deleteForRuns"] as const;

/** The graphs that are served, each with the saver and the store that it works on. */
export class Graphs {
	readonly ids: readonly string[];
	readonly #sources: ReadonlyMap<string, Graph | GraphFactory>;
	readonly #checkpointer: DeltaSaver | undefined;
	readonly #store: BaseStore | undefined;
	readonly #copies = new Map<string, Graph>();
	/** For graphs that were compiled without. */
	readonly #spareSaver = new MemorySaver();
	readonly #spareStore = new InMemoryStore();

	constructor(
		graphs: Readonly<Record<string, Graph | GraphFactory>>,
		options: { checkpointer?: DeltaSaver; store?: BaseStore },
	) {
		this.#sources = new Map(Object.entries(graphs));
		this.ids = [...this.#sources.keys()];
		this.#checkpointer = options.checkpointer;
		this.#store = options.store;
		for (const [id, source] of this.#sources) check(id, source);
		// What can't work is better said now than when the first request comes.
		for (const [id, source] of this.#sources) if (typeof source !== "function") this.#saverFor(id, unwrap(source));
	}

	/** The graph as it runs here. */
	async get(graphId: string, config: RunnableConfig = { configurable: {} }): Promise<Graph> {
		const copy = this.#copies.get(graphId);
		if (copy !== undefined) return copy;
		const source = this.#sources.get(graphId) as Graph | GraphFactory;
		const graph = unwrap(typeof source === "function" ? await source(config) : source);
		const made = copyGraph(graph, this.#saverFor(graphId, graph), this.#storeFor(graph));
		if (typeof source !== "function") this.#copies.set(graphId, made);
		return made;
	}

	/** The graph as it runs on another saver than its own. */
	async getOn(saver: BaseCheckpointSaver, graphId: string, config: RunnableConfig): Promise<Graph> {
		const graph = await this.get(graphId, config);
		return copyGraph(graph, saver, graph.store);
	}

	async saverOf(graphId: string): Promise<DeltaSaver> {
		return this.#checkpointer ?? ((await this.get(graphId)).checkpointer as DeltaSaver);
	}

	/** All savers, each once. */
	async savers(): Promise<DeltaSaver[]> {
		return [...new Set(await Promise.all(this.ids.map((id) => this.saverOf(id))))];
	}

	/** The store that clients see: there is one for all graphs. */
	async store(): Promise<BaseStore> {
		if (this.#store !== undefined) return this.#store;
		const stores = await Promise.all(this.ids.map(async (id) => (await this.get(id)).store));
		return stores.find((store) => store !== undefined && store !== this.#spareStore) ?? this.#spareStore;
	}

	/** The graph that an assistant's id or a graph's own names. */
	find(assistantId: string): string | undefined {
		return this.ids.find((id) => id === assistantId || assistantIdOf(id) === assistantId);
	}

	#saverFor(id: string, graph: Graph): DeltaSaver {
		if (this.#checkpointer !== undefined) return checkSaver(this.#checkpointer, "`checkpointer`");
		if (typeof graph.checkpointer !== "object") return this.#spareSaver;
		return checkSaver(graph.checkpointer, `The checkpointer of graph ${quote(id)}`);
	}

	#storeFor(graph: Graph): BaseStore {
		return this.#store ?? graph.store ?? this.#spareStore;
	}
}

/** What `createAgent` of LangChain makes looks like a graph, and has the real one inside. */
function unwrap(graph: Graph & { graph?: Graph }): Graph {
	return typeof graph.graph?.getStateHistory === "function" ? graph.graph : graph;
}

export function assistantIdOf(graphId: string): string {
	return uuid5(graphId, ASSISTANT_NAMESPACE);
}

function check(id: string, source: Graph | GraphFactory): void {
	if (typeof source === "function" || typeof source?.getStateHistory === "function") return;
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`graphs\` takes compiled graphs, got ${quote(source)} for ${quote(id)}: call \`compile()\` first.`,
	);
}

function checkSaver(saver: object, name: string): DeltaSaver {
	const missing = SAVER_METHODS.find((method) => typeof (saver as DeltaSaver)[method] !== "function");
	if (missing === undefined) return saver as DeltaSaver;
	throw new CheckpointError(
		"INVALID_OPTION",
		`${name} is a ${saver.constructor?.name}, which has no ${missing}: pass a saver of this package as \`checkpointer\`.`,
	);
}
