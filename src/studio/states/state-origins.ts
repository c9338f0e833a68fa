import type { StateSnapshot } from "@langchain/langgraph";
import type { Json } from "../http/fields.ts";
import { readRun, type StoredRun } from "../threads/records.ts";
import type { FoundThread } from "../threads/threads.ts";

/** Finds out which run made a state. Each run is read once, however many of its states are asked for. */
export class StateOrigins {
	readonly #thread: FoundThread;
	readonly #graphId: string;
	readonly #runs = new Map<string, Promise<StoredRun | undefined>>();

	constructor(thread: FoundThread, graphId: string) {
		this.#thread = thread;
		this.#graphId = graphId;
	}

	/**
	 * A state's metadata with that of its run. LangGraph's server stores the two as one; here they are put together when
	 * they are read, because LangGraph takes an input for a resume if it finds its run there.
	 */
	async describe({ metadata, config }: StateSnapshot): Promise<Json | undefined> {
		if (metadata === undefined) return undefined;
		const { saver, threadId } = this.#thread;
		let runId: string | undefined;
		for await (const info of saver.listCheckpoints(config, { limit: 1 })) runId = info.runId;
		const run = runId === undefined ? undefined : await this.#readRun(runId);
		return {
			...run?.record.metadata,
			graph_id: this.#graphId,
			thread_id: threadId,
			...(runId !== undefined && { run_id: runId }),
			...(metadata as Json),
		};
	}

	#readRun(runId: string): Promise<StoredRun | undefined> {
		const known = this.#runs.get(runId);
		if (known !== undefined) return known;
		const run = readRun(this.#thread.saver, this.#thread.threadId, runId);
		this.#runs.set(runId, run);
		return run;
	}
}
