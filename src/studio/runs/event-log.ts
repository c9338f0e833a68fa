import { toJson } from "../http/json.ts";

/**
 * How much of a run's events is held, in characters of JSON. It is reached by a background run that nobody has looked
 * at, by a stream that can be resumed, and by a reader that has stalled; the oldest go first.
 */
const MOST_CHARACTERS = 16 * 1024 * 1024;

/** An event as it is sent: its data is JSON already, so that nothing can change it later. */
export interface LoggedEvent {
	readonly id: number;
	readonly event: string;
	readonly data: string;
}

/**
 * The events of one run, for any number of readers. Each gets every event, in order.
 *
 * An event that was read is let go, unless the log is resumable: then a reader may come back for what it missed.
 */
export class EventLog {
	readonly #isResumable: boolean;
	readonly #most: number;
	#events: LoggedEvent[] = [];
	#characters = 0;
	#nextId = 0;
	#isEnded = false;
	/** The id of the event that each reader waits for. */
	readonly #readers = new Map<symbol, number>();
	#waiting: (() => void)[] = [];

	constructor({ isResumable, most = MOST_CHARACTERS }: { isResumable: boolean; most?: number }) {
		this.#isResumable = isResumable;
		this.#most = most;
	}

	push(event: string, data: unknown): void {
		const entry = { id: this.#nextId++, event, data: toJson(data) };
		this.#events.push(entry);
		this.#characters += entry.data.length;
		while (this.#characters > this.#most && this.#events.length > 1) this.#dropOldest();
		this.#notify();
	}

	/** No more events will come. */
	end(): void {
		this.#isEnded = true;
		this.#notify();
	}

	/** Lets go of everything. Readers that are not done get what they have. */
	clear(): void {
		this.#events = [];
		this.#characters = 0;
	}

	/**
	 * The events after the one with this id, or all that are held.
	 *
	 * @throws if the reader is so slow that events it has not seen are gone
	 */
	async *read(lastId?: number): AsyncGenerator<LoggedEvent> {
		const reader = Symbol("reader");
		let next = Math.max(this.#oldest(), (lastId ?? -1) + 1);
		this.#readers.set(reader, next);
		try {
			for (;;) {
				if (next < this.#oldest()) throw new Error("This reader is too slow: events it has not seen are gone.");
				const entry = this.#events[next - this.#oldest()];
				if (entry !== undefined) {
					next++;
					this.#readers.set(reader, next);
					this.#dropRead();
					yield entry;
				} else if (this.#isEnded) return;
				else await new Promise<void>((resolve) => this.#waiting.push(resolve));
			}
		} finally {
			this.#readers.delete(reader);
		}
	}

	/** The id of the oldest event that is held. */
	#oldest(): number {
		return this.#events[0]?.id ?? this.#nextId;
	}

	#dropRead(): void {
		if (this.#isResumable) return;
		const needed = Math.min(...this.#readers.values());
		while (this.#events.length > 0 && this.#oldest() < needed) this.#dropOldest();
	}

	#dropOldest(): void {
		this.#characters -= this.#events.shift()?.data.length ?? 0;
	}

	#notify(): void {
		const waiting = this.#waiting;
		this.#waiting = [];
		for (const resolve of waiting) resolve();
	}
}
