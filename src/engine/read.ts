import {
	type Checkpoint,
	type CheckpointMetadata,
	type CheckpointPendingWrite,
	TASKS,
} from "@langchain/langgraph-checkpoint";
import { CheckpointError, locate } from "../errors.ts";
import { compareIds } from "../storage/compare-ids.ts";
import type { CheckpointKey, FoundCheckpoint, Labels, Reading, WriteRow } from "../storage/storage.ts";
import type { Blob } from "./blobs.ts";
import { type Engine, LARGEST_PAGE, MOST_ATTEMPTS, ROWS_AT_ONCE, unreadable } from "./engine.ts";
import { type Cell, copyVersions, type Head, namedBlobs, setOwn } from "./head.ts";
import { readOldSends, restoreSends } from "./old-sends.ts";
import { cacheKey, groupWrites, unpackRow, visibleWrites, writeCell } from "./rows.ts";

/** Rows of the first page of a listing. */
const FIRST_PAGE = 8;
/** The same where each page costs a round trip and it is not said how many rows are wanted. */
const FIRST_READ = 16;

export interface ListQuery {
	readonly threadId: string | undefined;
	readonly ns: string | undefined;
	readonly id: string | undefined;
	readonly before: string | undefined;
	readonly limit: number;
	/** Which rows count, judged by their metadata. */
	readonly accepts: ((metadata: unknown) => boolean) | undefined;
	/** Labels that all of them have. */
	readonly labels?: Labels | undefined;
}

/** A checkpoint as it is read. */
export interface StoredCheckpoint {
	readonly key: CheckpointKey;
	readonly parentId: string | undefined;
	readonly checkpoint: Checkpoint;
	readonly metadata: CheckpointMetadata;
	readonly pendingWrites: CheckpointPendingWrite[];
}

export function get(engine: Engine, key: CheckpointKey): Promise<StoredCheckpoint | undefined> {
	return readOne(engine, key);
}

export function getLatest(engine: Engine, threadId: string, ns: string): Promise<StoredCheckpoint | undefined> {
	return readOne(engine, { threadId, ns, id: undefined });
}

/** A checkpoint by its id, or the newest one. */
interface Place {
	readonly threadId: string;
	readonly ns: string;
	readonly id: string | undefined;
}

async function readOne(engine: Engine, place: Place): Promise<StoredCheckpoint | undefined> {
	for (let attempt = 1; ; attempt++) {
		const [row, along] = await find(engine, place);
		if (row === undefined) {
			if (place.id === undefined) engine.sawNothing(place.threadId, place.ns);
			return undefined;
		}
		const head = unpackRow(row);
		try {
			// Whoever reads a checkpoint is likely to put its child next.
			const stored = await readRow(engine, row, await loadPage(engine, [row], along, new Map([[row, head]])), true);
			engine.keepView(row, { head, stamp: row.stamp }, row.head.length);
			return stored;
		} catch (error) {
			if (attempt === MOST_ATTEMPTS || !(await isOutdated(engine, row))) throw await explain(engine, row, head, error);
		}
	}
}

/** A row, with all that it takes to read it if the storage gives that along. */
async function find(engine: Engine, place: Place): Promise<[FoundCheckpoint | undefined, Reading | undefined]> {
	const { storage } = engine;
	const { threadId, ns, id } = place;
	if (storage.read === undefined)
		return [
			await (id === undefined ? storage.getLatest(threadId, ns) : storage.getCheckpoint({ ...place, id })),
			undefined,
		];
	const which = id === undefined ? { threadId, ns, limit: 1 } : [{ ...place, id }];
	const reading = await storage.read(which, engine.knownBlobs(threadId, ns, id));
	return [reading.checkpoints[0], reading];
}

