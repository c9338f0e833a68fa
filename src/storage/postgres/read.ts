import type { BlobRow, Depth, PathReading, Reading, Scan, ThreadOutline, ThreadReading } from "../storage.ts";
import { BLOB, CHECKPOINT_KEY, FOUND_BASE, FOUND_CHECKPOINT, FOUND_WRITE, given, kind } from "./rows.ts";
import type { Tables } from "./schema.ts";
import { ask, type Question, type Values } from "./statement.ts";

/**
 * Looks up rows for each row before it. A plain join leaves to the planner how, and connections keep the plans that it
 * made when tables were small: such that read whole tables.
 */
function lookUp(table: string, alias: string, condition: string): string {
	return `CROSS JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} OFFSET 0) ${alias}`;
}

/** The checkpoints of a scan: the first ones of each thread, and of these the first. */
function scanRows({ thread, checkpoint }: Tables, scan: Scan): string {
	const { threadId, ns, before, after, source, step, labels } = scan;
	const where = ["c.thread = t.number"];
	if (ns !== undefined) where.push("c.ns = $ns");
	if (before !== undefined) where.push("c.id < $before");
	// The first condition follows from the second; it is there for the index.
	if (after !== undefined)
		where.push("c.id <= $afterId", "(c.id < $afterId OR (t.thread_id, c.ns) > ($afterThread, $afterNs))");
	if (source !== undefined) where.push("c.source = $source");
	if (step !== undefined) where.push("c.step = $step::bigint");
	if ((labelText(labels) ?? "{}") !== "{}") where.push("(c.labels @> $labels::jsonb OR c.labels IS NULL)");
	return `SELECT *, row_number() OVER () AS place FROM (
			SELECT t.thread_id, t.stamp, c.* FROM ${thread} t CROSS JOIN LATERAL (
				SELECT * FROM ${checkpoint} c WHERE ${where.join(" AND ")} ORDER BY c.id DESC, c.ns LIMIT $limit::bigint
			) c ${threadId === undefined ? "" : "WHERE t.thread_id = $threadId"}
			ORDER BY c.id DESC, t.thread_id, c.ns LIMIT $limit::bigint
		) c`;
}

export function scanValues(scan: Scan): Values {
	const { after, labels } = scan;
	return { afterId: after?.id, afterThread: after?.threadId, afterNs: after?.ns, ...scan, labels: labelText(labels) };
}

