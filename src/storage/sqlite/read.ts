import { CheckpointError, quote } from "../../errors.ts";
import type {
	BlobRow,
	CheckpointKey,
	DeltaBaseRow,
	Depth,
	FamilyReading,
	FoundCheckpoint,
	ListedBlob,
	ListedCheckpoint,
	PathReading,
	Reading,
	Scan,
	ThreadOutline,
	ThreadReading,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { SqliteSession } from "./driver.ts";

/** A row as it is stored. */
type StoredCheckpoint = Omit<FoundCheckpoint, "blobs"> & { readonly pk: number; readonly blobs: string | undefined };

/** Labels of a filter that are looked for: more hardly narrow it, and SQLite takes no more than a thousand conditions. */
const MOST_LABELS = 8;

/** Columns of a key. */
export const KEY = "thread_id AS threadId, ns, checkpoint_id AS id";
/** Conditions that take a key, or a part of one. */
export const IN_THREAD = "thread_id = :threadId";
const IN_NAMESPACE = `${IN_THREAD} AND ns = :ns`;
const AT_KEY = `${IN_NAMESPACE} AND checkpoint_id = :id`;
/** Rows of checkpoints, as JSON. */
export const LISTED = "(SELECT value FROM json_each(:list))";

const COLUMNS = `pk, ${KEY}, parent_id AS parentId, run_id AS runId, source, step, blobs, head,
	(SELECT stamp FROM delta_threads t WHERE t.thread_id = delta_checkpoints.thread_id) AS stamp`;
const CHECKPOINTS = `SELECT ${COLUMNS} FROM delta_checkpoints`;
const GET_CHECKPOINT = `${CHECKPOINTS} WHERE ${AT_KEY} AND head IS NOT NULL`;
export const GET_NEWEST = `${CHECKPOINTS} WHERE ${IN_NAMESPACE} AND head IS NOT NULL ORDER BY checkpoint_id DESC LIMIT 1`;
/** The union leaves out a row that was met before, so that a cycle ends. */
const GET_PATH = `WITH RECURSIVE path (pk, parent) AS (
		SELECT pk, parent_id FROM delta_checkpoints WHERE ${AT_KEY} AND head IS NOT NULL
		UNION
		SELECT c.pk, parent_id FROM path CROSS JOIN delta_checkpoints c
		WHERE ${IN_NAMESPACE} AND checkpoint_id = parent AND head IS NOT NULL
		LIMIT :limit
	) SELECT ${COLUMNS} FROM path CROSS JOIN delta_checkpoints USING (pk)`;
/** Reads all of the namespace in the index over keys, and the rows of children only. */
const GET_CHILDREN = `${CHECKPOINTS} WHERE pk IN (
		SELECT pk FROM delta_checkpoints WHERE ${IN_NAMESPACE} AND parent_id IN (
			SELECT checkpoint_id FROM delta_checkpoints WHERE pk IN ${LISTED}
		)
	)`;
const LIST_CHECKPOINTS = `SELECT ${KEY}, parent_id AS parentId FROM delta_checkpoints
	WHERE ${IN_THREAD} AND head IS NOT NULL ORDER BY checkpoint_id DESC, ns`;
const FIND_RUN = `SELECT ${KEY} FROM delta_checkpoints WHERE run_id = ?`;

const WRITE = `SELECT ${KEY}, task_id AS taskId, idx, generation, task_path AS taskPath, channel, w.run_id AS runId, actor, type, blob, value
	FROM delta_checkpoints CROSS JOIN delta_writes w ON checkpoint_pk = pk`;
const BASE = `SELECT ${KEY}, channel, data FROM delta_checkpoints CROSS JOIN delta_bases ON checkpoint_pk = pk`;
const GET_WRITES = `${WRITE} WHERE pk = ?`;
const GET_WRITES_OF = `${WRITE} WHERE pk IN ${LISTED}`;
const GET_ORPHANS = `${WRITE} WHERE head IS NULL AND ${IN_NAMESPACE} AND checkpoint_id < :id`;
const LIST_WRITTEN = `SELECT DISTINCT ns, channel FROM delta_checkpoints CROSS JOIN delta_writes ON checkpoint_pk = pk
	WHERE ${IN_THREAD}`;
const LIST_WRITES = `${WRITE} WHERE ${IN_THREAD}`;
const GET_BASES_OF = `${BASE} WHERE pk IN ${LISTED}`;
const LIST_BASES = `${BASE} WHERE ${IN_THREAD}`;
const FIND_RUN_WRITES = `SELECT ${KEY}, task_id AS taskId, idx, generation
	FROM delta_writes w CROSS JOIN delta_checkpoints ON pk = checkpoint_pk WHERE w.run_id = ?`;

const IN_FAMILY = "thread_id IN (SELECT thread_id FROM delta_threads WHERE family = :family)";
const LIST_FAMILY_BASES = `${BASE} WHERE ${IN_FAMILY}`;
/** An array in which the ids of a row are an array again. */
const LIST_NAMED = `SELECT '[' ||
	ifnull((SELECT group_concat(blobs) FROM delta_checkpoints WHERE ${IN_FAMILY}), '[]') || ',' ||
	ifnull((SELECT group_concat(blob) FROM delta_checkpoints CROSS JOIN delta_writes ON checkpoint_pk = pk WHERE ${IN_FAMILY}), '[]') ||
	']' AS named`;

const LIST_BLOBS = "SELECT id, base, source, length(data) AS bytes FROM delta_blobs WHERE family = ?";
const GET_BLOB = "SELECT id, base, source, type, data FROM delta_blobs WHERE id = ?";

export function read(
	session: SqliteSession,
	which: Scan | readonly CheckpointKey[],
	depth: Depth,
	known: readonly number[] = [],
): Reading {
	const rows = "limit" in which ? findByScan(session, which) : findByKeys(session, which);
	const checkpoints = rows.map(toCheckpoint);
	if (depth === "rows") return { checkpoints, writes: [], blobs: [] };
	const writes = findWrites(session, rows);
	const ids = checkpoints.flatMap(({ blobs }) => blobs);
	for (const { blob } of writes) if (blob !== undefined) ids.push(blob);
	return { checkpoints, writes, blobs: ids.length === 0 ? [] : findBlobs(session, ids, known) };
}

function findByKeys(session: SqliteSession, keys: readonly CheckpointKey[]): StoredCheckpoint[] {
	return keys.flatMap((key) => find<StoredCheckpoint>(session, GET_CHECKPOINT, key));
}

function findByScan(session: SqliteSession, scan: Scan): StoredCheckpoint[] {
	const { threadId, ns, before, after, source, step, labels, limit } = scan;
	const isOfNamespace = threadId !== undefined && ns !== undefined;
	if (isOfNamespace && limit === 1 && (before ?? after ?? source ?? step ?? labels) === undefined)
		return find(session, GET_NEWEST, { threadId, ns });
	// A label as it stands in the JSON of all labels; a number may also be the beginning of a longer one.
	const texts = Object.entries(labels ?? {})
		.slice(0, MOST_LABELS)
		.map(([key, value], i) => [`label${i}`, JSON.stringify({ [key]: value }).slice(1, -1)] as const);
	const isFiltered = source !== undefined || step !== undefined || texts.length > 0;
	const conditions = [
		threadId !== undefined && IN_THREAD,
		ns !== undefined && "ns = :ns",
		before !== undefined && "checkpoint_id < :before",
		// With a plus it does not guide the search but is checked: in a damaged index pages would repeat.
		after && "checkpoint_id <= :afterId AND (+checkpoint_id < :afterId OR (thread_id, ns) > (:afterThread, :afterNs))",
		source !== undefined && "source = :source",
		step !== undefined && "step = :step",
		...texts.map(([name]) => `(labels IS NULL OR instr(labels, :${name}) > 0)`),
		// Without a filter, rows are chosen in the index over keys alone.
		isFiltered ? "head IS NOT NULL" : "pk NOT IN (SELECT pk FROM delta_checkpoints WHERE head IS NULL)",
	];
	const order = "ORDER BY checkpoint_id DESC, thread_id, ns";
	const chosen = `FROM delta_checkpoints WHERE ${conditions.filter(Boolean).join(" AND ")} ${order} LIMIT :limit`;
	// Rows are sorted without their heads, unless they are few: a thread has hardly any with the same step.
	const isShort = threadId !== undefined && step !== undefined;
	const sql = isShort
		? `SELECT ${COLUMNS} ${chosen}`
		: `SELECT ${COLUMNS} FROM (SELECT pk, thread_id, ns, checkpoint_id ${chosen})
			CROSS JOIN delta_checkpoints USING (pk, thread_id, ns, checkpoint_id) ${order}`;
	const place = { afterId: after?.id, afterThread: after?.threadId, afterNs: after?.ns };
	return find(session, sql, Object.assign(place, scan, Object.fromEntries(texts)));
}

type Asked = Partial<CheckpointKey> & { list?: string };

/** Rows of a key, or of a part of one. */
export function find<Row extends Asked>(session: SqliteSession, sql: string, asked: Asked): Row[] {
	const rows = session.all<Row>(sql, asked);
	for (const row of rows) checkFound(row, asked);
	return rows;
}

/** Throws if a row is another one than was asked for, by these fields: in a damaged index a search may end there. */
export function checkFound(row: Asked, asked: Asked): void {
	const { threadId = row.threadId, ns = row.ns, id = row.id } = asked;
	if (row.threadId !== threadId || row.ns !== ns || row.id !== id) throw damaged({ threadId, ns, id });
}

function findWrites(session: SqliteSession, checkpoints: readonly StoredCheckpoint[]): WriteRow[] {
	if (checkpoints.length === 1) return session.all(GET_WRITES, checkpoints[0]?.pk);
	return session.all(GET_WRITES_OF, { list: listOf(checkpoints) });
}

function listOf(checkpoints: readonly StoredCheckpoint[]): string {
	return JSON.stringify(checkpoints.map(({ pk }) => pk));
}

/** Look-ups by id are quicker than a recursive statement, however long the chains. */
export function findBlobs(session: SqliteSession, ids: readonly number[], known: readonly number[] = []): BlobRow[] {
	const met = new Set(known);
	const found: BlobRow[] = [];
	const open = [...ids];
	for (let id = open.pop(); id !== undefined; id = open.pop()) {
		if (met.has(id)) continue;
		met.add(id);
		const row = session.get<BlobRow>(GET_BLOB, id);
		if (row === undefined) continue;
		found.push(row);
		if (row.base !== undefined) open.push(row.base);
		if (row.source !== undefined) open.push(row.source);
	}
	return found;
}

export function readPath(session: SqliteSession, key: CheckpointKey, limit: number): Omit<PathReading, "epoch"> {
	const { threadId, ns, id } = key;
	const rows = session.all<StoredCheckpoint>(GET_PATH, { threadId, ns, id, limit });
	const last = rows.at(-1);
	if (last === undefined) return { path: [], siblings: [], writes: [], deltaBases: [], orphans: undefined };
	for (const [i, row] of rows.entries()) checkFound(row, { threadId, ns, id: i === 0 ? id : rows[i - 1]?.parentId });
	const list = listOf(rows);
	const onPath = new Set(rows.map((row) => row.pk));
	const children = find<StoredCheckpoint>(session, GET_CHILDREN, { threadId, ns, list });
	const isStart =
		last.parentId === undefined || findByKeys(session, [{ threadId, ns, id: last.parentId }]).length === 0;
	return {
		path: rows.map(toCheckpoint),
		siblings: children.filter(({ pk }) => !onPath.has(pk)).map(toCheckpoint),
		writes: findWrites(session, rows),
		deltaBases: session.all<DeltaBaseRow>(GET_BASES_OF, { list }),
		orphans: isStart ? session.all<WriteRow>(GET_ORPHANS, last) : undefined,
	};
}

export function readOutline(session: SqliteSession, threadId: string): ThreadOutline {
	return {
		checkpoints: find<ListedCheckpoint>(session, LIST_CHECKPOINTS, { threadId }),
		written: session.all(LIST_WRITTEN, { threadId }),
	};
}

export function readThread(session: SqliteSession, threadId: string): ThreadReading {
	return {
		writes: find<WriteRow>(session, LIST_WRITES, { threadId }),
		deltaBases: find<DeltaBaseRow>(session, LIST_BASES, { threadId }),
	};
}

export function readFamily(session: SqliteSession, family: number): FamilyReading {
	const { named } = session.get(LIST_NAMED, { family }) as { named: string };
	return {
		blobs: session.all<ListedBlob>(LIST_BLOBS, family),
		named: parseIds(named, {}).flat(),
		deltaBases: session.all<DeltaBaseRow>(LIST_FAMILY_BASES, { family }),
	};
}

export function findRuns(session: SqliteSession, runIds: readonly string[]) {
	const unique = [...new Set(runIds)];
	return {
		checkpoints: unique.flatMap((runId) => session.all<CheckpointKey>(FIND_RUN, runId)),
		writes: unique.flatMap((runId) => session.all<WriteKey>(FIND_RUN_WRITES, runId)),
	};
}

function toCheckpoint(row: StoredCheckpoint): FoundCheckpoint {
	if (row.stamp === undefined) throw damaged(row);
	return Object.assign(row, { blobs: row.blobs === undefined ? [] : parseIds(row.blobs, row) });
}

/** @param row that the ids stand in */
function parseIds(json: string, row: Partial<CheckpointKey>): number[] {
	try {
		return JSON.parse(json);
	} catch (cause) {
		throw damaged(row, cause);
	}
}

function damaged({ threadId, ns, id }: Partial<CheckpointKey>, cause?: unknown): CheckpointError {
	return new CheckpointError(
		"CORRUPT",
		`The row of checkpoint ${quote(id)} in thread ${quote(threadId)}, namespace ${quote(ns)}, is damaged: call repair().`,
		{ cause, place: { threadId, ns, checkpointId: id } },
	);
}
