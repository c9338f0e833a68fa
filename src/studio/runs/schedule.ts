import type { Run } from "./run.ts";

/** Decides when runs work: those of one thread one after the other, and of all threads of a caller so many at a time. */
export class Schedule {
	readonly #most: number;
	readonly #work: (run: Run) => Promise<void>;
	/** The runs of each thread that wait, work or are about to leave, the oldest first. */
	readonly #threads = new Map<string, Run[]>();
	/** Of those that wait, the ones whose time has come. */
	readonly #ready = new Set<Run>();
	/** How many work, by caller. */
	readonly #working = new Map<string, number>();

	constructor(most: number, work: (run: Run) => Promise<void>) {
		this.#most = most;
		this.#work = work;
	}

	/** The runs of a thread that have not ended, the oldest first. */
	of(threadId: string): readonly Run[] {
		return (this.#threads.get(threadId) ?? []).filter((run) => run.isInFlight);
	}

	add(run: Run): void {
		const { threadId } = run.place;
		const { delayMs } = run.request;
		this.#threads.set(threadId, [...(this.#threads.get(threadId) ?? []), run]);
		const timer = delayMs > 0 ? setTimeout(() => this.#setReady(run), delayMs) : undefined;
		const giveUp = () => {
			clearTimeout(timer);
			// It has nothing to wait for any more: it ends as soon as it starts.
			if (run.status === "pending") this.#start(run);
		};
		run.signal.addEventListener("abort", giveUp, { once: true });
		if (timer === undefined) this.#setReady(run);
	}

	#setReady(run: Run): void {
		this.#ready.add(run);
		this.#advance();
	}

	#advance(): void {
		for (const [run] of this.#threads.values()) {
			if (run === undefined || !this.#ready.has(run)) continue;
			if ((this.#working.get(run.place.caller) ?? 0) < this.#most) this.#start(run);
		}
	}

	#start(run: Run): void {
		this.#ready.delete(run);
		run.status = "running";
		this.#countWorking(run, 1);
		void this.#work(run).finally(() => {
			this.#countWorking(run, -1);
			this.#remove(run);
			this.#advance();
		});
	}

	#countWorking({ place: { caller } }: Run, change: 1 | -1): void {
		const count = (this.#working.get(caller) ?? 0) + change;
		if (count > 0) this.#working.set(caller, count);
		else this.#working.delete(caller);
	}

	#remove(run: Run): void {
		const { threadId } = run.place;
		const rest = (this.#threads.get(threadId) ?? []).filter((other) => other !== run);
		if (rest.length > 0) this.#threads.set(threadId, rest);
		else this.#threads.delete(threadId);
	}
}
