import { CheckpointError, quote } from "../../errors.ts";
import type {
	BlobRow,
	CheckpointKey,
	DeltaBaseRow,
	Depth,
	FoundCheckpoint,
	ListedBlob,
	PathReading,
	Reading,
	Scan,
	StorageTotals,
	ThreadReading,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { SqliteSession } from "./driver.ts";

interface CheckpointSql {
	pk: number;
	thread_id: string;
	ns: string;
	checkpoint_id: string;
	parent_id: string | null;
	run_id: string | null;
	source: string | null;
	step: number | null;
	blobs: string | null;
	head: Buffer;
	stamp: number;
}

const CHECKPOINT = `SELECT pk, thread_id, ns, checkpoint_id, parent_id, run_id, source, step, blobs, head, stamp
	FROM delta_checkpoints CROSS JOIN delta_threads USING (thread_id)`;
const GET_CHECKPOINT = `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND checkpoint_id = ? AND head IS NOT NULL`;
const GET_NEWEST = `${CHECKPOINT} WHERE thread_id = ? AND ns = ? AND head IS NOT NULL
	ORDER BY checkpoint_id DESC LIMIT 1`;

/** The union leaves out a row that was met before, so that a cycle ends. */
const GET_PATH = `WITH RECURSIVE path (pk, parent_id) AS (
		SELECT pk, parent_id FROM delta_checkpoints
		WHERE thread_id = :threadId AND ns = :ns AND checkpoint_id = :id AND head IS NOT NULL
		UNION
		SELECT c.pk, c.parent_id FROM path CROSS JOIN delta_checkpoints c
		ON c.thread_id = :threadId AND c.ns = :ns AND c.checkpoint_id = path.parent_id AND c.head IS NOT NULL
		LIMIT :limit
	)
	SELECT c.pk, c.thread_id, ns, checkpoint_id, c.parent_id, run_id, source, step, blobs, head, stamp
	FROM path CROSS JOIN delta_checkpoints c USING (pk) CROSS JOIN delta_threads USING (thread_id)`;
/** Reads the whole namespace in the index over keys, and rows only of the children. */
const GET_CHILDREN = `${CHECKPOINT} WHERE pk IN (
		SELECT pk FROM delta_checkpoints WHERE thread_id = ? AND ns = ? AND parent_id IN (
			SELECT checkpoint_id FROM delta_checkpoints WHERE pk IN (SELECT value FROM json_each(?))
		)
	)`;

interface WriteSql {
	checkpoint_pk: number;
	task_id: string;
	generation: number;
	idx: number;
	task_path: string | null;
	channel: string;
	run_id: string | null;
	actor: number | null;
	type: string | null;
	blob: number | null;
	value: Buffer;
}

const WRITE = `SELECT checkpoint_pk, task_id, generation, idx, task_path, channel, run_id, actor, type, blob, value
	FROM delta_writes`;
const GET_WRITES = `${WRITE} WHERE checkpoint_pk = ?`;
const GET_WRITES_OF = `${WRITE} WHERE checkpoint_pk IN (SELECT value FROM json_each(?))`;

interface BaseSql {
	checkpoint_pk: number;
	channel: string;
	data: Buffer;
}

const GET_BASES_OF = `SELECT checkpoint_pk, channel, data FROM delta_bases
	WHERE checkpoint_pk IN (SELECT value FROM json_each(?))`;

interface KeySql {
	pk: number;
	thread_id: string;
	ns: string;
	checkpoint_id: string;
}

const KEY = "SELECT pk, thread_id, ns, checkpoint_id";
const GET_MISSING = `${KEY} FROM delta_checkpoints INDEXED BY delta_checkpoints_missing
	WHERE head IS NULL AND thread_id = ? AND ns = ? AND checkpoint_id < ?`;
const GET_OUTLINE = `${KEY}, parent_id, head IS NULL AS is_missing FROM delta_checkpoints
	WHERE thread_id = ? ORDER BY checkpoint_id DESC, ns`;
const FIND_RUN = `${KEY} FROM delta_checkpoints WHERE run_id = ?`;
const FIND_RUN_WRITES = `${KEY}, task_id, generation, idx
	FROM delta_writes w INDEXED BY delta_writes_run CROSS JOIN delta_checkpoints ON pk = checkpoint_pk WHERE w.run_id = ?`;

interface BlobSql {
	id: number;
	base: number | null;
	source: number | null;
	type: string | null;
	data: Buffer;
}

const GET_BLOB = "SELECT id, base, source, type, data FROM delta_blobs WHERE id = ?";
const LIST_BLOBS = "SELECT id, base, source, length(data) AS bytes FROM delta_blobs WHERE family = ?";
const GET_NEXT_FAMILY = "SELECT min(family) AS family FROM delta_blobs WHERE family > ?";

interface ThreadSql {
	thread_id: string;
	family: number;
	stamp: number;
	created_at: number;
	updated_at: number;
	checkpoints: number;
	newest: string | null;
}

const THREAD = "SELECT thread_id, family, stamp, created_at, updated_at, checkpoints, newest FROM delta_threads";
const GET_THREAD = `${THREAD} WHERE thread_id = ?`;
const GET_FAMILY = `${THREAD} WHERE family = ?`;
const NEWEST_FIRST = "ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT ?";
const LIST_THREADS = `${THREAD} ${NEWEST_FIRST}`;
const LIST_THREADS_AFTER = `${THREAD} WHERE updated_minute <= ? AND (updated_at, thread_id) < (?, ?) ${NEWEST_FIRST}`;

const GET_TOTALS = `SELECT
	(SELECT count(*) FROM delta_threads) AS threads,
	(SELECT count(*) FROM delta_checkpoints WHERE head IS NOT NULL) AS checkpoints,
	(SELECT count(*) FROM delta_writes) AS writes,
	(SELECT ifnull(sum(length(head)), 0) FROM delta_checkpoints) AS checkpointBytes,
	(SELECT ifnull(sum(length(data)), 0) FROM delta_blobs) AS blobBytes,
	(SELECT ifnull(sum(length(value)), 0) FROM delta_writes) AS writeBytes`;

/** The minute that a thread is indexed by. */
export function minuteOf(time: number): number {
	return Math.floor(time / 60_000);
}

export function read(
	session: SqliteSession,
	which: Scan | readonly CheckpointKey[],
	depth: Depth,
	known: readonly number[],
): Reading {
	const rows = isKeys(which) ? findByKeys(session, which) : findByScan(session, which);
	const checkpoints = rows.map(toCheckpoint);
	if (depth === "rows") return { checkpoints, writes: [], blobs: [] };
	const writes = findWrites(session, rows);
	const ids = checkpoints.flatMap(({ blobs }) => blobs);
	for (const { blob } of writes) if (blob !== undefined) ids.push(blob);
	return { checkpoints, writes, blobs: ids.length === 0 ? [] : findBlobs(session, ids, known) };
}

function isKeys(which: Scan | readonly CheckpointKey[]): which is readonly CheckpointKey[] {
	return Array.isArray(which);
}

function findByKeys(session: SqliteSession, keys: readonly CheckpointKey[]): CheckpointSql[] {
	const rows: CheckpointSql[] = [];
	for (const { threadId, ns, id } of keys) {
		const row = session.get<CheckpointSql>(GET_CHECKPOINT, threadId, ns, id);
		if (row !== undefined) rows.push(row);
	}
	return rows;
}

function findByScan(session: SqliteSession, scan: Scan): CheckpointSql[] {
	const { threadId, ns, before, after, source, step, labels, limit } = scan;
	const conditions: string[] = [];
	const parameters: unknown[] = [];
	const add = (condition: string, ...values: unknown[]) => {
		conditions.push(condition);
		parameters.push(...values);
	};
	if (threadId !== undefined) add("thread_id = ?", threadId);
	if (ns !== undefined) add("ns = ?", ns);
	if (before !== undefined) add("checkpoint_id < ?", before);
	if (after !== undefined)
		add(
			"checkpoint_id <= ? AND (checkpoint_id < ? OR (thread_id, ns) > (?, ?))",
			after.id,
			after.id,
			after.threadId,
			after.ns,
		);
	if (source !== undefined) add("source = ?", source);
	if (step !== undefined) add("step = ?", step);
	for (const [key, value] of Object.entries(labels ?? {}))
		add("(labels IS NULL OR instr(labels, ?) > 0)", labelText(key, value));
	if (parameters.length === 2 && threadId !== undefined && ns !== undefined && limit === 1)
		return session.all(GET_NEWEST, threadId, ns);
	// Rows are chosen by the index over keys where that is enough, and sorted without their heads.
	add("pk NOT IN (SELECT pk FROM delta_checkpoints INDEXED BY delta_checkpoints_missing WHERE head IS NULL)");
	const order = "ORDER BY checkpoint_id DESC, thread_id, ns";
	const page = `SELECT pk FROM delta_checkpoints WHERE ${conditions.join(" AND ")} ${order} LIMIT ?`;
	return session.all(`${CHECKPOINT} WHERE pk IN (${page}) ${order}`, ...parameters, limit);
}

/** A label as it stands in the JSON of all labels of a row. A number may also be the beginning of a longer one. */
function labelText(key: string, value: unknown): string {
	return JSON.stringify({ [key]: value }).slice(1, -1);
}

function findWrites(session: SqliteSession, checkpoints: readonly KeySql[]): WriteRow[] {
	const [first] = checkpoints;
	if (first === undefined) return [];
	if (checkpoints.length === 1) return session.all<WriteSql>(GET_WRITES, first.pk).map((row) => toWrite(row, first));
	return findOf(session, GET_WRITES_OF, checkpoints, toWrite);
}

/** Rows of several checkpoints at once. */
function findOf<Sql extends { checkpoint_pk: number }, Row>(
	session: SqliteSession,
	sql: string,
	checkpoints: readonly KeySql[],
	convert: (row: Sql, checkpoint: KeySql) => Row,
): Row[] {
	const byPk = new Map(checkpoints.map((checkpoint) => [checkpoint.pk, checkpoint]));
	const rows = session.all<Sql>(sql, JSON.stringify([...byPk.keys()]));
	return rows.map((row) => convert(row, byPk.get(row.checkpoint_pk) as KeySql));
}

/** Look-ups by id are quicker than a recursive statement, however long the chains. */
export function findBlobs(session: SqliteSession, ids: readonly number[], known: readonly number[] = []): BlobRow[] {
	const met = new Set(known);
	const found: BlobRow[] = [];
	const open = [...ids];
	for (let id = open.pop(); id !== undefined; id = open.pop()) {
		if (met.has(id)) continue;
		met.add(id);
		const row = session.get<BlobSql>(GET_BLOB, id);
		if (row === undefined) continue;
		if (row.base !== null) open.push(row.base);
		if (row.source !== null) open.push(row.source);
		found.push(toBlob(row));
	}
	return found;
}

/** All of a path but its epoch. */
export function readPath(session: SqliteSession, key: CheckpointKey, limit: number): Omit<PathReading, "epoch"> {
	const { threadId, ns, id } = key;
	const rows = session.all<CheckpointSql>(GET_PATH, { threadId, ns, id, limit });
	const last = rows.at(-1);
	if (last === undefined) return { path: [], siblings: [], writes: [], deltaBases: [], orphans: undefined };
	const pks = new Set(rows.map(({ pk }) => pk));
	const children = session.all<CheckpointSql>(GET_CHILDREN, threadId, ns, JSON.stringify([...pks]));
	const hasParent = last.parent_id !== null && session.get(GET_CHECKPOINT, threadId, ns, last.parent_id) !== undefined;
	return {
		path: rows.map(toCheckpoint),
		siblings: children.filter(({ pk }) => !pks.has(pk)).map(toCheckpoint),
		writes: findWrites(session, rows),
		deltaBases: findOf(session, GET_BASES_OF, rows, toBase),
		orphans: hasParent
			? undefined
			: findWrites(session, session.all<KeySql>(GET_MISSING, threadId, ns, last.checkpoint_id)),
	};
}

export function readThread(session: SqliteSession, threadId: string): ThreadReading {
	const rows = session.all<KeySql & { parent_id: string | null; is_missing: number }>(GET_OUTLINE, threadId);
	const stored = rows.filter(({ is_missing }) => !is_missing);
	return {
		checkpoints: stored.map((row) => ({ ...toKey(row), parentId: row.parent_id ?? undefined })),
		writes: findWrites(session, rows),
		deltaBases: findOf(session, GET_BASES_OF, rows, toBase),
	};
}

export function findRuns(
	session: SqliteSession,
	runIds: readonly string[],
): { checkpoints: CheckpointKey[]; writes: WriteKey[] } {
	const unique = [...new Set(runIds)];
	const checkpoints = unique.flatMap((runId) => session.all<KeySql>(FIND_RUN, runId));
	const writes = unique.flatMap((runId) => session.all<KeySql & WriteSql>(FIND_RUN_WRITES, runId));
	return {
		checkpoints: checkpoints.map(toKey),
		writes: writes.map((row) => ({
			...toKey(row),
			taskId: row.task_id,
			idx: row.idx,
			generation: row.generation,
		})),
	};
}

export function getThread(session: SqliteSession, threadId: string): ThreadRow | undefined {
	const row = session.get<ThreadSql>(GET_THREAD, threadId);
	return row && toThread(row);
}

export function listThreads(
	session: SqliteSession,
	limit: number,
	after: { updatedAt: number; threadId: string } | undefined,
): ThreadRow[] {
	if (after === undefined) return session.all<ThreadSql>(LIST_THREADS, limit).map(toThread);
	const { updatedAt, threadId } = after;
	return session.all<ThreadSql>(LIST_THREADS_AFTER, minuteOf(updatedAt), updatedAt, threadId, limit).map(toThread);
}

export function readFamily(session: SqliteSession, family: number): { blobs: ListedBlob[]; threads: ThreadRow[] } {
	const blobs = session.all<BlobSql & { bytes: number }>(LIST_BLOBS, family);
	return {
		blobs: blobs.map(({ id, base, source, bytes }) => ({
			id,
			base: base ?? undefined,
			source: source ?? undefined,
			bytes,
		})),
		threads: session.all<ThreadSql>(GET_FAMILY, family).map(toThread),
	};
}

/** Jumps from one family to the next in the index. */
export function listFamilies(session: SqliteSession, limit: number, after = -1): number[] {
	const families: number[] = [];
	let last = after;
	while (families.length < limit) {
		const { family } = session.get<{ family: number | null }>(GET_NEXT_FAMILY, last) ?? { family: null };
		if (family === null) break;
		families.push(family);
		last = family;
	}
	return families;
}

export function getTotals(session: SqliteSession): StorageTotals {
	const row = session.get<Record<string, number>>(GET_TOTALS) ?? {};
	const { threads = 0, checkpoints = 0, writes = 0, checkpointBytes = 0, blobBytes = 0, writeBytes = 0 } = row;
	return {
		threads,
		checkpoints,
		writes,
		bytes: { checkpoints: checkpointBytes, blobs: blobBytes, writes: writeBytes },
	};
}

function toKey({ thread_id: threadId, ns, checkpoint_id: id }: KeySql): CheckpointKey {
	return { threadId, ns, id };
}

function toCheckpoint(row: CheckpointSql): FoundCheckpoint {
	return {
		threadId: row.thread_id,
		ns: row.ns,
		id: row.checkpoint_id,
		parentId: row.parent_id ?? undefined,
		runId: row.run_id ?? undefined,
		source: row.source ?? undefined,
		step: row.step ?? undefined,
		blobs: row.blobs === null ? [] : parseBlobs(row, row.blobs),
		head: row.head,
		stamp: row.stamp,
	};
}

function parseBlobs({ thread_id: threadId, ns, checkpoint_id: id }: KeySql, text: string): number[] {
	try {
		return JSON.parse(text) as number[];
	} catch (cause) {
		throw new CheckpointError(
			"CORRUPT",
			`The row of checkpoint ${quote(id)} in thread ${quote(threadId)}, namespace ${quote(ns)}, is damaged: call repair().`,
			{ cause, place: { threadId, ns, checkpointId: id } },
		);
	}
}

function toWrite(row: WriteSql, checkpoint: KeySql): WriteRow {
	return {
		threadId: checkpoint.thread_id,
		ns: checkpoint.ns,
		id: checkpoint.checkpoint_id,
		taskId: row.task_id,
		idx: row.idx,
		generation: row.generation,
		taskPath: row.task_path ?? undefined,
		channel: row.channel,
		runId: row.run_id ?? undefined,
		actor: row.actor ?? undefined,
		type: row.type ?? undefined,
		blob: row.blob ?? undefined,
		value: row.value,
	};
}

function toBase({ channel, data }: BaseSql, checkpoint: KeySql): DeltaBaseRow {
	return { ...toKey(checkpoint), channel, data };
}

function toBlob({ id, base, source, type, data }: BlobSql): BlobRow {
	return { id, base: base ?? undefined, source: source ?? undefined, type: type ?? undefined, data };
}

function toThread(row: ThreadSql): ThreadRow {
	return {
		threadId: row.thread_id,
		family: row.family,
		stamp: row.stamp,
		createdAt: row.created_at,
		updatedAt: row.updated_at,
		checkpoints: row.checkpoints,
		newest: row.newest ?? undefined,
	};
}
