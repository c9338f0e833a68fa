import type { CheckpointKey, DeltaBaseRow, PathReading, WriteRow } from "../../storage/storage.ts";
import { type Engine, MOST_ATTEMPTS } from "../engine.ts";
import type { Head } from "../head.ts";
import { cacheKey, groupWrites, unpackRow } from "../rows.ts";
import { attributeOrphans, attributeOwnWrites, attributeWrites, type PathCheckpoint } from "./attribution.ts";
import { pathCheckpoint } from "./origin.ts";
import { type Part, type Place, versionOf } from "./parts.ts";
import { type PastWrite, type RawHistory, unpackHistory } from "./raw-history.ts";

/**
 * Rows of a path that are read where the parts of older ones are cached: the checkpoints of one turn, and two before
 * them, so that a turn costs one round trip.
 */
const FIRST_PAGE = 8;
/** Rows of a path that are read at a time at most. */
const LARGEST_PAGE = 512;

/**
 * The raw histories of these channels at a checkpoint.
 *
 * From the checkpoint to its ancestors, until each channel has met a value to start from, or what was recorded when
 * its ancestors were deleted.
 *
 * @param options.withoutOwn leaves out the writes at the checkpoint itself that are part of its value
 */
export async function walk(
	engine: Engine,
	key: CheckpointKey,
	channels: readonly string[],
	options: { withoutOwn?: boolean } = {},
): Promise<Map<string, RawHistory>> {
	// What stays of a thread reads the same once some of it is removed, but not half before and half after that.
	for (let attempt = 1; ; attempt++) {
		const { histories, isTorn } = await walkOnce(engine, key, channels, options.withoutOwn === true);
		if (!isTorn || attempt === MOST_ATTEMPTS) return histories;
	}
}

async function walkOnce(engine: Engine, key: CheckpointKey, channels: readonly string[], withoutOwn: boolean) {
	const parts = engine.openParts(key);
	const { changes } = parts;
	const steps = new Steps(engine, key, parts.isEmpty ? await expectDepth(engine, key, channels) : FIRST_PAGE);
	await steps.get(key.id);
	parts.renew(steps.version);
	steps.page = parts.isEmpty ? LARGEST_PAGE : FIRST_PAGE;
	const histories = new Map<string, RawHistory>();
	const made: [channel: string, part: Part][] = [];
	/** Parts that led back to themselves could be followed for ever. */
	let isSound = true;
	for (const channel of channels) {
		const path: Part[] = [];
		const visited = new Set<string>();
		let place = parts.follow(channel, { id: key.id, newerId: undefined }, path);
		while (place !== undefined && !visited.has(place.id)) {
			visited.add(place.id);
			const part = await makePart(steps, channel, place, path.length === 0 && withoutOwn);
			if (part === undefined) break;
			path.push(part);
			// That of the checkpoint itself is made of rows that are read in any case.
			if (place.newerId !== undefined) made.push([channel, part]);
			place = parts.follow(channel, part.next, path);
		}
		isSound &&= place === undefined;
		histories.set(channel, join(path));
	}
	if (isSound && parts.changes === changes && parts.version === steps.version) engine.keepParts(key, parts, made);
	return { histories, isTorn: steps.isTorn };
}

/** How many rows there are to the snapshots of these channels, if LangGraph's counters tell. */
async function expectDepth(engine: Engine, key: CheckpointKey, channels: readonly string[]): Promise<number> {
	const { head } = engine.peekView(key) ?? {};
	const counters = head && (await engine.decodeMetadata(key, head)).counters_since_delta_snapshot;
	const steps = channels.map((channel) => counters?.[channel]?.[1] ?? Number.NaN);
	// A little more, for the parent of the last and updates that are not counted.
	return steps.every(Number.isInteger) ? Math.max(FIRST_PAGE, ...steps.map((count) => count + 4)) : LARGEST_PAGE;
}

/** @param path newest first */
function join(path: readonly Part[]): RawHistory {
	const start = path.at(-1)?.start;
	const writes = [...(start?.writes ?? [])];
	for (let i = path.length - 1; i >= 0; i--) writes.push(...(path[i] as Part).writes);
	return { seed: start?.seed, writes, includes: path.length === 1 ? start?.includes : undefined };
}

