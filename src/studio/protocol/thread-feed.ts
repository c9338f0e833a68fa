import { type MatchableEvent, matchesSubscription } from "@langchain/langgraph/stream";
import { isRecord, type Json } from "../http/fields.ts";
import { toJson } from "../http/json.ts";
import { EventLog, type LoggedEvent } from "../runs/event-log.ts";
import type { RunEnd } from "../threads/records.ts";
import { NamespaceTree } from "./namespace-tree.ts";

/** The channels of the protocol that its types have a name for. */
export type Method =
	| "values"
	| "updates"
	| "messages"
	| "tools"
	| "lifecycle"
	| "input.requested"
	| "checkpoints"
	| "tasks"
	| "custom";

/** Which events a client wants. */
export interface EventFilter {
	readonly channels: string[];
	/** Prefixes of namespaces; all if there are none. */
	readonly namespaces?: string[][];
	/** How many levels below a prefix. */
	readonly depth?: number;
}

/** What a run left in a feed. */
export interface Contribution {
	readonly lastSeq: number;
	readonly characters: number;
}

/**
 * The events of one thread in the thread protocol: those of all its runs, one after the other, for as long as somebody may ask
 * for them.
 *
 * Clients tell events apart by their numbers for as long as they live, also across restarts of the server. So numbers
 * start at the time in microseconds: a feed that is made later has greater ones, and nothing needs to be stored.
 */
export class ThreadFeed {
	readonly #log = new EventLog("all", undefined, Date.now() * 1000);
	/** The runs that take the answers to what was asked. While one is under way, its answers are not given again. */
	readonly answers = new Map<string, { readonly isInFlight: boolean }>();
	/** The number of the first event there was. */
	readonly #startSeq = this.#log.nextId;
	/** What the newest run consists of. */
	#tree: NamespaceTree | undefined;
	#graphName = "";
	#runId = "";
	/** The number of its first event. */
	#firstSeq = this.#log.nextId;
	/** What it asks for. */
	#interruptIds = new Set<string>();
	#characters = 0;

	/** The number of the newest event. */
	get lastSeq(): number {
		return this.#log.nextId - 1;
	}

	/** The number of the first event of the newest run. */
	get firstSeq(): number {
		return this.#firstSeq;
	}

	/** Whether somebody waits for events. */
	get isRead(): boolean {
		return this.#log.isRead;
	}

	/** The ids of what the newest run has asked for. */
	get asked(): readonly string[] {
		return [...this.#interruptIds];
	}

	get tree(): NamespaceTree | undefined {
		return this.#tree;
	}

	/**
	 * @param since the number of the last event that the reader has. Without it, events start with those of the newest run:
	 * clients would take the end of an older one for the end of this one
	 */
	read(filter: EventFilter, since: number | undefined, signal: AbortSignal): AsyncGenerator<LoggedEvent> {
		const isWanted = (event: LoggedEvent) => matches(event, filter);
		return this.#log.read(since ?? this.#firstSeq - 1, { isWanted, signal });
	}

	/** All that comes from now on. */
	follow(signal: AbortSignal): AsyncGenerator<LoggedEvent> {
		return this.#log.read(this.lastSeq, { signal });
	}

	/** The events from one number up to another that one of the filters wants. */
	replay(filters: EventFilter[], fromSeq: number, throughSeq: number): LoggedEvent[] {
		const held = this.#log.held(fromSeq - 1, throughSeq);
		return held.filter((event) => filters.some((filter) => matches(event, filter)));
	}

	/** Whether nothing is known of the thread: the server may have been started after its last run. */
	get isEmpty(): boolean {
		return this.#log.characters === 0;
	}

	/** Whether events between this one of the feed and those that are held are gone. */
	hasLostAfter(seq: number): boolean {
		return !this.isEmpty && seq >= this.#startSeq && seq + 1 < this.#log.oldestId;
	}

	/** A run begins. */
	begin(runId: string, graphName: string): void {
		this.#runId = runId;
		this.#graphName = graphName;
		this.#tree = new NamespaceTree(graphName);
		this.#firstSeq = this.#log.nextId;
		this.#interruptIds = new Set();
		for (const [id, run] of this.answers) if (!run.isInFlight) this.answers.delete(id);
		this.#characters = 0;
		this.push("lifecycle", [], { event: "running", graph_name: graphName }, { id: `synth:${runId}:start` });
	}

	/** An event of the past, for one reader. Its number is no new one. */
	recall(event_id: string, method: Method, data: unknown): LoggedEvent {
		const seq = this.lastSeq;
		const params = { namespace: [], timestamp: Date.now(), data };
		const about = { method, params: { namespace: [], data: {} } } as MatchableEvent;
		return { id: seq, event: method, data: toJson({ type: "event", event_id, seq, method, params }), about };
	}

	push(
		method: Method,
		namespace: string[],
		data: unknown,
		{ node, id }: { node?: string | undefined; id?: string } = {},
	): void {
		this.#tree?.add(namespace);
		if (method === "lifecycle" && isRecord(data)) this.#tree?.set(namespace, data);
		const seq = this.#log.nextId;
		const params = { namespace, timestamp: Date.now(), ...(node !== undefined && { node }), data };
		const name = method === "custom" && isRecord(data) ? data.name : undefined;
		const about = { method, params: { namespace, data: { name } } } as MatchableEvent;
		const before = this.#log.characters;
		this.#log.push(method, { type: "event", event_id: id ?? String(seq), seq, method, params }, about);
		this.#characters += Math.max(0, this.#log.characters - before);
	}

	/** A person is asked for something: once in a run, though LangGraph may tell it several times. */
	ask(namespace: string[], interrupts: unknown): void {
		for (const interrupt of Array.isArray(interrupts) ? interrupts : []) {
			if (!isRecord(interrupt) || typeof interrupt.id !== "string" || this.#interruptIds.has(interrupt.id)) continue;
			this.#interruptIds.add(interrupt.id);
			// The same task may ask again.
			this.answers.delete(interrupt.id);
			const data = { interrupt_id: interrupt.id, payload: interrupt.value };
			this.push("input.requested", namespace, data, { id: askedId(this.#runId, interrupt.id) });
		}
	}

	/** A run has ended. */
	end(end: RunEnd): Contribution {
		const data = { ...endOfRun(end, this.#interruptIds.size > 0), graph_name: this.#graphName };
		this.push("lifecycle", [], data, { id: endId(this.#runId) });
		return { lastSeq: this.lastSeq, characters: this.#characters };
	}

	/** Nobody will ask for the events up to this number any more. */
	forget(seq: number): void {
		this.#log.dropThrough(seq);
	}

	/** No more events will come: whoever reads is done. */
	close(): void {
		this.#log.end();
	}
}

/** The id of the event by which a run asks for something. */
export function askedId(runId: string, interruptId: string | undefined): string {
	return `asked:${runId}:${interruptId}`;
}

/** The id of a run's last event. Clients look there for the run whose beginning or end it is. */
export function endId(runId: string): string {
	return `synth:${runId}:end`;
}

/** How a run ended, as the protocol has it. */
export function endOfRun({ status, error }: RunEnd, isAsking: boolean): Json {
	if (status === "error" || status === "timeout") return { event: "failed", ...(error && { error: error.message }) };
	return { event: status === "interrupted" || isAsking ? "interrupted" : "completed" };
}

/** Whether a client that wants some events wants this one. */
export function matches({ about }: LoggedEvent, filter: EventFilter): boolean {
	// LangGraph's types want the names of channels that they know; others match nothing.
	return about !== undefined && matchesSubscription(about, filter as Parameters<typeof matchesSubscription>[1]);
}
