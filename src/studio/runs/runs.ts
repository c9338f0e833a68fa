import { Turns } from "../../engine/turns.ts";
import { MemorySaver } from "../../saver/memory-saver.ts";
import type { Assistants } from "../graphs/assistants.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { Assistant } from "../graphs/stored-assistants.ts";
import { isRecord, type Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import type { Feeds } from "../protocol/feeds.ts";
import type { Access } from "../security/access.ts";
import type { Limits } from "../security/limits.ts";
import { type RunEnd, type ThreadRecord, writeRunEnd, writeRunRecord } from "../threads/records.ts";
import type { FoundThread, Threads } from "../threads/threads.ts";
import { EndedRuns } from "./ended-runs.ts";
import { execute } from "./execute.ts";
import { type Admission, Room } from "./room.ts";
import { Run, type RunPlace } from "./run.ts";
import { endOf } from "./run-end.ts";
import type { RunRequest } from "./run-request.ts";
import { RunSaver } from "./run-saver.ts";
import { Schedule } from "./schedule.ts";
import { withoutSecrets } from "./secrets.ts";

/** With more, a timer goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * What whoever starts a run is after: its events, now or later, or only what it comes to; or that the clients of the thread
 * protocol learn of it.
 */
export type Interest = "events" | "result" | "feed";

/** Makes runs, and sees them through to their end. */
export class Runs {
	readonly #graphs: Graphs;
	readonly #assistants: Assistants;
	readonly #threads: Threads;
	readonly #feeds: Feeds;
	readonly #limits: Required<Limits>;
	readonly #room: Room;
	readonly #schedule: Schedule;
	readonly #turns = new Turns();
	/** Runs under way, and those that ended not long ago. */
	readonly #known = new Map<string, Run>();
	readonly #ended: EndedRuns;
	readonly #followers = new Map<string, Set<(run: Run) => void>>();
	#isClosed = false;

	constructor(graphs: Graphs, assistants: Assistants, threads: Threads, feeds: Feeds, limits: Required<Limits>) {
		this.#graphs = graphs;
		this.#assistants = assistants;
		this.#threads = threads;
		this.#feeds = feeds;
		this.#limits = limits;
		this.#room = new Room(limits);
		this.#schedule = new Schedule(limits.concurrentRuns, (run) => this.#work(run));
		this.#ended = new EndedRuns(limits.endedRunBytes, (run) => this.#forget(run));
	}

	/** A run that is under way, or ended not long ago. */
	get(runId: string): Run | undefined {
		return this.#known.get(runId);
	}

	/** The runs of a thread that are under way, or ended not long ago, the oldest first. */
	of(threadId: string): Run[] {
		const runs = [...this.#known.values()].filter((run) => run.place.threadId === threadId);
		return runs.sort((a, b) => (a.id < b.id ? -1 : 1));
	}

	/** Tells of each run of a thread that is started from now on, before it works. Returns what ends that. */
	follow(threadId: string, onRun: (run: Run) => void): () => void {
		const followers = this.#followers.get(threadId) ?? new Set();
		this.#followers.set(threadId, followers.add(onRun));
		return () => {
			followers.delete(onRun);
			if (followers.size === 0) this.#followers.delete(threadId);
		};
	}

	isBusy(threadId: string): boolean {
		return this.#schedule.of(threadId).length > 0;
	}

	/** Starts a run on a thread, now or when it is its turn. */
	async create({ caller }: Access, threadId: string, request: RunRequest, interest: Interest): Promise<Run> {
		const assistant = await this.#mustFindAssistant(request);
		// Of two runs that are asked for at once, one sees the other.
		const make = (admission: Admission) =>
			this.inTurn(threadId, async () => {
				const before = this.#schedule.of(threadId);
				if (before.length > 0 && request.strategy === "reject")
					throw new HttpError(
						422,
						"Thread is already running a task. Wait for it to finish or choose a different multitask strategy.",
					);
				const thread = await this.#threads.settle(await this.#findThread(threadId, request), assistant.graph_id);
				const { saver } = thread;
				const record = await this.#threads.update(thread, (record) => followUp(record, assistant, request));
				const run = this.#prepare(assistant, { threadId, saver, caller }, record, request, interest);
				await writeRunRecord(saver, threadId, run.record);
				if (request.strategy === "interrupt" || request.strategy === "rollback")
					for (const other of before) other.stop(request.strategy);
				this.#launch(run, admission, interest);
				return run;
			});
		return this.#admit(caller, request, make);
	}

	/** Starts a run that belongs to no thread, and of which nothing is kept unless it is asked for. */
	async createStateless(access: Access, request: RunRequest, interest: Interest): Promise<Run> {
		const threadId = access.newThreadId();
		if (request.keepsThread) return this.create(access, threadId, { ...request, createsThread: true }, interest);
		const assistant = await this.#mustFindAssistant(request);
		const { caller } = access;
		return this.#admit(caller, request, async (admission) => {
			const record = followUp({ metadata: {}, config: {} }, assistant, request);
			const run = this.#prepare(assistant, { threadId, saver: undefined, caller }, record, request, interest);
			this.#launch(run, admission, interest);
			return run;
		});
	}

	/** Does something to a thread while no run can be started on it. */
	inTurn<T>(threadId: string, work: () => Promise<T>): Promise<T> {
		return this.#turns.take(threadId, work);
	}

	/** The same, but refused if a run is under way. */
	whileIdle<T>(threadId: string, work: () => Promise<T>): Promise<T> {
		return this.inTurn(threadId, async () => {
			if (this.isBusy(threadId)) throw new HttpError(409, "Thread is busy");
			return work();
		});
	}

	/** Deletes a thread after stopping its runs, whose events go with it. */
	deleteThread({ threadId, saver }: FoundThread): Promise<void> {
		return this.inTurn(threadId, async () => {
			await stop(this.#schedule.of(threadId));
			await saver.deleteThread(threadId);
			for (const run of this.of(threadId)) this.#ended.forget(run);
		});
	}

	/** Does something that counts as a run of its caller until it is done. */
	async countAsRun<T>({ caller }: Access, bytes: number, work: () => Promise<T>): Promise<T> {
		const admission = { caller, isDelayed: false, bytes };
		this.#room.enter(admission);
		try {
			return await work();
		} finally {
			this.#room.leave(admission);
		}
	}

	/** Stops all runs there are, and takes no more. */
	async close(): Promise<void> {
		this.#isClosed = true;
		await stop([...this.#known.values()].filter((run) => run.isInFlight));
		this.#ended.clear();
		this.#known.clear();
		this.#feeds.close();
	}

	async #findThread(threadId: string, { createsThread }: RunRequest): Promise<FoundThread> {
		if (!createsThread) return this.#threads.mustFind(threadId);
		return (await this.#threads.find(threadId)) ?? this.#threads.create(threadId, {});
	}

	#prepare(
		assistant: Assistant,
		where: Pick<RunPlace, "threadId" | "saver" | "caller">,
		record: ThreadRecord,
		request: RunRequest,
		interest: Interest,
	): Run {
		const { graph_id, assistant_id } = assistant;
		const identity = { graph_id, assistant_id };
		const retention = request.isResumable ? "all" : interest === "events" ? "unread" : "needed";
		const place = {
			...where,
			graphId: graph_id,
			assistantId: assistant_id,
			metadata: { ...assistant.metadata, ...record.metadata, ...request.metadata, ...identity },
			configurable: {
				...(assistant.config.configurable as Json),
				...(record.config.configurable as Json),
				...(request.config.configurable as Json),
				...request.headers,
				...identity,
				thread_id: where.threadId,
			},
		};
		return new Run(withDefaults(request, assistant), place, retention);
	}

	#launch(run: Run, admission: Admission, interest: Interest): void {
		admission.run = run;
		const { threadId } = run.place;
		// The queue of `useStream` starts runs by the other API, and looks for them here.
		if (interest === "feed" || (isPlain(run) && this.#feeds.get(threadId)?.isRead))
			run.feed = this.#feeds.hold(threadId);
		void run.done.then(() => this.#room.leave(admission));
		this.#known.set(run.id, run);
		for (const onRun of this.#followers.get(threadId) ?? []) onRun(run);
		this.#schedule.add(run);
		// It was on the way when the server was closed.
		if (this.#isClosed) run.stop("interrupt");
	}

	async #work(run: Run): Promise<void> {
		const { graphId, configurable } = run.place;
		const timer = setTimeout(() => run.stop("timeout"), Math.min(this.#limits.runSeconds * 1000, LONGEST_TIMER_MS));
		// What belongs to no thread is kept for as long as it runs.
		const saver = new RunSaver(run.place.saver ?? new MemorySaver(), () => run.stop("failure"));
		let failure: { error: unknown } | undefined;
		try {
			run.feed?.begin(run.id, graphId);
			run.signal.throwIfAborted();
			await execute(run, await this.#graphs.getOn(saver, graphId, { configurable }));
		} catch (error) {
			failure = { error };
		}
		clearTimeout(timer);
		await saver.seal();
		await this.#finish(run, endOf(run, saver.failure ?? failure, this.#limits));
	}

	/** Stores how a run ended. It has ended even if that fails. */
	async #finish(run: Run, end: RunEnd): Promise<void> {
		const { threadId, saver } = run.place;
		if (end.error !== undefined) run.log.push("error", end.error);
		try {
			if (saver === undefined) return;
			if (run.stopReason === "rollback") {
				await saver.deleteForRuns([run.id], { threadIds: [threadId] });
				this.#known.delete(run.id);
			} else {
				const head = end.error && (await saver.getThread(threadId))?.head;
				await writeRunEnd(saver, threadId, run.id, { ...end, head });
			}
		} catch (cause) {
			console.error(`Can't store how run ${run.id} of thread ${threadId} ended:`, cause);
		} finally {
			this.#forgetLater(run, end);
		}
	}

	/** A run that has ended is known until all its events are read, but not forever. */
	#forgetLater(run: Run, end: RunEnd): void {
		run.fed = run.feed?.end(end);
		// It leaves nothing, but who waits for its end must learn of it.
		if (run.fed !== undefined && run.stopReason === "rollback") run.feed?.forget(run.fed.lastSeq - 1);
		this.#ended.add(run);
		run.finish(end, () => {
			if (run.fed === undefined) this.#ended.forget(run);
		});
	}

	#forget(run: Run): void {
		this.#known.delete(run.id);
		if (run.feed === undefined || run.fed === undefined) return;
		run.feed.forget(run.fed.lastSeq);
		this.#feeds.release(run.place.threadId);
	}

	async #mustFindAssistant({ assistantId }: RunRequest): Promise<Assistant> {
		const assistant = await this.#assistants.find(assistantId);
		if (assistant !== undefined) return assistant;
		throw new HttpError(
			404,
			`No assistant found for "${assistantId}". Make sure the assistant ID is for a valid assistant or a valid graph ID.`,
		);
	}

	/** Makes a run if its caller has room for it, which it takes until it has ended. */
	async #admit(
		caller: string,
		{ delayMs, bytes }: RunRequest,
		make: (admission: Admission) => Promise<Run>,
	): Promise<Run> {
		if (this.#isClosed) throw new HttpError(503, "The server is shutting down.");
		const { delaySeconds } = this.#limits;
		if (delayMs > delaySeconds * 1000)
			throw new HttpError(400, `\`after_seconds\` must be at most ${delaySeconds}, got ${delayMs / 1000}.`);
		const admission: Admission = { caller, isDelayed: delayMs > 0, bytes };
		this.#room.enter(admission);
		try {
			return await make(admission);
		} catch (error) {
			this.#room.leave(admission);
			throw error;
		}
	}
}

/** What a thread is known by once a run was asked for: its graph, and what later runs take over from this one. */
function followUp(
	{ metadata, config }: ThreadRecord,
	{ graph_id, assistant_id }: Assistant,
	{ config: given }: RunRequest,
): ThreadRecord {
	const open = withoutSecrets(given);
	const configurable = { ...(config.configurable as Json), ...(open.configurable as Json) };
	return {
		metadata: { ...metadata, graph_id, assistant_id },
		config: { ...config, ...open, configurable },
	};
}

/** What a client does not say is as the assistant has it. */
function withDefaults(request: RunRequest, { config, context }: Assistant): RunRequest {
	const isGiven = Object.keys(context).length > 0 && (request.context === undefined || isRecord(request.context));
	return {
		...request,
		config: { ...config, ...request.config },
		context: isGiven ? { ...context, ...(request.context as Json | undefined) } : request.context,
	};
}

/** Whether it streams no more than its values, which can be taken from a feed. */
function isPlain({ place, request: { streamModes, withSubgraphs } }: Run): boolean {
	return place.saver !== undefined && !withSubgraphs && streamModes.every((mode) => mode === "values");
}

async function stop(runs: readonly Run[]): Promise<void> {
	for (const run of runs) run.stop("interrupt");
	await Promise.all(runs.map((run) => run.done));
}
