import type { Depth, PathReading, Reading, Scan } from "../storage.ts";
import { BASE, BLOB, CHECKPOINT, text, toBase, toBlob, toCheckpoint, toWrite, WRITE } from "./rows.ts";
import type { Tables } from "./schema.ts";
import { type Part, type SqlRow, splitUnion, union, type Values } from "./statement.ts";
import { toText } from "./text.ts";

/**
 * Looks up rows for each row before it. A plain join leaves to the planner how, and connections keep the plans that it
 * made when tables were small: such that read whole tables.
 */
function lookUp(table: string, alias: string, condition: string): string {
	return `CROSS JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} OFFSET 0) ${alias}`;
}

/** Reads arrays without telling the planner how long they are: it would make a new plan for each call to fit that. */
function unnest(...arrays: readonly string[]): string {
	return `unnest(${arrays.map((array) => `(SELECT ${array})`).join(", ")})`;
}

/** The checkpoints of a scan: the first ones of each thread, and of these the first. */
function scanRows({ thread, checkpoint }: Tables, scan: Scan): string {
	const { threadId, ns, before, after, source, step, labels = {} } = scan;
	const where = ["c.thread = t.number"];
	if (ns !== undefined) where.push("c.ns = $ns");
	if (before !== undefined) where.push("c.id < $before");
	// The first condition follows from the second; it is there for the index.
	if (after !== undefined)
		where.push("c.id <= $afterId", "(c.id < $afterId OR (t.thread_id, c.ns) > ($afterThread, $afterNs))");
	if (source !== undefined) where.push("c.source = $source");
	if (step !== undefined) where.push("c.step = $step::bigint");
	if (Object.keys(labels).length > 0) where.push("(c.labels @> $labels::jsonb OR c.labels IS NULL)");
	return `SELECT *, row_number() OVER () AS place FROM (
			SELECT t.thread_id, t.stamp, c.* FROM ${thread} t CROSS JOIN LATERAL (
				SELECT * FROM ${checkpoint} c WHERE ${where.join(" AND ")} ORDER BY c.id DESC, c.ns LIMIT $limit::bigint
			) c ${threadId === undefined ? "" : "WHERE t.thread_id = $thread"}
			ORDER BY c.id DESC, t.thread_id, c.ns LIMIT $limit::bigint
		) c`;
}

export function scanValues({ threadId, ns, before, after, source, step, labels, limit }: Scan): Values {
	return {
		thread: text(threadId),
		ns: text(ns),
		before: text(before),
		afterId: text(after?.id),
		afterThread: text(after?.threadId),
		afterNs: text(after?.ns),
		source: text(source),
		step,
		labels: labelText(labels),
		limit,
	};
}

/** Labels as JSON, which can't have U+0000 in a database either. */
export function labelText(labels: Scan["labels"]): string | null {
	if (labels === undefined) return null;
	const escaped = Object.entries(labels).map(([key, value]) => [
		toText(key),
		typeof value === "string" ? toText(value) : value,
	]);
	return JSON.stringify(Object.fromEntries(escaped));
}

/** The blobs whose ids are in `named`, and all that they are built on, but for those that are known. */
function chainOf({ blob }: Tables): string {
	return `chain AS (
		SELECT b.id, b.base, b.source FROM named n ${lookUp(blob, "b", "b.id = n.id")} WHERE n.id <> ALL ($known::bigint[])
		UNION
		SELECT b.id, b.base, b.source FROM chain c CROSS JOIN LATERAL unnest(ARRAY[c.base, c.source]) AS o (id)
		${lookUp(blob, "b", "b.id = o.id")} WHERE o.id <> ALL ($known::bigint[])
	)`;
}

/** Blobs of a chain, with their bytes. */
function chainRows({ blob }: Tables): string {
	return `(SELECT b.* FROM chain c ${lookUp(blob, "b", "b.id = c.id")}) b`;
}

export function blobStatement(tables: Tables): string {
	return `WITH RECURSIVE named (id) AS (SELECT * FROM ${unnest("$ids::bigint[]")}), ${chainOf(tables)}
		SELECT ${BLOB.join()} FROM ${chainRows(tables)}`;
}

