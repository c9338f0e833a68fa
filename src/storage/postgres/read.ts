import { compareIds } from "../compare-ids.ts";
import type {
	BlobRow,
	CheckpointKey,
	DeltaBaseRow,
	FoundCheckpoint,
	PathReading,
	Reading,
	ScanQuery,
	WriteRow,
} from "../storage.ts";
import { splitLabels, UNKNOWN_LABELS } from "./labels.ts";
import { text, toBase, toBlob, toCheckpoint, toWrite } from "./rows.ts";
import { tableName } from "./schema.ts";
import type { SqlRow } from "./session.ts";
import { compile, type Statement, type Values } from "./statement.ts";
import type { ThreadState } from "./thread-epochs.ts";

/** Tells apart scans that need different statements: by which of their bounds are given. */
export function shapeOfScan({ threadId, ns, before, after, labels = {} }: ScanQuery): string {
	const { source, step, rest } = splitLabels(labels);
	const isGiven = [threadId, ns, before, after, source, step, rest].map((part) => (part === undefined ? 0 : 1));
	return isGiven.join("");
}

export function scanValues({ threadId, ns, before, after, labels = {}, limit }: ScanQuery): Values {
	return {
		...splitLabels(labels),
		thread: text(threadId),
		ns: text(ns),
		before: text(before),
		afterId: text(after?.id),
		afterThread: text(after?.threadId),
		afterNs: text(after?.ns),
		limit,
	};
}

/** Columns of a checkpoint `c` of a thread `t`. */
const CHECKPOINT = "t.thread_id, t.stamp, c.ns, c.id, c.parent, c.run_id, c.source, c.step, c.head";

/**
 * A scan, in the order that all backends agree on.
 *
 * One thread is looked up first: its rows then come in the order of their key, where a join would sort all of them.
 */
function scanClause(schema: string, columns: string, { threadId, ns, before, after, labels = {} }: ScanQuery): string {
	const [thread, checkpoint] = ["thread", "checkpoint"].map((name) => tableName(schema, name));
	const where: string[] = [];
	if (ns !== undefined) where.push("c.ns = $ns");
	if (before !== undefined) where.push("c.id < $before");
	// The first condition follows from the second; it is there for the index.
	if (after !== undefined)
		where.push("c.id <= $afterId", "(c.id < $afterId OR (t.thread_id, c.ns) > ($afterThread, $afterNs))");
	const { source, step, rest } = splitLabels(labels);
	if (source !== undefined) where.push("c.source = $source");
	if (step !== undefined) where.push("c.step = $step::bigint");
	if (rest !== undefined) where.push(`(c.labels @> $rest::jsonb OR c.labels = '${UNKNOWN_LABELS}')`);
	if (threadId === undefined)
		return `SELECT ${columns} FROM ${thread} t JOIN ${checkpoint} c ON c.thread = t.number
			${where.length > 0 ? `WHERE ${where.join(" AND ")}` : ""}
			ORDER BY c.id DESC, t.thread_id, c.ns LIMIT $limit::bigint`;
	const conditions = ["c.thread = t.number", ...where].join(" AND ");
	return `SELECT ${columns} FROM ${thread} t CROSS JOIN LATERAL (
			SELECT * FROM ${checkpoint} c WHERE ${conditions}
			ORDER BY c.id DESC ${ns === undefined ? ", c.ns" : ""} LIMIT $limit::bigint
		) c WHERE t.thread_id = $thread`;
}

export function scanStatement(schema: string, query: ScanQuery): Statement {
	return compile(scanClause(schema, CHECKPOINT, query));
}

/**
 * One statement for checkpoints, their writes, and the blobs that both name with all that those are built on. The three
 * kinds of rows come in columns that they share, see {@link toReading}.
 *
 * @param query a scan; `undefined` for a list of keys
 */
