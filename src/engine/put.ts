import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { Encoded } from "../codec/codec.ts";
import { CheckpointError } from "../errors.ts";
import type { CheckpointKey, NewWrite } from "../storage/storage.ts";
import { type MadeBlob, rowsOf } from "./blobs/blobs.ts";
import { sameBytes } from "./blobs/byte-delta.ts";
import { findOrigin, hasRebuildable } from "./delta-channels/origin.ts";
import { keepLost } from "./delta-channels/raw-history.ts";
import { type Engine, MOST_ATTEMPTS, type View, type WrittenBlob } from "./engine.ts";
import { type Cell, copyVersions, type Head, namedBlobs, packHead, unpackHead } from "./head.ts";
import { labelsOf } from "./labels.ts";
import { collectFamily } from "./maintenance/collect.ts";
import { settle } from "./settle.ts";

/** New values up to this size stand in the checkpoint row itself: a blob row would cost more than it saves. */
const INLINE_VALUE_BYTES = 512;
/** As most threads are short, more is allowed at their first steps: a long one hardly becomes larger by that. */
const EARLY_VALUE_BYTES = 2048;
const EARLY_STEPS = 12;
/** Larger ones move to a blob when the next checkpoint takes them over, so that they are not repeated for ever. */
const REPEATED_VALUE_BYTES = 64;

export interface PutInput {
	readonly key: CheckpointKey;
	readonly parentId: string | undefined;
	readonly runId: string | undefined;
	readonly checkpoint: Checkpoint;
	readonly metadata: CheckpointMetadata;
	/** The channels whose values are new; any may be if it is not said. */
	readonly newVersions: Readonly<Record<string, string | number>> | undefined;
	/** Names the run or state update that calls, where that is known. */
	readonly actor: number | undefined;
	/** The checkpoint that this one is a copy of, where that is known. */
	readonly copyOf?: string | undefined;
	/** Whether it is refused if it would start a branch. */
	readonly onlyOnHead?: boolean | undefined;
}

/** A channel of a put before its place is decided. */
interface Draft {
	readonly channel: string;
	readonly version: string | number | undefined;
	/** Maybe new, or without a version at all: stored whatever else is known. */
	readonly isNew: boolean;
	/** The parent's value, taken over unseen. */
	readonly carried: Cell | undefined;
	readonly encoded: Encoded | undefined;
}

/** Where the values of a put go. */
interface Placement {
	readonly manifest: Map<string, Cell>;
	readonly blobs: MadeBlob[];
	/** Stamp of the thread when the older blobs that it builds on were seen; `undefined` if there are none. */
	stamp: number | undefined;
}

const NO_WRITES: readonly NewWrite[] = [];

/** Stores a checkpoint, of each channel only what changed. */
export async function put(engine: Engine, input: PutInput): Promise<void> {
	const { key, parentId, runId, checkpoint, metadata } = input;
	const { threadId, ns, id } = key;
	const baseKey = parentId === undefined ? key : { threadId, ns, id: parentId };
	let base = engine.peekView(baseKey);
	// Everything is read before the first await: the caller may change its objects as soon as we return.
	const source = textOf(metadata?.source);
	const step = integerOf(metadata?.step);
	const readsAtOnce = engine.storage.read !== undefined;
	const labels = readsAtOnce ? labelsOf(metadata) : undefined;
	const { versions, seen } = copyVersions(checkpoint);
	const { v, ts } = checkpoint;
	const pending = settle(draft(engine, input, base));
	const mayRebuild = hasRebuildable(versions, checkpoint.channel_values, base?.head);
	const pendingMetadata = engine.encode("metadata", metadata);
	let drafts = pending instanceof Promise ? await pending : pending;
	const encodedMetadata = pendingMetadata instanceof Promise ? await pendingMetadata : pendingMetadata;
	const isFirst = parentId === undefined && engine.takeNothing(key);
	if (!isFirst) base ??= await loadBase(engine, baseKey, key);
	const isAgain = parentId === id;
	const mostInline = step !== undefined && step < EARLY_STEPS ? EARLY_VALUE_BYTES : INLINE_VALUE_BYTES;
	const itsParent = isAgain ? undefined : parentId;
	for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		const placing = place(engine, input, drafts, base, mostInline);
		const placed = placing instanceof Promise ? await placing : placing;
		const { manifest } = placed;
		const row = { threadId, ns, id, parentId: itsParent, runId, source, step };
		const made = { versions, seen, manifest };
		const origin = mayRebuild ? await findOrigin(engine, input, row, made, base?.head) : undefined;
		const head: Head = { v, ts, versions, seen, metadata: encodedMetadata, origin, manifest };
		const packed = packHead(head);
		const nextId = engine.blobs.nextId();
		const fresh = typeof nextId === "number" ? nextId : await nextId;
		const stored = await engine.storage.put({
			threadId,
			stamp: placed.stamp ?? (isAgain ? base?.stamp : undefined),
			fresh,
			now: Date.now(),
			checkpoint: { threadId, ns, id, parentId: itsParent, runId, source, step, head: packed },
			onlyOnHead: input.onlyOnHead,
			namedBlobs: readsAtOnce ? namedBlobs(head) : undefined,
			labels,
			blobs: rowsOf(placed.blobs),
			writes: NO_WRITES,
			deltaBases: isAgain && base !== undefined ? keepLost(key, base.head, placed) : undefined,
		});
		if (stored?.replaced) engine.links.forget(threadId);
		else engine.links.change(threadId, ns, [id, parentId]);
		if (stored !== undefined) {
			if (stored.replaced) engine.forgetView(key);
			engine.keepNewest(key, parentId, { head, stamp: stored.stamp }, packed.length);
			engine.forgetWritten(baseKey);
			rememberBlobs(engine, placed, base);
			if (stored.replaced) await collectFamily(engine, stored.family);
			return;
		}
		engine.forgetWritten(baseKey);
		base = await loadBase(engine, baseKey, key);
		drafts = await recover(engine, drafts, base, checkpoint);
	}
	throw new CheckpointError(
		"BUSY",
		`Checkpoints of thread "${key.threadId}" are being deleted all the time; put again.`,
	);
}

