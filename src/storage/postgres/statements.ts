import { insertThread, insertWrites, upsertBases } from "./put.ts";
import { blobStatement, pathStatement } from "./read.ts";
import { BASE, LISTED_BLOB, LISTED_CHECKPOINT, THREAD, WRITE, WRITE_KEY } from "./rows.ts";
import type { Tables } from "./schema.ts";
import { union } from "./statement.ts";

/** Statements that are the same for every call. */
export function statementsOn(tables: Tables) {
	const { thread, checkpoint, blob, write, base, sequence } = tables;
	const threads = `SELECT ${THREAD.join()} FROM ${thread}`;
	const ofRuns = (table: string) =>
		`${thread} t JOIN ${table} r ON r.thread = t.number WHERE r.run_id = ANY ($runs::text[])`;
	const ofThread = (table: string) => `${thread} t JOIN ${table} r ON r.thread = t.number WHERE t.thread_id = $thread`;
	const ofFamily = (table: string) =>
		`${thread} t JOIN ${table} r ON r.thread = t.number WHERE t.family = $family::bigint`;
	/** How many rows of checkpoints and writes there are, and their bytes. */
	const sums = (where: string) => `(SELECT count(*) FROM ${checkpoint} ${where}),
		(SELECT coalesce(sum(octet_length(head)), 0) FROM ${checkpoint} ${where}),
		(SELECT count(*) FROM ${write} ${where}), (SELECT coalesce(sum(octet_length(value)), 0) FROM ${write} ${where})`;
	/** The same of rows that a statement has removed. */
	const removed = (name: string) => `(SELECT count(*) FROM ${name}), (SELECT coalesce(sum(bytes), 0) FROM ${name})`;

	/** A thread's rows of these checkpoints, or all if no checkpoints are given. */
	const chosen = (id: string, number: string) => `thread = ${number}
		AND ($nss::text[] IS NULL OR (ns, ${id}) IN (SELECT * FROM unnest($nss::text[], $ids::text[])))`;
	const copied = (table: string, id: string, columns: string) => `INSERT INTO ${table} (thread, ${columns})
		SELECT $number::bigint, ${columns} FROM ${table} WHERE ${chosen(id, "$source::bigint")}`;
	const numbered = "WITH thread AS (SELECT $number::bigint AS number)";
	const isLost = (row: string) => `NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = ${row}.thread)`;
	const ofCheckpoint = (row: string, id: string) => `FROM ${thread} t
		WHERE t.thread_id = $thread AND ${row}.thread = t.number AND ${row}.ns = $ns AND ${row}.${id} = $id`;

	return {
		reserve: `UPDATE ${sequence} SET next = next + $count::bigint RETURNING next - $count::bigint`,

		readPath: pathStatement(tables),
		readOutline: union(
			["checkpoint", LISTED_CHECKPOINT, ofThread(checkpoint)],
			["written", ["ns", "channel"], `(SELECT DISTINCT r.ns, r.channel FROM ${ofThread(write)}) r`],
		),
		readThread: union(["write", WRITE, ofThread(write)], ["base", BASE, ofThread(base)]),
		getBlobs: blobStatement(tables),
		findRuns: union(["checkpoint", LISTED_CHECKPOINT, ofRuns(checkpoint)], ["write", WRITE_KEY, ofRuns(write)]),
		getThread: `${threads} WHERE thread_id = $thread`,
		listThreads: `${threads}
			WHERE updated_minute <= $minute::bigint AND (updated_at, thread_id) < ($updated::bigint, $thread)
			ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT $limit::bigint`,
		readFamily: union(
			["blob", LISTED_BLOB, `${blob} WHERE family = $family::bigint`],
			["named", ["unnest(r.blobs)"], ofFamily(checkpoint)],
			["named", ["r.blob"], `${ofFamily(write)} AND r.blob IS NOT NULL`],
			["base", BASE, ofFamily(base)],
		),
		/** Jumps from one family to the next. */
		listFamilies: `WITH RECURSIVE found AS (
				SELECT min(family) AS family FROM ${blob} WHERE family > $after::bigint
				UNION ALL
				SELECT (SELECT min(b.family) FROM ${blob} b WHERE b.family > f.family) FROM found f WHERE f.family IS NOT NULL
			) SELECT family FROM found WHERE family IS NOT NULL LIMIT $limit::bigint`,
		totals: `SELECT ${sums("")}, (SELECT count(*) FROM ${thread}),
			(SELECT coalesce(sum(octet_length(data)), 0) FROM ${blob})`,

		lockThread: `SELECT number, family, stamp FROM ${thread} WHERE thread_id = $thread FOR NO KEY UPDATE`,
		/** Also counts again. */
		restamp: `UPDATE ${thread} SET stamp = $stamp::bigint, writer = $writer::bigint, writer_since = $stamp::bigint,
			checkpoints = (SELECT count(*) FROM ${checkpoint} WHERE thread = $number::bigint),
			newest = (SELECT max(id) FROM ${checkpoint} WHERE thread = $number::bigint AND ns = '')
			WHERE thread_id = $thread`,
		removeRows: `WITH checkpoints AS (
				DELETE FROM ${checkpoint} WHERE ${chosen("id", "$number::bigint")} RETURNING octet_length(head) AS bytes
			), writes AS (
				DELETE FROM ${write} WHERE ${chosen("checkpoint", "$number::bigint")} RETURNING octet_length(value) AS bytes
			), bases AS (
				DELETE FROM ${base} WHERE ${chosen("checkpoint", "$number::bigint")}
			) SELECT ${removed("checkpoints")}, ${removed("writes")}`,
		removeWrites: `WITH writes AS (
				DELETE FROM ${write} w
				USING unnest($writeNss::text[], $writeIds::text[], $tasks::text[], $generations::int[], $idxs::bigint[],
					$areOrphans::bool[]) AS k (ns, id, task, generation, idx, is_orphan)
				WHERE w.thread = $number::bigint AND w.ns = k.ns AND w.checkpoint = k.id AND w.task = k.task
					AND w.generation = k.generation AND w.idx = k.idx AND NOT (k.is_orphan AND EXISTS (
						SELECT FROM ${checkpoint} c WHERE c.thread = $number::bigint AND c.ns = k.ns AND c.id = k.id
					))
				RETURNING octet_length(w.value) AS bytes
			) SELECT 0, 0, ${removed("writes")}`,
		/** Waits for puts that have seen it. */
		removeThread: `DELETE FROM ${thread} WHERE thread_id = $thread RETURNING number`,
		// Rows that another process is removing at this moment are left to it.
		removeBlobs: `DELETE FROM ${blob} b USING (
				SELECT id FROM ${blob} WHERE id = ANY ($ids::bigint[]) AND family = $family::bigint FOR UPDATE SKIP LOCKED
			) AS dead WHERE b.id = dead.id`,

		addThread: insertThread(tables, "$family::bigint", "0, NULL", "true"),
		copyRows: `WITH checkpoints AS (
				${copied(checkpoint, "id", "batch, ns, id, parent, run_id, source, step, labels, blobs, head")}
			), writes AS (
				${copied(write, "checkpoint", "batch, ns, checkpoint, task, generation, idx, task_path, channel, run_id, actor, type, blob, value")}
			) ${copied(base, "checkpoint", "ns, checkpoint, channel, data")}`,
		/** Rows that are there keep their labels. */
		putCheckpoints: `INSERT INTO ${checkpoint} (thread, batch, ns, id, parent, run_id, source, step, blobs, head)
			SELECT $number::bigint, $number::bigint, r.ns, r.id, r.parent, r.run_id, r.source, r.step, r.blobs::bigint[],
				substr($headBytes::bytea, r.start, r.length)
			FROM unnest($nss::text[], $ids::text[], $parents::text[], $runs::text[], $sources::text[], $steps::bigint[],
				$blobLists::text[], $headStarts::int[], $headLengths::int[])
				AS r (ns, id, parent, run_id, source, step, blobs, start, length)
			ON CONFLICT (thread, ns, id) DO UPDATE SET parent = excluded.parent, run_id = excluded.run_id,
				source = excluded.source, step = excluded.step, blobs = excluded.blobs, head = excluded.head`,
		addWrites: `${numbered} ${insertWrites(tables, "i.generation")}`,
		putBases: `${numbered} ${upsertBases(tables)}`,
		countRows: `SELECT ${sums("WHERE thread = $number::bigint")}`,

		// If it is encrypted now, labels would tell what it says.
		replaceHead: `UPDATE ${checkpoint} c SET head = $to, labels = NULL ${ofCheckpoint("c", "id")}
			AND c.head = $from RETURNING 1`,
		replaceValue: `UPDATE ${write} w SET value = $to ${ofCheckpoint("w", "checkpoint")}
			AND w.task = $task AND w.generation = $generation::int AND w.idx = $idx::bigint AND w.value = $from RETURNING 1`,
		replaceBase: `UPDATE ${base} b SET data = $to ${ofCheckpoint("b", "checkpoint")}
			AND b.channel = $channel AND b.data = $from RETURNING 1`,
		replaceBlob: `UPDATE ${blob} SET data = $to WHERE id = $id::bigint AND data = $from RETURNING 1`,

		clearThreads: `DELETE FROM ${thread}`,
		/** Removes rows of threads that are not there. */
		sweep: `WITH checkpoints AS (
				DELETE FROM ${checkpoint} r WHERE ${isLost("r")}
			), writes AS (
				DELETE FROM ${write} r WHERE ${isLost("r")}
			), bases AS (
				DELETE FROM ${base} r WHERE ${isLost("r")}
			) DELETE FROM ${blob} b WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.family = b.family)`,
		check: union(
			[
				"miscounted",
				["thread_id"],
				`${thread} t WHERE
					t.checkpoints <> (SELECT count(*) FROM ${checkpoint} c WHERE c.thread = t.number) OR
					t.newest IS DISTINCT FROM (SELECT max(c.id) FROM ${checkpoint} c WHERE c.thread = t.number AND c.ns = '')`,
			],
			[
				"lost",
				["thread", "name"],
				`(
					SELECT DISTINCT r.thread, r.name FROM (
						SELECT thread, 'checkpoint' AS name FROM ${checkpoint} UNION ALL
						SELECT thread, 'write' FROM ${write} UNION ALL
						SELECT thread, 'base' FROM ${base}
					) r WHERE ${isLost("r")}
				) lost`,
			],
		),
	};
}

export type Statements = ReturnType<typeof statementsOn>;