export function readStatement(schema: string, query: ScanQuery | undefined): Statement {
	const [thread, checkpoint, blob] = ["thread", "checkpoint", "blob"].map((name) => tableName(schema, name));
	const columns = `${CHECKPOINT}, c.blobs, t.number`;
	const byKeys = `SELECT ${columns} FROM unnest($threads::text[], $nss::text[], $ids::text[]) AS k (thread_id, ns, id)
		CROSS JOIN LATERAL (SELECT * FROM ${thread} t WHERE t.thread_id = k.thread_id LIMIT 1) t
		CROSS JOIN LATERAL (
			SELECT * FROM ${checkpoint} c WHERE c.thread = t.number AND c.ns = k.ns AND c.id = k.id LIMIT 1
		) c`;
	const find = (id: string) => `CROSS JOIN LATERAL (SELECT * FROM ${blob} b WHERE b.id = ${id} LIMIT 1) b`;
	return compile(`WITH RECURSIVE points AS MATERIALIZED (
		${query === undefined ? byKeys : scanClause(schema, columns, query)}
	), written AS MATERIALIZED (
		SELECT p.thread_id, w.* FROM points p CROSS JOIN LATERAL (
			SELECT * FROM ${tableName(schema, "write")} w WHERE w.thread = p.number AND w.ns = p.ns AND w.checkpoint = p.id
			OFFSET 0
		) w
	), named (id) AS (
		SELECT unnest(p.blobs) FROM points p UNION ALL SELECT w.blob FROM written w WHERE w.blob IS NOT NULL
	), chain AS (
		SELECT b.id, b.base, b.source FROM named n ${find("n.id")} WHERE n.id <> ALL ($known::bigint[])
		UNION
		SELECT b.id, b.base, b.source FROM chain c CROSS JOIN LATERAL unnest(ARRAY[c.base, c.source]) AS o (id)
		${find("o.id")} WHERE o.id <> ALL ($known::bigint[])
	)
	SELECT 'c', NULL::bigint, thread_id, ns, id, parent, run_id, source, NULL, stamp, step, NULL::bigint, NULL::bigint, head,
		NULL::text
	FROM points
	UNION ALL
	SELECT 'w', NULL, thread_id, ns, checkpoint, task, run_id, channel, type, generation, idx, actor, blob, value,
		task_path
	FROM written
	UNION ALL
	SELECT 'b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, b.type, b.id, b.base, b.source, NULL, b.data, NULL
	FROM chain c ${find("c.id")}`);
}

/**
 * One statement for a path with all that {@link Storage.readPath} answers, in the same columns. Orphans come only if the
 * path ends for want of a row; a row that says so comes before them.
 */
export function pathStatement(schema: string): Statement {
	const [thread, checkpoint, write] = ["thread", "checkpoint", "write"].map((name) => tableName(schema, name));
	return compile(`WITH RECURSIVE path AS (
		SELECT 1 AS place, t.thread_id, t.stamp, c.* FROM ${thread} t JOIN ${checkpoint} c ON c.thread = t.number
		WHERE t.thread_id = $thread AND c.ns = $ns AND c.id = $id AND $limit::bigint > 0
		UNION ALL
		SELECT p.place + 1, p.thread_id, p.stamp, c.* FROM path p CROSS JOIN LATERAL (
			SELECT * FROM ${checkpoint} c WHERE c.thread = p.thread AND c.ns = p.ns AND c.id = p.parent OFFSET 0
		) c WHERE p.place < $limit::bigint
	), last AS MATERIALIZED (
		SELECT p.* FROM (SELECT * FROM path ORDER BY place DESC LIMIT 1) p WHERE NOT EXISTS (
			SELECT FROM ${checkpoint} c WHERE c.thread = p.thread AND c.ns = p.ns AND c.id = p.parent
		)
	)
	SELECT 'c', place, thread_id, ns, id, parent, run_id, source, NULL, stamp, step, NULL::bigint, NULL::bigint, head,
		NULL::text FROM path
	UNION ALL
	SELECT 's', NULL, p.thread_id, c.ns, c.id, c.parent, c.run_id, c.source, NULL, p.stamp, c.step, NULL, NULL, c.head,
		NULL
	FROM path p JOIN ${checkpoint} c ON c.thread = p.thread AND c.ns = p.ns AND c.parent = p.id
	WHERE NOT EXISTS (SELECT FROM path o WHERE o.id = c.id)
	UNION ALL
	SELECT 'w', NULL, p.thread_id, w.ns, w.checkpoint, w.task, w.run_id, w.channel, w.type, w.generation, w.idx, w.actor,
		w.blob, w.value, w.task_path
	FROM path p JOIN ${write} w ON w.thread = p.thread AND w.ns = p.ns AND w.checkpoint = p.id
	UNION ALL
	SELECT 'd', NULL, p.thread_id, b.ns, b.checkpoint, b.channel, NULL, NULL, NULL, NULL, NULL, NULL, NULL, b.data,
		NULL
	FROM path p JOIN ${tableName(schema, "base")} b ON b.thread = p.thread AND b.ns = p.ns AND b.checkpoint = p.id
	UNION ALL
	SELECT 'f', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, t.stamp, t.checkpoints, w.writes, w.batch, NULL,
		NULL
	FROM ${thread} t CROSS JOIN LATERAL (
		SELECT count(*) AS writes, coalesce(max(batch), 0) AS batch FROM ${write} w WHERE w.thread = t.number
	) w WHERE t.thread_id = $thread
	UNION ALL
	SELECT 'e', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	FROM last
	UNION ALL
	SELECT 'o', NULL, p.thread_id, w.ns, w.checkpoint, w.task, w.run_id, w.channel, w.type, w.generation, w.idx, w.actor,
		w.blob, w.value, w.task_path
	FROM last p JOIN ${write} w ON w.thread = p.thread AND w.ns = p.ns AND w.checkpoint < p.id
	WHERE NOT EXISTS (SELECT FROM ${checkpoint} c WHERE c.thread = w.thread AND c.ns = w.ns AND c.id = w.checkpoint)`);
}

