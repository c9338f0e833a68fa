import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { Encoded } from "../codec/codec.ts";
import { explain } from "../codec/unserializable.ts";
import { rowPages } from "../storage/all-threads.ts";
import type { CheckpointKey } from "../storage/storage.ts";
import type { MadeBlob } from "./blobs/blobs.ts";
import { sameBytes } from "./blobs/byte-delta.ts";
import type { Cell } from "./cells.ts";
import { findOrigin, hasDeltaChannel } from "./delta-channels/origin.ts";
import { keepLost } from "./delta-channels/raw-history.ts";
import { busy, type Engine, MOST_ATTEMPTS, ownBytes, type View } from "./engine.ts";
import { copyVersions, type Head, namedBlobs, packHead, unpackHead } from "./head.ts";
import { splitLabels } from "./labels.ts";
import { collectFamily } from "./maintenance/collect.ts";

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

/** A channel of a put before its place is decided: encoded, or taken over from the parent. */
interface Draft {
	readonly channel: string;
	readonly version: string | number | undefined;
	/** Maybe new, or without a version at all: stored whatever else is known. */
	readonly isNew: boolean;
	carried: Cell | undefined;
	encoded: Encoded | undefined;
}

/** Where the values of a put go. */
interface Placement {
	readonly manifest: Map<string, Cell>;
	readonly blobs: MadeBlob[];
	/** Stamp of the thread when the older blobs that it builds on were seen; `undefined` if there are none. */
	stamp: number | undefined;
}

/** Stores a checkpoint, of each channel only what changed. */
export async function put(engine: Engine, input: PutInput): Promise<void> {
	const { key, parentId, checkpoint } = input;
	const baseKey = parentId === undefined ? key : { ...key, id: parentId };
	// The parent, or else the checkpoint itself, which may be put again.
	let base = engine.peekView(baseKey);
	const content = readContent(engine, input, base);
	const metadata = takeEncoded(content.drafts, await content.encoding);
	if (parentId !== undefined || !engine.isKnownEmpty(key)) base ??= await engine.loadView(baseKey, key);
	for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		const placed = await place(engine, input, content.drafts, base, content.step);
		if (await store(engine, input, content, metadata, placed, base)) return;
		base = await engine.loadView(baseKey, key);
		await recover(engine, content.drafts, base, checkpoint);
	}
	throw busy(key.threadId);
}

/** Returns whether it was stored: not if what it builds on may be gone. */
async function store(
	engine: Engine,
	input: PutInput,
	{ v, ts, versions, seen, source, step, labels, hasDelta }: ReturnType<typeof readContent>,
	metadata: Encoded,
	placed: Placement,
	base: View | undefined,
): Promise<boolean> {
	const { key, runId, onlyOnHead } = input;
	const { threadId, ns, id } = key;
	const isOverwrite = input.parentId === id;
	// A checkpoint that is put again has no other parent than before.
	const keepsParent = isOverwrite || input.parentId === undefined;
	const parentId = keepsParent ? base?.parentId : input.parentId;
	const { manifest } = placed;
	const before = base?.head;
	const mayRebuild = hasDelta || before?.origin !== undefined;
	const made = { threadId, ns, id, parentId, runId, source, step };
	const origin = mayRebuild ? await findOrigin(engine, input, made, { versions, seen, manifest }, before) : undefined;
	const head: Head = { v, ts, versions, seen, metadata, origin, manifest };
	const packed = packHead(head);
	const stored = await engine.storage.put({
		threadId,
		stamp: placed.stamp ?? (keepsParent ? base?.stamp : undefined),
		fresh: await engine.blobs.nextId(),
		now: Date.now(),
		checkpoint: { threadId, ns, id, parentId, runId, source, step, blobs: namedBlobs(head), head: packed },
		labels,
		onlyOnHead,
		blobs: placed.blobs.map(({ row }) => row),
		writes: [],
		deltaBases: isOverwrite && base !== undefined ? keepLost(key, base.head, placed) : [],
	});
	engine.changeParts(key, input.parentId);
	if (stored === undefined) return false;
	engine.remember(key, { id, parentId, head, stamp: stored.stamp }, packed.length);
	rememberBlobs(engine, placed, base);
	if (stored.replaced) await collectFamily(engine, stored.family);
	return true;
}

/** Everything is read at once: the caller may change its objects as soon as put returns. */
function readContent(engine: Engine, input: PutInput, base: View | undefined) {
	try {
		const { source, step, labels } = splitLabels(input.metadata);
		const { versions, seen } = copyVersions(input.checkpoint);
		const { v, ts, channel_values } = input.checkpoint;
		const hasDelta = hasDeltaChannel(versions, channel_values);
		const drafts: Draft[] = [];
		const values: [string, unknown][] = [["metadata", input.metadata]];
		for (const channel of Object.keys(channel_values)) {
			const draft = planChannel(input, channel, base);
			if (draft.carried === undefined) values.push([channel, channel_values[channel]]);
			drafts.push(draft);
		}
		return { v, ts, versions, seen, source, step, labels, hasDelta, drafts, encoding: engine.encodeAll(values) };
	} catch (error) {
		throw explain(error, input.checkpoint);
	}
}

