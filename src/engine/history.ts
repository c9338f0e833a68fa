import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey, FoundCheckpoint, WriteRow } from "../storage/storage.ts";
import { attributeWrites } from "./attribution.ts";
import { cacheKey, type Engine, groupWrites, unpackRow, writeCell } from "./engine.ts";
import { type Cell, type Head, packCell, packList, unpackCell, unpackList } from "./head.ts";

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

/**
 * The raw histories of these channels at a checkpoint.
 *
 * From the checkpoint to its ancestors, until each channel has met a value to start from, or what was recorded when
 * its ancestors were deleted.
 */
export async function walk(
	engine: Engine,
	key: CheckpointKey,
	channels: readonly string[],
): Promise<Map<string, RawHistory>> {
	const open = new Map(channels.map((channel) => [channel, [] as RawHistory["writes"][number][][]]));
	const done = new Map<string, RawHistory>();
	const finish = (channel: string, seed: Cell | undefined, first: RawHistory["writes"] = []) => {
		const newestFirst = open.get(channel) ?? [];
		done.set(channel, { seed, writes: [...first, ...newestFirst.reverse().flat()] });
		open.delete(channel);
	};
	let child: { row: FoundCheckpoint; head: Head } | undefined;
	const visited = new Set<string>();
	for (let next: CheckpointKey | undefined = key; next !== undefined && open.size > 0; ) {
		const path = await engine.storage.getPath(next, PATH_PAGE);
		const bases = groupBases(await engine.storage.getDeltaBases(path));
		const writes = groupWrites(await engine.storage.getWrites(path));
		for (const row of path) {
			if (visited.has(row.id)) return finishAll(open, finish, done);
			visited.add(row.id);
			const head = unpackRow(row);
			for (const channel of [...open.keys()]) {
				if (child !== undefined) {
					const here = writes.get(cacheKey(row)) ?? [];
					open.get(channel)?.push(attributed(row, head, child, channel, here));
					const seed = head.manifest.get(channel);
					if (seed !== undefined) {
						finish(channel, seed);
						continue;
					}
				}
				const base = bases.get(cacheKey(row))?.get(channel);
				if (base !== undefined) finish(channel, base.seed, base.writes);
			}
			child = { row, head };
		}
		const last = path.at(-1);
		next = path.length < PATH_PAGE || last?.parentId === undefined ? undefined : { ...key, id: last.parentId };
	}
	return finishAll(open, finish, done);
}

function finishAll(
	open: ReadonlyMap<string, unknown>,
	finish: (channel: string, seed: undefined) => void,
	done: Map<string, RawHistory>,
): Map<string, RawHistory> {
	for (const channel of [...open.keys()]) finish(channel, undefined);
	return done;
}

function attributed(
	row: FoundCheckpoint,
	head: Head,
	child: { row: FoundCheckpoint; head: Head },
	channel: string,
	writes: readonly WriteRow[],
): RawHistory["writes"][number][] {
	const made = attributeWrites({
		parent: { id: row.id, source: row.source, step: row.step, versions: head.versions },
		child: { id: child.row.id, source: child.row.source, step: child.row.step, versions: child.head.versions },
		siblings: [],
		channel,
		writes,
	});
	return made.map((write) => ({ taskId: write.taskId, cell: writeCell(write) }));
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

/** `[seed cell or null, task id, cell, task id, cell...]` */
export function packHistory({ seed, writes }: RawHistory): Uint8Array {
	const fields: unknown[] = [seed === undefined ? null : packCell(seed)];
	for (const { taskId, cell } of writes) fields.push(taskId, packCell(cell));
	return packList(fields);
}

export function unpackHistory(data: Uint8Array): RawHistory {
	const [seed, ...rest] = unpackList(data);
	const writes: { taskId: string; cell: Cell }[] = [];
	for (let i = 0; i < rest.length; i += 2)
		writes.push({ taskId: rest[i] as string, cell: unpackCell(rest[i + 1]) });
	return { seed: seed === null ? undefined : unpackCell(seed), writes };
}
