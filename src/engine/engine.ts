import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { Codec, Encoded } from "../codec/codec.ts";
import { UnserializableError } from "../codec/unserializable.ts";
import { CheckpointError, quote } from "../errors.ts";
import { Lru } from "../lru.ts";
import type { CheckpointKey, FoundCheckpoint, Storage } from "../storage/storage.ts";
import { type Blob, Blobs, type MadeBlob, weightOf } from "./blobs/blobs.ts";
import type { Cell } from "./cells.ts";
import { type Part, Parts } from "./delta-channels/parts.ts";
import { type Head, namedBlobs } from "./head.ts";
import { cacheKey, unpackRow } from "./rows.ts";
import { Turns } from "./turns.ts";

/** What a parsed row takes besides its bytes, about. */
const VIEW_BYTES = 1500;
/** How often a call is tried that is out of date because checkpoints of its thread are deleted meanwhile. */
export const MOST_ATTEMPTS = 20;

/** A checkpoint row, parsed, and the stamp of its thread when it was read. */
export interface View {
	readonly id: string;
	readonly parentId: string | undefined;
	readonly head: Head;
	readonly stamp: number;
}

/** The value of a pending write that is in a blob. */
export interface WrittenBlob {
	readonly channel: string;
	readonly id: number;
	readonly blob: Blob;
	/** Of the thread when it was stored: with another one, it may have been removed since. */
	readonly stamp: number;
}

/** The checkpoint of a namespace that was read or put last, with what was written at it; none if the namespace was empty. */
interface LastSeen {
	readonly view: View | undefined;
	readonly written: readonly WrittenBlob[];
	/** Of the namespace's delta histories. */
	readonly parts: Parts | undefined;
	/** All but the parts. */
	readonly weight: number;
}

/**
 * What all operations on checkpoints share: where rows are, how values are encoded, and the cache.
 *
 * The cache holds, in one budget of bytes, the last checkpoint of each namespace, the values of blobs, and the parts of
 * delta histories. The next put builds on all three, and needs to read nothing if they are there.
 */
export class Engine {
	readonly storage: Storage;
	readonly blobs: Blobs;
	readonly codec: Codec;
	/** Of the calls that store what one task wrote. */
	readonly taskTurns = new Turns();
	/** Values of blobs by their number, what was seen last by namespace. */
	readonly #cache: Lru<number | string, unknown>;

	constructor(storage: Storage, codec: Codec, cacheBytes: number) {
		this.storage = storage;
		this.codec = codec;
		this.#cache = new Lru(cacheBytes);
		this.blobs = new Blobs(storage, this.#cache as Lru<number, Blob>);
	}

	/** Encodes values. All of them are looked at before this returns; a promise only delays the bytes. */
	encodeAll(values: readonly (readonly [channel: string, value: unknown])[]): Promise<Encoded[]> | Encoded[] {
		return settle(
			values,
			([, value]) => this.codec.encode(value),
			([channel], cause) => unserializable(channel, cause),
		);
	}

	/**
	 * The values in some cells. An error names what could not be read.
	 *
	 * @param willBeExtended see {@link Codec.decode}
	 */
	decodeAll(
		key: CheckpointKey,
		cells: readonly (readonly [channel: string, cell: Cell])[],
		blobs: ReadonlyMap<number, Blob>,
		willBeExtended = false,
	): Promise<unknown[]> | unknown[] {
		return settle(
			cells,
			([, cell]) => {
				const encoded = typeof cell === "number" ? blobs.get(cell) : cell;
				if (encoded === undefined) throw new Error(`blob ${cell as number} is missing.`);
				return this.codec.decode(encoded, willBeExtended);
			},
			([channel], cause) => unreadable(key, channel, (cause as Error).message, cause),
		);
	}

	/** The same, where no blobs were read yet. */
	async readAll(key: CheckpointKey, channel: string, cells: readonly Cell[]): Promise<unknown[]> {
		const blobs = await this.blobs.load(cells.filter((cell) => typeof cell === "number"));
		const named = cells.map((cell) => [channel, cell] as const);
		return this.decodeAll(key, named, blobs);
	}

	async decodeMetadata(key: CheckpointKey, { metadata }: Head): Promise<CheckpointMetadata> {
		return (await this.decodeAll(key, [["metadata", metadata]], new Map()))[0] as CheckpointMetadata;
	}

	/** A checkpoint, if it is the last one that was seen of its namespace. */
	peekView(key: CheckpointKey): View | undefined {
		const view = this.#lastSeen(key)?.view;
		return view?.id === key.id ? view : undefined;
	}

	/** The first of these checkpoints that is there. */
	async loadView(...keys: CheckpointKey[]): Promise<View | undefined> {
		const [row] = (await this.storage.read(keys, "rows")).checkpoints;
		return row && viewOf(row);
	}

	/**
	 * Keeps the checkpoint of a namespace that was read or put last, or that there was none, so that a first put need not look
	 * again.
	 *
	 * @param bytes size of the row that the view was parsed from
	 */
	remember(key: Omit<CheckpointKey, "id">, view: View | undefined, bytes: number): void {
		const known = this.#lastSeen(key);
		// What was written at it stays known.
		const written = known?.view?.id === view?.id ? (known?.written ?? []) : [];
		this.#keep(key, { view, written, parts: known?.parts, weight: bytes + VIEW_BYTES });
	}

	isKnownEmpty(key: CheckpointKey): boolean {
		const known = this.#lastSeen(key);
		return known !== undefined && known.view === undefined;
	}

	/** Keeps what was written at the last checkpoint: the next one may hold the very same. */
	rememberWritten(
		key: CheckpointKey,
		blobs: readonly (MadeBlob & { readonly channel: string })[],
		stamp: number,
	): void {
		const known = this.#lastSeen(key);
		if (blobs.length === 0 || known?.view?.id !== key.id) return;
		const added = blobs.map(({ row, blob, channel }) => ({ channel, id: row.id, blob: ownBytes(blob), stamp }));
		const weight = added.reduce((sum, { blob }) => sum + weightOf(blob), known.weight);
		this.#keep(key, { ...known, written: [...known.written, ...added], weight });
	}

	/** The cached parts of the delta histories of a namespace. They are told of changes from now on. */
	openParts(key: CheckpointKey): Parts {
		const known = this.#lastSeen(key);
		if (known?.parts !== undefined) return known.parts;
		const parts = new Parts();
		if (known !== undefined) this.#keep(key, { ...known, parts });
		return parts;
	}

	/** Adds what a walk has made, unless the parts were forgotten meanwhile. */
	keepParts(key: CheckpointKey, parts: Parts, made: readonly (readonly [channel: string, part: Part])[]): void {
		const known = this.#lastSeen(key);
		if (made.length === 0 || known?.parts !== parts) return;
		for (const [channel, part] of made) parts.add(channel, part);
		this.#keep(key, known);
	}

	/** To be called for whatever this process stored: a checkpoint, its parent, and what writes were stored at. */
	changeParts(key: CheckpointKey, parentId?: string): void {
		const parts = this.#lastSeen(key)?.parts;
		parts?.change(key.id);
		if (parentId !== undefined) parts?.change(parentId);
	}

	/** Blobs of pending writes at a checkpoint that were stored while the thread had this stamp, so that they are there. */
	writtenAt(key: CheckpointKey, stamp: number): readonly WrittenBlob[] {
		const known = this.#lastSeen(key);
		return known?.view?.id === key.id ? known.written.filter((one) => one.stamp === stamp) : [];
	}

	/** Blobs that the last checkpoint of a namespace names and whose values are cached. */
	knownBlobs(threadId: string, ns: string): number[] {
		const view = this.#lastSeen({ threadId, ns })?.view;
		return view === undefined ? [] : namedBlobs(view.head).filter((id) => this.blobs.peek(id) !== undefined);
	}

	/** Forgets everything that was read. */
	clearCaches(): void {
		this.#cache.clear();
	}

	#lastSeen({ threadId, ns }: Omit<CheckpointKey, "id">): LastSeen | undefined {
		return this.#cache.get(cacheKey({ threadId, ns, id: "" })) as LastSeen | undefined;
	}

