import { compareIds } from "./compare-ids.ts";
import type { CheckpointKey, CheckpointRow, ScanQuery } from "./storage.ts";

/** Rows by ascending id. */
export interface Ordered {
	readonly rows: ReadonlyMap<string, CheckpointRow>;
	readonly order: readonly string[];
}

/** A page of checkpoints: the newest of several namespaces that match. */
export function scanRows(namespaces: Iterable<Ordered>, query: ScanQuery): CheckpointRow[] {
	const cursors = new CursorHeap();
	for (const namespace of namespaces) cursors.add(new Cursor(namespace, query));
	const found: CheckpointRow[] = [];
	while (found.length < query.limit) {
		const row = cursors.next();
		if (row === undefined) break;
		found.push(row);
	}
	return found;
}

/** Goes through the rows of a namespace that match, newest first. */
class Cursor {
	readonly #namespace: Ordered;
	readonly #query: ScanQuery;
	#next: number;
	/** Where it is. */
	row: CheckpointRow | undefined;

	constructor(namespace: Ordered, query: ScanQuery) {
		const { before, after } = query;
		this.#namespace = namespace;
		this.#query = query;
		this.#next = before === undefined ? namespace.order.length : lowerBound(namespace.order, before);
		// One with the same id may still come, in another thread or namespace.
		if (after !== undefined) this.#next = Math.min(this.#next, lowerBound(namespace.order, after.id) + 1);
		this.advance();
	}

	advance(): void {
		const { rows, order } = this.#namespace;
		this.row = undefined;
		while (this.row === undefined && --this.#next >= 0) {
			const row = rows.get(order[this.#next] as string) as CheckpointRow;
			if (matches(row, this.#query)) this.row = row;
		}
	}
}

function matches(row: CheckpointRow, { after, labels, contains }: ScanQuery): boolean {
	if (after !== undefined && compareRows(after, row) >= 0) return false;
	if (typeof labels?.source === "string" && labels.source !== row.source) return false;
	if (Number.isSafeInteger(labels?.step) && labels?.step !== row.step) return false;
	if (contains === undefined || contains.pieces.length === 0 || typeof Buffer === "undefined") return true;
	const { pieces, ifStartsWith } = contains;
	if (ifStartsWith?.some((byte, i) => row.head[i] !== byte)) return true;
	const head = Buffer.from(row.head.buffer, row.head.byteOffset, row.head.length);
	return pieces.every((piece) => head.includes(piece as Buffer));
}

/** The cursor with the newest row comes first: a binary heap. */
class CursorHeap {
	readonly #cursors: Cursor[] = [];

	add(cursor: Cursor): void {
		if (cursor.row === undefined) return;
		const heap = this.#cursors;
		let at = heap.push(cursor) - 1;
		while (at > 0 && isBefore(cursor, heap[(at - 1) >> 1] as Cursor)) {
			heap[at] = heap[(at - 1) >> 1] as Cursor;
			at = (at - 1) >> 1;
		}
		heap[at] = cursor;
	}

	next(): CheckpointRow | undefined {
		const [first] = this.#cursors;
		const row = first?.row;
		first?.advance();
		this.#sink();
		return row;
	}

	/** Puts the first cursor where it belongs now, or takes it out if it has come to its end. */
	#sink(): void {
		const heap = this.#cursors;
		const [first] = heap;
		if (first === undefined) return;
		const moved = first.row === undefined ? (heap.pop() as Cursor) : first;
		if (heap.length === 0 || moved.row === undefined) return;
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
	return compareRows(a.row as CheckpointRow, b.row as CheckpointRow) < 0;
}

export function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}

/** The first place in an ascending list whose id is not smaller. New ids are usually the greatest. */
export function lowerBound(order: readonly string[], id: string): number {
	let low = 0;
	let high = order.length;
	if (high > 0 && compareIds(order[high - 1] as string, id) < 0) return high;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (compareIds(order[middle] as string, id) < 0) low = middle + 1;
		else high = middle;
	}
	return low;
}
