import type { Call } from "../call.ts";
import { Fields } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { toJson } from "../http/json.ts";
import { type SseEvent, sseResponse } from "../http/sse.ts";
import type { LoggedEvent } from "../runs/event-log.ts";
import type { Run } from "../runs/run.ts";

/**
 * How much the runs may hold that a client has not read, in characters of JSON, when one more begins: as much as is held of
 * ended runs, if nothing else was asked for.
 */
const MOST_CHARACTERS = 32 * 1024 * 1024;

/** The events of all runs of a thread, one run after the other, for as long as the client stays. */
export async function joinThread(call: Call): Promise<Response> {
	const { threadId, studio, query, request } = call;
	await studio.threads.mustFind(threadId);
	const isWanted = readModes(query);
	const follower = new ThreadFollower();
	const last = readPosition(request.headers.get("last-event-id"));
	for (const run of studio.runs.of(threadId)) {
		if (run.id === last?.runId) follower.add(run, last.eventId);
		else if (last === undefined ? run.isInFlight : run.id > last.runId) follower.add(run);
	}
	const leave = studio.runs.follow(threadId, (run) => follower.add(run));
	const events = (async function* () {
		try {
			for await (const event of follower.read()) if (isWanted(event)) yield event;
		} finally {
			leave();
		}
	})();
	return sseResponse(events, { onLeave: () => follower.stop() });
}

/** Reads the logs of runs, in the order in which they were added. */
export class ThreadFollower {
	readonly #most: number;
	readonly #gone = new AbortController();
	readonly #runs: { readonly run: Run; readonly log: AsyncGenerator<LoggedEvent>; next: Promise<NextEvent> }[] = [];
	#isTooSlow = false;
	#wake: () => void = () => {};

	constructor(most = MOST_CHARACTERS) {
		this.#most = most;
	}

	add(run: Run, lastId?: number): void {
		if (this.#gone.signal.aborted) return;
		const log = run.log.read(lastId, { signal: this.#gone.signal });
		// At once: a log may hold only what somebody is about to read.
		const next = take(log);
		this.#runs.push({ run, log, next });
		void next.then(() => this.#checkPace()).catch(() => {});
		this.#wake();
	}

	stop(): void {
		this.#gone.abort();
		for (const { log } of this.#runs.splice(0)) void log.return(undefined);
		this.#wake();
	}

	/** A run has begun: those before it hold what they will. */
	#checkPace(): void {
		const behind = this.#runs.reduce((characters, { run }) => characters + run.log.characters, 0);
		if (behind <= this.#most) return;
		this.#isTooSlow = true;
		this.stop();
	}

	async *read(): AsyncGenerator<SseEvent> {
		const { signal } = this.#gone;
		while (!signal.aborted) {
			const [followed] = this.#runs;
			if (followed === undefined) {
				await new Promise<void>((resolve) => {
					this.#wake = resolve;
				});
				continue;
			}
			const { run, log } = followed;
			const { done, value } = await followed.next;
			if (signal.aborted) break;
			if (done) {
				this.#runs.shift();
				yield { event: "metadata", data: toJson({ status: "run_done", run_id: run.id }) };
			} else {
				followed.next = take(log);
				yield { ...value, id: `${run.id}:${value.id}` };
			}
		}
		if (this.#isTooSlow) throw new Error("This client is too slow: runs hold too much that it has not read.");
	}
}

type NextEvent = IteratorResult<LoggedEvent, void>;

/** The next event of a log. That it is gone matters when the client comes to it, and nobody waits for it until then. */
function take(log: AsyncGenerator<LoggedEvent>): Promise<NextEvent> {
	const next = log.next();
	next.catch(() => {});
	return next;
}

/** Where a client left off. */
function readPosition(header: string | null): { runId: string; eventId: number } | undefined {
	const [, runId, eventId] = /^([\da-f-]{36}):(\d+)$/.exec(header ?? "") ?? [];
	return runId === undefined ? undefined : { runId, eventId: Number(eventId) };
}

function readModes(query: URLSearchParams): (event: SseEvent) => boolean {
	const modes = new Fields({ stream_mode: query.getAll("stream_mode") }).texts("stream_mode") ?? [];
	if (modes.some((mode) => mode !== "run_modes" && mode !== "lifecycle"))
		throw new HttpError(422, "`stream_mode` of a thread must be run_modes or lifecycle.");
	const isAll = modes.length === 0 || modes.includes("run_modes");
	return ({ event }) => isAll || event === "metadata";
}
