import { isLong, PIECE, PieceIndex, startsAlike } from "./piece-index.ts";

/**
 * Patches between byte strings.
 *
 * A patch is the length of the result, then operations to its end, all numbers as unsigned LEB128:
 * `length << 1 | 1`, then that many bytes: insert them;
 * `length << 1`, then a zigzag number: copy that many bytes of the base, from where the last copy ended plus the number.
 *
 * A patch may have a second source: its bytes follow those of the base, as far as copies are concerned.
 */

/** A copy shorter than this costs about as much to describe as to insert. */
const SHORTEST_COPY = 16;
/** A second source is another row to read, which fewer bytes are not worth. */
const SHORTEST_SHARED = 64;
/** How far around a difference the two sides may be shifted against each other and still be found without an index. */
const NEARBY = 64;
/** Bytes compared by one native call while extending a match. */
const STRIDE = 4096;

export interface Diff {
	readonly patch: Uint8Array;
	/** Whether it copies anything from the second source. */
	readonly usesSource: boolean;
}

/**
 * The patch that turns `base`, and what `source` has, into `next`. It may be larger than `next`; the caller decides what
 * to store.
 *
 * Goes through both sides forward only: content that moved towards the front is inserted again, and no byte of the
 * base is copied twice.
 */
export function diffBytes(base: Uint8Array, next: Uint8Array, source?: Uint8Array): Diff {
	const patch = new PatchWriter(next, base.length, source);
	const tail = commonSuffix(base, next, commonPrefix(base, 0, next, 0));
	const baseEnd = base.length - tail;
	const nextEnd = next.length - tail;
	copyMatches(base, baseEnd, next, 0, nextEnd, (from, at, length) => patch.copy(from, at, length));
	if (tail > 0) patch.copy(baseEnd, nextEnd, tail);
	return patch.finish();
}

/** Calls `copy` for the parts of `next` from `at` that are found in the base, in the order in which they are there. */
function copyMatches(
	base: Uint8Array,
	baseEnd: number,
	next: Uint8Array,
	start: number,
	nextEnd: number,
	copy: (from: number, at: number, length: number) => void,
): void {
	let index: PieceIndex | undefined;
	let from = 0;
	let at = start;
	while (at < nextEnd) {
		const same = Math.min(commonPrefix(base, from, next, at), nextEnd - at, Math.max(0, baseEnd - from));
		if (same > 0) {
			copy(from, at, same);
			from += same;
			at += same;
			if (at >= nextEnd) break;
		}
		let match = findNearby(base, from, baseEnd, next, at, nextEnd);
		const isSure = match !== undefined && isLong(base, match[0], baseEnd, next, match[1], nextEnd);
		if (!isSure && Math.min(baseEnd - from, nextEnd - at) >= PIECE) {
			index ??= new PieceIndex(base, from, baseEnd, next, nextEnd);
			match = index.find(from, at, match !== undefined) ?? match;
		}
		if (match === undefined) break;
		[from, at] = match;
	}
}

/** A patch with its second source. */
export interface Layer {
	readonly patch: Uint8Array;
	readonly source?: Uint8Array | undefined;
}

/**
 * The bytes that patches, oldest first, make of `base`. Throws a RangeError if they do not fit together.
 *
 * Goes from the newest patch down and asks each for the ranges that the result still lacks, so that every byte of the
 * result is copied once, however many patches there are.
 */
export function applyPatches(base: Uint8Array, layers: readonly Layer[]): Uint8Array {
	const newest = layers.at(-1);
	if (newest === undefined) return base;
	const length = checkLength(lengthOf(newest), base, layers);
	const result = new Uint8Array(length);
	let lacking: Range[] = [{ at: 0, from: 0, length }];
	for (let i = layers.length - 1; i >= 0; i--) {
		const { patch, source } = layers[i] as Layer;
		lacking = fillFrom(patch, lacking, result);
		if (source === undefined) continue;
		const below = layers[i - 1];
		lacking = fillFromSource(source, below === undefined ? base.length : lengthOf(below), lacking, result);
	}
	for (const { at, from, length } of lacking) {
		if (from < 0 || from + length > base.length) throw new RangeError("patch does not fit its base");
		result.set(base.subarray(from, from + length), at);
	}
	return result;
}

/** The length of what it makes. */
function lengthOf({ patch }: Layer): number {
	return readNumber({ bytes: patch, at: 0 });
}

/** `length` bytes of the result at `at` are those of some layer at `from`. */
interface Range {
	readonly at: number;
	readonly from: number;
	length: number;
}