/** @param scan `undefined` for a list of keys */
export function readStatement(tables: Tables, scan: Scan | undefined, depth: Depth): string {
	const { thread, checkpoint, write } = tables;
	const keyRows = `SELECT t.thread_id, t.stamp, c.*, k.place
		FROM ${unnest("$threads::text[]", "$nss::text[]", "$ids::text[]")} WITH ORDINALITY AS k (thread_id, ns, id, place)
		${lookUp(thread, "t", "t.thread_id = k.thread_id")}
		${lookUp(checkpoint, "c", "c.thread = t.number AND c.ns = k.ns AND c.id = k.id")}`;
	const found = `found AS MATERIALIZED (${scan === undefined ? keyRows : scanRows(tables, scan)})`;
	const rows: Part = ["checkpoint", [...CHECKPOINT, "place"], "found"];
	if (depth === "rows") return `WITH ${found} ${union(rows)}`;
	return `WITH RECURSIVE ${found}, written AS MATERIALIZED (
			SELECT c.thread_id, w.* FROM found c
			${lookUp(write, "w", "w.thread = c.thread AND w.ns = c.ns AND w.checkpoint = c.id")}
		), named (id) AS (
			SELECT unnest(c.blobs) FROM found c UNION ALL SELECT w.blob FROM written w WHERE w.blob IS NOT NULL
		), ${chainOf(tables)}
		${union(rows, ["write", WRITE, "written"], ["blob", BLOB, chainRows(tables)])}`;
}

export function toReading(answer: SqlRow[]): Reading {
	const rows = splitUnion(answer);
	return {
		checkpoints: rows("checkpoint").sort(byPlace).map(toCheckpoint),
		writes: rows("write").map(toWrite),
		blobs: rows("blob").map(toBlob),
	};
}

/** SQL promises no order for the rows of a union. */
function byPlace(a: SqlRow, b: SqlRow): number {
	return Number(a[CHECKPOINT.length]) - Number(b[CHECKPOINT.length]);
}

/**
 * A path with all that `Storage.readPath` answers. The recursion goes on as long as rows are fetched from it, and ends
 * at a row that it has met before.
 */
export function pathStatement({ thread, checkpoint, write, base }: Tables): string {
	const here = (row: string) => `${row}.thread = p.thread AND ${row}.ns = p.ns`;
	const isStored = (condition: string) => `EXISTS (SELECT FROM ${checkpoint} c WHERE ${condition})`;
	/** Rows of a table that belong to the rows of the path. */
	const along = (table: string, condition: string, also = "") =>
		`(SELECT p.thread_id, p.stamp, p.place, r.* FROM path p ${lookUp(table, "r", `${here("r")} AND ${condition}`)} ${also}) r`;
	return `WITH RECURSIVE ancestors AS (
			SELECT t.thread_id, t.stamp, c.thread, c.ns, c.id, c.parent
			FROM ${thread} t ${lookUp(checkpoint, "c", "c.thread = t.number AND c.ns = $ns AND c.id = $id")}
			WHERE t.thread_id = $thread
			UNION
			SELECT p.thread_id, p.stamp, c.thread, c.ns, c.id, c.parent
			FROM ancestors p ${lookUp(checkpoint, "c", `${here("c")} AND c.id = p.parent`)}
		), path AS MATERIALIZED (
			SELECT *, row_number() OVER () AS place FROM ancestors LIMIT $limit::bigint
		), root AS MATERIALIZED (
			SELECT * FROM (SELECT * FROM path ORDER BY place DESC LIMIT 1) p
			WHERE NOT ${isStored(`${here("c")} AND c.id = p.parent`)}
		), orphans AS (
			SELECT p.thread_id, w.* FROM root p ${lookUp(write, "w", `${here("w")} AND w.checkpoint < p.id`)}
			WHERE NOT ${isStored("c.thread = w.thread AND c.ns = w.ns AND c.id = w.checkpoint")}
		)
		${union(
			["path", [...CHECKPOINT, "place"], along(checkpoint, "r.id = p.id")],
			[
				"sibling",
				CHECKPOINT,
				along(checkpoint, "r.parent = p.id", "WHERE NOT EXISTS (SELECT FROM path o WHERE o.id = r.id)"),
			],
			["write", WRITE, along(write, "r.checkpoint = p.id")],
			["base", BASE, along(base, "r.checkpoint = p.id")],
			["orphan", WRITE, "orphans"],
			["thread", ["writer", "writer_since", "EXISTS (SELECT FROM root)"], `${thread} WHERE thread_id = $thread`],
		)}`;
}

/** @param toEpoch takes the thread's last writer, and since when it is the only one */
export function toPathReading(answer: SqlRow[], toEpoch: (writer: number, since: number) => number): PathReading {
	const rows = splitUnion(answer);
	const [[writer, since, hasRoot] = []] = rows("thread");
	return {
		path: rows("path").sort(byPlace).map(toCheckpoint),
		siblings: rows("sibling").map(toCheckpoint),
		writes: rows("write").map(toWrite),
		deltaBases: rows("base").map(toBase),
		orphans: hasRoot === "true" ? rows("orphan").map(toWrite) : undefined,
		epoch: toEpoch(Number(writer), Number(since)),
	};
}
