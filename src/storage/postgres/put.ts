import { ConcurrencyError } from "../../errors.ts";
import type { CheckpointRow, PutBatch, PutResult } from "../storage.ts";
import { labelText } from "./read.ts";
import { BASE, BLOB, columnsOf, fromText, given, NEW_WRITE, send, WRITE } from "./rows.ts";
import type { Tables } from "./schema.ts";
import type { SqlRow, Values } from "./statement.ts";

/**
 * One statement that stores a whole batch, so that it takes one round trip and one commit.
 *
 * All parts of it see the database as it was when it began, except for rows that it locks or finds taken. So the thread
 * comes first: once it is locked, its stamp is the current one and stays so until the commit. What else was added to the
 * thread meanwhile is not seen. If the batch has the same checkpoint or task it fails on their keys, and is sent again.
 */
export function putStatement(tables: Tables, batch: PutBatch): string {
	const { checkpoint, onlyOnHead, blobs, writes, deltaBases } = batch;
	const parts = [
		checkpoint === undefined ? shareThread(tables) : `guard AS MATERIALIZED (${lockThread(tables)})`,
		checkpoint !== undefined &&
			(onlyOnHead ? findBranch(tables) : "obstacle AS (SELECT '' AS kind, '' AS id WHERE false)"),
		chooseThread(tables, batch),
		checkpoint === undefined ? "stored AS (SELECT *, false AS replaced FROM thread)" : putCheckpoint(tables),
		writes.some(({ conflict }) => conflict !== "replace") && addWrites(tables),
		writes.some(({ conflict }) => conflict === "replace") && replaceWrites(tables),
		blobs.length > 0 && addBlobs(tables),
		deltaBases.length > 0 && `bases AS (${upsertBases(tables)})`,
	];
	return `WITH ${parts.filter(Boolean).join(", ")}
		SELECT 'stored', family::text, stamp::text, replaced::text FROM stored
		UNION ALL SELECT kind, id, NULL, NULL FROM obstacle`;
}

/**
 * The answer for a batch that was sent before, if it was stored. Delta bases alone may be stored twice. The thread must
 * be locked by then: the first sending may still be under way.
 */
export function storedStatement({ thread, checkpoint, write }: Tables): string {
	return `SELECT 'stored', family, stamp, (stamp = $fresh::bigint AND number <> $fresh::bigint)::text FROM ${thread} t
		WHERE thread_id = $threadId AND (EXISTS (
			SELECT FROM ${checkpoint} c WHERE c.thread = t.number AND c.batch = $fresh::bigint AND c.ns = $ns AND c.id = $id
		) OR EXISTS (
			SELECT FROM ${write} w WHERE w.thread = t.number AND w.batch = $fresh::bigint
				AND w.ns = $writeNs AND w.id = $writeId AND w.task_id = $taskId
		))`;
}

/** @param writer the storage object */
export function putValues(batch: PutBatch, writer: number): Values {
	const { threadId, stamp, fresh, now, checkpoint, labels, blobs, writes, deltaBases } = batch;
	const [write] = writes;
	return {
		threadId,
		stamp,
		fresh,
		now,
		writer,
		labels: labelText(labels),
		writeNs: write?.ns,
		writeId: write?.id,
		taskId: write?.taskId,
		...checkpoint,
		...(blobs.length > 0 && send("blob", BLOB, blobs)),
		...(writes.length > 0 && send("write", NEW_WRITE, writes)),
		...(deltaBases.length > 0 && send("base", BASE, deltaBases)),
	};
}

/** Reads the answer of the statement. */
export function toPutResult([row]: SqlRow[], batch: PutBatch): PutResult | undefined {
	const [outcome, first, stamp, replaced] = row ?? [];
	if (outcome === "stored") return { family: Number(first), stamp: Number(stamp), replaced: replaced === "true" };
	if (outcome === "branch") throw new ConcurrencyError(batch.checkpoint as CheckpointRow, fromText(first as string));
	if (outcome === undefined && batch.stamp !== undefined) return undefined;
	// Another call stored something, or made the thread, while this one was under way.
	throw Object.assign(new Error("The thread changed at the same time"), { code: "40001" });
}

