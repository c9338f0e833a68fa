import type { Checkpoint, CheckpointMetadata, CheckpointPendingWrite } from "@langchain/langgraph-checkpoint";
import { CheckpointError, locate } from "../errors.ts";
import { compareIds } from "../storage/compare-ids.ts";
import type { CheckpointKey, Depth, FoundCheckpoint, Reading } from "../storage/storage.ts";
import type { Cell } from "./cells.ts";
import { type Engine, MOST_ATTEMPTS, unreadable, viewOf } from "./engine.ts";
import { copyVersions, type Head, namedBlobs } from "./head.ts";
import { splitLabels } from "./labels.ts";
import { restoreSends } from "./old-sends.ts";
import { cacheKey, groupWrites, unpackRow, visibleWrites, writeCell } from "./rows.ts";

/** Rows of the first page of a listing if it is not said how many are wanted: each page is a round trip. */
const FIRST_PAGE = 16;
/** Rows of the largest page that is read with all values. */
const LARGEST_PAGE = 64;
/** Rows of the largest page where a filter is looked for: most rows are left out, and none is decoded but its metadata. */
const LARGEST_SEARCH = 1024;

export interface ListQuery {
	readonly threadId: string | undefined;
	readonly ns: string | undefined;
	readonly id: string | undefined;
	readonly before: string | undefined;
	readonly limit: number;
	/** Metadata that all have, as far as it can be compared by a backend, and which rows count, judged by their metadata. */
	readonly filter?: object | undefined;
	readonly accepts?: ((metadata: unknown) => boolean) | undefined;
}

/** A checkpoint as it is read. */
export interface StoredCheckpoint {
	readonly key: CheckpointKey;
	readonly parentId: string | undefined;
	readonly checkpoint: Checkpoint;
	readonly metadata: CheckpointMetadata;
	readonly pendingWrites: CheckpointPendingWrite[];
	/** The greatest number of a run or update that stored writes there; 0 if none is known. */
	readonly lastActor: number;
}

/** A checkpoint by its id, or the newest one of the namespace. */
export async function readOne(
	engine: Engine,
	{ threadId, ns, id }: Omit<CheckpointKey, "id"> & { readonly id: string | undefined },
): Promise<StoredCheckpoint | undefined> {
	const which = id === undefined ? { threadId, ns, limit: 1 } : [{ threadId, ns, id }];
	for (let attempt = 1; ; attempt++) {
		let row: FoundCheckpoint | undefined;
		try {
			const reading = await engine.storage.read(which, "values", engine.knownBlobs(threadId, ns));
			row = reading.checkpoints[0];
			if (row === undefined) {
				if (id === undefined) engine.remember({ threadId, ns }, undefined, 0);
				return undefined;
			}
			const view = viewOf(row);
			// Whoever reads a checkpoint is likely to put its child next.
			const stored = await readRow(engine, row, view.head, await loadPage(engine, [view.head], reading), true);
			engine.remember(row, view, row.head.length);
			return stored;
		} catch (error) {
			// Something else of it can't be read, or not even the row.
			row ??= (await engine.storage.read(which, "rows").catch(() => undefined))?.checkpoints[0];
			if (row === undefined) throw error;
			const isOutdated = (await engine.storage.getThread(threadId))?.stamp !== row.stamp;
			if (!isOutdated || attempt === MOST_ATTEMPTS) throw await explain(engine, row, error);
		}
	}
}

/** An error about a blob does not say whose value it was. */
async function explain(engine: Engine, row: FoundCheckpoint, error: unknown): Promise<unknown> {
	if (!(error instanceof CheckpointError) || error.place?.checkpointId !== undefined) return error;
	for (const [channel, cell] of unpackRow(row).manifest) {
		if (typeof cell !== "number") continue;
		const fault = await engine.blobs.load([cell]).catch((reason: unknown) => reason);
		if (fault instanceof CheckpointError) return unreadable(row, channel, fault.message, fault);
	}
	const { threadId, ns, id } = row;
	return locate(error, { threadId, ns, checkpointId: id });
}

/** Checkpoints by descending id. Reads a page at a time, and nothing is held open between two of them. */
export async function* list(engine: Engine, query: ListQuery): AsyncGenerator<StoredCheckpoint> {
	let left = query.limit;
	for await (const reading of search(engine, query))
		for await (const stored of readPage(engine, reading)) {
			yield stored;
			if (--left <= 0) return;
		}
}

/** The rows of such checkpoints, without their values. */
export async function* listRows(engine: Engine, query: ListQuery): AsyncGenerator<FoundCheckpoint> {
	let left = query.limit;
	for await (const { checkpoints } of pagesOf(engine, query, () => "rows"))
		for (const row of checkpoints) {
			yield row;
			if (--left <= 0) return;
		}
}

