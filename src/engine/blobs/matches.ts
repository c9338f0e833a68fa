/**
 * Sizes of the windows that both sides are searched for: first one that is no coincidence even between records that are alike
 * in most of their bytes, then, in what is left between those matches, a short one.
 */
const WINDOWS = [256, 16];
/** How far ahead a match is looked for, in bytes of either side. */
const FARTHEST = 2 ** 20;
const RADIX = 0x9e3779b1;
/** Bytes compared by one native call while extending a match. */
const STRIDE = 4096;

/** A part of the base, and a part of the other side. */
interface Gap {
	readonly base: Uint8Array;
	readonly from: number;
	readonly baseEnd: number;
	readonly next: Uint8Array;
	readonly at: number;
	readonly nextEnd: number;
}

type Found = (from: number, at: number, length: number) => void;

/**
 * Calls `found` for what the two sides have in common. Goes through both forward only: what moved towards the front is
 * not found, and no byte of the base is found twice.
 */
export function findMatches(gap: Gap, found: Found, level = 0): void {
	const { base, next } = gap;
	const most = Math.min(gap.baseEnd - gap.from, gap.nextEnd - gap.at);
	const prefix = commonPrefix(base, gap.from, next, gap.at, most);
	if (prefix > 0) found(gap.from, gap.at, prefix);
	const suffix = commonSuffix(base, gap.baseEnd, next, gap.nextEnd, most - prefix);
	const baseEnd = gap.baseEnd - suffix;
	const nextEnd = gap.nextEnd - suffix;
	const size = WINDOWS[level];
	if (size !== undefined) {
		let rest = { base, from: gap.from + prefix, baseEnd, next, at: gap.at + prefix, nextEnd };
		for (let match = findAhead(rest, size); match !== undefined; match = findAhead(rest, size)) {
			const [from, at] = match;
			const length = commonPrefix(base, from, next, at, Math.min(baseEnd - from, nextEnd - at));
			findMatches({ ...rest, baseEnd: from, nextEnd: at }, found, level + 1);
			found(from, at, length);
			rest = { ...rest, from: from + length, at: at + length };
		}
		findMatches(rest, found, level + 1);
	}
	if (suffix > 0) found(baseEnd, nextEnd, suffix);
}

/** The first window that both sides have, looked for farther and farther ahead: so it takes no longer than the way to it. */
function findAhead(gap: Gap, size: number): [from: number, at: number] | undefined {
	const { from, baseEnd, at, nextEnd } = gap;
	if (Math.min(baseEnd - from, nextEnd - at) < size) return undefined;
	const end = Math.min(Math.max(baseEnd - from, nextEnd - at), FARTHEST);
	for (let reach = 4 * size; ; reach *= 4) {
		const near = { ...gap, baseEnd: Math.min(baseEnd, from + reach), nextEnd: Math.min(nextEnd, at + reach) };
		const match = findWindow(near, size);
		if (match !== undefined || reach >= end) return match;
	}
}

/** The first window of the other side that the base has, and where the base has it first. */
function findWindow(gap: Gap, size: number): [from: number, at: number] | undefined {
	const { base, from, next, at } = gap;
	const known = hashWindows(base, from, gap.baseEnd, size);
	const wanted = hashWindows(next, at, gap.nextEnd, size);
	// At least two slots for each window.
	const shift = Math.clz32(known.length) - 1;
	/** In each slot the first window with such a hash, counted from 1. */
	const slots = new Uint32Array(2 ** (32 - shift));
	for (let i = known.length; i > 0; i--) slots[(known[i - 1] as number) >>> shift] = i;
	for (let i = 0; i < wanted.length; i++) {
		const window = (slots[(wanted[i] as number) >>> shift] as number) - 1;
		if (window < 0 || known[window] !== wanted[i]) continue;
		if (commonPrefix(base, from + window, next, at + i, size) < size) continue;
		// Another window may have had the slot of the one before.
		const back = commonSuffix(base, from + window, next, at + i, Math.min(window, i));
		return [from + window - back, at + i - back];
	}
	return undefined;
}

/** The hash of each window of that many bytes. */
function hashWindows(bytes: Uint8Array, start: number, end: number, size: number): Uint32Array {
	const hashes = new Uint32Array(end - start - size + 1);
	/** The weight of the byte that leaves the window. */
	let leaving = RADIX;
	let hash = 0;
	for (let i = 0; i < size - 1; i++) {
		leaving = Math.imul(leaving, RADIX);
		hash = Math.imul(hash + (bytes[start + i] as number), RADIX);
	}
	for (let i = 0; i < hashes.length; i++) {
		hash = Math.imul(hash + (bytes[start + i + size - 1] as number), RADIX);
		hashes[i] = hash;
		hash = (hash - Math.imul(bytes[start + i] as number, leaving)) | 0;
	}
	return hashes;
}

/** Length of the common beginning of both sides from these places on. */
export function commonPrefix(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, most: number): number {
	if (a.buffer === b.buffer && a.byteOffset + aStart === b.byteOffset + bStart) return most;
	let length = 0;
	while (length + STRIDE <= most && isSameStride(a, aStart + length, b, bStart + length)) length += STRIDE;
	while (length < most && a[aStart + length] === b[bStart + length]) length++;
	return length;
}

/** Length of the common end of both sides up to these places. */
function commonSuffix(a: Uint8Array, aEnd: number, b: Uint8Array, bEnd: number, most: number): number {
	let length = 0;
	while (length + STRIDE <= most && isSameStride(a, aEnd - length - STRIDE, b, bEnd - length - STRIDE))
		length += STRIDE;
	while (length < most && a[aEnd - length - 1] === b[bEnd - length - 1]) length++;
	return length;
}

function isSameStride(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number): boolean {
	if (typeof Buffer === "undefined") return false;
	return Buffer.compare(a.subarray(aStart, aStart + STRIDE), b.subarray(bStart, bStart + STRIDE)) === 0;
}
