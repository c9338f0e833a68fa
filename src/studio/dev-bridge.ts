import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import { CheckpointError } from "../errors.ts";
import type { DeltaSaver } from "../saver/delta-saver.ts";

/** What `langgraphjs dev` keeps its checkpoints in: one object for all graphs. */
interface DevSaver extends BaseCheckpointSaver {
	/** Of a thread, or of one run on it. */
	delete(threadId: string, runId: string | null | undefined): Promise<void>;
	copy(threadId: string, newThreadId: string): Promise<void>;
	clear(): void;
}

/** Parts of a config that a checkpoint has elsewhere. */
const NOT_METADATA = ["checkpoint_ns", "checkpoint_id", "run_id", "thread_id"];

/**
 * Makes `langgraphjs dev` 1.5 keep its checkpoints in a saver of this package. By itself it puts an object of its own in
 * the place of every graph's checkpointer. Experimental: it changes that object, which is no part of any interface.
 *
 * Call it in the file that exports the graph. Anywhere else than in `langgraphjs dev` it does nothing.
 *
 * @returns whether it did something
 *
 * @example
 * ```ts
 * const checkpointer = new SqliteSaver("checkpoints.db");
 * await useSaverInDev(checkpointer);
 * export const graph = builder.compile({ checkpointer });
 * ```
 */
export async function useSaverInDev(saver: DeltaSaver): Promise<boolean> {
	const path = findDevSaver();
	if (path === undefined) return false;
	const { checkpointer } = (await import(pathToFileURL(path).href)) as { checkpointer?: DevSaver };
	if (typeof checkpointer?.copy !== "function" || typeof checkpointer.delete !== "function")
		throw new CheckpointError(
			"INVALID_OPTION",
			"This version of langgraphjs dev is not the one that useSaverInDev knows: use version 1.5 of @langchain/langgraph-cli.",
		);
	Object.assign(checkpointer, methodsOf(saver));
	return true;
}

/** The module that holds the saver of the server that this process is, if it is one. */
function findDevSaver(): string | undefined {
	const entry = process.argv.find((argument) => /langgraph-api[\\/]dist[\\/]cli[\\/]entrypoint\.mjs$/.test(argument));
	if (entry === undefined || !existsSync(entry)) return undefined;
	return join(dirname(realpathSync(entry)), "../storage/checkpoint.mjs");
}

function methodsOf(saver: DeltaSaver): Partial<DevSaver> {
	// The server does not wait for copies and deletions. Whoever reads must.
	let maintenance = Promise.resolve();
	const maintain = (work: () => Promise<unknown>): Promise<void> => {
		maintenance = maintenance.then(work).then(
			() => {},
			(error) => console.error(error),
		);
		return maintenance;
	};

	return {
		serde: saver.serde,
		getTuple: async (config) => {
			await maintenance;
			return saver.getTuple(config);
		},
		list: async function* (config, options) {
			await maintenance;
			yield* saver.list(config, options);
		},
		put: (config, checkpoint, metadata, newVersions) =>
			saver.put(config, checkpoint, mergeMetadata(config, metadata), newVersions),
		putWrites: (...call: Parameters<DeltaSaver["putWrites"]>) => saver.putWrites(...call),
		getDeltaChannelHistory: (options) => saver.getDeltaChannelHistory(options),
		getNextVersion: (current) => saver.getNextVersion(current as number | undefined),
		deleteThread: (threadId) => saver.deleteThread(threadId),
		delete: (threadId, runId) =>
			maintain(() =>
				typeof runId === "string"
					? saver.deleteForRuns([runId], { threadIds: [threadId] })
					: saver.deleteThread(threadId),
			),
		copy: (threadId, newThreadId) => maintain(() => saver.copyThread(threadId, newThreadId)),
		clear: () => {
			throw new CheckpointError("READ_ONLY", "langgraphjs dev may not clear a database: call `clear` of the saver.");
		},
	};
}

/** The server finds in a state's metadata what it knows of the run, so it has to be put there. */
function mergeMetadata({ configurable = {}, metadata: given }: RunnableConfig, own: CheckpointMetadata) {
	const entries = Object.entries(configurable).filter(([key]) => !key.startsWith("__") && !NOT_METADATA.includes(key));
	return { ...Object.fromEntries(entries), ...given, ...own } as CheckpointMetadata;
}
