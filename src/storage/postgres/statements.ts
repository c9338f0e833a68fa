import type { CheckpointKey, FamilyReading, ThreadRow, WriteKey } from "../storage.ts";
import { insertThread, insertWrites, lockThread, storedStatement, upsertBases } from "./put.ts";
import { askBlobs, askOutline, askPath, askThread } from "./read.ts";
import { CHECKPOINT, CHECKPOINT_KEY, columnsOf, FOUND_BASE, given, kind, OLD_WRITE, WRITE, WRITE_KEY } from "./rows.ts";
import type { Tables } from "./schema.ts";
import { ask } from "./statement.ts";

/** Tables whose rows belong to a thread. */
const OF_THREADS = ["checkpoint", "write", "base"] as const;

/** Statements that are the same for every call. */
export function statementsOn(tables: Tables) {
	const { thread, checkpoint, blob, write, base, format } = tables;
	const ofRuns = (table: string) =>
		`${thread} t JOIN ${table} r ON r.thread = t.number WHERE r.run_id = ANY ($runs::text[])`;
	const ofFamily = (table: string) =>
		`${thread} t JOIN ${table} r ON r.thread = t.number WHERE t.family = $family::bigint`;
	/** Threads with how many checkpoints they have, and the newest. */
	const askThreads = (which: string) => {
		const columns = kind("thread_id, family, stamp, created_at, updated_at, checkpoints, newest");
		const counted = `SELECT *, (SELECT count(*) FROM ${checkpoint} c WHERE c.thread = t.number) AS checkpoints,
				(SELECT max(id) FROM ${checkpoint} c WHERE c.thread = t.number AND ns = '') AS newest
			FROM (SELECT * FROM ${thread} ${which}) t`;
		return ask<{ threads: ThreadRow[] }>({ threads: [columns, `(${counted}) t`] });
	};
	/** How many rows of checkpoints and writes there are, and how many bytes they have. */
	const counts = (checkpoints: string, writes: string) =>
		[checkpoints, writes]
			.map((rows) => `(SELECT count(*) FROM ${rows}), (SELECT coalesce(sum(bytes), 0) FROM ${rows})`)
			.join();
	const stored = (where: string) =>
		counts(
			`(SELECT octet_length(head) AS bytes FROM ${checkpoint} ${where}) c`,
			`(SELECT octet_length(value) AS bytes FROM ${write} ${where}) w`,
		);

	/** A thread's rows of these checkpoints, or all if no checkpoints are given. */
	const chosen = (number: string) => `thread = ${number}
		AND ($key::json IS NULL OR (ns, id) IN (SELECT ns, id FROM ${given("key", CHECKPOINT_KEY)}))`;
	const removed = (table: string) => `DELETE FROM ${table} WHERE ${chosen("$number::bigint")}`;
	const copied = (table: string, columns: string) => `INSERT INTO ${table} (thread, ${columns})
		SELECT $number::bigint, ${columns} FROM ${table} WHERE ${chosen("$source::bigint")}`;
	const lost = (name: keyof Tables) =>
		`${tables[name]} r WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = r.thread)`;
	/** Other bytes for a row that has those that were seen. */
	const replace = (table: string, column: string, key: string, also = "") =>
		`UPDATE ${table} SET ${column} = $to ${also} WHERE ${key} AND ${column} = $from RETURNING 1`;
	const ofCheckpoint = `thread = (SELECT number FROM ${thread} WHERE thread_id = $threadId) AND ns = $ns AND id = $id`;

	return {
		reserve: `UPDATE ${format} SET next = next + $count::bigint RETURNING next - $count::bigint`,

		path: askPath(tables),
		outline: askOutline(tables),
		thread: askThread(tables),
		blobs: askBlobs(tables),
		runs: ask<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }>({
			checkpoints: [CHECKPOINT_KEY, ofRuns(checkpoint)],
			writes: [WRITE_KEY, ofRuns(write)],
		}),
		threadRow: askThreads("WHERE thread_id = $threadId"),
		threadRows: askThreads(`WHERE updated_minute <= $updatedAt::bigint / 60000
				AND (updated_at, thread_id) < ($updatedAt::bigint, $threadId)
			ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT $limit::bigint`),
		family: ask<Omit<FamilyReading, "named"> & { named: { id: number }[] }>({
			blobs: [
				kind("id, base, source, bytes"),
				`(SELECT *, octet_length(data) AS bytes FROM ${blob} WHERE family = $family::bigint) b`,
			],
			named: [
				kind("id"),
				`(SELECT unnest(r.blobs) AS id FROM ${ofFamily(checkpoint)}
				UNION ALL SELECT r.blob FROM ${ofFamily(write)} AND r.blob IS NOT NULL) n`,
			],
			deltaBases: [FOUND_BASE, ofFamily(base)],
		}),
		families: `SELECT DISTINCT family FROM ${blob} WHERE family > $after::bigint ORDER BY family LIMIT $limit::bigint`,
		totals: `SELECT ${stored("")}, (SELECT count(*) FROM ${thread}),
			(SELECT coalesce(sum(octet_length(data)), 0) FROM ${blob})`,

		lockThread: lockThread(tables),
		findStored: storedStatement(tables),
		restamp: `UPDATE ${thread} SET stamp = $stamp::bigint, writer = $writer::bigint, writer_since = $stamp::bigint
			WHERE thread_id = $threadId`,
		/** Removes checkpoints with all that they have, and writes of others. */
		removeRows: `WITH checkpoints AS (
				${removed(checkpoint)} RETURNING octet_length(head) AS bytes
			), bases AS (
				${removed(base)}
			), writes AS (
				${removed(write)} RETURNING octet_length(value) AS bytes
			), others AS (
				DELETE FROM ${write} w USING ${given("old", OLD_WRITE)}
				WHERE w.thread = $number::bigint AND w.ns = old.ns AND w.id = old.id AND w.task_id = old.task_id
					AND w.generation = old.generation AND w.idx = old.idx AND (old.orphan IS NULL OR NOT EXISTS (
						SELECT FROM ${checkpoint} c WHERE c.thread = $number::bigint AND c.ns = old.ns AND c.id = old.id
					))
				RETURNING octet_length(w.value) AS bytes
			) SELECT ${counts("checkpoints", "(SELECT * FROM writes UNION ALL SELECT * FROM others) w")}`,
		/** Waits for puts that have seen it. */
		removeThread: `DELETE FROM ${thread} WHERE thread_id = $threadId RETURNING number`,
		removeBlobs: `DELETE FROM ${blob} WHERE id = ANY ($ids::bigint[]) AND family = $family::bigint`,

		addThread: insertThread(tables, "$family::bigint", "true"),
		copyRows: `WITH checkpoints AS (
				${copied(checkpoint, `batch, labels, ${columnsOf(CHECKPOINT)}`)}
			), writes AS (
				${copied(write, `batch, ${columnsOf(WRITE)}`)}
			) ${copied(base, "ns, id, channel, data")}`,
		/** Adds rows, or puts them in place of those with their keys. Checkpoints that are there keep their labels. */
		putRows: `WITH thread AS (SELECT $number::bigint AS number), checkpoints AS (
				INSERT INTO ${checkpoint} (thread, batch, ${columnsOf(CHECKPOINT)})
				SELECT number, number, ${columnsOf(CHECKPOINT)} FROM thread, ${given("checkpoint", CHECKPOINT)}
				ON CONFLICT (thread, ns, id) DO UPDATE SET parent_id = excluded.parent_id, run_id = excluded.run_id,
					source = excluded.source, step = excluded.step, blobs = excluded.blobs, head = excluded.head
			), writes AS (
				${insertWrites(tables)}
			) ${upsertBases(tables)}`,
		countRows: `SELECT ${stored("WHERE thread = $number::bigint")}`,

		replace: {
			// If it is encrypted now, labels would tell what it says.
			checkpoint: replace(checkpoint, "head", ofCheckpoint, ", labels = NULL"),
			write: replace(
				write,
				"value",
				`${ofCheckpoint} AND task_id = $taskId AND generation = $generation::int AND idx = $idx::bigint`,
			),
			deltaBase: replace(base, "data", `${ofCheckpoint} AND channel = $channel`),
			blob: replace(blob, "data", "id = $id::bigint"),
		},

		clearThreads: `DELETE FROM ${thread}`,
		/** Removes rows of threads that are not there. */
		sweep: `WITH ${OF_THREADS.map((name) => `${name}s AS (DELETE FROM ${lost(name)})`)}
			DELETE FROM ${blob} b WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.family = b.family)`,
		findLost: OF_THREADS.map((name) => `SELECT DISTINCT thread, '${name}' FROM ${lost(name)}`).join(" UNION ALL "),
	};
}