	#keep({ threadId, ns }: Omit<CheckpointKey, "id">, seen: LastSeen): void {
		this.#cache.set(cacheKey({ threadId, ns, id: "" }), seen, seen.weight + (seen.parts?.bytes ?? 0));
	}
}

/** The same in memory of its own: what is remembered should not hold on to the memory that small values share. */
export function ownBytes<T extends Encoded>(encoded: T): T {
	return { ...encoded, bytes: encoded.bytes.slice() };
}

export function viewOf(row: FoundCheckpoint): View {
	return { id: row.id, parentId: row.parentId, head: unpackRow(row), stamp: row.stamp };
}

/**
 * Applies a codec that may or may not need time, which is the one place where that makes a difference.
 *
 * @param explain the error to throw instead of the codec's
 */
function settle<T, R>(
	items: readonly T[],
	apply: (item: T) => R | Promise<R>,
	explain: (item: T, cause: unknown) => Error,
): Promise<R[]> | R[] {
	const results: (R | Promise<R>)[] = [];
	let mustWait = false;
	for (const item of items) {
		const fail = (cause: unknown) => {
			throw explain(item, cause);
		};
		try {
			const result = apply(item);
			mustWait ||= result instanceof Promise;
			results.push(result instanceof Promise ? result.catch(fail) : result);
		} catch (cause) {
			fail(cause);
		}
	}
	return mustWait ? Promise.all(results) : (results as R[]);
}

/** The error for a call that was tried {@link MOST_ATTEMPTS} times. */
export function busy(threadId: string): CheckpointError {
	return new CheckpointError(
		"BUSY",
		`Checkpoints of thread ${quote(threadId)} are being deleted all the time; try again.`,
	);
}

/** The error for a value that can't be stored. */
function unserializable(channel: string, cause: unknown): Error {
	const { path = "", reason = cause instanceof Error ? cause.message : String(cause) } =
		cause instanceof UnserializableError ? cause : {};
	return new UnserializableError(channel, path, reason, { cause });
}

/** The error for a value that can't be read. */
export function unreadable(key: CheckpointKey, channel: string, reason: string, cause?: unknown): Error {
	const { threadId, ns, id } = key;
	const where = `channel "${channel}" of checkpoint "${id}" in thread "${threadId}", namespace "${ns}"`;
	const code = cause instanceof CheckpointError ? cause.code : "CORRUPT";
	const place = { threadId, ns, checkpointId: id, channel };
	return new CheckpointError(code, `Can't read ${where}: ${reason}`, { cause, place });
}
