import {
	type Checkpoint,
	type CheckpointMetadata,
	type CheckpointPendingWrite,
	TASKS,
	WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import type { Codec, Encoded } from "../codec/codec.ts";
import { UnserializableError } from "../codec/encoder.ts";
import { CheckpointError } from "../errors.ts";
import type { BlobRow, CheckpointKey, FoundCheckpoint, NewWrite, Storage, WriteRow } from "../storage/storage.ts";
import { type Blob, Blobs } from "./blobs.ts";
import { sameBytes } from "./byte-delta.ts";
import { collectFamily } from "./collect.ts";
import { type Cell, type Head, packHead, unpackHead } from "./head.ts";
import { keepLost } from "./history.ts";
import { Lru } from "./lru.ts";
import { readOldSends, restoreSends } from "./old-sends.ts";
import { findOrigin, hasRebuildable } from "./origin.ts";

/** Values up to this size stand in the checkpoint row itself: a blob row would cost more than it saves. */
const INLINE_VALUE_BYTES = 64;
/** Writes up to this size stand in the write row. Larger ones would spill out of the database's index pages. */
const INLINE_WRITE_BYTES = 512;
/** Share of the cache that parsed checkpoint rows may take, the rest being for the bytes of values. */
const VIEW_SHARE = 8;
/** A parsed row is about this many times the size of its bytes. */
const VIEW_WEIGHT = 4;
/** Rows of the first and of the largest page of a listing. */
const FIRST_PAGE = 4;
const LARGEST_PAGE = 64;
/** A put is refused only when checkpoints of its thread are deleted meanwhile: this often in a row is no coincidence. */
const MOST_ATTEMPTS = 20;

export interface PutInput {
	readonly key: CheckpointKey;
	readonly parentId: string | undefined;
	readonly runId: string | undefined;
	readonly checkpoint: Checkpoint;
	readonly metadata: CheckpointMetadata;
	readonly newVersions: Readonly<Record<string, string | number>>;
	/** Names the run or state update that calls, where that is known. */
	readonly actor: number | undefined;
	/** The checkpoint that this one is a copy of, where that is known. */
	readonly copyOf?: string | undefined;
}

export interface PutWritesInput {
	readonly key: CheckpointKey;
	readonly runId: string | undefined;
	readonly actor: number;
	readonly taskId: string;
	readonly writes: readonly (readonly [channel: string, value: unknown])[];
}

export interface ListQuery {
	readonly threadId: string | undefined;
	readonly ns: string | undefined;
	readonly id: string | undefined;
	readonly before: string | undefined;
	readonly limit: number;
	/** Which rows count, judged by their metadata. */
	readonly accepts: ((metadata: unknown) => boolean) | undefined;
}

/** A checkpoint as it is read. */
export interface StoredCheckpoint {
	readonly key: CheckpointKey;
	readonly parentId: string | undefined;
	readonly checkpoint: Checkpoint;
	readonly metadata: CheckpointMetadata;
	readonly pendingWrites: CheckpointPendingWrite[];
}

/** A checkpoint row, parsed, and the stamp of its thread when it was read. */
interface View {
	readonly head: Head;
	readonly stamp: number;
}

/** A channel of a put before its place is decided. */
interface Draft {
	readonly channel: string;
	readonly version: string | number | undefined;
	/** Named in `newVersions`, or without a version at all: stored whatever else is known. */
	readonly isNew: boolean;
	/** The parent's value, taken over unseen. */
	readonly carried?: Cell;
	readonly encoded?: Encoded;
}

/** Where the values of a put go. */
interface Placement {
	readonly manifest: Map<string, Cell>;
	readonly blobs: { row: BlobRow; blob: Blob }[];
	/** Stamp of the thread when the older blobs that it builds on were seen; `undefined` if there are none. */
	stamp: number | undefined;
}

/** Stores checkpoints and writes as rows, and reads them back. */
export class Engine {
	readonly storage: Storage;
	readonly blobs: Blobs;
	readonly codec: Codec;
	readonly #views: Lru<string, View>;

	constructor(storage: Storage, codec: Codec, cacheBytes: number) {
		this.storage = storage;
		this.codec = codec;
		this.blobs = new Blobs(storage, cacheBytes);
		this.#views = new Lru(cacheBytes / VIEW_SHARE);
	}

	async put(input: PutInput): Promise<void> {
		const { key, parentId, runId, checkpoint, metadata } = input;
		const baseKey = parentId === undefined ? key : { ...key, id: parentId };
		let base = this.#views.get(cacheKey(baseKey));
		// Everything is read before the first await: the caller may change its objects as soon as we return.
		const row = {
			...key,
			parentId: parentId === key.id ? undefined : parentId,
			runId,
			source: textOf(metadata?.source),
			step: integerOf(metadata?.step),
		};
		const versions = copyVersions(checkpoint);
		const { v, ts } = checkpoint;
		const mayRebuild = hasRebuildable(versions.versions, checkpoint.channel_values, base?.head);
		const pending = this.#draft(input, base);
		const encodedMetadata = this.#encode("metadata", metadata);
		let drafts = await settle(pending);
		const head = { v, ts, ...versions, metadata: await encodedMetadata };
		for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
			base ??= (await this.#loadView(baseKey)) ?? (await this.#loadView(key));
			const placed = await this.#place(input, drafts, base);
			const { manifest } = placed;
			const origin = mayRebuild ? await findOrigin(this, input, row, { ...head, manifest }, base?.head) : undefined;
			const full = { ...head, origin, manifest };
			const packed = packHead(full);
			const stored = await this.storage.put({
				threadId: key.threadId,
				stamp: placed.stamp ?? (parentId === key.id ? base?.stamp : undefined),
				fresh: await this.blobs.nextId(),
				now: Date.now(),
				checkpoint: { ...row, head: packed },
				blobs: placed.blobs.map(({ row }) => row),
				writes: [],
				deltaBases: parentId === key.id && base !== undefined ? keepLost(key, base.head, placed) : [],
			});
			if (stored !== undefined) {
				this.#keepView(key, { head: full, stamp: stored.stamp }, packed.length);
				this.#rememberBlobs(placed);
				if (stored.replaced) await collectFamily(this, stored.family);
				return;
			}
			base = (await this.#loadView(baseKey)) ?? (await this.#loadView(key));
			drafts = await this.#recover(drafts, base, checkpoint);
		}
		throw new CheckpointError(
			"BUSY",
			`Checkpoints of thread "${key.threadId}" are being deleted all the time; put again.`,
		);
	}

	/** What was carried over unseen and is no longer where it was has to be stored again. */
	async #recover(drafts: readonly Draft[], base: View | undefined, { channel_values }: Checkpoint): Promise<Draft[]> {
		const recovered: Draft[] = [];
		for (const draft of drafts) {
			const { carried, ...rest } = draft;
			if (carried === undefined || base?.head.manifest.get(draft.channel) === carried) recovered.push(draft);
			else {
				const known = typeof carried === "number" ? (await this.blobs.load([carried])).get(carried) : carried;
				// If even its bytes are gone it is encoded now, which is later than we would like.
				const encoded = known ?? (await this.#encode(draft.channel, channel_values[draft.channel]));
				recovered.push({ ...rest, encoded });
			}
		}
		return recovered;
	}

	/** An error names the channel whose value it was. */
	#encode(channel: string, value: unknown): Encoded | Promise<Encoded> {
		const explain = (cause: unknown): never => {
			const { path = "", reason = cause instanceof Error ? cause.message : String(cause) } =
				cause instanceof UnserializableError ? cause : {};
			throw new UnserializableError(channel, path, reason, { cause });
		};
		try {
			const encoded = this.codec.encode(value);
			return encoded instanceof Promise ? encoded.catch(explain) : encoded;
		} catch (cause) {
			return explain(cause);
		}
	}

	/** Decides what each channel needs, and encodes what it must. */
	#draft(input: PutInput, base: View | undefined): (Draft | Promise<Draft>)[] {
		const { checkpoint, metadata, newVersions } = input;
		// Values of a run come from its parent; an update or a fork may bring anything under an old version.
		const isRun = metadata?.source === "loop" || metadata?.source === "input";
		return Object.keys(checkpoint.channel_values).map((channel) => {
			const version = own(checkpoint.channel_versions, channel);
			const isNew = version === undefined || Object.hasOwn(newVersions, channel);
			const known = base?.head.manifest.get(channel);
			if (!isNew && isRun && known !== undefined && own(base?.head.versions, channel) === version)
				return { channel, version, isNew, carried: known };
			const encoded = this.#encode(channel, checkpoint.channel_values[channel]);
			if (encoded instanceof Promise) return encoded.then((encoded) => ({ channel, version, isNew, encoded }));
			return { channel, version, isNew, encoded };
		});
	}

	async #place(input: PutInput, drafts: readonly Draft[], base: View | undefined): Promise<Placement> {
		const placed: Placement = { manifest: new Map(), blobs: [], stamp: undefined };
		for (const draft of drafts) {
			const cell =
				base === undefined && input.parentId === undefined && !draft.isNew
					? await this.#findKnown(input.key, draft, placed)
					: (draft.carried ?? (await this.#placeValue(draft, base, placed)));
			if (cell !== undefined) placed.manifest.set(draft.channel, cell);
			if (typeof draft.carried === "number") placed.stamp = base?.stamp;
		}
		return placed;
	}

	async #placeValue(draft: Draft, base: View | undefined, placed: Placement): Promise<Cell> {
		const encoded = draft.encoded as Encoded;
		if (encoded.bytes.length <= INLINE_VALUE_BYTES) return encoded;
		const before = base?.head.manifest.get(draft.channel);
		const baseId = typeof before === "number" ? before : undefined;
		const made = await this.blobs.make(encoded, baseId);
		if (made === undefined || made.row.base !== undefined) placed.stamp = base?.stamp;
		if (made === undefined) return baseId as number;
		placed.blobs.push(made);
		return made.row.id;
	}

	/**
	 * The place of a value that is said to be old although neither its checkpoint nor a parent is stored: the copy of a
	 * thread's first checkpoint has such values. One that is stored nowhere under its version is not taken.
	 */
	async #findKnown(
		{ threadId, ns }: CheckpointKey,
		{ channel, version, encoded }: Draft,
		placed: Placement,
	): Promise<Cell | undefined> {
		for await (const row of this.scanAll({ threadId, ns })) {
			const { versions, manifest } = unpackHead(row.head);
			const cell = manifest.get(channel);
			if (cell === undefined || own(versions, channel) !== version) continue;
			const value = typeof cell === "number" ? (await this.blobs.load([cell])).get(cell) : cell;
			if (value === undefined || encoded === undefined || value.type !== encoded.type) continue;
			if (!sameBytes(value.bytes, encoded.bytes)) continue;
			placed.stamp = row.stamp;
			return cell;
		}
		return undefined;
	}

	#rememberBlobs(placed: Placement): void {
		for (const { row, blob } of placed.blobs) {
			// The next value of this channel is most likely a patch on this one, not on the one before.
			if (row.base !== undefined) this.blobs.forget(row.base);
			this.blobs.remember(row.id, blob);
		}
	}

	async putWrites({ key, runId, actor, taskId, writes }: PutWritesInput): Promise<void> {
		const pending = writes.map(([channel, value], position) => {
			const special = specialIndex(channel);
			return { channel, special, position, encoded: this.#encode(channel, value) };
		});
		const isAllSpecial = pending.every(({ special }) => special !== undefined);
		const encoded = await settle(pending.map(({ encoded }) => encoded));
		const blobs: BlobRow[] = [];
		const rows: NewWrite[] = [];
		for (const { channel, special, position } of pending) {
			const { type, bytes } = encoded[position] as Encoded;
			const conflict = isAllSpecial ? "replace" : special === undefined ? "add" : "drop";
			const row = { ...key, taskId, idx: special ?? position, channel, runId, actor, conflict } as const;
			// One that may be replaced stands in its row, so that nothing is left over when it is.
			if (bytes.length <= INLINE_WRITE_BYTES || special !== undefined) rows.push({ ...row, type, value: bytes });
			else {
				const id = await this.blobs.nextId();
				blobs.push({ id, base: undefined, type, data: bytes });
				rows.push({ ...row, type: undefined, value: id });
			}
		}
		const fresh = await this.blobs.nextId();
		await this.storage.put({ threadId: key.threadId, fresh, now: Date.now(), blobs, writes: rows });
	}

	get(key: CheckpointKey): Promise<StoredCheckpoint | undefined> {
		return this.#readOne(() => this.storage.getCheckpoint(key));
	}

	getLatest(threadId: string, ns: string): Promise<StoredCheckpoint | undefined> {
		return this.#readOne(() => this.storage.getLatest(threadId, ns));
	}

	async #readOne(find: () => Promise<FoundCheckpoint | undefined>): Promise<StoredCheckpoint | undefined> {
		for (let attempt = 1; ; attempt++) {
			const row = await find();
			if (row === undefined) return undefined;
			const head = unpackRow(row);
			try {
				const [stored] = await this.read([row], [head]);
				// Whoever reads a checkpoint is likely to put its child next.
				this.#keepView(row, { head, stamp: row.stamp }, row.head.length);
				return stored;
			} catch (error) {
				if (attempt === MOST_ATTEMPTS || !(await this.#isOutdated(row))) throw error;
			}
		}
	}

	/** Whether checkpoints of its thread were deleted since the row was read, so that what it names may be gone. */
	async #isOutdated(row: FoundCheckpoint): Promise<boolean> {
		return (await this.storage.getThread(row.threadId))?.stamp !== row.stamp;
	}

	/** Checkpoints by descending id. Reads a page at a time, and nothing is held open between two of them. */
	async *list(query: ListQuery): AsyncGenerator<StoredCheckpoint> {
		const { threadId, ns, id, before, accepts } = query;
		let left = query.limit;
		const rows = id === undefined ? this.#scanPages({ threadId, ns, before }, left) : this.#findPages(query);
		for await (const page of rows) {
			const wanted = accepts === undefined ? page : await this.#filter(page, accepts);
			for (const stored of await this.#readPage(wanted.slice(0, left))) {
				yield stored;
				left--;
			}
			if (left <= 0) return;
		}
	}

	/** The pages of a scan, small ones first: whoever wants one row should not pay for many. */
	async *#scanPages(
		where: { threadId?: string | undefined; ns?: string | undefined; before?: string | undefined },
		limit = Number.POSITIVE_INFINITY,
		firstPage = FIRST_PAGE,
	): AsyncGenerator<FoundCheckpoint[]> {
		let after: FoundCheckpoint | undefined;
		for (let size = Math.min(limit, firstPage); ; size = Math.min(size * 2, LARGEST_PAGE)) {
			const page = await this.storage.scan({ ...where, after, limit: size });
			yield page;
			if (page.length < size) return;
			after = page.at(-1);
		}
	}

	/** One id, in any thread and namespace that are left open. */
	async *#findPages({ threadId, ns, id = "", before }: ListQuery): AsyncGenerator<FoundCheckpoint[]> {
		if (before !== undefined && id >= before) return;
		if (threadId !== undefined && ns !== undefined) {
			const row = await this.storage.getCheckpoint({ threadId, ns, id });
			return void (yield row === undefined ? [] : [row]);
		}
		for await (const page of this.#scanPages({ threadId, ns, before }, undefined, LARGEST_PAGE))
			yield page.filter((row) => row.id === id);
	}

	async #filter(rows: FoundCheckpoint[], accepts: NonNullable<ListQuery["accepts"]>): Promise<FoundCheckpoint[]> {
		const kept: FoundCheckpoint[] = [];
		for (const row of rows)
			if (accepts(await this.decodeCell(row, "metadata", unpackRow(row).metadata, new Map()))) kept.push(row);
		return kept;
	}

	async #readPage(rows: readonly FoundCheckpoint[]): Promise<StoredCheckpoint[]> {
		if (rows.length === 0) return [];
		try {
			return await this.read(rows);
		} catch (error) {
			const outdated = await Promise.all(rows.map((row) => this.#isOutdated(row)));
			if (!outdated.includes(true)) throw error;
			const again = await Promise.all(rows.map((row) => this.get(row)));
			return again.filter((stored) => stored !== undefined);
		}
	}

	/** Rows with their values and pending writes. Takes one round of reads however many rows there are. */
	async read(rows: readonly FoundCheckpoint[], heads = rows.map(unpackRow)): Promise<StoredCheckpoint[]> {
		const writes = groupWrites(await this.storage.getWrites(rows));
		const sends = await readOldSends(
			this,
			rows.filter((_, i) => (heads[i] as Head).v < 4),
		);
		const ids = new Set<number>();
		for (const head of heads) for (const cell of head.manifest.values()) if (typeof cell === "number") ids.add(cell);
		for (const group of writes.values()) for (const { value } of group) if (typeof value === "number") ids.add(value);
		for (const cells of sends.values()) for (const cell of cells) if (typeof cell === "number") ids.add(cell);
		const blobs = await this.blobs.load(ids);
		const read: StoredCheckpoint[] = [];
		for (const [i, row] of rows.entries()) {
			const key = cacheKey(row);
			read.push(await this.#readRow(row, heads[i] as Head, writes.get(key) ?? [], sends.get(key), blobs));
		}
		return read;
	}

	async #readRow(
		row: FoundCheckpoint,
		head: Head,
		writes: readonly WriteRow[],
		sends: readonly Cell[] | undefined,
		blobs: ReadonlyMap<number, Blob>,
	): Promise<StoredCheckpoint> {
		const channel_values: Record<string, unknown> = {};
		for (const [channel, cell] of head.manifest)
			setOwn(channel_values, channel, await this.decodeCell(row, channel, cell, blobs));
		const { versions, seen } = copyVersions({ channel_versions: head.versions, versions_seen: head.seen });
		const { threadId, ns, id, parentId } = row;
		const checkpoint: Checkpoint = {
			v: head.v,
			id,
			ts: head.ts,
			channel_values,
			channel_versions: versions,
			versions_seen: seen,
		};
		if (sends !== undefined) {
			const values: unknown[] = [];
			for (const cell of sends) values.push(await this.decodeCell(row, TASKS, cell, blobs));
			restoreSends(checkpoint, values);
		}
		return {
			key: { threadId, ns, id },
			parentId,
			checkpoint,
			metadata: (await this.decodeCell(row, "metadata", head.metadata, blobs)) as CheckpointMetadata,
			pendingWrites: await this.#decodeWrites(visibleWrites(writes), blobs),
		};
	}

	async #decodeWrites(rows: readonly WriteRow[], blobs: ReadonlyMap<number, Blob>): Promise<CheckpointPendingWrite[]> {
		const writes: CheckpointPendingWrite[] = [];
		for (const row of rows) {
			const cell = writeCell(row);
			writes.push([row.taskId, row.channel, await this.decodeCell(row, row.channel, cell, blobs)]);
		}
		return writes;
	}

	/** The value in a cell. An error names what could not be read. */
	decodeCell(key: CheckpointKey, channel: string, cell: Cell, blobs: ReadonlyMap<number, Blob>): unknown {
		const encoded = typeof cell === "number" ? blobs.get(cell) : cell;
		const where = `channel "${channel}" of checkpoint "${key.id}" in thread "${key.threadId}", namespace "${key.ns}"`;
		if (encoded === undefined)
			throw new CheckpointError("CORRUPT", `Can't read ${where}: blob ${cell as number} is missing.`);
		const explain = (cause: unknown) => {
			throw new CheckpointError("CORRUPT", `Can't read ${where}: ${(cause as Error).message}`, { cause });
		};
		try {
			const value = this.codec.decode(encoded);
			return value instanceof Promise ? value.catch(explain) : value;
		} catch (cause) {
			return explain(cause);
		}
	}

	/** Every row of a thread or namespace, in the order of a scan. */
	async *scanAll(where: { threadId?: string | undefined; ns?: string | undefined }): AsyncGenerator<FoundCheckpoint> {
		for await (const page of this.#scanPages(where, undefined, LARGEST_PAGE)) yield* page;
	}

	async #loadView(key: CheckpointKey): Promise<View | undefined> {
		const row = await this.storage.getCheckpoint(key);
		return row && { head: unpackRow(row), stamp: row.stamp };
	}

	#keepView(key: CheckpointKey, view: View, bytes: number): void {
		this.#views.set(cacheKey(key), view, bytes * VIEW_WEIGHT);
	}

	/** Forgets everything that was read. */
	clearCaches(): void {
		this.#views.clear();
		this.blobs.clear();
	}
}

