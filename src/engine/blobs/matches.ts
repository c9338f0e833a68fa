/**
 * Sizes of the base's pieces that are looked for in the other side: first those that are no coincidence even between
 * records that are alike in most of their bytes, then shorter ones, each only in what is left between longer matches.
 */
const PIECES = [256, 64, 16];
const RADIX = 0x01000193;
/** The weight of the byte that leaves the window, for each size: RADIX to its power. */
const LEAVING = PIECES.map((size) =>
	Array.from({ length: size }).reduce((power: number) => Math.imul(power, RADIX), 1),
);
/** Pieces with the same hash that are tried. */
const MOST_TRIES = 8;
/** How far around a difference the two sides may be shifted against each other and still be found without an index. */
const NEARBY = 64;
/** Bytes compared by one native call while extending a match. */
const STRIDE = 4096;

/** A part of the base, and a part of the other side. */
interface Gap {
	readonly base: Uint8Array;
	from: number;
	baseEnd: number;
	readonly next: Uint8Array;
	at: number;
	nextEnd: number;
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
	const rest = { ...gap, from: gap.from + prefix, at: gap.at + prefix };
	rest.baseEnd -= suffix;
	rest.nextEnd -= suffix;
	if (prefix + suffix < most) findPieces(rest, found, level);
	if (suffix > 0) found(rest.baseEnd, rest.nextEnd, suffix);
}

/** Finds what the two sides have in common where they neither begin nor end alike. */
function findPieces(gap: Gap, found: Found, level: number): void {
	const size = PIECES[level];
	if (size === undefined) return;
	const { base, next, baseEnd, nextEnd } = gap;
	const rest = { ...gap };
	if (Math.min(baseEnd - gap.from, nextEnd - gap.at) >= size) {
		let index: PieceIndex | undefined;
		for (;;) {
			let match = findNearby(rest, size);
			if (match === undefined) {
				index ??= new PieceIndex(gap, level);
				match = index.find(rest);
			}
			if (match === undefined) break;
			const [from, at] = match;
			const length = commonPrefix(base, from, next, at, Math.min(baseEnd - from, nextEnd - at));
			findMatches({ ...rest, baseEnd: from, nextEnd: at }, found, level + 1);
			found(from, at, length);
			rest.from = from + length;
			rest.at = at + length;
		}
	}
	findMatches(rest, found, level + 1);
}

/** A few bytes were changed, put in or taken out: in content that repeats itself the nearest place is the right one. */
function findNearby(
	{ base, from, baseEnd, next, at, nextEnd }: Gap,
	size: number,
): [from: number, at: number] | undefined {
	const isMatch = (from: number, at: number) =>
		from + size <= baseEnd && at + size <= nextEnd && isAlike(base, from, next, at, size);
	for (let distance = 1; distance <= NEARBY; distance++) {
		if (isMatch(from + distance, at + distance)) return [from + distance, at + distance];
		if (isMatch(from, at + distance)) return [from, at + distance];
		if (isMatch(from + distance, at)) return [from + distance, at];
	}
	return undefined;
}

/** Finds pieces of the base in the other side by a rolling hash. */
class PieceIndex {
	readonly #size: number;
	readonly #start: number;
	/** The first piece in each slot of the hash that was not passed, counted from 1; 0 if there is none. */
	readonly #first: Uint32Array;
	/** By piece, the next one in the same slot. */
	readonly #following: Uint32Array;
	readonly #leaving: number;

	constructor({ base, from, baseEnd }: Gap, level: number) {
		const size = PIECES[level] as number;
		const count = Math.floor((baseEnd - from) / size);
		this.#size = size;
		this.#start = from;
		this.#first = new Uint32Array(2 ** Math.ceil(Math.log2(count * 4)));
		this.#following = new Uint32Array(count + 1);
		this.#leaving = LEAVING[level] as number;
		for (let piece = count; piece > 0; piece--) {
			const slot = this.#slot(this.#hash(base, this.#place(piece)));
			this.#following[piece] = this.#first[slot] as number;
			this.#first[slot] = piece;
		}
	}

	/** The first place in `next` that has a piece of the base, or one soon after it that leaves less of both sides out. */
	find({ base, from, next, at, nextEnd }: Gap): [from: number, at: number] | undefined {
		const size = this.#size;
		let best: [number, number] | undefined;
		let least = Number.POSITIVE_INFINITY;
		let end = nextEnd - size;
		let hash = at <= end ? this.#hash(next, at) : 0;
		for (let place = at; place <= end; place++) {
			const slot = this.#slot(hash);
			const piece = this.#first[slot] === 0 ? -1 : this.#try(slot, base, from, next, place);
			const skipped = piece - from;
			const inserted = place - at;
			if (piece >= 0 && Math.abs(skipped - inserted) < least) {
				if (best === undefined) end = Math.min(end, place + size);
				// Pieces begin at fixed places, the common run usually a little before.
				const back = commonSuffix(base, piece, next, place, Math.min(skipped, inserted));
				if (skipped + inserted - 2 * back < least) {
					least = skipped + inserted - 2 * back;
					best = [piece - back, place - back];
				}
			}
			hash =
				(Math.imul(hash, RADIX) + (next[place + size] as number) - Math.imul(next[place] as number, this.#leaving)) | 0;
		}
		return best;
	}

	/** The nearest piece in a slot that is at this place of `next`; -1 if none is. */
	#try(slot: number, base: Uint8Array, least: number, next: Uint8Array, at: number): number {
		let piece = this.#first[slot] as number;
		// Pieces that were passed once are passed for good.
		while (piece !== 0 && this.#place(piece) < least) piece = this.#following[piece] as number;
		this.#first[slot] = piece;
		for (let tries = 0; piece !== 0 && tries < MOST_TRIES; tries++) {
			if (isAlike(base, this.#place(piece), next, at, this.#size)) return this.#place(piece);
			piece = this.#following[piece] as number;
		}
		return -1;
	}

	#place(piece: number): number {
		return this.#start + (piece - 1) * this.#size;
	}

	#slot(hash: number): number {
		return (hash ^ (hash >>> 15)) & (this.#first.length - 1);
	}

	#hash(bytes: Uint8Array, at: number): number {
		let hash = 0;
		for (let i = at; i < at + this.#size; i++) hash = (Math.imul(hash, RADIX) + (bytes[i] as number)) | 0;
		return hash;
	}
}

/** Length of the common beginning of both sides from these places on. */
export function commonPrefix(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, most: number): number {
	if (a.buffer === b.buffer && a.byteOffset + aStart === b.byteOffset + bStart) return most;
	let length = 0;
	while (length + STRIDE <= most && isAlike(a, aStart + length, b, bStart + length, STRIDE)) length += STRIDE;
	while (length < most && a[aStart + length] === b[bStart + length]) length++;
	return length;
}

/** Length of the common end of both sides up to these places. */
function commonSuffix(a: Uint8Array, aEnd: number, b: Uint8Array, bEnd: number, most: number): number {
	let length = 0;
	while (length + STRIDE <= most && isAlike(a, aEnd - length - STRIDE, b, bEnd - length - STRIDE, STRIDE))
		length += STRIDE;
	while (length < most && a[aEnd - length - 1] === b[bEnd - length - 1]) length++;
	return length;
}

function isAlike(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
	if (typeof Buffer !== "undefined" && length === STRIDE)
		return Buffer.compare(a.subarray(aStart, aStart + length), b.subarray(bStart, bStart + length)) === 0;
	for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
	return true;
}
