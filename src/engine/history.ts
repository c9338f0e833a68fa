import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey, DeltaBaseRow, FoundCheckpoint, WriteRow } from "../storage/storage.ts";
import { attributeOrphans, attributeOwnWrites, attributeWrites, type PathCheckpoint } from "./attribution.ts";
import type { Engine } from "./engine.ts";
import { type Cell, type Head, packCell, packList, unpackCell, unpackList } from "./head.ts";
import { isInternal, pathCheckpoint } from "./origin.ts";
import { cacheKey, groupWrites, unpackRow, writeCell } from "./rows.ts";

/** Rows of a path that are read at a time. */
const PATH_PAGE = 256;

/** What made a delta channel's value, not decoded: a value to start from, if there is one, and writes, oldest first. */
export interface RawHistory {
	readonly seed: Cell | undefined;
	readonly writes: readonly { readonly taskId: string; readonly cell: Cell }[];
}

/** Answers LangGraph's question for the history of delta channels at a checkpoint, or at the newest one. */
export async function readHistory(
	engine: Engine,
	where: { threadId: string | undefined; ns: string; id: string | undefined },
	channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
	const key = await resolve(engine, where);
	const raw = key === undefined ? new Map<string, RawHistory>() : await walk(engine, key, channels);
	const ids = new Set<number>();
	for (const { seed, writes } of raw.values())
		for (const cell of [seed, ...writes.map((write) => write.cell)]) if (typeof cell === "number") ids.add(cell);
	const blobs = await engine.blobs.load(ids);
	const histories: Record<string, DeltaChannelHistory> = {};
	for (const channel of channels) {
		const { seed, writes = [] } = raw.get(channel) ?? {};
		const history: DeltaChannelHistory = { writes: [] };
		const at = key as CheckpointKey;
		for (const { taskId, cell } of writes)
			history.writes.push([taskId, channel, await engine.decodeCell(at, channel, cell, blobs)]);
		if (seed !== undefined) history.seed = await engine.decodeCell(at, channel, seed, blobs);
		Object.defineProperty(histories, channel, { value: history, writable: true, enumerable: true, configurable: true });
	}
	return histories;
}

async function resolve(
	engine: Engine,
	{ threadId, ns, id }: { threadId: string | undefined; ns: string; id: string | undefined },
): Promise<CheckpointKey | undefined> {
	if (threadId === undefined) return undefined;
	if (id !== undefined) return { threadId, ns, id };
	return engine.storage.getLatest(threadId, ns);
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
	const open = new Set(channels);
	/** Newest first. */
	const found = new Map(channels.map((channel) => [channel, [] as WriteRow[][]]));
	const done = new Map<string, RawHistory>();
	const finish = (channel: string, seed: Cell | undefined, first: RawHistory["writes"] = []) => {
		const writes = (found.get(channel) ?? []).reverse().flat();
		const later = writes.map((write) => ({ taskId: write.taskId, cell: writeCell(write) }));
		done.set(channel, { seed, writes: [...first, ...later] });
		open.delete(channel);
	};
	const visited = new Set<string>();
	let path = new Path(engine, key);
	let newer: PathCheckpoint | undefined;
	for (let i = 0; open.size > 0; i++) {
		const step = await path.at(i);
		if (step === undefined || visited.has(step.row.id)) break;
		visited.add(step.row.id);
		const { checkpoint, head } = step;
		const owns = new Map<string, WriteRow[]>();
		for (const channel of [...open]) {
			const own = attributeOwnWrites({ checkpoint, child: newer, channel, writes: step.writes });
			owns.set(channel, own);
			if (step.row.id !== key.id || !options.withoutOwn) found.get(channel)?.push(own);
			const recorded = step.bases.get(channel);
			if (recorded !== undefined) finish(channel, recorded.seed, recorded.writes);
		}
		if (open.size === 0) break;
		const original = head.origin?.copyOf && new Path(engine, { ...key, id: head.origin.copyOf });
		if (original && (await original.at(0)) !== undefined) {
			path = original;
			i = -1;
			continue;
		}
		const parent = await path.at(i + 1);
		// A run may begin by filing once more, under the checkpoint that it starts with, what was pending at its parent.
		const grandparent = parent?.row.source === "loop" ? undefined : await path.at(i + 2);
		const inherited = new Set(grandparent?.writes.map(({ taskId }) => taskId));
		const siblings = parent?.children.filter(({ id }) => id !== checkpoint.id) ?? [];
		const orphans = parent === undefined ? await readOrphans(engine, step) : [];
		for (const channel of [...open]) {
			if (parent === undefined) {
				found.get(channel)?.push(attributeOrphans({ root: checkpoint, channel, writes: orphans }));
				continue;
			}
			const { writes } = parent;
			const own = owns.get(channel);
			const input = { parent: parent.checkpoint, child: checkpoint, siblings, channel, writes, own, inherited };
			found.get(channel)?.push(attributeWrites(input));
			const seed = parent.head.manifest.get(channel);
			if (seed !== undefined) finish(channel, seed);
		}
		newer = checkpoint;
	}
	for (const channel of [...open]) finish(channel, undefined);
	return done;
}