const NUMBER = "(SELECT number FROM thread)";

/** The thread whose row will be changed, and which version of it this is: the transaction that changed it last. */
export function lockThread({ thread }: Tables): string {
	return `SELECT number, family, stamp, xmin AS version FROM ${thread} WHERE thread_id = $threadId FOR NO KEY UPDATE`;
}

/**
 * The thread of writes alone. Tasks that end at the same time need not wait for each other, unless another storage
 * object changed the thread last: it must learn that this one has. If the thread changes hands just now, the statement
 * must begin anew: a lock that is shared can't become another without deadlocks.
 */
function shareThread({ thread }: Tables): string {
	return `shared AS MATERIALIZED (
		SELECT number, family, stamp FROM ${thread} WHERE thread_id = $threadId AND writer = $writer::bigint FOR SHARE
	), taken AS (
		UPDATE ${thread} SET writer = $writer::bigint, writer_since = $fresh::bigint
		WHERE thread_id = $threadId AND writer <> $writer::bigint RETURNING number, family, stamp
	), guard AS MATERIALIZED (
		SELECT * FROM shared UNION ALL SELECT * FROM taken
	), obstacle AS MATERIALIZED (
		SELECT 'raced' AS kind, NULL AS id FROM ${thread} WHERE thread_id = $threadId AND NOT EXISTS (SELECT FROM guard)
	)`;
}

/**
 * The rule of `checkHead`. The newest checkpoint is that of when the statement began: if the thread's row has changed
 * since, the statement must begin anew.
 */
function findBranch({ thread, checkpoint }: Tables): string {
	const place = "thread = (SELECT number FROM guard) AND ns = $ns";
	return `raced AS MATERIALIZED (
		SELECT FROM guard g WHERE g.version <> (SELECT xmin FROM ${thread} WHERE thread_id = $threadId)
	), obstacle AS MATERIALIZED (
		SELECT 'raced' AS kind, NULL AS id FROM raced
		UNION ALL
		SELECT 'branch', n.id FROM (SELECT id, parent_id FROM ${checkpoint} WHERE ${place} ORDER BY id DESC LIMIT 1) n
		WHERE n.id <> $id AND NOT coalesce(n.id = $parentId AND n.id < $id, false)
			AND NOT coalesce(n.parent_id = $id AND NOT EXISTS (SELECT FROM ${checkpoint} WHERE ${place} AND id = $id), false)
			AND NOT EXISTS (SELECT FROM raced)
	)`;
}

/** The thread if nothing is in the way. It is made if it is not there, unless the batch builds on older rows. */
function chooseThread(tables: Tables, batch: PutBatch): string {
	const isCurrent = batch.stamp === undefined ? "true" : "stamp = $stamp::bigint";
	const current = `SELECT number, family, stamp FROM guard WHERE NOT EXISTS (SELECT FROM obstacle) AND ${isCurrent}`;
	if (batch.stamp !== undefined) return `thread AS MATERIALIZED (${current})`;
	return `created AS (
		${insertThread(tables, "$fresh::bigint", "NOT EXISTS (SELECT FROM guard) AND NOT EXISTS (SELECT FROM obstacle)")}
	), thread AS MATERIALIZED (
		${current} UNION ALL SELECT * FROM created
	)`;
}

/** Adds a thread, unless there is one with its id. */
export function insertThread({ thread }: Tables, family: string, condition: string): string {
	return `INSERT INTO ${thread}
			(thread_id, number, family, stamp, created_at, updated_at, updated_minute, writer, writer_since)
		SELECT $threadId, $fresh::bigint, ${family}, $fresh::bigint, $now::bigint, $now::bigint, $now::bigint / 60000,
			$writer::bigint, $fresh::bigint
		WHERE ${condition} ON CONFLICT DO NOTHING RETURNING number, family, stamp`;
}

