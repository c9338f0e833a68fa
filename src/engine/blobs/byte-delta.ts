import { LAYOUT } from "../../codec/format.ts";
import { pack, unpack } from "../../codec/messagepack.ts";
import { commonPrefix, findMatches } from "./matches.ts";

/*
 * Patches between byte strings.
 *
 * A patch is a list in MessagePack: the length of the result, then operations:
 * bytes: insert them;
 * two integers, `length` and `skip`: skip so many bytes of the base, counted from the end of the last copy, and copy `length`;
 * `-length` and `skip`: the same with the second source, if there is one.
 *
 * So no byte of either is copied twice: a patch makes no more than there is.
 */

/** A copy shorter than this costs about as much to describe as to insert. */
const SHORTEST_COPY = 16;
/** A second source is another row to read, which fewer bytes are not worth. */
const SHORTEST_SHARED = 64;

/**
 * The patch that turns `base`, and what `source` has, into `next`, and whether it copies anything from `source`. It may be
 * larger than `next`; the caller decides what to store.
 */
export function diffBytes(base: Uint8Array, next: Uint8Array, source?: Uint8Array) {
	const parts: unknown[] = [next.length];
	/** Bytes of `next` that are described. */
	let done = 0;
	/** Where the last copies ended. */
	let baseEnd = 0;
	let sourceEnd = 0;

	findMatches({ base, from: 0, baseEnd: base.length, next, at: 0, nextEnd: next.length }, (from, at, length) => {
		if (length < SHORTEST_COPY) return;
		fillUpTo(at);
		parts.push(length, from - baseEnd);
		baseEnd = from + length;
		done = at + length;
	});
	fillUpTo(next.length);
	return { patch: pack(parts, LAYOUT.array), usesSource: sourceEnd > 0 };

	/** Takes what the base does not have from the second source as far as possible, and inserts the rest. */
	function fillUpTo(end: number): void {
		if (source !== undefined && end - done >= SHORTEST_SHARED) {
			const gap = { base: source, from: sourceEnd, baseEnd: source.length, next, at: done, nextEnd: end };
			findMatches(gap, (from, at, length) => {
				if (length < SHORTEST_SHARED) return;
				insertUpTo(at);
				parts.push(-length, from - sourceEnd);
				sourceEnd = from + length;
				done = at + length;
			});
		}
		insertUpTo(end);
	}

	function insertUpTo(end: number): void {
		if (end > done) parts.push(new Uint8Array(next.buffer, next.byteOffset + done, end - done));
		done = end;
	}
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
 * The bytes that patches, oldest first, make of `base`. Throws if they do not fit together.
 *
 * Goes from the newest patch down and asks each for the ranges that the result still lacks, so that every byte of the
 * result is copied once, however many patches there are.
 */
export function applyPatches(base: Uint8Array, layers: readonly Layer[]): Uint8Array {
	const newest = layers.at(-1);
	if (newest === undefined) return base;
	const length = toCount(unpackList(newest.patch)[0]);
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
 * Copies what a layer has of its own into the result and returns what its base must supply. As copies never go back,
 * ranges ascend in every layer.
 */
function fillFrom({ patch, source }: Layer, lacking: readonly Range[], result: Uint8Array): Range[] {
	const parts = unpackList(patch);
	const rest: Range[] = [];
	let next = 0;
	let start = 0;
	/** Where the last copies ended. */
	let baseEnd = 0;
	let sourceEnd = 0;
	for (let i = 1; i < parts.length; i++) {
		const part = parts[i];
		const isInsert = part instanceof Uint8Array;
		const isShare = !isInsert && (part as number) < 0;
		const length = isInsert ? part.length : toCount(isShare ? -(part as number) : part);
		const from = isInsert ? 0 : (isShare ? sourceEnd : baseEnd) + toCount(parts[++i]);
		if (isShare) sourceEnd = from + length;
		else if (!isInsert) baseEnd = from + length;
		const bytes = isInsert ? part : isShare ? slice(source, from, length) : undefined;
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
	if (start !== parts[0] || (lacking[next]?.length ?? 0) > 0) throw new RangeError("patch is cut short");
	return rest;
}

function addRange(ranges: Range[], at: number, from: number, length: number): void {
	const last = ranges.at(-1);
	if (last && last.at + last.length === at && last.from + last.length === from) last.length += length;
	else if (length > 0) ranges.push({ at, from, length });
}

function slice(bytes: Uint8Array | undefined, from: number, length: number): Uint8Array {
	if (bytes === undefined || from + length > bytes.length) throw new RangeError("patch does not fit its base");
	return bytes.subarray(from, from + length);
}

function unpackList(patch: Uint8Array): unknown[] {
	const { value } = unpack(patch);
	return Array.isArray(value) ? value : [];
}

function toCount(value: unknown): number {
	if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
	throw new RangeError("patch has something else in the place of a length");
}

/** True if both are the same bytes. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === b.length && (a === b || commonPrefix(a, 0, b, 0, a.length) === a.length);
}
