import { commonPrefix, findMatches } from "./matches.ts";

/**
 * Patches between byte strings.
 *
 * A patch is the length of the result, then operations to its end, all numbers as unsigned LEB128:
 * `length << 2 | 1`, then that many bytes: insert them;
 * `length << 2`, then a number: skip so many bytes of the base, counted from the end of the last copy, and copy `length`;
 * `length << 2 | 2`, then a number: the same with the second source, if there is one.
 *
 * So no byte of either is copied twice: a patch makes no more than there is.
 */
const COPY = 0;
const INSERT = 1;
const SHARE = 2;

/** A copy shorter than this costs about as much to describe as to insert. */
const SHORTEST_COPY = 16;
/** A second source is another row to read, which fewer bytes are not worth. */
const SHORTEST_SHARED = 64;

export interface Diff {
	readonly patch: Uint8Array;
	/** Whether it copies anything from the second source. */
	readonly usesSource: boolean;
}

/**
 * The patch that turns `base`, and what `source` has, into `next`. It may be larger than `next`; the caller decides what
 * to store.
 */
export function diffBytes(base: Uint8Array, next: Uint8Array, source?: Uint8Array): Diff {
	const patch = new PatchWriter(next, source);
	const all = { base, from: 0, baseEnd: base.length, next, at: 0, nextEnd: next.length };
	findMatches(all, (from, at, length) => patch.copy(from, at, length));
	return patch.finish();
}

/** A patch with its second source. */
export interface Layer {
	readonly patch: Uint8Array;
	readonly source?: Uint8Array | undefined;
}

/** `length` bytes of the result at `at` are those of some layer at `from`. */
interface Range {
	readonly at: number;
	readonly from: number;
	length: number;
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
	const length = new Reader(newest.patch).number();
	const most = layers.reduce((sum, { patch, source }) => sum + patch.length + (source?.length ?? 0), base.length);
	// Before it is allocated.
	if (length > most) throw new RangeError("patch declares an impossible length");
	const result = new Uint8Array(length);
	let lacking: Range[] = [{ at: 0, from: 0, length }];
	for (let i = layers.length - 1; i >= 0; i--) lacking = fillFrom(layers[i] as Layer, lacking, result);
	for (const { at, from, length } of lacking) result.set(slice(base, from, length), at);
	return result;
}

/**
 * Copies what a layer has of its own into the result and answers what its base must supply. As copies never go back,
 * ranges ascend in every layer.
 */
function fillFrom({ patch, source }: Layer, lacking: readonly Range[], result: Uint8Array): Range[] {
	const reader = new Reader(patch);
	const total = reader.number();
	const rest: Range[] = [];
	let next = 0;
	let start = 0;
	/** Where the last copies ended, in the base and in the source. */
	const ends = [0, 0, 0];
	while (reader.at < patch.length) {
		const operation = reader.number();
		const kind = operation % 4;
		const length = Math.floor(operation / 4);
		const from = kind === INSERT ? reader.at : (ends[kind] ?? Number.NaN) + reader.number();
		const bytes = kind === COPY ? undefined : slice(kind === INSERT ? patch : source, from, length);
		if (kind === INSERT) reader.at += length;
		else ends[kind] = from + length;
		const end = start + length;
		// A range may go on in the next operation, and an operation may supply several ranges.
		for (let range = lacking[next]; range !== undefined && range.from < end; range = lacking[next]) {
			const skip = Math.max(0, range.from - start);
			const at = range.at + Math.max(0, start - range.from);
			const count = Math.min(range.from + range.length, end) - start - skip;
			if (bytes === undefined) addRange(rest, at, from + skip, count);
			else result.set(bytes.subarray(skip, skip + count), at);
			if (range.from + range.length > end) break;
			next++;
		}
		start = end;
	}
	if (start !== total || (lacking[next]?.length ?? 0) > 0) throw new RangeError("patch is cut short");
	return rest;
}

function addRange(ranges: Range[], at: number, from: number, length: number): void {
	const last = ranges.at(-1);
	if (last && last.at + last.length === at && last.from + last.length === from) last.length += length;
	else if (length > 0) ranges.push({ at, from, length });
}

function slice(bytes: Uint8Array | undefined, from: number, length: number): Uint8Array {
	if (bytes === undefined || !(from + length <= bytes.length)) throw new RangeError("patch does not fit its base");
	return bytes.subarray(from, from + length);
}

class Reader {
	at = 0;
	readonly #bytes: Uint8Array;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
	}

	number(): number {
		let value = 0;
		for (let scale = 1; scale <= 2 ** 49; scale *= 0x80) {
			const byte = this.#bytes[this.at++];
			if (byte === undefined) throw new RangeError("patch is cut short");
			value += (byte & 0x7f) * scale;
			if (byte < 0x80) return value;
		}
		throw new RangeError("patch holds a number that is too large");
	}
}

/** Collects operations; what no copy covers is inserted. */
class PatchWriter {
	readonly #next: Uint8Array;
	readonly #source: Uint8Array | undefined;
	#bytes = new Uint8Array(64);
	#at = 0;
	/** Bytes of `next` that are described. */
	#done = 0;
	/** Where the last copies ended, in the base and in the source. */
	readonly #ends = [0, 0, 0];

	constructor(next: Uint8Array, source: Uint8Array | undefined) {
		this.#next = next;
		this.#source = source;
		this.#number(next.length);
	}

	/** Says that `length` bytes of `next` at `at` are those of the base at `from`. Positions must not go back. */
	copy(from: number, at: number, length: number): void {
		if (length < SHORTEST_COPY && length < this.#next.length) return;
		this.#fillUpTo(at);
		this.#copy(COPY, from, at, length);
	}

	finish(): Diff {
		this.#fillUpTo(this.#next.length);
		return { patch: this.#bytes.slice(0, this.#at), usesSource: this.#ends[SHARE] !== 0 };
	}

	#copy(kind: number, from: number, at: number, length: number): void {
		this.#insertUpTo(at);
		this.#number(length * 4 + kind);
		this.#number(from - (this.#ends[kind] as number));
		this.#ends[kind] = from + length;
		this.#done = at + length;
	}

	/** Takes what the base does not have from the second source as far as possible, and inserts the rest. */
	#fillUpTo(end: number): void {
		const source = this.#source;
		if (source !== undefined && end - this.#done >= SHORTEST_SHARED) {
			const gap = { base: source, from: this.#ends[SHARE] as number, baseEnd: source.length };
			findMatches({ ...gap, next: this.#next, at: this.#done, nextEnd: end }, (from, at, length) => {
				if (length >= SHORTEST_SHARED) this.#copy(SHARE, from, at, length);
			});
		}
		this.#insertUpTo(end);
	}

	#insertUpTo(end: number): void {
		const length = end - this.#done;
		if (length === 0) return;
		this.#number(length * 4 + INSERT);
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

/** True if both are the same bytes. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === b.length && (a === b || commonPrefix(a, 0, b, 0, a.length) === a.length);
}