interface Operation {
	/** Where its bytes begin in what the patch makes. */
	readonly start: number;
	readonly length: number;
	readonly isInsert: boolean;
	/** Where they begin in the patch itself, or in what it is based on. */
	readonly source: number;
}

/** Copies what the patch inserts into the result and answers what its base must supply. */
function fillFrom(patch: Uint8Array, lacking: readonly Range[], result: Uint8Array): Range[] {
	const operations = readOperations(patch);
	const rest: Range[] = [];
	for (const range of lacking) {
		let { at, from, length } = range;
		for (let k = operationAt(operations, from); length > 0; k++) {
			const operation = operations[k];
			if (operation === undefined) throw new RangeError("patch is cut short");
			const skip = from - operation.start;
			const count = Math.min(operation.length - skip, length);
			const source = operation.source + skip;
			if (operation.isInsert) result.set(patch.subarray(source, source + count), at);
			else addRange(rest, { at, from: source, length: count });
			at += count;
			from += count;
			length -= count;
		}
	}
	return rest;
}

/** Copies what lies beyond the end of the base into the result and answers the rest. */
function fillFromSource(
	source: Uint8Array,
	baseLength: number,
	lacking: readonly Range[],
	result: Uint8Array,
): Range[] {
	const rest: Range[] = [];
	for (const { at, from, length } of lacking) {
		const below = Math.min(Math.max(baseLength - from, 0), length);
		if (below > 0) addRange(rest, { at, from, length: below });
		if (below === length) continue;
		const start = from + below - baseLength;
		const end = start + length - below;
		if (end > source.length) throw new RangeError("patch does not fit its second source");
		result.set(source.subarray(start, end), at + below);
	}
	return rest;
}

function addRange(ranges: Range[], range: Range): void {
	const last = ranges.at(-1);
	if (last && last.at + last.length === range.at && last.from + last.length === range.from) last.length += range.length;
	else ranges.push(range);
}

/** Index of the operation that makes the byte at `position`. */
function operationAt(operations: readonly Operation[], position: number): number {
	let low = 0;
	let high = operations.length - 1;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if ((operations[middle] as Operation).start <= position) low = middle;
		else high = middle - 1;
	}
	return low;
}

function readOperations(patch: Uint8Array): Operation[] {
	const reader = { bytes: patch, at: 0 };
	const total = readNumber(reader);
	const operations: Operation[] = [];
	let start = 0;
	let from = 0;
	while (reader.at < patch.length) {
		const operation = readNumber(reader);
		const length = Math.floor(operation / 2);
		const isInsert = operation % 2 === 1;
		if (!isInsert) from += unzigzag(readNumber(reader));
		if (from < 0) throw new RangeError("patch does not fit its base");
		operations.push({ start, length, isInsert, source: isInsert ? reader.at : from });
		start += length;
		if (isInsert) reader.at += length;
		else from += length;
	}
	if (start !== total || reader.at > patch.length) throw new RangeError("patch is cut short");
	return operations;
}

/** A patch never repeats bytes of its base, so a huge declared length is refused before it is allocated. */
function checkLength(length: number, base: Uint8Array, layers: readonly Layer[]): number {
	const most = layers.reduce((sum, { patch, source }) => sum + patch.length + (source?.length ?? 0), base.length);
	if (length > most) throw new RangeError("patch declares an impossible length");
	return length;
}

/** Collects operations; what no copy covers is inserted. */
class PatchWriter {
	readonly #next: Uint8Array;
	#bytes = new Uint8Array(64);
	#at = 0;
	/** Bytes of `next` that are described. */
	#done = 0;
	/** End of the last copy in the base. */
	#from = 0;
	readonly #baseLength: number;
	readonly #source: Uint8Array | undefined;
	#usesSource = false;

	constructor(next: Uint8Array, baseLength: number, source: Uint8Array | undefined) {
		this.#next = next;
		this.#baseLength = baseLength;
		this.#source = source;
		this.#number(next.length);
	}

