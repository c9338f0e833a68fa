import type { Codec, Encoded } from "../codec/codec.ts";
import { UnserializableError } from "../codec/unserializable.ts";
import { CheckpointError } from "../errors.ts";
import { Budget, Lru } from "../lru.ts";
import type { CheckpointKey, FoundCheckpoint, ScanQuery, Storage } from "../storage/storage.ts";
import { type Blob, Blobs, type MadeBlob, weightOf } from "./blobs.ts";
import { type Cell, type Head, namedBlobs } from "./head.ts";
import { LinkCache } from "./links.ts";
import { cacheKey, unpackRow } from "./rows.ts";
import { Turns } from "./turns.ts";

/** What a parsed row takes besides its bytes, about. */
const VIEW_BYTES = 1500;
/** What it takes to remember something of a namespace, about. */
const NAMESPACE_BYTES = 250;
/** Rows of the largest page of a scan. */
export const LARGEST_PAGE = 64;
/** Rows of a page where all are wanted: a backend may have to sort them for each page. */
export const ROWS_AT_ONCE = 1024;
/**
 * How often a call is tried that is out of date because checkpoints of its thread are deleted meanwhile. So often in a
 * row it is no coincidence.
 */
export const MOST_ATTEMPTS = 20;

/** A checkpoint row, parsed, and the stamp of its thread when it was read. */
export interface View {
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

/** The checkpoint that was put last in a thread, with what it weighs. */
interface NewestView {
	readonly ns: string;
	readonly id: string;
	readonly view: View;
	readonly weight: number;
}

/** Something known of a checkpoint in this thread and namespace. */
interface Placed<T> {
	readonly threadId: string;
	readonly ns: string;
	readonly content: T;
}

const NOTHING_WRITTEN: readonly WrittenBlob[] = [];

/** What all operations on checkpoints share: where rows are, how values are encoded, and what was seen last. */
export class Engine {
	readonly storage: Storage;
	readonly blobs: Blobs;
	readonly codec: Codec;
	readonly links: LinkCache;
	/** Of the calls that store what one task wrote. */
	readonly taskTurns = new Turns();
	/** By checkpoint id alone, which hardly ever is that of two checkpoints: then the one seen last is known. */
	readonly #views: Lru<string, Placed<View>>;
	/** By thread: with each put another takes its place, which is quicker than to take one id out and put another in. */
	readonly #newest: Lru<string, NewestView>;
	readonly #written: Lru<string, Placed<readonly WrittenBlob[]>>;
	/** Id of the checkpoint that was read or put last in a namespace, where knowing it saves the storage work. */
	readonly #lastSeen: Lru<string, string>;
	/** Namespaces in which nothing was found, so that a first put need not look again. */
	readonly #empty: Lru<string, true>;

	constructor(storage: Storage, codec: Codec, cacheBytes: number) {
		this.storage = storage;
		this.codec = codec;
		const budget = new Budget(cacheBytes);
		this.blobs = new Blobs(storage, budget);
		this.links = new LinkCache(budget);
		this.#views = new Lru(budget);
		this.#newest = new Lru(budget);
		this.#written = new Lru(budget);
		this.#lastSeen = new Lru(budget);
		this.#empty = new Lru(budget);
	}

	/** An error names the channel whose value it was. */
	encode(channel: string, value: unknown): Encoded | Promise<Encoded> {
		try {
			const encoded = this.codec.encode(value);
			return encoded instanceof Promise ? explainLater(channel, encoded) : encoded;
		} catch (cause) {
			throw unserializable(channel, cause);
		}
	}

	/**
	 * The value in a cell. An error names what could not be read.
	 *
	 * @param willBeExtended see {@link Codec.decode}
	 */
	decodeCell(
		key: CheckpointKey,
		channel: string,
		cell: Cell,
		blobs: ReadonlyMap<number, Blob>,
		willBeExtended = false,
	): unknown {
		const encoded = typeof cell === "number" ? blobs.get(cell) : cell;
		if (encoded === undefined) throw unreadable(key, channel, `blob ${cell as number} is missing.`);
		try {
			const value = this.codec.decode(encoded, willBeExtended);
			if (!(value instanceof Promise)) return value;
			return value.catch((cause) => {
				throw unreadable(key, channel, cause.message, cause);
			});
		} catch (cause) {
			throw unreadable(key, channel, (cause as Error).message, cause);
		}
	}

	/** The pages of a scan, small ones first: whoever wants one row should not pay for many. */
	async *scanPages(
		{ threadId, ns, before, labels, contains }: Omit<ScanQuery, "after" | "limit">,
		firstPage = LARGEST_PAGE,
	): AsyncGenerator<FoundCheckpoint[]> {
		let after: FoundCheckpoint | undefined;
		// A page of all threads costs their number, whatever its own size.
		const most = threadId === undefined ? ROWS_AT_ONCE : LARGEST_PAGE;
		for (let size = firstPage; ; size = Math.min(size * 4, most)) {
			const page = await this.storage.scan({ threadId, ns, before, labels, contains, after, limit: size });
			yield page;
			if (page.length < size) return;
			after = page.at(-1);
		}
	}

	/** Every row of a thread or namespace, in the order of a scan. */
	async *scanAll({ threadId, ns }: Pick<ScanQuery, "threadId" | "ns">): AsyncGenerator<FoundCheckpoint> {
		for (let after: FoundCheckpoint | undefined; ; ) {
			const page = await this.storage.scan({ threadId, ns, after, limit: ROWS_AT_ONCE });
			yield* page;
			if (page.length < ROWS_AT_ONCE) return;
			after = page.at(-1);
		}
	}

