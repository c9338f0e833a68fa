import type { Encoded } from "../../codec/codec.ts";
import { CheckpointError, isCorrupt } from "../../errors.ts";
import type { Lru } from "../../lru.ts";
import type { BlobRow, Storage } from "../../storage/storage.ts";
import { applyPatches, diffBytes, type Layer, sameBytes } from "./byte-delta.ts";
import { type ChainCost, patchCost, shouldStoreWhole } from "./snapshot-policy.ts";

/** A blob's value, and what its chain of patches costs to read. */
export interface Blob extends Encoded, ChainCost {}

/** A blob that is to be stored. */
export interface MadeBlob {
	readonly row: BlobRow;
	readonly blob: Blob;
}

/** What it takes to keep a blob besides its bytes, about. */
const BLOB_BYTES = 400;

/** Bytes that a blob takes in memory: small ones hold on to memory that they share. */
export function weightOf({ bytes }: Encoded): number {
	return BLOB_BYTES + bytes.buffer.byteLength;
}

function wholeBlob(type: string | undefined, bytes: Uint8Array): Blob {
	return { type, bytes, patches: 0, whole: bytes.length };
}

/** How many ids are reserved at a time: a reservation is a commit of its own. */
const ID_BLOCK = 1024;

type Rows = ReadonlyMap<number, BlobRow>;
type Known = ReadonlyMap<number, Blob>;

/** Reads and makes blobs. Keeps the bytes of recent ones, since the next value of a channel is a patch on its last. */
export class Blobs {
	readonly #storage: Storage;
	readonly #recent: Lru<number, Blob>;
	#nextId = 0;
	#lastId = -1;

	constructor(storage: Storage, recent: Lru<number, Blob>) {
		this.#storage = storage;
		this.#recent = recent;
	}

	/** A number that nothing else has. */
	nextId(): number | Promise<number> {
		return this.#nextId <= this.#lastId ? this.#nextId++ : this.#reserveIds();
	}

	async #reserveIds(): Promise<number> {
		const first = await this.#storage.reserveIds(ID_BLOCK);
		// Of callers that have waited together each has its first number; the rest of all blocks but one is left out.
		[this.#nextId, this.#lastId] = [first + 1, first + ID_BLOCK - 1];
		return first;
	}

	/**
	 * The values of these blobs. One that is missing is left out; one that is damaged throws.
	 *
	 * @param along rows that came with what names the blobs, so that they need not be asked for
	 */
	async load(ids: Iterable<number>, along: readonly BlobRow[] = []): Promise<Map<number, Blob>> {
		const found = new Map<number, Blob>();
		// Older first: the next one up the same chain then starts from bytes that are already there.
		const wanted = [...new Set(ids)].sort((a, b) => a - b);
		const missing = this.#buildAll(wanted, along, found);
		if (missing.length === 0) return found;
		const rows = await this.#storage.getBlobs(missing);
		const broken = this.#buildAll(missing, rows, found).find((id) => rows.some((row) => row.id === id));
		if (broken !== undefined)
			throw new CheckpointError("CORRUPT", `Blob ${broken} is built on others, and one of them is missing.`);
		return found;
	}

	/**
	 * The value of a blob to build on; nothing if it can't be read. Another process may be removing it, with the checkpoint
	 * that names it, a part of its chain at a time.
	 */
	async find(id: number): Promise<Blob | undefined> {
		try {
			return this.#recent.get(id) ?? (await this.load([id])).get(id);
		} catch (error) {
			if (isCorrupt(error)) return undefined;
			throw error;
		}
	}

	/** Adds the values that these rows, and what is at hand, are enough for. Returns the other ids. */
	#buildAll(ids: readonly number[], along: readonly BlobRow[], found: Map<number, Blob>): number[] {
		const rows = new Map(along.map((row) => [row.id, row]));
		return ids.filter((id) => {
			const recent = this.#recent.get(id);
			const blob = recent ?? this.#build(id, rows, found);
			if (blob !== undefined) found.set(id, blob);
			if (blob !== undefined && blob !== recent) this.remember(id, blob);
			return blob === undefined;
		});
	}

	/**
	 * Goes down the chain to a whole blob, or to one whose bytes are known, and up again. In `made` are sources that were
	 * built on the way, `undefined` while they are being built: so this ends whatever rows say.
	 */
	#build(id: number, rows: Rows, known: Known, made = new Map<number, Blob | undefined>()): Blob | undefined {
		if (made.has(id)) return made.get(id);
		made.set(id, undefined);
		const layers: Layer[] = [];
		let cost = 0;
		let at = id;
		let start = this.#startAt(at, rows, known);
		for (; start === undefined; start = this.#startAt(at, rows, known)) {
			const row = rows.get(at);
			if (row?.base === undefined || layers.length > rows.size) return undefined;
			const source = row.source === undefined ? undefined : this.#build(row.source, rows, known, made)?.bytes;
			if (row.source !== undefined && source === undefined) return undefined;
			layers.push({ patch: row.data, source });
			cost += patchCost(row.data, source);
			at = row.base;
		}
		try {
			const bytes = layers.length === 0 ? start.bytes : applyPatches(start.bytes, layers.reverse());
			made.set(id, { type: start.type, bytes, patches: start.patches + cost, whole: start.whole });
			return made.get(id);
		} catch (cause) {
			throw new CheckpointError("CORRUPT", `Blob ${id} can't be put together from its patches.`, { cause });
		}
	}

	#startAt(id: number, rows: Rows, known: Known): Blob | undefined {
		const atHand = known.get(id) ?? this.#recent.get(id);
		const row = rows.get(id);
		return atHand === undefined && row && row.base === undefined ? wholeBlob(row.type, row.data) : atHand;
	}

	/**
	 * The row that stores a value: a patch on `baseId` where that is the cheaper way, else whole. `undefined` if
	 * the base holds the very same value.
	 *
	 * @param source what the new part of the value may have come from
	 */
	async make(
		value: Encoded,
		baseId: number | undefined,
		source?: { readonly id: number; readonly blob: Blob },
	): Promise<MadeBlob | undefined> {
		const base = baseId === undefined ? undefined : await this.find(baseId);
		const { type, bytes } = value;
		if (base === undefined || base.type !== type) return this.makeWhole(value);
		if (sameBytes(base.bytes, bytes)) return undefined;
		const { patch, usesSource } = diffBytes(base.bytes, bytes, source?.blob.bytes);
		const used = usesSource ? source : undefined;
		const cost = patchCost(patch, used?.blob.bytes);
		if (shouldStoreWhole(bytes.length, cost, base)) return this.makeWhole(value);
		const row = { id: await this.nextId(), base: baseId, source: used?.id, type, data: patch };
		return { row, blob: { type, bytes, patches: base.patches + cost, whole: base.whole } };
	}

	async makeWhole({ type, bytes }: Encoded): Promise<MadeBlob> {
		const row = { id: await this.nextId(), base: undefined, source: undefined, type, data: bytes };
		return { row, blob: wholeBlob(type, bytes) };
	}

	/** A value, if it is at hand. */
	peek(id: number): Blob | undefined {
		return this.#recent.get(id);
	}

	remember(id: number, blob: Blob): void {
		this.#recent.set(id, blob, weightOf(blob));
	}

	forget(id: number): void {
		this.#recent.delete(id);
	}
}