/** An error about a blob does not say whose value it was. */
async function explain(engine: Engine, row: FoundCheckpoint, head: Head, error: unknown): Promise<unknown> {
	if (!(error instanceof CheckpointError) || error.place?.checkpointId !== undefined) return error;
	for (const [channel, cell] of head.manifest) {
		if (typeof cell !== "number") continue;
		const fault = await engine.blobs.load([cell]).catch((reason: unknown) => reason);
		if (fault instanceof CheckpointError) return unreadable(row, channel, fault.message, fault);
	}
	const { threadId, ns, id } = row;
	return locate(error, { threadId, ns, checkpointId: id });
}

/** Whether checkpoints of its thread were deleted since the row was read, so that what it names may be gone. */
async function isOutdated(engine: Engine, row: FoundCheckpoint): Promise<boolean> {
	return (await engine.storage.getThread(row.threadId))?.stamp !== row.stamp;
}

/** Checkpoints by descending id. Reads a page at a time, and nothing is held open between two of them. */
export async function* list(engine: Engine, query: ListQuery): AsyncGenerator<StoredCheckpoint> {
	const { accepts } = query;
	let left = query.limit;
	for await (const [rows, along] of readPages(engine, query)) {
		const wanted = accepts === undefined ? rows : await filter(engine, rows, accepts);
		for (let i = 0; i < wanted.length; i += LARGEST_PAGE) {
			// Of a large page not all values are held at once.
			for await (const stored of readPage(engine, wanted.slice(i, i + Math.min(left, LARGEST_PAGE)), along)) {
				yield stored;
				left--;
			}
			if (left <= 0) return;
		}
	}
}

/** The rows of a listing, with all that it takes to read them if the storage gives that along. */
async function* readPages(
	engine: Engine,
	query: ListQuery,
): AsyncGenerator<[rows: readonly FoundCheckpoint[], along?: Reading]> {
	const { threadId, ns, before, limit } = query;
	const { storage } = engine;
	// What a filter leaves out need not be read.
	if (storage.read === undefined || query.accepts !== undefined || query.id !== undefined) {
		for await (const page of pagesOf(engine, query)) yield [page];
		return;
	}
	let after: FoundCheckpoint | undefined;
	for (let size = limit <= LARGEST_PAGE ? limit : FIRST_READ; ; size = LARGEST_PAGE) {
		const reading = await storage.read({ threadId, ns, before, after, limit: size }, []);
		yield [reading.checkpoints, reading];
		if (reading.checkpoints.length < size) return;
		after = reading.checkpoints.at(-1);
	}
}

/** The rows of such checkpoints, without their values. */
export async function* listRows(engine: Engine, query: Omit<ListQuery, "accepts">): AsyncGenerator<FoundCheckpoint> {
	let left = query.limit;
	for await (const page of pagesOf(engine, query))
		for (const row of page) {
			yield row;
			if (--left <= 0) return;
		}
}

function pagesOf(engine: Engine, query: Omit<ListQuery, "accepts">): AsyncGenerator<FoundCheckpoint[]> {
	const { threadId, ns, id, before, labels, limit } = query;
	if (id !== undefined) return findPages(engine, query);
	if (labels === undefined) return engine.scanPages({ threadId, ns, before }, Math.min(limit, FIRST_PAGE));
	// To look for a few more rows costs as much as to look for many, where all threads are looked through.
	const firstPage = threadId === undefined && limit > LARGEST_PAGE ? ROWS_AT_ONCE : LARGEST_PAGE;
	return engine.scanPages({ threadId, ns, before, labels }, firstPage);
}

/** One id, in any thread and namespace that are left open. */
async function* findPages(
	engine: Engine,
	{ threadId, ns, id = "", before }: Omit<ListQuery, "accepts">,
): AsyncGenerator<FoundCheckpoint[]> {
	if (before !== undefined && compareIds(id, before) >= 0) return;
	if (threadId !== undefined && ns !== undefined) {
		const row = await engine.storage.getCheckpoint({ threadId, ns, id });
		return void (yield row === undefined ? [] : [row]);
	}
	for await (const page of engine.scanPages({ threadId, ns, before })) yield page.filter((row) => row.id === id);
}