/** Unique for a key: the lengths keep the parts apart. */
export function cacheKey({ threadId, ns, id }: CheckpointKey): string {
	return `${threadId.length}:${threadId}${ns.length}:${ns}${id}`;
}

export function unpackRow(row: FoundCheckpoint): Head {
	try {
		return unpackHead(row.head);
	} catch (cause) {
		const where = `checkpoint "${row.id}" in thread "${row.threadId}", namespace "${row.ns}"`;
		throw new CheckpointError("CORRUPT", `Can't read ${where}: ${(cause as Error).message}`, { cause });
	}
}

export function writeCell({ value, type }: WriteRow): Cell {
	return typeof value === "number" ? value : { type, bytes: value };
}

/** Writes by checkpoint, each group by task and index. */
export function groupWrites(rows: readonly WriteRow[]): Map<string, WriteRow[]> {
	const groups = new Map<string, WriteRow[]>();
	for (const row of rows) {
		const key = cacheKey(row);
		const group = groups.get(key);
		if (group === undefined) groups.set(key, [row]);
		else group.push(row);
	}
	for (const group of groups.values()) group.sort(compareWrites);
	return groups;
}

function compareWrites(a: WriteRow, b: WriteRow): number {
	return a.taskId < b.taskId ? -1 : a.taskId > b.taskId ? 1 : a.idx - b.idx || a.generation - b.generation;
}

