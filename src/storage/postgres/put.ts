import type { PutBatch } from "../storage.ts";
import { tableName } from "./schema.ts";
import { compile, type Statement } from "./statement.ts";

/** What a batch brings: each kind is a part of the statement that stores it. */
export interface PutShape {
	readonly hasCheckpoint: boolean;
	readonly isGuarded: boolean;
	readonly hasBlobs: boolean;
	/** Writes that replace others, those that do not, and among these such that are dropped if there is one. */
	readonly hasReplacing: boolean;
	readonly hasAdding: boolean;
	readonly hasDropping: boolean;
	readonly hasBases: boolean;
	/** It builds on rows that must be there. */
	readonly hasStamp: boolean;
	/** The thread need not be there. */
	readonly mayCreate: boolean;
	/** The batch was sent before, and may have been stored. */
	readonly isAgain: boolean;
}

export function shapeOf(batch: PutBatch, mayCreate: boolean, isAgain: boolean): PutShape {
	const { checkpoint, onlyOnHead, stamp, blobs, writes, deltaBases = [] } = batch;
	return {
		hasCheckpoint: checkpoint !== undefined,
		isGuarded: checkpoint !== undefined && onlyOnHead === true,
		hasBlobs: blobs.length > 0,
		hasReplacing: writes.some(({ conflict }) => conflict === "replace"),
		hasAdding: writes.some(({ conflict }) => conflict !== "replace"),
		hasDropping: writes.some(({ conflict }) => conflict === "drop"),
		hasBases: deltaBases.length > 0,
		hasStamp: stamp !== undefined,
		mayCreate: mayCreate && stamp === undefined,
		isAgain,
	};
}

/**
 * One statement that stores a whole batch, so that it takes one round trip and one commit.
 *
 * All parts of it see the database as it was when it began, but rows that it locks or finds taken as they are by then.
 * So the thread comes first: once it is locked, its stamp is that of now and stays so until the commit.
 *
 * Most batches have a checkpoint that is new. So that is what is tried first, and one that is there already makes the
 * statement fail on its key, as do writers of one task at once: what is sent again then knows of both.
 *
 * Answers what became of it, with what else is known of that, see `readPut`; nothing if the thread is not there, or has
 * another stamp.
 */
export function putStatement(schema: string, shape: PutShape): Statement {
	const { hasCheckpoint, isGuarded, hasBlobs, hasReplacing, hasAdding, hasBases, isAgain } = shape;
	const isPlain = hasCheckpoint && !isGuarded && !isAgain;
	const parts = [
		...(isPlain ? plainThread(schema, shape) : lockedThread(schema, shape)),
		isPlain && newCheckpoint(schema),
		hasCheckpoint && !isPlain && anyCheckpoint(schema, shape),
		hasAdding && adding(schema, shape),
		hasReplacing && replacing(schema),
		hasBlobs && blobs(schema, shape),
		hasBases && bases(schema),
	];
	const replaced = hasCheckpoint && !isPlain ? "(SELECT puts > 1 FROM point)" : "false";
	const stamp = `CASE WHEN ${replaced} THEN $fresh::bigint ELSE stamp END`;
	const answers = [`SELECT 'stored', family::text, (${stamp})::text, (${replaced})::text FROM thread`];
	if (isGuarded) answers.push("SELECT 'raced', NULL, NULL, NULL FROM raced");
	if (isGuarded) answers.push("SELECT 'branch', id, NULL, NULL FROM branch");
	return compile(`WITH ${parts.filter(Boolean).join(", ")} ${answers.join(" UNION ALL ")}`);
}

const IS_CURRENT = "($stamp::bigint IS NULL OR stamp = $stamp::bigint)";
const NUMBER = "(SELECT number FROM thread)";
/** Of a thread whose newest checkpoint this may be. */
const HEAD = "CASE WHEN t.head > $head::text THEN t.head ELSE coalesce($head::text, t.head) END";