async function filter(
	engine: Engine,
	rows: readonly FoundCheckpoint[],
	accepts: NonNullable<ListQuery["accepts"]>,
): Promise<FoundCheckpoint[]> {
	const kept: FoundCheckpoint[] = [];
	for (const row of rows)
		if (accepts(await engine.decodeCell(row, "metadata", unpackRow(row).metadata, new Map()))) kept.push(row);
	return kept;
}

/**
 * Decodes a row only when it is asked for: it may be the last that is, and others want to work between two. What can't
 * be read as part of the page is read by itself, which says what is wrong with it, or that it is gone.
 */
async function* readPage(
	engine: Engine,
	rows: readonly FoundCheckpoint[],
	along: Reading | undefined,
): AsyncGenerator<StoredCheckpoint> {
	const page = rows.length === 0 ? undefined : await loadPage(engine, rows, along).catch(() => undefined);
	for (const row of rows) {
		const stored = (page && (await readRow(engine, row, page).catch(() => undefined))) ?? (await get(engine, row));
		if (stored !== undefined) yield stored;
	}
}

/** All that it takes to read some rows. */
interface Page {
	readonly heads: ReadonlyMap<FoundCheckpoint, Head>;
	readonly writes: ReadonlyMap<string, readonly WriteRow[]>;
	readonly sends: ReadonlyMap<string, readonly Cell[]>;
	readonly blobs: ReadonlyMap<number, Blob>;
}

/** Takes one round of reads however many rows there are. */
async function loadPage(
	engine: Engine,
	rows: readonly FoundCheckpoint[],
	given: Reading | undefined,
	heads: ReadonlyMap<FoundCheckpoint, Head> = new Map(rows.map((row) => [row, unpackRow(row)])),
): Promise<Page> {
	const ids = new Set<number>();
	for (const head of heads.values()) for (const id of namedBlobs(head)) ids.add(id);
	const along = given ?? (await engine.storage.read?.(rows, engine.blobs.knownOf(ids)));
	const writes = groupWrites(along?.writes ?? (await engine.storage.getWrites(rows)));
	const sends = await readOldSends(
		engine,
		rows.filter((row) => (heads.get(row) as Head).v < 4),
	);
	for (const group of writes.values()) for (const { value } of group) if (typeof value === "number") ids.add(value);
	for (const cells of sends.values()) for (const cell of cells) if (typeof cell === "number") ids.add(cell);
	return { heads, writes, sends, blobs: await engine.blobs.load(ids, along?.blobs) };
}

/** A row with its values and pending writes. */
async function readRow(
	engine: Engine,
	row: FoundCheckpoint,
	page: Page,
	willBeExtended = false,
): Promise<StoredCheckpoint> {
	const { blobs } = page;
	const head = page.heads.get(row) as Head;
	const place = cacheKey(row);
	const writes = page.writes.get(place) ?? [];
	const sends = page.sends.get(place);
	const channel_values: Record<string, unknown> = {};
	for (const [channel, cell] of head.manifest)
		setOwn(channel_values, channel, await engine.decodeCell(row, channel, cell, blobs, willBeExtended));
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
		for (const cell of sends) values.push(await engine.decodeCell(row, TASKS, cell, blobs));
		restoreSends(checkpoint, values);
	}
	return {
		key: { threadId, ns, id },
		parentId,
		checkpoint,
		metadata: (await engine.decodeCell(row, "metadata", head.metadata, blobs)) as CheckpointMetadata,
		pendingWrites: await decodeWrites(engine, visibleWrites(writes), blobs),
	};
}

async function decodeWrites(
	engine: Engine,
	rows: readonly WriteRow[],
	blobs: ReadonlyMap<number, Blob>,
): Promise<CheckpointPendingWrite[]> {
	const writes: CheckpointPendingWrite[] = [];
	for (const row of rows) {
		const cell = writeCell(row);
		writes.push([row.taskId, row.channel, await engine.decodeCell(row, row.channel, cell, blobs)]);
	}
	return writes;
}