/** Of several with the same task and index, the first. Expects them sorted. */
function visibleWrites(rows: readonly WriteRow[]): WriteRow[] {
	return rows.filter(({ taskId, idx }, i) => taskId !== rows[i - 1]?.taskId || idx !== rows[i - 1]?.idx);
}

/** Waits only if there is something to wait for. */
function settle<T>(items: readonly (T | Promise<T>)[]): Promise<T[]> | T[] {
	return items.some((item) => item instanceof Promise) ? Promise.all(items) : (items as T[]);
}

function specialIndex(channel: string): number | undefined {
	return Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel] : undefined;
}

type Versions = Record<string, string | number>;

function copyVersions(from: {
	channel_versions?: Readonly<Versions>;
	versions_seen?: Readonly<Record<string, Readonly<Versions>>>;
}): { versions: Versions; seen: Record<string, Versions> } {
	const seen: Record<string, Versions> = {};
	for (const [node, versions] of Object.entries(from.versions_seen ?? {})) setOwn(seen, node, { ...versions });
	return { versions: { ...from.channel_versions }, seen };
}

function own<T>(object: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
	return object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Assigns a key that may be called `__proto__`. */
function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
	if (key === "__proto__")
		Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
	else object[key] = value;
}

function textOf(value: unknown): string | undefined {
	return typeof value === "string" ? value : undefined;
}

function integerOf(value: unknown): number | undefined {
	return Number.isSafeInteger(value) ? (value as number) : undefined;
}