	/** The checkpoint as this process saw it last. */
	peekView(key: CheckpointKey): View | undefined {
		return this.#peekNewest(key)?.view ?? at(this.#views.peek(key.id), key.threadId, key.ns);
	}

	#peekNewest({ threadId, ns, id }: CheckpointKey): NewestView | undefined {
		const newest = this.#newest.peek(threadId);
		return newest !== undefined && newest.id === id && newest.ns === ns ? newest : undefined;
	}

	async loadView(key: CheckpointKey): Promise<View | undefined> {
		const row = await this.storage.getCheckpoint(key);
		return row && { head: unpackRow(row), stamp: row.stamp };
	}

	/**
	 * Keeps a checkpoint that was read.
	 *
	 * @param bytes size of the row that the view was parsed from
	 */
	keepView(key: CheckpointKey, view: View, bytes: number): void {
		const { threadId, ns, id } = key;
		const weight = bytes + VIEW_BYTES;
		if (this.#peekNewest(key) !== undefined) this.#newest.replace(threadId, { ns, id, view, weight }, weight);
		else this.#views.set(id, { threadId, ns, content: view }, weight);
		this.#noteSeen(key);
	}

	/** Keeps a checkpoint that was put. The next one most likely builds on it, and not on its parent. */
	keepNewest(key: CheckpointKey, parentId: string | undefined, view: View, bytes: number): void {
		const { threadId, ns, id } = key;
		const weight = bytes + VIEW_BYTES;
		const before = this.#newest.peek(threadId);
		if (before !== undefined && (before.id !== parentId || before.ns !== ns))
			this.#views.set(before.id, { threadId, ns: before.ns, content: before.view }, before.weight);
		this.#newest.replace(threadId, { ns, id, view, weight }, weight);
		if (parentId !== undefined && at(this.#views.peek(parentId), threadId, ns) !== undefined)
			this.#views.delete(parentId);
		this.#noteSeen(key);
	}

	/** To be called before a checkpoint is kept that was put in the place of another. */
	forgetView(key: CheckpointKey): void {
		if (this.#peekNewest(key) !== undefined) this.#newest.delete(key.threadId);
		if (at(this.#views.peek(key.id), key.threadId, key.ns) !== undefined) this.#views.delete(key.id);
	}

	#noteSeen({ threadId, ns, id }: CheckpointKey): void {
		if (this.storage.read !== undefined) this.#lastSeen.set(cacheKey({ threadId, ns, id: "" }), id, NAMESPACE_BYTES);
	}

	/** Keeps what was written at a checkpoint: the next one may hold the very same. */
	keepWritten(key: CheckpointKey, blobs: readonly (MadeBlob & { readonly channel: string })[], stamp: number): void {
		if (blobs.length === 0) return;
		const { threadId, ns, id } = key;
		const added = blobs.map(({ row, blob, channel }) => ({ channel, id: row.id, blob, stamp }));
		const content = [...this.writtenAt(threadId, ns, id), ...added];
		const bytes = content.reduce((sum, { blob }) => sum + weightOf(blob), 0);
		this.#written.set(id, { threadId, ns, content }, bytes);
	}

	writtenAt(threadId: string, ns: string, id: string): readonly WrittenBlob[] {
		return at(this.#written.peek(id), threadId, ns) ?? NOTHING_WRITTEN;
	}

	forgetWritten({ threadId, ns, id }: CheckpointKey): void {
		if (this.writtenAt(threadId, ns, id).length > 0) this.#written.delete(id);
	}

	/** Blobs whose values are at hand and that a checkpoint, or the one seen last of its namespace, names. */
	knownBlobs(threadId: string, ns: string, id: string | undefined): number[] {
		const seen = id ?? this.#lastSeen.get(cacheKey({ threadId, ns, id: "" }));
		const view = seen === undefined ? undefined : this.peekView({ threadId, ns, id: seen });
		return view === undefined ? [] : this.blobs.knownOf(namedBlobs(view.head));
	}

	/** A namespace was looked at and had no checkpoint. */
	sawNothing(threadId: string, ns: string): void {
		this.#empty.set(cacheKey({ threadId, ns, id: "" }), true, NAMESPACE_BYTES);
	}

	/** Whether a namespace had no checkpoint when it was looked at last. True once: the answer is for a first put. */
	takeNothing({ threadId, ns }: CheckpointKey): boolean {
		const place = cacheKey({ threadId, ns, id: "" });
		const wasEmpty = this.#empty.get(place) === true;
		this.#empty.delete(place);
		return wasEmpty;
	}

	/** Forgets everything that was read. */
	clearCaches(): void {
		this.#views.clear();
		this.#newest.clear();
		this.#written.clear();
		this.links.clear();
		this.#lastSeen.clear();
		this.#empty.clear();
		this.blobs.clear();
	}
}

function at<T>(placed: Placed<T> | undefined, threadId: string, ns: string): T | undefined {
	return placed?.threadId === threadId && placed.ns === ns ? placed.content : undefined;
}

function explainLater(channel: string, encoded: Promise<Encoded>): Promise<Encoded> {
	const explained = encoded.catch((cause) => {
		throw unserializable(channel, cause);
	});
	// Another value may fail first, and then nobody waits for this one: Node would end the process.
	explained.catch(() => {});
	return explained;
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