async function makePart(
	steps: Steps,
	channel: string,
	{ id, newerId }: Place,
	withoutOwn: boolean,
): Promise<Part | undefined> {
	const newer = await steps.get(newerId);
	const step = await steps.get(id);
	if (step === undefined) return undefined;
	const { checkpoint, writes, copyOf } = step;
	const { parentId } = checkpoint;
	const base = step.bases.find((row) => row.channel === channel);
	const recorded = base && unpackHistory(base.data);
	const own = attributeOwnWrites({ checkpoint, child: newer?.checkpoint, channel, writes }).filter(
		({ actor }) => actor === undefined || actor !== recorded?.includes,
	);
	const finish = (
		before: readonly WriteRow[],
		start: RawHistory | undefined,
		next?: Place,
		grandparentId = "",
	): Part => ({
		id,
		newerId,
		writes: [...before, ...(withoutOwn ? [] : own)].map(keepPast),
		start,
		next: start === undefined ? next : undefined,
		newest: [id, parentId ?? "", copyOf ?? "", grandparentId].reduce((a, b) => (a > b ? a : b)),
	});
	if (recorded !== undefined) return finish([], recorded);
	const original = await steps.get(copyOf);
	if (original !== undefined) return finish([], seedAt(original, channel), { id: original.checkpoint.id, newerId });
	const parent = await steps.get(parentId);
	if (parent === undefined)
		return finish(attributeOrphans({ root: checkpoint, channel, writes: step.orphans ?? [] }), undefined);
	// A run may begin by filing once more, under the checkpoint that it starts with, what was pending at its parent.
	const grandparent = parent.checkpoint.source === "loop" ? undefined : await steps.get(parent.checkpoint.parentId);
	const before = attributeWrites({
		parent: parent.checkpoint,
		child: checkpoint,
		siblings: parent.children.filter((child) => child.id !== id),
		channel,
		writes: parent.writes,
		own,
		inherited: new Set(grandparent?.writes.map(({ taskId }) => taskId)),
	});
	return finish(before, seedAt(parent, channel), { id: parent.checkpoint.id, newerId: id }, parent.checkpoint.parentId);
}

function seedAt({ manifest }: Step, channel: string): RawHistory | undefined {
	const seed = manifest.get(channel);
	return seed === undefined ? undefined : { seed, writes: [] };
}

/** Bytes of its own: a row may be a view into a page of the database driver that is much larger. */
function keepPast({ taskId, type, blob, value }: WriteRow): PastWrite {
	return { taskId, cell: blob ?? { type, bytes: new Uint8Array(value) } };
}

/** A checkpoint on the way to the ancestors. */
interface Step {
	readonly checkpoint: PathCheckpoint;
	readonly manifest: Head["manifest"];
	readonly copyOf: string | undefined;
	readonly writes: readonly WriteRow[];
	readonly children: readonly PathCheckpoint[];
	/** What was recorded when its ancestors were deleted. */
	readonly bases: readonly DeltaBaseRow[];
	/** Writes of the namespace whose checkpoint has no row and an older id, if its parent has none. */
	readonly orphans: readonly WriteRow[] | undefined;
}

/** The checkpoints of one walk, read as they are asked for, each with its ancestors. */
class Steps {
	readonly #engine: Engine;
	readonly #key: CheckpointKey;
	readonly #steps = new Map<string, Step>();
	/** See {@link versionOf}; empty once others have changed the thread between two pages. */
	version: string | undefined;
	/** How many rows the next read is for. */
	page: number;
	/** Whether something was removed between two pages. */
	isTorn = false;
	#stamp: number | undefined;

	constructor(engine: Engine, key: CheckpointKey, page: number) {
		this.#engine = engine;
		this.#key = key;
		this.page = page;
	}

	async get(id: string | undefined): Promise<Step | undefined> {
		if (id === undefined) return undefined;
		const known = this.#steps.get(id);
		if (known !== undefined) return known;
		const { storage } = this.#engine;
		const found = await storage.readPath({ ...this.#key, id }, this.page);
		// A row that is not there may be gone for long, or since the page before.
		const { stamp } = found.path[0] ?? (await storage.getThread(this.#key.threadId)) ?? {};
		this.isTorn ||= this.#steps.size > 0 && stamp !== this.#stamp;
		this.#stamp = stamp;
		this.#add(found);
		return this.#steps.get(id);
	}

	#add(found: PathReading): void {
		const { path, deltaBases, orphans } = found;
		this.page = Math.min(this.page * 4, LARGEST_PAGE);
		const version = versionOf(found) ?? this.version;
		this.version = (this.version ?? version) === version ? version : "";
		const writes = groupWrites(found.writes);
		const siblings = found.siblings.map((row) => pathCheckpoint(row));
		let child: PathCheckpoint | undefined;
		for (const row of path) {
			const head = unpackRow(row);
			const checkpoint = pathCheckpoint(row, head);
			const children = siblings.filter(({ parentId }) => parentId === row.id);
			if (child !== undefined) children.push(child);
			child = checkpoint;
			if (this.#steps.has(row.id)) continue;
			this.#steps.set(row.id, {
				checkpoint,
				manifest: head.manifest,
				copyOf: head.origin?.copyOf,
				writes: writes.get(cacheKey(row)) ?? [],
				children,
				bases: deltaBases.filter(({ id }) => id === row.id),
				orphans,
			});
		}
	}
}
