import { compareRows } from "../compare-rows.ts";
import type { CheckpointKey, FoundCheckpoint, ScanQuery } from "../storage.ts";
import { type KeptBytes, keepBytes, mayContain, startsWith } from "./kept-bytes.ts";
import type { KeptCheckpoint, Namespace, Slot } from "./thread.ts";

/** A page of checkpoints: the newest of several namespaces that match. */
export function scanNamespaces(namespaces: Iterable<Namespace>, query: ScanQuery): FoundCheckpoint[] {
	const filter = new Filter(query);
	const cursors = new CursorHeap();
	for (const namespace of namespaces) cursors.add(new Cursor(namespace, query, filter));
	const found: FoundCheckpoint[] = [];
	while (found.length < query.limit) {
		const row = cursors.next();
		if (row === undefined) break;
		found.push(row);
	}
	return found;
}

/** Goes through the checkpoints of a namespace that match, newest first. */
class Cursor {
	readonly #namespace: Namespace;
	readonly #after: CheckpointKey | undefined;
	readonly #filter: Filter;
	#at: number;
	/** Where it is, until it has come to its end. */
	key: CheckpointKey | undefined;

	constructor(namespace: Namespace, { before, after }: ScanQuery, filter: Filter) {
		this.#namespace = namespace;
		this.#after = after;
		this.#filter = filter;
		this.#at = before === undefined ? namespace.slots.length : namespace.placeOf(before);
		// One with the same id may still come, in another thread or namespace.
		if (after !== undefined) this.#at = Math.min(this.#at, namespace.placeOf(after.id) + 1);
		this.advance();
	}

	advance(): void {
		const { slots, name: ns, thread } = this.#namespace;
		this.key = undefined;
		while (this.key === undefined && --this.#at >= 0) {
			const { id, checkpoint } = slots[this.#at] as Slot;
			if (checkpoint === undefined || !this.#filter.matches(checkpoint)) continue;
			const key = { threadId: thread.id, ns, id };
			if (this.#after === undefined || compareRows(this.#after, key) < 0) this.key = key;
		}
	}

	read(): FoundCheckpoint {
		return this.#namespace.read(this.#namespace.slots[this.#at] as Slot);
	}
}

/** What a query says of the content of checkpoints. */
class Filter {
	readonly #source: string | undefined;
	readonly #step: number | undefined;
	readonly #pieces: readonly KeptBytes[];
	readonly #ifStartsWith: Uint8Array | undefined;

	constructor({ labels, contains }: ScanQuery) {
		this.#source = typeof labels?.source === "string" ? labels.source : undefined;
		this.#step = Number.isSafeInteger(labels?.step) ? (labels?.step as number) : undefined;
		this.#pieces = contains?.pieces.map(keepBytes) ?? [];
		this.#ifStartsWith = contains?.ifStartsWith;
	}

	matches(checkpoint: KeptCheckpoint): boolean {
		if (this.#source !== undefined && this.#source !== checkpoint.source) return false;
		if (this.#step !== undefined && this.#step !== checkpoint.step) return false;
		if (this.#pieces.length === 0) return true;
		const { head } = checkpoint;
		if (this.#ifStartsWith !== undefined && !startsWith(head, this.#ifStartsWith)) return true;
		return this.#pieces.every((piece) => mayContain(head, piece));
	}
}

/** The cursor with the newest checkpoint comes first: a binary heap. */
class CursorHeap {
	readonly #cursors: Cursor[] = [];

	add(cursor: Cursor): void {
		if (cursor.key === undefined) return;
		const heap = this.#cursors;
		let at = heap.push(cursor) - 1;
		while (at > 0 && isBefore(cursor, heap[(at - 1) >> 1] as Cursor)) {
			heap[at] = heap[(at - 1) >> 1] as Cursor;
			at = (at - 1) >> 1;
		}
		heap[at] = cursor;
	}

	next(): FoundCheckpoint | undefined {
		const [first] = this.#cursors;
		const found = first?.read();
		first?.advance();
		this.#sink();
		return found;
	}

	/** Puts the first cursor where it belongs now, or takes it out if it has come to its end. */
	#sink(): void {
		const heap = this.#cursors;
		const [first] = heap;
		if (first === undefined) return;
		const moved = first.key === undefined ? (heap.pop() as Cursor) : first;
		if (heap.length === 0 || moved.key === undefined) return;
		let at = 0;
		for (;;) {
			let child = 2 * at + 1;
			if (child + 1 < heap.length && isBefore(heap[child + 1] as Cursor, heap[child] as Cursor)) child++;
			if (child >= heap.length || !isBefore(heap[child] as Cursor, moved)) break;
			heap[at] = heap[child] as Cursor;
			at = child;
		}
		heap[at] = moved;
	}
}

function isBefore(a: Cursor, b: Cursor): boolean {
	return compareRows(a.key as CheckpointKey, b.key as CheckpointKey) < 0;
}
