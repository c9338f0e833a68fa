import type { CheckpointKey, FoundCheckpoint, PathReading, WriteRow } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { Head } from "../head.ts";
import { cacheKey, groupWrites, unpackRow } from "../rows.ts";
import { attributeOrphans, attributeOwnWrites, attributeWrites, type PathCheckpoint } from "./attribution.ts";
import { type Link, ORPHANS, type Place, type ThreadLinks } from "./links.ts";
import { pathCheckpoint } from "./origin.ts";
import { type PastWrite, type RawHistory, unpackHistory } from "./raw-history.ts";

/**
 * Rows of a path that are read where the links of older ones are cached: the checkpoints of one turn, and two before
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
	const { threadId, ns } = key;
	const [links, steps] = await openSteps(engine, key, channels);
	const { bytes } = links;
	const histories = new Map<string, RawHistory>();
	for (const channel of channels) {
		const find = async (place: Place | undefined) =>
			place && (links.find(ns, channel, place) ?? (await makeLink(steps, channel, place)));
		const path: Link[] = [];
		const visited = new Set<string>();
		let link = await find({ id: key.id, newerId: undefined });
		while (link !== undefined && !visited.has(link.id)) {
			visited.add(link.id);
			path.push(link);
			if (link.nextLink === undefined || link.nextLink.isOutdated) link.nextLink = await find(link.next);
			link = link.nextLink;
		}
		histories.set(channel, join(path, options.withoutOwn === true));
	}
	if (links.bytes !== bytes) engine.links.keep(threadId, links);
	return histories;
}

/**
 * The cached links of a thread, and a way to read the rest. The first rows tell whether the links still hold; if there
 * are none, all rows that are likely to be needed are read at once.
 */