async function readOrphans(engine: Engine, { row }: Step): Promise<(WriteRow & { checkpointId: string })[]> {
	const orphans = await engine.storage.getOrphanWrites(row.threadId, row.ns, row.id);
	return orphans.map((write) => ({ ...write, checkpointId: write.id }));
}

/** A checkpoint and its ancestors, read as they are asked for. */
class Path {
	readonly #engine: Engine;
	readonly #steps: Step[] = [];
	readonly #visited = new Set<string>();
	#next: CheckpointKey | undefined;

	constructor(engine: Engine, key: CheckpointKey) {
		this.#engine = engine;
		this.#next = key;
	}

	/** The ancestor that many generations up; `undefined` past the last one. */
	async at(index: number): Promise<Step | undefined> {
		while (this.#steps.length <= index && this.#next !== undefined) await this.#readPage(this.#next);
		return this.#steps[index];
	}

	async #readPage(key: CheckpointKey): Promise<void> {
		const { storage } = this.#engine;
		const rows = (await storage.getPath(key, PATH_PAGE)).filter(({ id }) => !this.#visited.has(id));
		const ids = rows.map(({ id }) => id);
		const bases = groupBases(await storage.getDeltaBases(rows));
		const writes = groupWrites(await storage.getWrites(rows));
		const children = new Map(ids.map((id) => [id, [] as PathCheckpoint[]]));
		for (const child of await storage.getChildren(key.threadId, key.ns, ids))
			children.get(child.parentId as string)?.push(pathCheckpoint(child));
		for (const row of rows) {
			this.#visited.add(row.id);
			const head = unpackRow(row);
			this.#steps.push({
				row,
				head,
				checkpoint: pathCheckpoint(row, head),
				writes: writes.get(cacheKey(row)) ?? [],
				children: children.get(row.id) ?? [],
				bases: bases.get(cacheKey(row)) ?? new Map(),
			});
		}
		const parentId = rows.length < PATH_PAGE ? undefined : rows.at(-1)?.parentId;
		this.#next = parentId === undefined ? undefined : { ...key, id: parentId };
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

/** What a checkpoint held and lacks now that it is put again: its channels start from there. */
export function keepLost(
	key: CheckpointKey,
	before: Head,
	now: { manifest: ReadonlyMap<string, Cell> },
): DeltaBaseRow[] {
	const lost = [...before.manifest].filter(([channel]) => !now.manifest.has(channel) && !isInternal(channel));
	return lost.map(([channel, seed]) => ({ ...key, channel, data: packHistory({ seed, writes: [] }) }));
}

/** `[seed cell or null, task id, cell, task id, cell...]` */
export function packHistory({ seed, writes }: RawHistory): Uint8Array {
	const fields: unknown[] = [seed === undefined ? null : packCell(seed)];
	for (const { taskId, cell } of writes) fields.push(taskId, packCell(cell));
	return packList(fields);
}

export function unpackHistory(data: Uint8Array): RawHistory {
	const [seed, ...rest] = unpackList(data);
	const writes: { taskId: string; cell: Cell }[] = [];
	for (let i = 0; i < rest.length; i += 2) writes.push({ taskId: rest[i] as string, cell: unpackCell(rest[i + 1]) });
	return { seed: seed === null ? undefined : unpackCell(seed), writes };
}