/**
 * Reads the answer of {@link readStatement}.
 *
 * @param keys what was asked for, if that was not a scan
 */
export function toReading(rows: readonly SqlRow[], keys: readonly CheckpointKey[] | undefined): Reading {
	const checkpoints = rows.filter(isOf("c")).map(checkpointOf);
	const place = new Map(keys?.map(({ threadId, ns, id }, at) => [JSON.stringify([threadId, ns, id]), at]));
	const placeOf = ({ threadId, ns, id }: CheckpointKey) => place.get(JSON.stringify([threadId, ns, id])) ?? 0;
	checkpoints.sort(keys === undefined ? compareRows : (a, b) => placeOf(a) - placeOf(b));
	return { checkpoints, writes: writesOf(rows, "w"), blobs: rows.filter(isOf("b")).map(blobOf) };
}

/** The order of a scan, which an answer of several parts need not keep. */
function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}

/** Reads the answer of {@link pathStatement}. */
export function toPathReading(rows: readonly SqlRow[]): Omit<PathReading, "epoch"> & { state: ThreadState } {
	const found = rows.filter(isOf("c")).sort((a, b) => Number(a[1]) - Number(b[1]));
	const path = withoutCycle(found.map(checkpointOf));
	const writes = writesOf(rows, "w");
	return {
		path,
		siblings: rows.filter(isOf("s")).map(checkpointOf),
		// A row that is on the path several times has its writes along each time.
		writes: path.length === found.length ? writes : distinct(writes),
		deltaBases: rows.filter(isOf("d")).map(baseOf),
		orphans: rows.some(isOf("e")) ? writesOf(rows, "o") : undefined,
		state: stateOf(rows.find(isOf("f")) ?? []),
	};
}

function distinct(writes: readonly WriteRow[]): WriteRow[] {
	const keyOf = ({ id, taskId, idx, generation }: WriteRow) => JSON.stringify([id, taskId, idx, generation]);
	return [...new Map(writes.map((write) => [keyOf(write), write])).values()];
}

/** Ends a path at the first row that was there before. */
export function withoutCycle(path: FoundCheckpoint[]): FoundCheckpoint[] {
	const seen = new Set<string>();
	const end = path.findIndex((row) => seen.size === seen.add(row.id).size);
	return end < 0 ? path : path.slice(0, end);
}

function isOf(kind: string): (row: SqlRow) => boolean {
	return (row) => row[0] === kind;
}

function writesOf(rows: readonly SqlRow[], kind: string): WriteRow[] {
	return rows.filter(isOf(kind)).map(writeOf);
}

// Where the columns of each kind of row are among those that all share.

function checkpointOf([, , thread, ns, id, parent, run, source, , stamp, step, , , head]: SqlRow): FoundCheckpoint {
	return toCheckpoint([thread, stamp, ns, id, parent, run, source, step, head]);
}

function writeOf([
	,
	,
	thread,
	ns,
	id,
	task,
	run,
	channel,
	type,
	generation,
	idx,
	actor,
	blob,
	value,
	path,
]: SqlRow): WriteRow {
	return toWrite([thread, ns, id, task, generation, idx, path, channel, run, actor, type, blob, value]);
}

function stateOf([, , , , , , , , , stamp, checkpoints, writes, batch]: SqlRow): ThreadState {
	return { stamp: Number(stamp), checkpoints: Number(checkpoints), writes: Number(writes), batch: Number(batch) };
}

function blobOf([, , , , , , , , type, id, base, source, , data]: SqlRow): BlobRow {
	return toBlob([id, base, source, type, data]);
}

function baseOf([, , thread, ns, id, channel, , , , , , , , data]: SqlRow): DeltaBaseRow {
	return toBase([thread, ns, id, channel, data]);
}
