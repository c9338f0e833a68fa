import type { Encoded } from "../../codec/codec.ts";
import { CheckpointError, isCorrupt } from "../../errors.ts";
import type { Lru } from "../../lru.ts";
import type { BlobRow, Storage } from "../../storage/storage.ts";
import { applyPatches, diffBytes, sameBytes } from "./byte-delta.ts";
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

/** Bytes that a blob takes in memory: those of a list that may go on have room behind them. */
export function weightOf({ bytes }: Encoded): number {
	return BLOB_BYTES + bytes.buffer.byteLength;
}

/** How many ids are reserved at a time: a reservation is a commit of its own. */
const ID_BLOCK = 256;

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
	async nextId(): Promise<number> {
		while (this.#nextId > this.#lastId) {
			const first = await this.#storage.reserveIds(ID_BLOCK);
			// Another caller may have been served while this one waited; both blocks are good.
			if (this.#nextId <= this.#lastId) return first;
			this.#nextId = first;
			this.#lastId = first + ID_BLOCK - 1;
		}
		return this.#nextId++;
	}

	/**
	 * The values of these blobs. One that is missing is left out; one that is damaged throws.
	 *
	 * @param along rows that came with what names the blobs, so that they need not be asked for
	 */
	async load(ids: Iterable<number>, along: readonly BlobRow[] = []): Promise<Map<number, Blob>> {
		const found = new Map<number, Blob>();
		const missing: number[] = [];
		for (const id of new Set(ids)) {
			const recent = this.#recent.get(id);
			if (recent !== undefined) found.set(id, recent);
			else missing.push(id);
		}
		if (missing.length === 0) return found;
		const rows = new Map(along.map((row) => [row.id, row]));
		/** What can be built on, besides rows. */
		const known = new Map(found);
		const absent = missing.filter((id) => !this.#completes(id, rows, known));
		if (absent.length > 0) for (const row of await this.#storage.getBlobs(absent)) rows.set(row.id, row);
		// Older first: the next one up the same chain then starts from bytes that are already there.
		for (const id of missing.sort((a, b) => a - b)) {
			const blob = this.#build(id, rows, known);
			if (blob === undefined) continue;
			known.set(id, blob);
			found.set(id, blob);
			this.remember(id, blob);
		}
		return found;
	}

	/**
	 * The value of a blob to build on; nothing if it can't be read. Another process may be removing it, with the checkpoint
	 * that names it, a part of its chain at a time.
	 */
	async find(id: number): Promise<Blob | undefined> {
		try {
			return (await this.load([id])).get(id);
		} catch (error) {
			if (isCorrupt(error)) return undefined;
			throw error;
		}
	}

	/** Whether the rows lead to a whole blob, or to a recent one, which is then kept in `known`. */
	#completes(id: number, rows: ReadonlyMap<number, BlobRow>, known: Map<number, Blob>): boolean {
		let row = rows.get(id);
		for (let steps = 0; row !== undefined && steps < rows.size; steps++) {
			if (row.source !== undefined && !rows.has(row.source) && this.#recent.get(row.source) === undefined) return false;
			if (row.base === undefined || known.has(row.base)) return true;
			const recent = rows.has(row.base) ? undefined : this.#recent.get(row.base);
			if (recent !== undefined) {
				known.set(row.base, recent);
				return true;
			}
			row = rows.get(row.base);
		}
		return false;
	}

	/** Goes down the chain to a whole blob, or to one whose bytes are known, and up again. */
	#build(id: number, rows: ReadonlyMap<number, BlobRow>, known: ReadonlyMap<number, Blob>): Blob | undefined {
		const patches: BlobRow[] = [];
		let row = rows.get(id);
		while (row?.base !== undefined && !known.has(row.base) && patches.length < rows.size) {
			patches.push(row);
			row = rows.get(row.base);
		}
		if (row === undefined) {
			if (patches.length === 0) return undefined;
			throw new CheckpointError("CORRUPT", `Blob ${id} is a patch on blob ${patches.at(-1)?.base}, which is missing.`);
		}
		const base = row.base === undefined ? undefined : known.get(row.base);
		if (base !== undefined) patches.push(row);
		const start = base ?? { type: row.type, bytes: row.data, patches: 0, whole: row.data.length };
		if (patches.length === 0) return start;
		patches.reverse();
		try {
			const layers = patches.map((patch) => ({
				patch: patch.data,
				source: patch.source === undefined ? undefined : this.#sourceOf(patch, rows, known),
			}));
			const bytes = applyPatches(start.bytes, layers);
			const costs = layers.map(({ patch, source }) => patchCost(patch, source));
			const cost = costs.reduce((sum, cost) => sum + cost, start.patches);
			return { type: start.type, bytes, patches: cost, whole: start.whole };
		} catch (error) {
			if (error instanceof CheckpointError) throw error;
			throw new CheckpointError("CORRUPT", `Blob ${id} can't be put together: ${(error as Error).message}.`, {
				cause: error,
			});
		}
	}

	#sourceOf({ id, source = -1 }: BlobRow, rows: ReadonlyMap<number, BlobRow>, known: ReadonlyMap<number, Blob>) {
		// A source is older than what is made from it, so that this ends whatever the rows say.
		const found =
			known.get(source) ?? this.#recent.get(source) ?? (source < id ? this.#build(source, rows, known) : undefined);
		if (found === undefined)
			throw new CheckpointError("CORRUPT", `Blob ${id} takes bytes of blob ${source}, which is missing.`);
		return found.bytes;
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
		const cost = patchCost(patch, usesSource ? source?.blob.bytes : undefined);
		if (shouldStoreWhole(bytes.length, cost, base)) return this.makeWhole(value);
		const row = {
			id: await this.nextId(),
			base: baseId,
			source: usesSource ? source?.id : undefined,
			type,
			data: patch,
		};
		return { row, blob: { type, bytes, patches: base.patches + cost, whole: base.whole } };
	}

	async makeWhole({ type, bytes }: Encoded): Promise<MadeBlob> {
		const row = { id: await this.nextId(), base: undefined, source: undefined, type, data: bytes };
		return { row, blob: { type, bytes, patches: 0, whole: bytes.length } };
	}

	/** Those of these blobs whose values are at hand. */
	knownOf(ids: Iterable<number>): number[] {
		return [...ids].filter((id) => this.#recent.get(id) !== undefined);
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
