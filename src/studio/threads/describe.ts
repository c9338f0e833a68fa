import type { StateSnapshot } from "@langchain/langgraph";
import type { Graphs } from "../graphs/graphs.ts";
import type { Json } from "../http/fields.ts";
import type { IdleThreads } from "./idle-threads.ts";
import { listRuns, type RunEnd, readThreadRecord, type StoredRun, type ThreadRecord } from "./records.ts";
import type { FoundThread, Threads } from "./threads.ts";

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

export interface DescriptionContext {
	readonly graphs: Graphs;
	readonly threads: Threads;
	readonly idle: IdleThreads;
	/** Whether a run is under way. */
	readonly isBusy: boolean;
}

/** Tells of threads what the API wants to know. Each part is read once, and only if it is asked for. */
export class ThreadDescription {
	readonly thread: FoundThread;
	readonly #graphs: Graphs;
	readonly #threads: Threads;
	readonly #idle: IdleThreads;
	readonly #isBusy: boolean;
	#record: Promise<ThreadRecord> | undefined;
	#state: Promise<StateSnapshot | undefined> | undefined;
	#lastRun: Promise<StoredRun | undefined> | undefined;

	constructor(thread: FoundThread, context: DescriptionContext) {
		this.thread = thread;
		this.#graphs = context.graphs;
		this.#threads = context.threads;
		this.#idle = context.idle;
		this.#isBusy = context.isBusy;
	}

	record(): Promise<ThreadRecord> {
		this.#record ??= readThreadRecord(this.thread.saver, this.thread.threadId);
		return this.#record;
	}

	/** The newest state, if there is one. */
	state(): Promise<StateSnapshot | undefined> {
		this.#state ??= this.#readState();
		return this.#state;
	}

	async status(): Promise<ThreadStatus> {
		if (this.#isBusy) return "busy";
		if (this.#idle.has(this.thread)) return "idle";
		const state = await this.state();
		if (state?.tasks.some((task) => task.error !== undefined) || (await this.#failure())) return "error";
		if (state !== undefined && state.next.length > 0) return "interrupted";
		// A run that has not ended may be another server's, and will end without a trace in what is listed of the thread.
		const lastRun = await this.#readLastRun();
		if (lastRun === undefined || lastRun.end !== undefined) this.#idle.add(this.thread);
		return "idle";
	}

	/** All fields of the API's thread, or those that are named. */
	async fields(select?: readonly string[]): Promise<Json> {
		const { threadId, info } = this.thread;
		const readers: Record<string, () => unknown> = {
			thread_id: () => threadId,
			created_at: () => info.createdAt,
			updated_at: () => info.updatedAt,
			state_updated_at: async () => (await this.state())?.createdAt,
			metadata: async () => (await this.record()).metadata,
			status: () => this.status(),
			config: async () => (await this.record()).config,
			values: async () => (await this.state())?.values,
			interrupts: async () => interruptsOf(await this.state()),
			error: async () => (await this.#failure())?.error,
		};
		const fields: Json = {};
		for (const [name, read] of Object.entries(readers))
			if (select === undefined || select.includes(name)) fields[name] = await read();
		return fields;
	}

	async #readState(): Promise<StateSnapshot | undefined> {
		const { thread } = this;
		if (thread.info.head === undefined) return undefined;
		const record = await this.record();
		const graph = await this.#graphs.get(await this.#threads.graphOf(thread, record), record.config);
		return graph.getState({ configurable: { thread_id: thread.threadId } });
	}

	/** How the last run failed, if the thread is still where it left it. */
	async #failure(): Promise<RunEnd | undefined> {
		const end = (await this.#readLastRun())?.end;
		const hasFailed = end?.status === "error" || end?.status === "timeout";
		return hasFailed && end.head === this.thread.info.head ? end : undefined;
	}

	#readLastRun(): Promise<StoredRun | undefined> {
		this.#lastRun ??= (async () => {
			for await (const run of listRuns(this.thread.saver, this.thread.threadId, 1)) return run;
			return undefined;
		})();
		return this.#lastRun;
	}
}

/** What each task of a state asks for. */
function interruptsOf(state: StateSnapshot | undefined): Json {
	const asking = state?.tasks.filter((task) => task.interrupts.length > 0) ?? [];
	return Object.fromEntries(asking.map((task) => [task.id, task.interrupts]));
}