/** The thread of a new checkpoint, which it counts already. */
function plainThread(schema: string, { mayCreate }: PutShape): string[] {
	const updated = `(
		UPDATE ${tableName(schema, "thread")} t SET updated_at = $now::bigint, updated_minute = $minute::bigint,
			checkpoints = t.checkpoints + 1, head = ${HEAD}
		WHERE thread_id = $thread::text AND ${IS_CURRENT} RETURNING number, family, stamp
	)`;
	if (!mayCreate) return [`thread AS ${updated}`];
	return [`updated AS ${updated}`, created(schema, "updated", "1, $head::text"), eitherOf("updated")];
}

/**
 * The thread as it is, locked no more than need be: against whoever counts its checkpoints, against removals, or against
 * its end. And what keeps the batch from being stored, besides a stamp that is not the thread's.
 */
function lockedThread(schema: string, { hasCheckpoint, isGuarded, isAgain, mayCreate, ...shape }: PutShape): string[] {
	const lock = hasCheckpoint ? "NO KEY UPDATE" : shape.hasStamp ? "SHARE" : "KEY SHARE";
	const thread = `FROM ${tableName(schema, "thread")} WHERE thread_id = $thread::text`;
	if (!isGuarded && !isAgain && !mayCreate)
		return [`thread AS MATERIALIZED (SELECT number, family, stamp ${thread} AND ${IS_CURRENT} FOR ${lock})`];
	const isFree = isGuarded ? "AND NOT EXISTS (SELECT FROM raced) AND NOT EXISTS (SELECT FROM branch)" : "";
	const isApplied = isAgain ? "OR EXISTS (SELECT FROM applied)" : "";
	const parts = [`guard AS MATERIALIZED (SELECT number, family, stamp, checkpoints ${thread} FOR ${lock})`];
	if (isAgain) parts.push(applied(schema, hasCheckpoint, shape.hasAdding || shape.hasReplacing));
	if (isGuarded) parts.push(branch(schema, isAgain));
	const current = `SELECT number, family, stamp FROM guard WHERE (${IS_CURRENT} ${isApplied}) ${isFree}`;
	if (!mayCreate) return [...parts, `thread AS MATERIALIZED (${current})`];
	const counts = hasCheckpoint ? "1, $head::text" : "0, NULL";
	return [...parts, `current AS (${current})`, created(schema, "guard", counts), eitherOf("current")];
}

/** @param counts how many checkpoints it has, and which is the head */
function created(schema: string, other: string, counts: string): string {
	return `created AS (
		INSERT INTO ${tableName(schema, "thread")}
			(thread_id, number, family, stamp, created_at, updated_at, updated_minute, checkpoints, head)
		SELECT $thread::text, $fresh::bigint, $fresh::bigint, $fresh::bigint, $now::bigint, $now::bigint, $minute::bigint,
			${counts}
		WHERE NOT EXISTS (SELECT FROM ${other})
		ON CONFLICT DO NOTHING RETURNING number, family, stamp
	)`;
}

function eitherOf(other: string): string {
	return `thread AS MATERIALIZED (
		SELECT number, family, stamp FROM ${other} UNION ALL SELECT number, family, stamp FROM created
	)`;
}

/** Finds what a first sending has stored. */
function applied(schema: string, hasCheckpoint: boolean, hasWrites: boolean): string {
	const number = "(SELECT number FROM guard)";
	if (hasCheckpoint)
		return `applied AS MATERIALIZED (
			SELECT FROM ${tableName(schema, "checkpoint")}
			WHERE thread = ${number} AND ns = $ns::text AND id = $id::text AND batch = $fresh::bigint
		)`;
	if (hasWrites)
		return `applied AS MATERIALIZED (
			SELECT FROM ${tableName(schema, "write")} WHERE thread = ${number} AND ns = $writeNs::text
				AND checkpoint = $writeId::text AND task = $task::text AND batch = $fresh::bigint LIMIT 1
		)`;
	// All else that a batch can bring may be stored twice.
	return "applied AS (SELECT FROM guard WHERE false)";
}

