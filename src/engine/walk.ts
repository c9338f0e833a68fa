import type { CheckpointKey, FoundCheckpoint, WriteRow } from "../storage/storage.ts";
import { attributeOrphans, attributeOwnWrites, attributeWrites, type PathCheckpoint } from "./attribution.ts";
import type { Engine } from "./engine.ts";
import type { Head } from "./head.ts";
import { type Link, type NextLink, ORPHANS, type ThreadLinks } from "./links.ts";
import { pathCheckpoint } from "./origin.ts";
import { type PastWrite, type RawHistory, unpackHistory } from "./raw-history.ts";
import { cacheKey, groupWrites, unpackRow, writeCell } from "./rows.ts";

/** Rows of a path that are read at a time: few at first, since most of a history is remembered. */
const FIRST_PAGE = 8;
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
	const links = engine.links.open(threadId, await engine.storage.getEpoch());
	const { bytes } = links;
	const steps = new Steps(engine, key, links);
	const histories = new Map<string, RawHistory>();
	for (const channel of channels) {
		const path: Link[] = [];
		const visited = new Set<string>();
		let next: NextLink | undefined = { id: key.id, newer: undefined };
		while (next !== undefined && !visited.has(next.id)) {
			const link: Link | undefined = links.find(ns, channel, next) ?? (await makeLink(steps, channel, next));
			if (link === undefined) break;
			next.known = link;
			visited.add(link.id);
			path.push(link);
			next = link.next;
		}
		histories.set(channel, join(path, options.withoutOwn === true));
	}
	if (links.bytes !== bytes) engine.links.keep(threadId, links);
	return histories;
}

/** @param path newest first */
function join(path: readonly Link[], withoutOwn: boolean): RawHistory {
	const start = path.at(-1)?.start;
	const writes: PastWrite[] = start === undefined ? [] : [...start.writes];
	for (let i = path.length - 1; i >= 0; i--) {
		const { before, own } = path[i] as Link;
		for (const write of before) writes.push(write);
		if (i > 0 || !withoutOwn) for (const write of own) writes.push(write);
	}
	return { seed: start?.seed, writes };
}

async function makeLink(steps: Steps, channel: string, { id, newer }: NextLink): Promise<Link | undefined> {
	const step = await steps.get(id);
	if (step === undefined) return undefined;
	const { checkpoint } = step;
	const own = attributeOwnWrites({ checkpoint, child: newer, channel, writes: step.writes });
	const dependsOn = [id];
	if (newer !== undefined) dependsOn.push(newer.id);
	const finish = (before: readonly WriteRow[], start: RawHistory | undefined, next?: NextLink) => {
		const link = { id, own: own.map(toPast), before: before.map(toPast), start, next, dependsOn };
		steps.keep(channel, newer, link);
		return link;
	};
	const recorded = step.bases.get(channel);
	if (recorded !== undefined) return finish([], recorded);
	const { copyOf } = step.head.origin ?? {};
	if (copyOf !== undefined) {
		dependsOn.push(copyOf);
		if ((await steps.get(copyOf)) !== undefined) return finish([], undefined, { id: copyOf, newer });
	}
	const parent = await steps.get(step.row.parentId);
	if (parent === undefined) {
		dependsOn.push(ORPHANS);
		return finish(attributeOrphans({ root: checkpoint, channel, writes: await steps.getOrphans(step) }), undefined);
	}
	// A run may begin by filing once more, under the checkpoint that it starts with, what was pending at its parent.
	const grandparent = parent.row.source === "loop" ? undefined : await steps.get(parent.row.parentId);
	const inherited = new Set(grandparent?.writes.map(({ taskId }) => taskId));
	const siblings = parent.children.filter((child) => child.id !== id);
	dependsOn.push(parent.row.id);
	if (grandparent !== undefined) dependsOn.push(grandparent.row.id);
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
	return finish(before, undefined, { id: parent.row.id, newer: checkpoint });
}

function toPast(write: WriteRow): PastWrite {
	return { taskId: write.taskId, cell: writeCell(write) };
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
	#page = FIRST_PAGE;
	/** How often the thread had changed before anything was read. */
	readonly #changes: number;

	constructor(engine: Engine, key: CheckpointKey, links: ThreadLinks) {
		this.#engine = engine;
		this.#key = key;
		this.#links = links;
		this.#changes = links.changes;
	}

	/** Remembers a link, unless something may have changed since its steps were read. */
	keep(channel: string, newer: PathCheckpoint | undefined, link: Link): void {
		if (this.#links.changes === this.#changes) this.#links.add(this.#key.ns, channel, newer, link);
	}

	async get(id: string | undefined): Promise<Step | undefined> {
		if (id === undefined) return undefined;
		const known = this.#steps.get(id);
		if (known !== undefined) return known;
		await this.#readPage(id);
		return this.#steps.get(id);
	}

	/** Writes of the namespace whose checkpoint has no row. */
	async getOrphans({ row }: Step): Promise<(WriteRow & { checkpointId: string })[]> {
		const orphans = await this.#engine.storage.getOrphanWrites(row.threadId, row.ns, row.id);
		return orphans.map((write) => ({ ...write, checkpointId: write.id }));
	}

	async #readPage(id: string): Promise<void> {
		const { storage } = this.#engine;
		const key = { ...this.#key, id };
		const rows = (await storage.getPath(key, this.#page)).filter((row) => !this.#steps.has(row.id));
		this.#page = Math.min(this.#page * 4, LARGEST_PAGE);
		const bases = groupBases(await storage.getDeltaBases(rows));
		const writes = groupWrites(await storage.getWrites(rows));
		const ids = rows.map((row) => row.id);
		const children = new Map(ids.map((id) => [id, [] as PathCheckpoint[]]));
		for (const child of await storage.getChildren(key.threadId, key.ns, ids))
			children.get(child.parentId as string)?.push(pathCheckpoint(child));
		for (const row of rows) {
			const head = unpackRow(row);
			this.#steps.set(row.id, {
				row,
				head,
				checkpoint: pathCheckpoint(row, head),
				writes: writes.get(cacheKey(row)) ?? [],
				children: children.get(row.id) ?? [],
				bases: bases.get(cacheKey(row)) ?? new Map(),
			});
		}
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