/** A thread that was just made is not seen by the update. */
function putCheckpoint({ thread, checkpoint }: Tables): string {
	const columns = "batch, step, parent_id, run_id, source, labels, blobs, head";
	const row = `$fresh::bigint, $step::bigint, $parentId::text, $runId::text, $source::text, $labels::jsonb,
		$blobs::bigint[], $head::bytea`;
	return `replaced AS (
		UPDATE ${checkpoint} SET (${columns}) = ROW (${row}) WHERE thread = ${NUMBER} AND ns = $ns AND id = $id RETURNING 1
	), added AS (
		INSERT INTO ${checkpoint} (thread, ns, id, ${columns})
		SELECT number, $ns, $id, ${row} FROM thread WHERE NOT EXISTS (SELECT FROM replaced)
	), stored AS MATERIALIZED (
		SELECT number, family, r.replaced, CASE WHEN r.replaced THEN $fresh::bigint ELSE stamp END AS stamp
		FROM thread, (SELECT EXISTS (SELECT FROM replaced) AS replaced) r
	), touched AS (
		UPDATE ${thread} t SET updated_at = $now::bigint, updated_minute = $now::bigint / 60000, stamp = s.stamp,
			writer = $writer::bigint,
			writer_since = CASE WHEN t.writer = $writer::bigint THEN t.writer_since ELSE $fresh::bigint END
		FROM stored s WHERE t.thread_id = $threadId
	)`;
}

/** Writes that leave others in place. */
function addWrites(tables: Tables): string {
	return `before AS MATERIALIZED (
		SELECT generation, idx FROM ${tables.write}
		WHERE thread = ${NUMBER} AND ns = $writeNs AND id = $writeId AND task_id = $taskId
	), added_writes AS (
		${insertWrites(tables, "CASE conflict WHEN 'add' THEN (SELECT coalesce(max(generation) + 1, 0) FROM before) ELSE 0 END")}
		WHERE conflict = 'add' OR (conflict = 'drop' AND NOT EXISTS (SELECT FROM before b WHERE b.idx = write.idx))
	)`;
}

function replaceWrites(tables: Tables): string {
	const columns = ["batch", ...columnsOf(WRITE)].map((column) => `${column} = excluded.${column}`);
	return `replaced_writes AS (
		${insertWrites(tables, "0")} WHERE conflict = 'replace'
		ON CONFLICT (thread, ns, id, task_id, generation, idx) DO UPDATE SET ${columns.join()}
	)`;
}

/** Adds writes to the thread whose number is in `thread`. A condition, and what is done on a conflict, may follow. */
export function insertWrites({ write }: Tables, generation = "generation"): string {
	const columns = columnsOf(WRITE);
	const values = columns.map((column) => (column === "generation" ? generation : column));
	return `INSERT INTO ${write} (thread, batch, ${columns.join()})
		SELECT thread.number, $fresh::bigint, ${values.join()} FROM thread, ${given("write", NEW_WRITE)}`;
}

function addBlobs({ blob }: Tables): string {
	const columns = columnsOf(BLOB).join();
	return `blobs AS (
		INSERT INTO ${blob} (family, ${columns}) SELECT thread.family, ${columns} FROM thread, ${given("blob", BLOB)}
	)`;
}

/** Puts delta bases into the thread whose number is in `thread`. A statement can't put a row twice: the last is taken. */
export function upsertBases({ base }: Tables): string {
	const key = "ns, id, channel";
	return `INSERT INTO ${base} (thread, ${key}, data)
		SELECT DISTINCT ON (${key}) thread.number, ${key}, data FROM thread, ${given("base", BASE)}
		ORDER BY ${key}, place DESC ON CONFLICT (thread, ${key}) DO UPDATE SET data = excluded.data`;
}