/** The parent, or else the checkpoint itself, which may be put again. */
async function loadBase(engine: Engine, baseKey: CheckpointKey, key: CheckpointKey): Promise<View | undefined> {
	return (await engine.loadView(baseKey)) ?? (baseKey.id === key.id ? undefined : await engine.loadView(key));
}

/** What was carried over unseen and is no longer where it was has to be stored again. */
async function recover(
	engine: Engine,
	drafts: readonly Draft[],
	base: View | undefined,
	{ channel_values }: Checkpoint,
): Promise<Draft[]> {
	const recovered: Draft[] = [];
	for (const draft of drafts) {
		const { carried } = draft;
		if (carried === undefined || base?.head.manifest.get(draft.channel) === carried) recovered.push(draft);
		else {
			const known = typeof carried === "number" ? (await engine.blobs.load([carried])).get(carried) : carried;
			// If even its bytes are gone it is encoded now, which is later than we would like.
			const encoded = known ?? (await engine.encode(draft.channel, channel_values[draft.channel]));
			recovered.push({ ...draft, carried: undefined, encoded });
		}
	}
	return recovered;
}

/** Decides what each channel needs, and encodes what it must. */
function draft(engine: Engine, input: PutInput, base: View | undefined): (Draft | Promise<Draft>)[] {
	const { checkpoint, metadata, newVersions } = input;
	// Values of a run come from its parent; an update or a fork may bring anything under an old version.
	const isRun = metadata?.source === "loop" || metadata?.source === "input";
	const drafts: (Draft | Promise<Draft>)[] = [];
	for (const channel of Object.keys(checkpoint.channel_values)) {
		const version = own(checkpoint.channel_versions, channel);
		const isNew = version === undefined || newVersions === undefined || Object.hasOwn(newVersions, channel);
		const known = isNew || !isRun ? undefined : base?.head.manifest.get(channel);
		if (known !== undefined && own(base?.head.versions, channel) === version)
			drafts.push({ channel, version, isNew, carried: known, encoded: undefined });
		else {
			const encoded = engine.encode(channel, checkpoint.channel_values[channel]);
			drafts.push(
				encoded instanceof Promise
					? encoded.then((encoded) => ({ channel, version, isNew, carried: undefined, encoded }))
					: { channel, version, isNew, carried: undefined, encoded },
			);
		}
	}
	return drafts;
}

/** Short values stand in the row itself, and nothing has to be waited for. */
function place(
	engine: Engine,
	input: PutInput,
	drafts: readonly Draft[],
	base: View | undefined,
	mostInline: number,
): Placement | Promise<Placement> {
	const placed: Placement = { manifest: new Map(), blobs: [], stamp: undefined };
	const others: Draft[] = [];
	const isKnownNowhere = base === undefined && input.parentId === undefined;
	for (const draft of drafts) {
		const { channel, carried, encoded } = draft;
		const isShort = !isLarger(encoded, mostInline) && !isLarger(carried, REPEATED_VALUE_BYTES);
		if (!isShort || (isKnownNowhere && !draft.isNew)) others.push(draft);
		if (typeof carried === "number") placed.stamp = base?.stamp;
		// In the order of the channels, also if another cell takes its place.
		placed.manifest.set(channel, (carried ?? encoded) as Cell);
	}
	return others.length === 0 ? placed : placeOthers(engine, input, others, base, placed);
}

