import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../saver/delta-saver.ts";
import type { Graph, GraphFactory } from "./graphs/graph.ts";
import type { Authorize } from "./security/access.ts";
import type { Limits } from "./security/limits.ts";

export interface StudioOptions {
	/** The graphs to serve, by the names that clients know them by; or functions that make them from a run's config. */
	graphs: Readonly<Record<string, Graph | GraphFactory>>;
	/** Where all graphs keep their threads. Default: each graph's own checkpointer; in memory if it has none. */
	checkpointer?: DeltaSaver;
	/** The long-term memory of all graphs. Default: each graph's own store; in memory if it has none. */
	store?: BaseStore;
	/**
	 * Web pages that may call, as origins such as `"https://app.example.com"`, beside those on this machine. The server
	 * also answers when it is called by the name of one of them. Default: LangGraph Studio's.
	 */
	allowOrigins?: readonly string[];
	/** Decides who may call, and which threads each caller may see. Default: everybody, all. */
	authorize?: Authorize;
	/** Refuses everything that would change something. Default false. */
	readOnly?: boolean;
	/** The path that the server is mounted at, such as `"/api/langgraph"`. Default: none. */
	basePath?: string;
	limits?: Limits;
}

/** The options by name. */
export const STUDIO_OPTIONS: readonly (keyof StudioOptions)[] = [
	"graphs",
	"checkpointer",
	"store",
	"allowOrigins",
	"authorize",
	"readOnly",
	"basePath",
	"limits",
];
