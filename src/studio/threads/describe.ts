import type { StateSnapshot } from "@langchain/langgraph";
import { CheckpointError, type CheckpointErrorCode } from "../../errors.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { Json } from "../http/fields.ts";
import { describeError } from "../runs/run-end.ts";
import type { IdleThreads } from "./idle-threads.ts";
import { listRuns, type RunEnd, readThreadRecord, type StoredRun, type ThreadRecord } from "./records.ts";
import type { FoundThread, Threads } from "./threads.ts";

/** What is wrong with one thread, and not with the storage. */
const UNREADABLE: readonly CheckpointErrorCode[] = ["CORRUPT", "WRONG_KEY"];

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

export interface DescriptionContext {
	readonly graphs: Graphs;
	readonly threads: Threads;
	readonly idle: IdleThreads;
	/** Whether a run is under way. */
	readonly isBusy: boolean;
}

/**
 * Tells of threads what the API wants to know. Each part is read once, and only if it is asked for. A thread of which
 * something can't be read has an error, and lacks what it is about: it must not hide all others from those who list them.
 */
export class ThreadDescription {
	readonly thread: FoundThread;
	readonly #graphs: Graphs;
	readonly #threads: Threads;
	readonly #idle: IdleThreads;
	readonly #isBusy: boolean;
	#record: Promise<ThreadRecord> | undefined;
	#state: Promise<StateSnapshot | undefined> | undefined;
	#lastRun: Promise<StoredRun | undefined> | undefined;
	/** Why something could not be read. */
	#damage: CheckpointError | undefined;

	constructor(thread: FoundThread, context: DescriptionContext) {
		this.thread = thread;
		this.#graphs = context.graphs;
		this.#threads = context.threads;
		this.#idle = context.idle;
		this.#isBusy = context.isBusy;
	}

	record(): Promise<ThreadRecord> {
		const { saver, threadId } = this.thread;
		this.#record ??= this.#read(() => readThreadRecord(saver, threadId), { metadata: {}, config: {} });
		return this.#record;
	}

	/** The newest state, if there is one. */
	state(): Promise<StateSnapshot | undefined> {
		this.#state ??= this.#read(() => this.#readState(), undefined);
		return this.#state;
	}

	async status(): Promise<ThreadStatus> {
		if (this.#isBusy) return "busy";
		if (this.#damage === undefined && this.#idle.has(this.thread)) return "idle";
		const state = await this.state();
		if (state?.tasks.some((task) => task.error !== undefined) || (await this.#error())) return "error";
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
			config: async () => (await this.record()).config,
			values: async () => (await this.state())?.values,
			interrupts: async () => interruptsOf(await this.state()),
			error: () => this.#error(),
			// The last, since it may be known without reading what the others have found to be damaged.
			status: () => this.status(),
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

	/** What can't be read, or else how the last run failed, if the thread is still where it left it. */
	async #error(): Promise<RunEnd["error"]> {
		await this.state();
		const end = (await this.#readLastRun())?.end;
		if (this.#damage !== undefined) return describeError(this.#damage);
		const hasFailed = end?.status === "error" || end?.status === "timeout";
		return hasFailed && end.head === this.thread.info.head ? end.error : undefined;
	}

	#readLastRun(): Promise<StoredRun | undefined> {
		this.#lastRun ??= this.#read(async () => {
			for await (const run of listRuns(this.thread.saver, this.thread.threadId, 1)) return run;
			return undefined;
		}, undefined);
		return this.#lastRun;
	}

	/** Reads something, or returns what stands for it if it is damaged or can't be decrypted. */
	async #read<T>(read: () => Promise<T>, otherwise: T): Promise<T> {
		try {
			return await read();
		} catch (error) {
			if (!(error instanceof CheckpointError && UNREADABLE.includes(error.code))) throw error;
			this.#damage ??= error;
			return otherwise;
		}
	}
}

/** What each task of a state asks for. */
function interruptsOf(state: StateSnapshot | undefined): Json {
	const asking = state?.tasks.filter((task) => task.interrupts.length > 0) ?? [];
	return Object.fromEntries(asking.map((task) => [task.id, task.interrupts]));
}