/** Labels as JSON. With characters that have to be escaped they are left out: a checkpoint without labels has any. */
export function labelText(labels: Scan["labels"]): string | undefined {
	const json = labels && JSON.stringify(labels);
	return json !== undefined && /\\u000[01]/.test(json) ? undefined : json;
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

export function askBlobs(tables: Tables) {
	const named = "WITH RECURSIVE named (id) AS (SELECT unnest((SELECT $ids::bigint[])))";
	return ask<{ blobs: BlobRow[] }>({ blobs: [BLOB, chainRows(tables)] }, `${named}, ${chainOf(tables)}`);
}

type Rows = Pick<Reading, "checkpoints">;

/** @param scan `undefined` for a list of keys */
export function askReading(tables: Tables, scan: Scan | undefined, depth: Depth): Question<Rows & Partial<Reading>> {
	const { thread, checkpoint, write } = tables;
	const keyRows = `SELECT t.thread_id, t.stamp, c.*, k.place FROM ${given("k", CHECKPOINT_KEY)}
		${lookUp(thread, "t", "t.thread_id = k.thread_id")}
		${lookUp(checkpoint, "c", "c.thread = t.number AND c.ns = k.ns AND c.id = k.id")}`;
	const found = `found AS MATERIALIZED (${scan === undefined ? keyRows : scanRows(tables, scan)})`;
	const checkpoints = [FOUND_CHECKPOINT, "found", "place"] as const;
	if (depth === "rows") return ask<Rows>({ checkpoints }, `WITH ${found}`);
	return ask<Reading>(
		{ checkpoints, writes: [FOUND_WRITE, "written"], blobs: [BLOB, chainRows(tables)] },
		`WITH RECURSIVE ${found}, written AS MATERIALIZED (
			SELECT c.thread_id, w.* FROM found c
			${lookUp(write, "w", "w.thread = c.thread AND w.ns = c.ns AND w.id = c.id")}
		), named (id) AS (
			SELECT unnest(c.blobs) FROM found c UNION ALL SELECT w.blob FROM written w WHERE w.blob IS NOT NULL
		), ${chainOf(tables)}`,
	);
}

/**
 * A path with all that `Storage.readPath` returns, and who has changed the thread. The recursion goes on as long as rows
 * are fetched from it, and ends at a row that it has met before. The planner is not told the limit: it would make a new
 * plan for each call to fit that.
 */
export function askPath({ thread, checkpoint, write, base }: Tables) {
	const here = (row: string) => `${row}.thread = p.thread AND ${row}.ns = p.ns`;
	const isStored = (condition: string) => `EXISTS (SELECT FROM ${checkpoint} c WHERE ${condition})`;
	/** Rows of a table that belong to the rows of the path. */
	const along = (table: string, condition: string, also = "") =>
		`(SELECT p.thread_id, p.stamp, p.place, r.* FROM path p ${lookUp(table, "r", `${here("r")} AND ${condition}`)} ${also}) r`;
	type State = { writer: number; writerSince: number; roots: number };
	return ask<Omit<PathReading, "epoch"> & { states: State[] }>(
		{
			path: [FOUND_CHECKPOINT, along(checkpoint, "r.id = p.id"), "place"],
			siblings: [
				FOUND_CHECKPOINT,
				along(checkpoint, "r.parent_id = p.id", "WHERE NOT EXISTS (SELECT FROM path o WHERE o.id = r.id)"),
			],
			writes: [FOUND_WRITE, along(write, "r.id = p.id")],
			deltaBases: [FOUND_BASE, along(base, "r.id = p.id")],
			orphans: [FOUND_WRITE, "orphans"],
			states: [
				kind("writer, writer_since, roots"),
				`(SELECT *, (SELECT count(*) FROM root) AS roots FROM ${thread} WHERE thread_id = $threadId) t`,
			],
		},
		`WITH RECURSIVE ancestors AS (
			SELECT t.thread_id, t.stamp, c.thread, c.ns, c.id, c.parent_id
			FROM ${thread} t ${lookUp(checkpoint, "c", "c.thread = t.number AND c.ns = $ns AND c.id = $id")}
			WHERE t.thread_id = $threadId
			UNION
			SELECT p.thread_id, p.stamp, c.thread, c.ns, c.id, c.parent_id
			FROM ancestors p ${lookUp(checkpoint, "c", `${here("c")} AND c.id = p.parent_id`)}
		), path AS MATERIALIZED (
			SELECT *, row_number() OVER () AS place FROM ancestors LIMIT (SELECT $limit::bigint)
		), root AS MATERIALIZED (
			SELECT * FROM (SELECT * FROM path ORDER BY place DESC LIMIT 1) p
			WHERE NOT ${isStored(`${here("c")} AND c.id = p.parent_id`)}
		), orphans AS (
			SELECT p.thread_id, w.* FROM root p ${lookUp(write, "w", `${here("w")} AND w.id < p.id`)}
			WHERE NOT ${isStored("c.thread = w.thread AND c.ns = w.ns AND c.id = w.id")}
		)`,
	);
}

const ofThread = ({ thread }: Tables, table: string) =>
	`${thread} t JOIN ${table} r ON r.thread = t.number WHERE t.thread_id = $threadId`;

export function askOutline(tables: Tables) {
	return ask<ThreadOutline>({
		checkpoints: [
			kind("thread_id, ns, id, parent_id"),
			ofThread(tables, tables.checkpoint),
			"row_number() OVER (ORDER BY id DESC, ns)",
		],
		written: [kind("ns, channel"), `(SELECT DISTINCT r.ns, r.channel FROM ${ofThread(tables, tables.write)}) r`],
	});
}

export function askThread(tables: Tables) {
	return ask<ThreadReading>({
		writes: [FOUND_WRITE, ofThread(tables, tables.write)],
		deltaBases: [FOUND_BASE, ofThread(tables, tables.base)],
	});
}
