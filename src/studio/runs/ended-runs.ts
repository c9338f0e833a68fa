import { toJson } from "../http/json.ts";
import type { Run } from "./run.ts";

/** How long a run that has ended can still be asked for its events. */
const KEEP_MS = 60_000;

interface Held {
	readonly bytes: number;
	readonly timer: ReturnType<typeof setTimeout>;
}

/** Runs that ended not long ago, for clients that come back for their events. The oldest make room for others. */
export class EndedRuns {
	readonly #mostBytes: number;
	readonly #onForgotten: (run: Run) => void;
	/** The oldest first. */
	readonly #held = new Map<Run, Held>();
	#bytes = 0;

	constructor(mostBytes: number, onForgotten: (run: Run) => void) {
		this.#mostBytes = mostBytes;
		this.#onForgotten = onForgotten;
	}

	add(run: Run): void {
		const timer = setTimeout(() => this.forget(run), KEEP_MS);
		timer.unref();
		const bytes = weigh(run);
		this.#held.set(run, { bytes, timer });
		this.#bytes += bytes;
		for (const oldest of this.#held.keys()) {
			if (this.#bytes <= this.#mostBytes) return;
			this.forget(oldest);
		}
	}

	forget(run: Run): void {
		const held = this.#held.get(run);
		if (held === undefined) return;
		clearTimeout(held.timer);
		this.#held.delete(run);
		this.#bytes -= held.bytes;
		this.#onForgotten(run);
	}

	clear(): void {
		for (const run of [...this.#held.keys()]) this.forget(run);
	}
}

/** What it holds, about: what it was asked for, its events and what it came to. A character may take two bytes. */
function weigh({ log, request, values, fed }: Run): number {
	return request.bytes + 2 * (log.characters + (fed?.characters ?? 0) + lengthOf(values));
}

/** Values are a graph's, and may be anything. */
function lengthOf(values: unknown): number {
	try {
		return toJson(values ?? null).length;
	} catch {
		return 0;
	}
}