	/** Says that `length` bytes of `next` at `at` are those of the base at `from`. Positions must not go back. */
	copy(from: number, at: number, length: number): void {
		if (length < SHORTEST_COPY && length < this.#next.length) return;
		this.#fillUpTo(at);
		this.#copy(from, at, length);
	}

	finish(): Diff {
		this.#fillUpTo(this.#next.length);
		return { patch: this.#bytes.slice(0, this.#at), usesSource: this.#usesSource };
	}

	#copy(from: number, at: number, length: number): void {
		this.#insertUpTo(at);
		this.#number(length * 2);
		this.#number(zigzag(from - this.#from));
		this.#from = from + length;
		this.#done = at + length;
	}

	/** Takes what the base does not have from the second source as far as possible, and inserts the rest. */
	#fillUpTo(end: number): void {
		const source = this.#source;
		if (source !== undefined && end - this.#done >= SHORTEST_SHARED)
			copyMatches(source, source.length, this.#next, this.#done, end, (from, at, length) => {
				if (length < SHORTEST_SHARED) return;
				this.#copy(this.#baseLength + from, at, length);
				this.#usesSource = true;
			});
		this.#insertUpTo(end);
	}

	#insertUpTo(end: number): void {
		const length = end - this.#done;
		if (length === 0) return;
		this.#number(length * 2 + 1);
		this.#reserve(length);
		this.#bytes.set(this.#next.subarray(this.#done, end), this.#at);
		this.#at += length;
		this.#done = end;
	}

	#number(value: number): void {
		this.#reserve(10);
		let rest = value;
		while (rest >= 0x80) {
			this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
			rest = Math.floor(rest / 0x80);
		}
		this.#bytes[this.#at++] = rest;
	}

	#reserve(bytes: number): void {
		if (this.#at + bytes <= this.#bytes.length) return;
		const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + bytes));
		grown.set(this.#bytes);
		this.#bytes = grown;
	}
}

/** The usual case: a few bytes were changed, put in or taken out, and then both sides go on alike. */
function findNearby(
	base: Uint8Array,
	from: number,
	baseEnd: number,
	next: Uint8Array,
	at: number,
	nextEnd: number,
): [from: number, at: number] | undefined {
	const reach = Math.min(NEARBY, Math.max(baseEnd - from, nextEnd - at));
	for (let distance = 1; distance <= reach; distance++) {
		if (matches(base, from + distance, baseEnd, next, at + distance, nextEnd)) return [from + distance, at + distance];
	}
	for (let distance = 1; distance <= reach; distance++) {
		if (matches(base, from, baseEnd, next, at + distance, nextEnd)) return [from, at + distance];
		if (matches(base, from + distance, baseEnd, next, at, nextEnd)) return [from + distance, at];
	}
	return undefined;
}

function matches(
	base: Uint8Array,
	from: number,
	baseEnd: number,
	next: Uint8Array,
	at: number,
	nextEnd: number,
): boolean {
	if (from + SHORTEST_COPY > baseEnd || at + SHORTEST_COPY > nextEnd) return false;
	return startsAlike(base, from, next, at, SHORTEST_COPY);
}

function commonPrefix(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number): number {
	const limit = Math.min(a.length - aStart, b.length - bStart);
	if (a.buffer === b.buffer && a.byteOffset + aStart === b.byteOffset + bStart) return Math.max(0, limit);
	let length = 0;
	while (length + STRIDE <= limit && equalBytes(a, aStart + length, b, bStart + length, STRIDE)) length += STRIDE;
	while (length < limit && a[aStart + length] === b[bStart + length]) length++;
	return Math.max(0, length);
}

/** Length of the common end, not reaching into the common beginning. */
function commonSuffix(a: Uint8Array, b: Uint8Array, prefix: number): number {
	const limit = Math.min(a.length, b.length) - prefix;
	let length = 0;
	while (length + STRIDE <= limit && equalBytes(a, a.length - length - STRIDE, b, b.length - length - STRIDE, STRIDE))
		length += STRIDE;
	while (length < limit && a[a.length - length - 1] === b[b.length - length - 1]) length++;
	return length;
}

/** True if both are the same bytes. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === b.length && (a === b || commonPrefix(a, 0, b, 0) === a.length);
}

function equalBytes(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
	if (typeof Buffer !== "undefined")
		return Buffer.compare(a.subarray(aStart, aStart + length), b.subarray(bStart, bStart + length)) === 0;
	return startsAlike(a, aStart, b, bStart, length);
}

function readNumber(reader: { bytes: Uint8Array; at: number }): number {
	let value = 0;
	for (let scale = 1; scale <= 2 ** 49; scale *= 0x80) {
		const byte = reader.bytes[reader.at++];
		if (byte === undefined) throw new RangeError("patch is cut short");
		value += (byte & 0x7f) * scale;
		if (byte < 0x80) return value;
	}
	throw new RangeError("patch holds a number that is too large");
}

function zigzag(value: number): number {
	return value < 0 ? -value * 2 - 1 : value * 2;
}

function unzigzag(value: number): number {
	return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}
