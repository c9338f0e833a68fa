import type { BlobRow, ListedBlob } from "../storage.ts";
import { areSame, type KeptBytes, keepBytes, readBytes } from "./kept-bytes.ts";

/** A blob as it is, but for its id. */
class LargeBlob {
	readonly family: number;
	readonly base: number | undefined;
	readonly source: number | undefined;
	readonly type: string | undefined;
	readonly data: Uint8Array;

	constructor(family: number, { base, source, type, data }: Omit<BlobRow, "id">) {
		this.family = family;
		this.base = base;
		this.source = source;
		this.type = type;
		this.data = data;
	}
}

/** Beyond this an object of its own hardly shows. */
const MOST_PACKED = 4096;
/** A head is three numbers of up to eight bytes. */
const MOST_HEAD = 24;
const DIGIT = 128;
/** Where they are put together. */
const scratch = new Uint8Array(MOST_HEAD + MOST_PACKED);

/**
 * Blobs by id. There are two for each step of a conversation, one of them of ten bytes: those that are not large are held
 * as their bytes alone, behind three numbers: the family, and how far back the base and the source are, if there are any.
 */
export class MemoryBlobs {
	readonly #blobs = new Map<number, KeptBytes | LargeBlob>();

	has(id: number): boolean {
		return this.#blobs.has(id);
	}

	set(family: number, row: BlobRow): void {
		this.#blobs.set(row.id, pack(family, row) ?? new LargeBlob(family, row));
	}

	get(id: number): (BlobRow & { readonly family: number }) | undefined {
		const kept = this.#blobs.get(id);
		if (kept === undefined) return undefined;
		if (kept instanceof LargeBlob) return { ...kept, id };
		const { family, base, source, start } = readHead(id, kept);
		return { id, family, base, source, type: undefined, data: readBytes(kept).subarray(start) };
	}

	*list(): Generator<ListedBlob & { readonly family: number }> {
		for (const [id, kept] of this.#blobs) {
			if (kept instanceof LargeBlob) {
				const { family, base, source, data } = kept;
				yield { id, family, base, source, bytes: data.length };
			} else {
				const { family, base, source, start } = readHead(id, kept);
				yield { id, family, base, source, bytes: kept.length - start };
			}
		}
	}

	/** Puts other bytes in the place of these, unless there are others by now. */
	replace(id: number, from: Uint8Array, to: Uint8Array): boolean {
		const blob = this.get(id);
		if (blob === undefined || !areSame(blob.data, from)) return false;
		this.set(blob.family, { ...blob, data: to });
		return true;
	}

	remove(family: number, id: number): void {
		const kept = this.#blobs.get(id);
		if (kept === undefined) return;
		const itsFamily = kept instanceof LargeBlob ? kept.family : readHead(id, kept).family;
		if (itsFamily === family) this.#blobs.delete(id);
	}

	clear(): void {
		this.#blobs.clear();
	}
}

/** What stands before the bytes of a blob, and where these begin. */
function readHead(id: number, kept: KeptBytes) {
	const afterFamily = endOfNumber(kept, 0);
	const afterBase = endOfNumber(kept, afterFamily);
	const start = endOfNumber(kept, afterBase);
	const family = readNumber(kept, 0, afterFamily);
	const toBase = readNumber(kept, afterFamily, afterBase);
	const toSource = readNumber(kept, afterBase, start);
	const base = toBase === 0 ? undefined : id - toBase;
	const source = toSource === 0 ? undefined : id - toSource;
	return { family, base, source, start };
}

function endOfNumber(kept: KeptBytes, start: number): number {
	let at = start;
	while (codeAt(kept, at) >= DIGIT) at++;
	return at + 1;
}

function readNumber(kept: KeptBytes, start: number, end: number): number {
	let number = 0;
	for (let at = end - 1; at >= start; at--) number = number * DIGIT + (codeAt(kept, at) % DIGIT);
	return number;
}

function codeAt(kept: KeptBytes, at: number): number {
	return typeof kept === "string" ? kept.charCodeAt(at) : (kept[at] as number);
}

/** Answers nothing for a blob that has to be held as it is. */
function pack(family: number, { id, base, source, type, data }: BlobRow): KeptBytes | undefined {
	const [toBase, toSource] = [distance(id, base), distance(id, source)];
	if (toBase < 0 || toSource < 0 || type !== undefined || data.length > MOST_PACKED) return undefined;
	let at = writeNumber(family, 0);
	at = writeNumber(toBase, at);
	at = writeNumber(toSource, at);
	scratch.set(data, at);
	const kept = keepBytes(scratch.subarray(0, at + data.length));
	return typeof kept === "string" ? kept : kept.slice();
}

/** How far back another blob is: zero if there is none, less if it is not older. */
function distance(id: number, other: number | undefined): number {
	if (other === undefined) return 0;
	return other < id ? id - other : -1;
}

/** The lowest digit first; all but the last are marked. */
function writeNumber(number: number, at: number): number {
	let rest = number;
	for (; rest >= DIGIT; rest = Math.floor(rest / DIGIT)) scratch[at++] = DIGIT + (rest % DIGIT);
	scratch[at] = rest;
	return at + 1;
}