async function openSteps(
	engine: Engine,
	key: CheckpointKey,
	channels: readonly string[],
): Promise<[ThreadLinks, Steps]> {
	const { storage, links } = engine;
	const known = links.peek(key.threadId);
	const changes = known?.changes;
	const depth = known === undefined ? await expectDepth(engine, key, channels) : FIRST_PAGE;
	const found = await storage.readPath(key, depth);
	const opened = links.open(key.threadId, found.epoch);
	const steps = new Steps(engine, key, opened, opened === known ? FIRST_PAGE : LARGEST_PAGE, changes);
	steps.add(found);
	return [opened, steps];
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
function join(path: readonly Link[], withoutOwn: boolean): RawHistory {
	const start = path.at(-1)?.start;
	const writes: PastWrite[] = start === undefined ? [] : [...start.writes];
	for (let i = path.length - 1; i >= 0; i--) {
		const { before, own } = path[i] as Link;
		writes.push(...before);
		if (i > 0 || !withoutOwn) writes.push(...own);
	}
	return { seed: start?.seed, writes, includes: path.length === 1 ? start?.includes : undefined };
}

async function makeLink(steps: Steps, channel: string, place: Place): Promise<Link | undefined> {
	const { id, newerId } = place;
	const newer = await steps.get(newerId);
	const step = await steps.get(id);
	if (step === undefined) return undefined;
	const { checkpoint } = step;
	const recorded = step.bases.get(channel);
	const own = attributeOwnWrites({ checkpoint, child: newer?.checkpoint, channel, writes: step.writes }).filter(
		({ actor }) => actor === undefined || actor !== recorded?.includes,
	);
	const dependsOn = new Set([id]);
	if (newerId !== undefined) dependsOn.add(newerId);
	const finish = (before: readonly WriteRow[], start: RawHistory | undefined, next?: Place) => {
		const link: Link = {
			id,
			newerId,
			own: own.map(keepPast),
			before: before.map(keepPast),
			start,
			next,
			nextLink: undefined,
			isOutdated: false,
		};
		steps.keep(channel, link, [...dependsOn]);
		return link;
	};
	if (recorded !== undefined) return finish([], recorded);
	const { copyOf } = step.head.origin ?? {};
	if (copyOf !== undefined) {
		dependsOn.add(copyOf);
		const original = await steps.get(copyOf);
		const seed = original?.head.manifest.get(channel);
		if (seed !== undefined) return finish([], { seed, writes: [] });
		if (original !== undefined) return finish([], undefined, { id: copyOf, newerId });
	}
	const parent = await steps.get(step.row.parentId);
	if (parent === undefined) {
		dependsOn.add(ORPHANS);
		return finish(attributeOrphans({ root: checkpoint, channel, writes: await steps.getOrphans(step) }), undefined);
	}
	// A run may begin by filing once more, under the checkpoint that it starts with, what was pending at its parent.
	const grandparent = parent.row.source === "loop" ? undefined : await steps.get(parent.row.parentId);
	const inherited = new Set(grandparent?.writes.map(({ taskId }) => taskId));
	const siblings = parent.children.filter((child) => child.id !== id);
	dependsOn.add(parent.row.id);
	if (grandparent !== undefined) dependsOn.add(grandparent.row.id);
	const { writes } = parent;
	const before = attributeWrites({
		parent: parent.checkpoint,
		child: checkpoint,
		siblings,
		channel,
		writes,
		own,
		inherited,
	});
	const seed = parent.head.manifest.get(channel);
	if (seed !== undefined) return finish(before, { seed, writes: [] });
	return finish(before, undefined, { id: parent.row.id, newerId: id });
}

/** Bytes of its own: a row may be a view into a page of the database driver that is much larger. */
function keepPast(write: WriteRow): PastWrite {
	const { taskId, type, blob, value } = write;
	return { taskId, cell: blob ?? { type, bytes: new Uint8Array(value) } };
}

/** A checkpoint on the way to the ancestors. */
interface Step {
	readonly row: FoundCheckpoint;
	readonly head: Head;
	readonly checkpoint: PathCheckpoint;
	readonly writes: readonly WriteRow[];
	readonly children: readonly PathCheckpoint[];
	/** What was recorded when its ancestors were deleted. */
	readonly bases: ReadonlyMap<string, RawHistory>;
}

/** The checkpoints of one walk, read as they are asked for, each with its ancestors. */
class Steps {
	readonly #engine: Engine;
	readonly #key: CheckpointKey;
	readonly #links: ThreadLinks;
	readonly #steps = new Map<string, Step>();
	/** By the id of the checkpoint without a parent, where they came along with it. */
	readonly #orphans = new Map<string, readonly WriteRow[]>();
	#page: number;
	/** How often the thread had changed before anything was read. */
	readonly #changes: number;

	/**
	 * @param page how many rows the next read is for
	 * @param changes how often the thread had changed before anything was read, if something was
	 */
	constructor(engine: Engine, key: CheckpointKey, links: ThreadLinks, page: number, changes = links.changes) {
		this.#engine = engine;
		this.#key = key;
		this.#links = links;
		this.#changes = changes;
		this.#page = page;
	}

	/** Remembers a link, unless something may have changed since its steps were read. */
	keep(channel: string, link: Link, dependsOn: readonly string[]): void {
		if (this.#links.changes === this.#changes) this.#links.add(this.#key.ns, channel, link, dependsOn);
		else link.isOutdated = true;
	}

	async get(id: string | undefined): Promise<Step | undefined> {
		if (id === undefined) return undefined;
		const known = this.#steps.get(id);
		if (known !== undefined) return known;
		await this.#readPage(id);
		return this.#steps.get(id);
	}

	/** Writes of the namespace whose checkpoint has no row and an older id. */
	async getOrphans({ row }: Step): Promise<(WriteRow & { checkpointId: string })[]> {
		const orphans = this.#orphans.get(row.id) ?? (await this.#engine.storage.readPath(row, 1)).orphans ?? [];
		return orphans.map((write) => ({ ...write, checkpointId: write.id }));
	}

	async #readPage(id: string): Promise<void> {
		const found = await this.#engine.storage.readPath({ ...this.#key, id }, this.#page);
		this.#page = Math.min(this.#page * 4, LARGEST_PAGE);
		// Others have changed the thread since the page before.
		if (found.epoch !== this.#links.epoch) this.#links.end();
		this.add(found);
	}

	add(found: PathReading): void {
		const bases = groupBases(found.deltaBases);
		const writes = groupWrites(found.writes);
		const path = found.path.map((row) => {
			const head = unpackRow(row);
			return { row, head, checkpoint: pathCheckpoint(row, head) };
		});
		const children = new Map(path.map(({ row }) => [row.id, [] as PathCheckpoint[]]));
		for (const child of [
			...path.map(({ checkpoint }) => checkpoint),
			...found.siblings.map((row) => pathCheckpoint(row)),
		])
			if (child.parentId !== undefined) children.get(child.parentId)?.push(child);
		for (const step of path) {
			const { row } = step;
			if (this.#steps.has(row.id)) continue;
			this.#steps.set(row.id, {
				row,
				head: step.head,
				checkpoint: step.checkpoint,
				writes: writes.get(cacheKey(row)) ?? [],
				children: children.get(row.id) ?? [],
				bases: bases.get(cacheKey(row)) ?? new Map(),
			});
		}
		const last = found.path.at(-1);
		if (last !== undefined && found.orphans !== undefined) this.#orphans.set(last.id, found.orphans);
	}
}

function groupBases(
	rows: readonly (CheckpointKey & { channel: string; data: Uint8Array })[],
): Map<string, Map<string, RawHistory>> {
	const groups = new Map<string, Map<string, RawHistory>>();
	for (const row of rows) {
		const key = cacheKey(row);
		const group = groups.get(key) ?? new Map<string, RawHistory>();
		groups.set(key, group.set(row.channel, unpackHistory(row.data)));
	}
	return groups;
}