/**
 * The rule of `checkHead`. The newest checkpoint is that of when the statement began: if the thread has changed since,
 * the statement must begin anew.
 */
function branch(schema: string, isAgain: boolean): string {
	const checkpoint = tableName(schema, "checkpoint");
	const number = "(SELECT number FROM guard)";
	return `raced AS MATERIALIZED (
		SELECT FROM guard g WHERE NOT EXISTS (
			SELECT FROM ${tableName(schema, "thread")} t
			WHERE t.thread_id = $thread::text AND t.stamp = g.stamp AND t.checkpoints = g.checkpoints
		)
	), newest AS MATERIALIZED (
		SELECT id, parent FROM ${checkpoint} WHERE thread = ${number} AND ns = $ns::text ORDER BY id DESC LIMIT 1
	), branch AS MATERIALIZED (
		SELECT n.id FROM newest n WHERE n.id <> $id::text
			AND NOT coalesce(n.id = $parent::text AND n.id < $id::text, false)
			AND NOT coalesce(n.parent = $id::text AND NOT EXISTS (
				SELECT FROM ${checkpoint} c WHERE c.thread = ${number} AND c.ns = $ns::text AND c.id = $id::text
			), false)
			AND NOT EXISTS (SELECT FROM raced) ${isAgain ? "AND NOT EXISTS (SELECT FROM applied)" : ""}
	)`;
}

const POINT_COLUMNS = "thread, batch, puts, step, ns, id, parent, run_id, source, labels, blobs, head";
const POINT = `SELECT number, $fresh::bigint, 1, $step::bigint, $ns::text, $id::text, $parent::text, $run::text,
	$source::text, $labels::jsonb, $namedBlobs::bigint[], $row::bytea FROM thread`;

function newCheckpoint(schema: string): string {
	return `point AS (INSERT INTO ${tableName(schema, "checkpoint")} (${POINT_COLUMNS}) ${POINT})`;
}

/** A checkpoint that may be there already. A thread that was just made counts it. */
function anyCheckpoint(schema: string, { isAgain }: PutShape): string {
	const puts = isAgain ? "CASE WHEN c.batch = excluded.batch THEN c.puts ELSE c.puts + 1 END" : "c.puts + 1";
	const isNew = `point.puts = 1 ${isAgain ? "AND NOT EXISTS (SELECT FROM applied)" : ""}`;
	return `point AS (
		INSERT INTO ${tableName(schema, "checkpoint")} AS c (${POINT_COLUMNS}) ${POINT}
		ON CONFLICT (thread, ns, id) DO UPDATE SET batch = excluded.batch, puts = ${puts}, step = excluded.step,
			run_id = excluded.run_id, source = excluded.source, labels = excluded.labels, blobs = excluded.blobs,
			head = excluded.head
		RETURNING puts
	), touched AS (
		UPDATE ${tableName(schema, "thread")} t SET updated_at = $now::bigint, updated_minute = $minute::bigint,
			checkpoints = t.checkpoints + CASE WHEN ${isNew} THEN 1 ELSE 0 END, head = ${HEAD},
			stamp = CASE WHEN point.puts > 1 THEN $fresh::bigint ELSE t.stamp END
		FROM point WHERE t.thread_id = $thread::text
	)`;
}

const WRITE_COLUMNS =
	"thread, batch, ns, checkpoint, task, generation, idx, task_path, actor, run_id, channel, type, blob, value";
const INCOMING = `unnest($idxs::bigint[], $paths::text[], $conflicts::text[], $channels::text[], $types::text[], $actors::bigint[],
	$runs::text[], $writeBlobs::bigint[], $writeStarts::int[], $writeLengths::int[])
	AS i (idx, task_path, conflict, channel, type, actor, run_id, blob, start, length)`;