async function placeOthers(
	engine: Engine,
	input: PutInput,
	drafts: readonly Draft[],
	base: View | undefined,
	placed: Placement,
): Promise<Placement> {
	for (const draft of drafts) {
		const { channel, carried, encoded } = draft;
		let cell: Cell | undefined;
		if (base === undefined && input.parentId === undefined && !draft.isNew)
			cell = await findKnown(engine, input.key, draft, placed);
		else if (encoded !== undefined) cell = await placeValue(engine, input, channel, encoded, base, placed);
		else cell = await placeWhole(engine, carried as Encoded, placed);
		if (cell === undefined) placed.manifest.delete(channel);
		else placed.manifest.set(channel, cell);
	}
	return placed;
}

function isLarger(cell: Cell | undefined, most: number): cell is Encoded {
	return typeof cell === "object" && cell.bytes.length > most;
}

async function placeWhole(engine: Engine, value: Encoded, placed: Placement): Promise<number> {
	const made = await engine.blobs.makeWhole(value);
	placed.blobs.push(made);
	return made.row.id;
}

/** Blobs of pending writes at the parent that are certain to be there as long as what the parent names is. */
function writtenBefore(engine: Engine, { key, parentId }: PutInput, base: View | undefined): WrittenBlob[] {
	if (parentId === undefined || base === undefined) return [];
	return engine.writtenAt(key.threadId, key.ns, parentId).filter(({ stamp }) => stamp === base.stamp);
}

/** The one that brought this very value. */
function findSame(written: readonly WrittenBlob[], channel: string, { type, bytes }: Encoded): WrittenBlob | undefined {
	return written.find((one) => one.channel === channel && one.blob.type === type && sameBytes(one.blob.bytes, bytes));
}

/** The one that most of what is new came from, most likely. */
function findLargest(written: readonly WrittenBlob[], channel: string, value: Encoded): WrittenBlob | undefined {
	let largest: WrittenBlob | undefined;
	for (const one of written) {
		if (one.channel !== channel || one.blob.type !== value.type) continue;
		if (largest === undefined || one.blob.bytes.length > largest.blob.bytes.length) largest = one;
	}
	return largest;
}

async function placeValue(
	engine: Engine,
	input: PutInput,
	channel: string,
	encoded: Encoded,
	base: View | undefined,
	placed: Placement,
): Promise<number> {
	const written = writtenBefore(engine, input, base);
	const same = findSame(written, channel, encoded);
	if (same !== undefined) {
		placed.stamp = base?.stamp;
		engine.blobs.remember(same.id, same.blob);
		return same.id;
	}
	const before = base?.head.manifest.get(channel);
	const baseId = typeof before === "number" ? before : undefined;
	const made = await engine.blobs.make(encoded, baseId, findLargest(written, channel, encoded));
	if (made === undefined || made.row.base !== undefined) placed.stamp = base?.stamp;
	if (made === undefined) return baseId as number;
	placed.blobs.push(made);
	return made.row.id;
}

/**
 * The place of a value that is said to be old although neither its checkpoint nor a parent is stored: the copy of a
 * thread's first checkpoint has such values. One that is stored nowhere under its version is not taken.
 */
async function findKnown(
	engine: Engine,
	{ threadId, ns }: CheckpointKey,
	{ channel, version, encoded }: Draft,
	placed: Placement,
): Promise<Cell | undefined> {
	if ((await engine.storage.getLatest(threadId, ns)) === undefined) return undefined;
	for await (const row of engine.scanAll({ threadId, ns })) {
		const { versions, manifest } = unpackHead(row.head);
		const cell = manifest.get(channel);
		if (cell === undefined || own(versions, channel) !== version) continue;
		const value = typeof cell === "number" ? (await engine.blobs.load([cell])).get(cell) : cell;
		if (value === undefined || encoded === undefined || value.type !== encoded.type) continue;
		if (!sameBytes(value.bytes, encoded.bytes)) continue;
		placed.stamp = row.stamp;
		return cell;
	}
	return undefined;
}

function rememberBlobs(engine: Engine, { blobs, manifest }: Placement, base: View | undefined): void {
	for (const { row, blob } of blobs) engine.blobs.remember(row.id, blob);
	// The next value of a channel is most likely a patch on its new one, not on the one before.
	for (const [channel, before] of base?.head.manifest ?? [])
		if (typeof before === "number" && manifest.get(channel) !== before) engine.blobs.forget(before);
}

function own<T>(object: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
	return object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
}

function textOf(value: unknown): string | undefined {
	return typeof value === "string" ? value : undefined;
}

function integerOf(value: unknown): number | undefined {
	return Number.isSafeInteger(value) ? (value as number) : undefined;
}
