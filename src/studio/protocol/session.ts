import { setTimeout } from "node:timers/promises";
import { v7 as uuid7 } from "@langchain/core/utils/uuid";
import { parseJson } from "../http/body.ts";
import type { Json } from "../http/fields.ts";
import { toJson } from "../http/json.ts";
import type { LoggedEvent } from "../runs/event-log.ts";
import { type Command, readCommand, refusal, runCommand, type Sender } from "./commands.ts";
import { readFilter } from "./filter.ts";
import { ProtocolError, toProtocolError } from "./protocol-error.ts";
import { recallEnd } from "./recall.ts";
import { type EventFilter, matches, type ThreadFeed } from "./thread-feed.ts";

/** How many subscriptions a connection may have. Clients have one for each part of a page that shows something else. */
const MOST_SUBSCRIPTIONS = 1000;

/**
 * How long a subscription waits for others, in milliseconds. A client that asks for several at once pauses all of them at the
 * end of a run: so they get what has happened in one go, in which that is the last.
 */
const GATHER_MS = 10;

/** A WebSocket, as the server sees it. */
export interface ProtocolSocket {
	/** Resolves when there is room for more. */
	send(text: string): Promise<void>;
	close(code: number, reason: string): void;
}

/** A connection to a thread on which commands come and answers and events go. */
export class ProtocolSession {
	/** The largest message that it takes, in bytes. */
	readonly mostBytes: number;
	readonly #sender: Sender;
	readonly #socket: ProtocolSocket;
	readonly #feed: ThreadFeed;
	readonly #subscriptions = new Map<string, EventFilter>();
	/** Those that have not got what has happened so far, with the number of the first event that they get. */
	readonly #fresh = new Map<string, { readonly filter: EventFilter; readonly fromSeq: number }>();
	/** Resolves when none of them is left, and the client has taken what has happened so far. */
	#gathered: Promise<void> = Promise.resolve();
	/** Resolves when the client has taken what it was sent last of what had happened. */
	#replayed: Promise<void> = Promise.resolve();
	readonly #gone = new AbortController();
	/** The newest event that all subscriptions have got, if they wanted it. */
	#seq: number;

	constructor(sender: Sender, socket: ProtocolSocket) {
		this.mostBytes = sender.studio.limits.bodyBytes;
		this.#sender = sender;
		this.#socket = socket;
		this.#feed = sender.studio.feeds.hold(sender.threadId);
		this.#seq = this.#feed.lastSeq;
		void this.#sendEvents();
	}

	/** Answers a command. The next one must wait until this resolves. */
	async receive(text: string): Promise<void> {
		let id: number | null = null;
		// Who does not read what it asked for can't ask for more.
		await this.#replayed;
		try {
			const command = readCommand(parseJson(text));
			id = command.id;
			if (command.method === "subscription.subscribe") await this.#subscribe(command);
			else if (command.method === "subscription.unsubscribe") await this.#unsubscribe(command);
			else await this.#send(await runCommand(this.#sender, command));
		} catch (error) {
			await this.#send(refusal(id, toProtocolError(error)));
		}
	}

	/** The client has gone. */
	close(): void {
		this.#gone.abort();
	}

	/** The answer comes before all events: a client must know of its subscription. */
	async #subscribe({ id, params }: Command): Promise<void> {
		if (this.#subscriptions.size + this.#fresh.size >= MOST_SUBSCRIPTIONS)
			throw new ProtocolError("not_supported", `A connection may have ${MOST_SUBSCRIPTIONS} subscriptions.`);
		const filter = readFilter(params);
		const since = params.integer("since", 0, Number.MAX_SAFE_INTEGER);
		const { studio, threadId } = this.#sender;
		const recalled =
			since === undefined || since < this.#feed.lastSeq ? await recallEnd(studio, threadId, this.#feed, filter) : [];
		const subscriptionId = uuid7();
		// Now: another run may begin before the events are sent.
		const fromSeq = since === undefined ? this.#feed.firstSeq : since + 1;
		const replayed = this.#feed.replay([filter], fromSeq, this.#seq).length;
		if (this.#fresh.size === 0) this.#gathered = setTimeout(GATHER_MS).then(() => this.#replay());
		this.#fresh.set(subscriptionId, { filter, fromSeq });
		await this.#send(this.#success(id, { subscription_id: subscriptionId, replayed_events: replayed }));
		for (const { data } of recalled) await this.#socket.send(data);
	}

	/** Sends what has happened so far to those who wait for it, each event once. From then on they get what happens. */
	#replay(): Promise<void> {
		const events = new Map<number, LoggedEvent>();
		for (const [id, { filter, fromSeq }] of this.#fresh) {
			for (const event of this.#feed.replay([filter], fromSeq, this.#seq)) events.set(event.id, event);
			this.#subscriptions.set(id, filter);
		}
		this.#fresh.clear();
		const inOrder = [...events.values()].sort((a, b) => a.id - b.id);
		this.#replayed = this.#replayed.then(async () => {
			for (const { data } of inOrder) await this.#socket.send(data);
		});
		return this.#replayed;
	}

	async #unsubscribe({ id, params }: Command): Promise<void> {
		const subscriptionId = params.mustText("subscription_id");
		if (!this.#subscriptions.delete(subscriptionId) && !this.#fresh.delete(subscriptionId))
			throw new ProtocolError("no_such_subscription", `Unknown subscription: ${subscriptionId}`);
		await this.#send(this.#success(id, {}));
	}

	/** Each event is sent once, however many subscriptions want it. */
	async #sendEvents(): Promise<void> {
		try {
			for await (const event of this.#feed.follow(this.#gone.signal)) {
				// No event overtakes those that came before it.
				let before: Promise<void> | undefined;
				while (before !== this.#gathered) {
					before = this.#gathered;
					await before;
				}
				const isWanted = [...this.#subscriptions.values()].some((filter) => matches(event, filter));
				this.#seq = event.id;
				if (isWanted) await this.#socket.send(event.data);
			}
			this.#socket.close(1001, "The server is shutting down.");
		} catch {
			// Events are gone before the client was ready for them: it connects again, and gets what is there.
			this.#socket.close(1013, "This client is too slow.");
		} finally {
			const { studio, threadId } = this.#sender;
			studio.feeds.release(threadId);
		}
	}

	#success(id: number, result: Json): Json {
		const meta = { thread_id: this.#sender.threadId, applied_through_seq: this.#feed.lastSeq };
		return { type: "success", id, result, meta };
	}

	#send(message: Json): Promise<void> {
		return this.#socket.send(toJson(message));
	}
}