function selectWrite(generation: string): string {
	return `SELECT thread.number, $fresh::bigint, $writeNs::text, $writeId::text, $task::text, ${generation}, i.idx, i.task_path, i.actor,
		i.run_id, i.channel, i.type, i.blob,
		CASE WHEN i.blob IS NULL THEN substr($writeData::bytea, i.start, i.length) END`;
}

/**
 * Writes that leave others in place. They are stored once even if the batch comes again while the first sending is still
 * on its way.
 */
function adding(schema: string, { hasReplacing, hasDropping }: PutShape): string {
	const write = tableName(schema, "write");
	const generation = "(SELECT coalesce(max(b.generation) + 1, 0) FROM before b)";
	const isNotStored = "NOT EXISTS (SELECT FROM before b WHERE b.batch = $fresh::bigint)";
	const isOurs = hasReplacing ? "AND i.conflict <> 'replace'" : "";
	const before = `before AS MATERIALIZED (
		SELECT w.generation, w.idx, w.batch FROM ${write} w WHERE w.thread = ${NUMBER} AND w.ns = $writeNs::text
			AND w.checkpoint = $writeId::text AND w.task = $task::text
	)`;
	if (!hasDropping)
		return `${before}, added AS (
			INSERT INTO ${write} (${WRITE_COLUMNS}) ${selectWrite(generation)} FROM thread, ${INCOMING}
			WHERE ${isNotStored} ${isOurs}
		)`;
	return `${before}, incoming AS MATERIALIZED (
		SELECT i.*, i.conflict = 'drop' AND EXISTS (SELECT FROM before b WHERE b.idx = i.idx) AS is_dropped
		FROM ${INCOMING} WHERE true ${isOurs}
	), added AS (
		INSERT INTO ${write} (${WRITE_COLUMNS})
		${selectWrite(`CASE WHEN i.conflict = 'add' THEN ${generation} ELSE 0 END`)}
		FROM thread, incoming i WHERE NOT i.is_dropped AND ${isNotStored}
	)`;
}

function replacing(schema: string): string {
	return `replacing AS (
		INSERT INTO ${tableName(schema, "write")} (${WRITE_COLUMNS}) ${selectWrite("0")} FROM thread, ${INCOMING}
		WHERE i.conflict = 'replace'
		ON CONFLICT (thread, ns, checkpoint, task, generation, idx) DO UPDATE SET batch = excluded.batch,
			task_path = excluded.task_path, actor = excluded.actor, run_id = excluded.run_id, channel = excluded.channel, type = excluded.type,
			blob = excluded.blob, value = excluded.value
	)`;
}

function blobs(schema: string, { hasDropping, isAgain }: PutShape): string {
	const isDropped = "EXISTS (SELECT FROM incoming i WHERE i.is_dropped AND i.blob = b.id)";
	return `blobs AS (
		INSERT INTO ${tableName(schema, "blob")} (id, family, base, source, type, data)
		SELECT b.id, thread.family, b.base, b.source, b.type, substr($blobData::bytea, b.start, b.length)
		FROM thread, unnest($blobIds::bigint[], $blobBases::bigint[], $blobSources::bigint[], $blobTypes::text[],
			$blobStarts::int[], $blobLengths::int[]) AS b (id, base, source, type, start, length)
		WHERE true ${hasDropping ? `AND NOT ${isDropped}` : ""} ${isAgain ? "AND NOT EXISTS (SELECT FROM applied)" : ""}
	)`;
}

function bases(schema: string): string {
	return `bases AS (
		INSERT INTO ${tableName(schema, "base")} (thread, ns, checkpoint, channel, data)
		SELECT thread.number, b.ns, b.id, b.channel, substr($baseData::bytea, b.start, b.length)
		FROM thread, unnest($baseNss::text[], $baseIds::text[], $baseChannels::text[], $baseStarts::int[],
			$baseLengths::int[]) AS b (ns, id, channel, start, length)
		ON CONFLICT (thread, ns, checkpoint, channel) DO UPDATE SET data = excluded.data
	)`;
}
