import { text, toBlob, toCheckpoint, toWrite } from "./postgres-rows.ts";
import { tableName } from "./postgres-schema.ts";
import type { SqlRow } from "./postgres-session.ts";
import { compile, type Statement, type Values } from "./postgres-statement.ts";
import type { BlobRow, FoundCheckpoint, Reading, ScanQuery, WriteRow } from "./storage.ts";

/** Tells apart scans that need different statements: by which of their bounds are given. */
export function shapeOfScan({ threadId, ns, before, after }: ScanQuery): string {
	return [threadId, ns, before, after].map((part) => (part === undefined ? 0 : 1)).join("");
}

export function scanValues({ threadId, ns, before, after, limit }: ScanQuery): Values {
	return {
		thread: text(threadId),
		ns: text(ns),
		before: text(before),
		afterId: text(after?.id),
		afterThread: text(after?.threadId),
		afterNs: text(after?.ns),
		limit,
	};
}

/** A scan, in the order that all backends agree on. */
function scanClause(schema: string, { threadId, ns, before, after }: ScanQuery): string {
	const where: string[] = [];
	if (threadId !== undefined) where.push("t.thread_id = $thread");
	if (ns !== undefined) where.push("c.ns = $ns");
	if (before !== undefined) where.push("c.id < $before");
	// The first condition follows from the second; it is there for the index.
	if (after !== undefined)
		where.push("c.id <= $afterId", "(c.id < $afterId OR (t.thread_id, c.ns) > ($afterThread, $afterNs))");
	return `FROM ${tableName(schema, "thread")} t JOIN ${tableName(schema, "checkpoint")} c ON c.thread = t.number
		${where.length > 0 ? `WHERE ${where.join(" AND ")}` : ""}
		ORDER BY c.id DESC, t.thread_id, c.ns LIMIT $limit::bigint`;
}

const CHECKPOINT = "t.thread_id, t.stamp, c.ns, c.id, c.parent, c.run_id, c.source, c.step, c.head";

export function scanStatement(schema: string, query: ScanQuery): Statement {
	return compile(`SELECT ${CHECKPOINT} ${scanClause(schema, query)}`);
}

/**
 * One statement for checkpoints, their writes, and the blobs that both name with all that those are built on. The three
 * kinds of rows come in columns that they share, see {@link toReading}.
 *
 * @param query a scan; `undefined` for a list of keys
 */
export function readStatement(schema: string, query: ScanQuery | undefined): Statement {
	const [thread, checkpoint, blob] = ["thread", "checkpoint", "blob"].map((name) => tableName(schema, name));
	const columns = `${CHECKPOINT}, c.blobs, t.number, t.family`;
	const byKeys = `, k.place FROM unnest($threads::text[], $nss::text[], $ids::text[])
			WITH ORDINALITY AS k (thread_id, ns, id, place)
		JOIN ${thread} t ON t.thread_id = k.thread_id
		JOIN ${checkpoint} c ON c.thread = t.number AND c.ns = k.ns AND c.id = k.id`;
	const byScan = `, row_number() OVER () AS place FROM (SELECT ${columns} ${scanClause(schema, query ?? { limit: 0 })}) s`;
	return compile(`WITH RECURSIVE points AS MATERIALIZED (
		SELECT ${query === undefined ? columns + byKeys : `*${byScan}`}
	), written AS MATERIALIZED (
		SELECT p.thread_id, p.family, w.* FROM points p
		JOIN ${tableName(schema, "write")} w ON w.thread = p.number AND w.ns = p.ns AND w.checkpoint = p.id
	), named (id, family) AS (
		SELECT unnest(p.blobs), p.family FROM points p
		UNION SELECT w.blob, w.family FROM written w WHERE w.blob IS NOT NULL
	), chain AS (
		SELECT b.id, b.family, b.base FROM named n CROSS JOIN LATERAL (
			SELECT * FROM ${blob} b WHERE b.id = n.id AND b.family = n.family OFFSET 0
		) b WHERE n.id <> ALL ($known::bigint[])
		UNION
		SELECT b.id, b.family, b.base FROM chain c CROSS JOIN LATERAL (
			SELECT * FROM ${blob} b WHERE b.id = c.base AND b.family = c.family OFFSET 0
		) b WHERE c.base <> ALL ($known::bigint[])
	)
	SELECT 'c', place, thread_id, ns, id, parent, run_id, source, NULL, stamp, step, NULL, NULL, head FROM points
	UNION ALL
	SELECT 'w', NULL, thread_id, ns, checkpoint, task, run_id, channel, type, generation, idx, actor, blob, value
	FROM written
	UNION ALL
	SELECT 'b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, b.type, b.id, b.base, NULL, NULL, b.data
	FROM chain c CROSS JOIN LATERAL (
		SELECT * FROM ${blob} b WHERE b.id = c.id AND b.family = c.family OFFSET 0
	) b`);
}

/** Reads the answer of {@link readStatement}. */
export function toReading(rows: readonly SqlRow[]): Reading {
	const checkpoints: [place: number, row: FoundCheckpoint][] = [];
	const writes: WriteRow[] = [];
	const blobs: BlobRow[] = [];
	for (const [kind = null, place, thread = null, ns = null, id = null, ...rest] of rows) {
		const [text1 = null, run = null, text2 = null, type = null, a = null, b = null, c = null, d = null] = rest;
		const bytes = rest[8] ?? null;
		if (kind === "c") checkpoints.push([Number(place), toCheckpoint([thread, a, ns, id, text1, run, text2, b, bytes])]);
		else if (kind === "w") writes.push(toWrite([thread, ns, id, text1, a, b, text2, run, c, type, d, bytes]));
		else blobs.push(toBlob([a, b, type, bytes]));
	}
	checkpoints.sort(([a], [b]) => a - b);
	return { checkpoints: checkpoints.map(([, row]) => row), writes, blobs };
}