/** Small pages first: whoever wants one row should not pay for many. What a filter finds is paid for by what it passes. */
async function* pagesOf(engine: Engine, query: ListQuery, nextDepth: () => Depth): AsyncGenerator<Reading> {
	const { threadId, ns, id, limit } = query;
	const { source, step, labels } = splitLabels(query.filter);
	// No text is between an id and this one.
	const before = id === undefined ? query.before : `${id}\0`;
	if (id !== undefined && query.before !== undefined && compareIds(id, query.before) >= 0) return;
	let after: FoundCheckpoint | undefined;
	const first = query.filter === undefined ? FIRST_PAGE : LARGEST_PAGE;
	for (let size = limit <= LARGEST_PAGE ? limit : first; ; size *= 4) {
		const depth = nextDepth();
		size = Math.min(size, depth === "values" ? LARGEST_PAGE : LARGEST_SEARCH);
		const scan = { threadId, ns, before, after, source, step, labels, limit: size };
		// A page of which a value can't be read is read without values: each row then tells by itself what is wrong with it.
		const reading = await engine.storage.read(scan, depth).catch(() => engine.storage.read(scan, "rows"));
		const { checkpoints } = reading;
		// Rows with one id stand together.
		const found = id === undefined ? checkpoints : checkpoints.filter((row) => row.id === id);
		yield { ...reading, checkpoints: found };
		if (checkpoints.length < size || found.length < checkpoints.length) return;
		after = checkpoints.at(-1);
	}
}

/** What a filter leaves out is not read; but values come along as long as a backend finds only what is wanted. */
async function* search(engine: Engine, query: ListQuery): AsyncGenerator<Reading> {
	let depth: Depth = "values";
	for await (const reading of pagesOf(engine, query, () => depth)) {
		const found: FoundCheckpoint[] = [];
		for (const row of reading.checkpoints) {
			const isFound = query.accepts?.(await engine.decodeMetadata(row, unpackRow(row))) ?? true;
			if (isFound) found.push(row);
		}
		if (depth === "values") yield { ...reading, checkpoints: found };
		// Of a large page not all values are held at once.
		for (let i = 0; depth === "rows" && i < found.length; i += LARGEST_PAGE) {
			const keys = found.slice(i, i + Math.min(LARGEST_PAGE, query.limit));
			yield await engine.storage.read(keys, "values").catch(() => ({ checkpoints: keys, writes: [], blobs: [] }));
		}
		if (found.length < reading.checkpoints.length) depth = "rows";
	}
}

/**
 * Decodes a row only when it is asked for: it may be the last that is, and others want to work between two. What can't
 * be read as part of the page is read by itself, which says what is wrong with it, or that it is gone.
 */
async function* readPage(engine: Engine, reading: Reading): AsyncGenerator<StoredCheckpoint> {
	const rows = reading.checkpoints;
	const heads = rows.map((row) => unpackRow(row));
	const page = await loadPage(engine, heads, reading).catch(() => undefined);
	for (const [i, row] of rows.entries()) {
		const stored = page && (await readRow(engine, row, heads[i] as Head, page).catch(() => undefined));
		const found = stored ?? (await readOne(engine, row));
		if (found !== undefined) yield found;
	}
}

/** All that it takes to read some rows. */
async function loadPage(engine: Engine, heads: readonly Head[], reading: Reading) {
	const ids = new Set<number>();
	for (const head of heads) for (const id of namedBlobs(head)) ids.add(id);
	for (const { blob } of reading.writes) if (blob !== undefined) ids.add(blob);
	return { writes: groupWrites(reading.writes), blobs: await engine.blobs.load(ids, reading.blobs) };
}

/** A row with its values and pending writes. */
async function readRow(
	engine: Engine,
	row: FoundCheckpoint,
	head: Head,
	{ writes, blobs }: Awaited<ReturnType<typeof loadPage>>,
	willBeExtended = false,
): Promise<StoredCheckpoint> {
	const { threadId, ns, id, parentId } = row;
	const values = await engine.decodeAll(row, [...head.manifest], blobs, willBeExtended);
	const channel_values = Object.fromEntries([...head.manifest.keys()].map((channel, i) => [channel, values[i]]));
	const { versions, seen } = copyVersions({ channel_versions: head.versions, versions_seen: head.seen });
	const checkpoint: Checkpoint = {
		v: head.v,
		id,
		ts: head.ts,
		channel_values,
		channel_versions: versions,
		versions_seen: seen,
	};
	if (head.v < 4) await restoreSends(engine, row, checkpoint);
	const stored = writes.get(cacheKey(row)) ?? [];
	const lastActor = stored.reduce((last, { actor = 0 }) => Math.max(last, actor), 0);
	const pending = visibleWrites(stored);
	const cells: [string, Cell][] = [["metadata", head.metadata]];
	for (const write of pending) cells.push([write.channel, writeCell(write)]);
	const [metadata, ...written] = await engine.decodeAll(row, cells, blobs);
	const pendingWrites = pending.map(({ taskId, channel }, i): CheckpointPendingWrite => [taskId, channel, written[i]]);
	const key = { threadId, ns, id };
	return { key, parentId, checkpoint, metadata: metadata as CheckpointMetadata, pendingWrites, lastActor };
}
