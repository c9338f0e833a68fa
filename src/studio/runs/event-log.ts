import type { MatchableEvent } from "@langchain/langgraph/stream";
import { toJson } from "../http/json.ts";

/**
 * How much of a run's events is held, in characters of JSON. It is reached by a background run that nobody has looked
 * at, by a stream that can be resumed, and by a reader that has stalled; the oldest go first.
 */
const MOST_CHARACTERS = 16 * 1024 * 1024;

/** Which events are held: all of them, those that nobody has read, or those that somebody is about to read. */
export type Retention = "all" | "unread" | "needed";

/** An event as it is sent: its data is JSON already, so that nothing can change it later. */
export interface LoggedEvent {
	readonly id: number;
	readonly event: string;
	readonly data: string;
	/** What a filter looks at, if readers may have one. */
	readonly about?: MatchableEvent | undefined;
}

/** Which events a reader gets, and for how long it waits for more. */
export interface ReadOptions {
	readonly isWanted?: (event: LoggedEvent) => boolean;
	readonly signal?: AbortSignal;
}

/** The events of one run, or of all runs of a thread, for any number of readers. Each gets every event that is held, in order. */
export class EventLog {
	readonly #retention: Retention;
	readonly #most: number;
	readonly #events: LoggedEvent[] = [];
	#characters = 0;
	#nextId = 0;
	/** All events up to this one may go. */
	#unneeded = -1;
	#isEnded = false;
	#readers = 0;
	/** How many readers have an event next, by its id: a step of a reader costs the same however many others there are. */
	readonly #nexts = new Map<number, number>();
	#waiting = new Set<() => void>();
	#onEmpty: (() => void) | undefined;

	/** @param firstId the id of the first event; those after it count up */
	constructor(retention: Retention, most = MOST_CHARACTERS, firstId = 0) {
		this.#retention = retention;
		this.#most = most;
		this.#nextId = firstId;
	}

	/** How much JSON is held. */
	get characters(): number {
		return this.#characters;
	}

	/** The id that the next event will have. */
	get nextId(): number {
		return this.#nextId;
	}

	/** The id of the oldest event that is held. */
	get oldestId(): number {
		return this.#events[0]?.id ?? this.#nextId;
	}

	/** Whether somebody reads. */
	get isRead(): boolean {
		return this.#readers > 0;
	}

	push(event: string, data: unknown, about?: MatchableEvent): void {
		const entry = { id: this.#nextId++, event, data: toJson(data), about };
		this.#events.push(entry);
		this.#characters += entry.data.length;
		while (this.#characters > this.#most && this.#events.length > 1) this.#dropOldest();
		this.#tidy();
		this.#notify();
	}

	/**
	 * No more events will come.
	 *
	 * @param onEmpty called as soon as nothing is held any more
	 */
	end(onEmpty?: () => void): void {
		this.#isEnded = true;
		this.#onEmpty = onEmpty;
		this.#notify();
		this.#tidy();
	}

	/**
	 * The events after the one with this id, or all that are held.
	 *
	 * @throws if the reader is so slow that events it has not seen are gone
	 */
	async *read(lastId?: number, { isWanted, signal }: ReadOptions = {}): AsyncGenerator<LoggedEvent> {
		let wake = () => {};
		const leave = () => wake();
		signal?.addEventListener("abort", leave, { once: true });
		let next = Math.max(this.oldestId, (lastId ?? -1) + 1);
		this.#readers++;
		this.#count(next, 1);
		try {
			while (!signal?.aborted) {
				if (next < this.oldestId) throw new Error("This reader is too slow: events it has not seen are gone.");
				const entry = this.#events[next - this.oldestId];
				if (entry !== undefined) {
					this.#count(next++, -1);
					this.#count(next, 1);
					this.#tidy();
					if (isWanted?.(entry) ?? true) yield entry;
				} else if (this.#isEnded) return;
				else
					await new Promise<void>((resolve) => {
						wake = resolve;
						this.#waiting.add(wake);
					});
			}
		} finally {
			signal?.removeEventListener("abort", leave);
			this.#waiting.delete(wake);
			this.#readers--;
			this.#count(next, -1);
			this.#tidy();
		}
	}

	/** The events after the one with the first id, up to the one with the second, that are held. */
	held(lastId: number, throughId: number): LoggedEvent[] {
		return this.#events.slice(Math.max(0, lastId + 1 - this.oldestId), Math.max(0, throughId + 1 - this.oldestId));
	}

	/** Lets go of all events up to the one with this id, as soon as those who read now have read them. */
	dropThrough(id: number): void {
		this.#unneeded = Math.max(this.#unneeded, id);
		this.#tidy();
	}

	/** Lets go of what need not be held. */
	#tidy(): void {
		const isHeld = this.#retention === "all" || (this.#retention === "unread" && this.#readers === 0);
		const mayGo = isHeld ? this.#unneeded + 1 : this.#nextId;
		while (this.#events.length > 0 && this.oldestId < mayGo && !this.#nexts.has(this.oldestId)) this.#dropOldest();
		if (!this.#isEnded || this.#events.length > 0) return;
		this.#onEmpty?.();
		this.#onEmpty = undefined;
	}

	/** Some more readers, or fewer, have this event next. */
	#count(id: number, change: number): void {
		const readers = (this.#nexts.get(id) ?? 0) + change;
		if (readers === 0) this.#nexts.delete(id);
		else this.#nexts.set(id, readers);
	}

	#dropOldest(): void {
		this.#characters -= this.#events.shift()?.data.length ?? 0;
	}

	#notify(): void {
		const waiting = this.#waiting;
		this.#waiting = new Set();
		for (const resolve of waiting) resolve();
	}
}