/** Decides whether a channel is taken over from the parent unseen. */
function planChannel({ checkpoint, metadata, newVersions }: PutInput, channel: string, base: View | undefined): Draft {
	const version = own(checkpoint.channel_versions, channel);
	const isNew = version === undefined || newVersions === undefined || Object.hasOwn(newVersions, channel);
	// Values of a run come from its parent; an update or a fork may bring anything under an old version.
	const isRun = metadata?.source === "loop" || metadata?.source === "input";
	const isCarried = isRun && !isNew && base !== undefined && own(base.head.versions, channel) === version;
	const carried = isCarried ? base.head.manifest.get(channel) : undefined;
	return { channel, version, isNew, carried, encoded: undefined };
}

/** Gives each channel that is not taken over its bytes. Returns those of the metadata. */
function takeEncoded(drafts: readonly Draft[], [metadata, ...encoded]: readonly Encoded[]): Encoded {
	for (const draft of drafts) if (draft.carried === undefined) draft.encoded = encoded.shift();
	return ownBytes(metadata as Encoded);
}

/** What was carried over unseen and is no longer where it was has to be stored again. */
async function recover(
	engine: Engine,
	drafts: readonly Draft[],
	base: View | undefined,
	{ channel_values }: Checkpoint,
): Promise<void> {
	for (const draft of drafts) {
		const { channel, carried } = draft;
		if (carried === undefined || base?.head.manifest.get(channel) === carried) continue;
		const known = typeof carried === "number" ? await engine.blobs.find(carried) : carried;
		// If even its bytes are gone it is encoded now, which is later than we would like.
		draft.encoded = known ?? (await engine.encodeAll([[channel, channel_values[channel]]]))[0];
		draft.carried = undefined;
	}
}

async function place(
	engine: Engine,
	input: PutInput,
	drafts: readonly Draft[],
	base: View | undefined,
	step: number | undefined,
): Promise<Placement> {
	const placed: Placement = { manifest: new Map(), blobs: [], stamp: undefined };
	const mostInline = step !== undefined && step < EARLY_STEPS ? EARLY_VALUE_BYTES : INLINE_VALUE_BYTES;
	const isRoot = base === undefined && input.parentId === undefined;
	for (const draft of drafts) {
		const { channel, carried, encoded, isNew } = draft;
		let cell: Cell | undefined = carried ?? encoded;
		if (typeof carried === "number") placed.stamp = base?.stamp;
		else if (isRoot && !isNew) cell = await findKnown(engine, input.key, draft, placed);
		else if (encoded !== undefined && encoded.bytes.length > mostInline)
			cell = await placeValue(engine, input, channel, encoded, base, placed);
		else if (carried !== undefined && carried.bytes.length > REPEATED_VALUE_BYTES)
			cell = addBlob(placed, await engine.blobs.makeWhole(carried));
		if (cell !== undefined) placed.manifest.set(channel, cell);
	}
	return placed;
}

function addBlob(placed: Placement, made: MadeBlob): number {
	placed.blobs.push(made);
	return made.row.id;
}

/** As the blob that a task has written, as a patch on the parent's value, or whole. */
async function placeValue(
	engine: Engine,
	{ key, parentId }: PutInput,
	channel: string,
	encoded: Encoded,
	base: View | undefined,
	placed: Placement,
): Promise<number> {
	const written = base?.id === parentId && base ? engine.writtenAt({ ...key, id: base.id }, base.stamp) : [];
	const candidates = written.filter((one) => one.channel === channel && one.blob.type === encoded.type);
	const same = candidates.find(({ blob }) => sameBytes(blob.bytes, encoded.bytes));
	if (same !== undefined) {
		placed.stamp = base?.stamp;
		engine.blobs.remember(same.id, same.blob);
		return same.id;
	}
	const before = base?.head.manifest.get(channel);
	const baseId = typeof before === "number" ? before : undefined;
	// Most of what is new came from the largest, most likely.
	const [largest] = candidates.sort((a, b) => b.blob.bytes.length - a.blob.bytes.length);
	const made = await engine.blobs.make(encoded, baseId, largest);
	if (made === undefined || made.row.base !== undefined) placed.stamp = base?.stamp;
	return made === undefined ? (baseId as number) : addBlob(placed, made);
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
	const { checkpoints } = await engine.storage.readOutline(threadId);
	const keys = checkpoints.filter((row) => row.ns === ns);
	for await (const page of rowPages(engine.storage, keys))
		for (const row of page) {
			const { versions, manifest } = unpackHead(row.head);
			const cell = manifest.get(channel);
			if (cell === undefined || own(versions, channel) !== version) continue;
			const value = typeof cell === "number" ? await engine.blobs.find(cell) : cell;
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
