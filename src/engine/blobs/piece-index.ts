/** Size of the base's indexed pieces when nothing nearby matches: a shorter repeat is not worth finding. */
export const PIECE = 32;
/** A match of this length is no coincidence, even between records that are alike in most of their bytes. */
const LONG = 512;
/** Pieces with the same bytes that are tried. */
const MOST_TRIES = 8;
/** Steps per byte of both sides that may go into the search for a better match than the first. */
const PATIENCE = 4;

/** Length of the match at this place, as far as it matters. */
function matchLength(
	base: Uint8Array,
	from: number,
	baseEnd: number,
	next: Uint8Array,
	at: number,
	nextEnd: number,
): number {
	const limit = Math.min(LONG, baseEnd - from, nextEnd - at);
	let length = 0;
	while (length < limit && base[from + length] === next[at + length]) length++;
	return length;
}

/** Whether a match is long, or goes on to the end of a side. */
export function isLong(
	base: Uint8Array,
	from: number,
	baseEnd: number,
	next: Uint8Array,
	at: number,
	nextEnd: number,
): boolean {
	return matchLength(base, from, baseEnd, next, at, nextEnd) === Math.min(LONG, baseEnd - from, nextEnd - at);
}

/** Finds pieces of the base anywhere in the other side, by a rolling hash over windows of {@link PIECE} bytes. */
export class PieceIndex {
	readonly #base: Uint8Array;
	readonly #start: number;
	readonly #baseEnd: number;
	readonly #next: Uint8Array;
	readonly #nextEnd: number;
	/** Hash to the first piece that has it and was not passed. */
	readonly #first = new Map<number, number>();
	/** Piece to the next one with the same hash; 0 for none, since the first piece follows none. */
	readonly #following: Uint32Array;
	/** Most windows are no piece, which a small table tells quicker than the map. */
	readonly #filter: Uint8Array;
	#patience: number;
	/** How far each shift between the sides is known to match, so that a run of equal bytes is measured once. */
	readonly #tried = new Map<number, number>();

	constructor(base: Uint8Array, start: number, baseEnd: number, next: Uint8Array, nextEnd: number) {
		this.#base = base;
		this.#start = start;
		this.#baseEnd = baseEnd;
		this.#next = next;
		this.#nextEnd = nextEnd;
		const count = Math.floor((baseEnd - start) / PIECE);
		this.#following = new Uint32Array(count);
		this.#filter = new Uint8Array(2 ** Math.min(22, 4 + Math.ceil(Math.log2(count + 1))));
		this.#patience = PATIENCE * (baseEnd - start + nextEnd);
		for (let piece = count - 1; piece >= 0; piece--) {
			const hash = hashOf(base, start + piece * PIECE);
			this.#following[piece] = this.#first.get(hash) ?? 0;
			this.#first.set(hash, piece);
			this.#filter[this.#slot(hash)] = 1;
		}
	}

	/**
	 * A place in `next` from `start` that has a piece of the base at or after `least`: the first, or a better one soon
	 * after it. If a short match is known, only one that is long.
	 */
	find(least: number, start: number, hasShort: boolean): [from: number, at: number] | undefined {
		const next = this.#next;
		const end = this.#nextEnd - PIECE;
		let stop = hasShort ? Math.min(end, start + LONG) : end;
		if (start > stop || (hasShort && this.#patience <= 0)) return undefined;
		this.#tried.clear();
		let best: [number, number] | undefined;
		let bestScore = hasShort ? LONG / 2 : Number.NEGATIVE_INFINITY;
		let hash = hashOf(next, start);
		let at = start;
		for (; at <= stop; at++) {
			if (this.#filter[this.#slot(hash)] === 1) {
				const found = this.#try(hash, least, start, at, bestScore);
				if (found !== undefined) {
					if (best === undefined) stop = Math.min(stop, at + (this.#patience > 0 ? LONG : 0));
					[best, bestScore] = found;
					// It can hardly get better.
					if ((this.#tried.get(best[0] - best[1]) ?? 0) - best[1] >= LONG) stop = Math.min(stop, at + PIECE);
				}
			}
			if (at < end) hash = roll(hash, next[at] as number, next[at + PIECE] as number);
		}
		// Content without long matches would otherwise be searched in vain at each of its differences.
		if (hasShort) this.#patience -= (at - start) * (best === undefined ? 8 : 1);
		return best;
	}

	/** The best of the pieces with this hash, if it is better than `least`. */
	#try(hash: number, least: number, start: number, at: number, score: number): [[number, number], number] | undefined {
		let found: [[number, number], number] | undefined;
		let piece = this.#firstFrom(hash, least);
		for (let tries = 0; piece !== undefined && tries < MOST_TRIES; tries++) {
			const from = this.#start + piece * PIECE;
			piece = this.#following[piece] || undefined;
			if (at < (this.#tried.get(from - at) ?? 0) || !startsAlike(this.#base, from, this.#next, at, PIECE)) continue;
			const match = this.#extendBack(least, from, at, start);
			const length = matchLength(this.#base, match[0], this.#baseEnd, this.#next, match[1], this.#nextEnd);
			this.#tried.set(from - at, match[1] + length);
			this.#patience -= length + at - match[1];
			// Bytes of `next` before the match have to be inserted, those of the base are lost for later.
			const worth = length - (match[1] - start) - Math.min(LONG / 2, (match[0] - least) / 64);
			if (worth > (found?.[1] ?? score)) found = [match, worth];
			if (this.#patience <= 0) break;
		}
		return found;
	}

	/** Pieces that were passed once are passed for good. */
	#firstFrom(hash: number, least: number): number | undefined {
		let piece = this.#first.get(hash);
		if (piece === undefined || this.#start + piece * PIECE >= least) return piece;
		while (piece !== undefined && this.#start + piece * PIECE < least) piece = this.#following[piece] || undefined;
		if (piece === undefined) this.#first.delete(hash);
		else this.#first.set(hash, piece);
		return piece;
	}

	#slot(hash: number): number {
		return (hash ^ (hash >>> 15)) & (this.#filter.length - 1);
	}

	/** Pieces begin at fixed places, the common run usually a little before. */
	#extendBack(least: number, from: number, at: number, start: number): [number, number] {
		let back = 0;
		while (back < from - least && back < at - start && this.#base[from - back - 1] === this.#next[at - back - 1])
			back++;
		return [from - back, at - back];
	}
}

const RADIX = 0x01000193;
/** RADIX to the power PIECE - 1, modulo 2^32: the weight of the byte that leaves the window. */
const LEAVING = Array.from({ length: PIECE - 1 }).reduce((power: number) => Math.imul(power, RADIX), 1);

function hashOf(bytes: Uint8Array, at: number): number {
	let hash = 0;
	for (let i = at; i < at + PIECE; i++) hash = (Math.imul(hash, RADIX) + (bytes[i] as number)) | 0;
	return hash;
}

function roll(hash: number, leaving: number, entering: number): number {
	return (Math.imul(hash - Math.imul(leaving, LEAVING), RADIX) + entering) | 0;
}

export function startsAlike(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
	for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
	return true;
}
