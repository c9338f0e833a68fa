import { CheckpointError, ConcurrencyError } from "../errors.ts";
import { asBuffer, baseColumns, packBytes, text, writeColumns } from "./postgres-rows.ts";
import { tableName } from "./postgres-schema.ts";
import type { SqlRow } from "./postgres-session.ts";
import { compile, type Statement, type Values } from "./postgres-statement.ts";
import { fromText, toText } from "./postgres-text.ts";
import type { CheckpointRow, NewWrite, PutBatch, PutResult } from "./storage.ts";

/** What a batch brings: each kind is a part of the statement that stores it. */
export interface PutShape {
	readonly hasCheckpoint: boolean;
	readonly isGuarded: boolean;
	readonly hasBlobs: boolean;
	readonly hasWrites: boolean;
	readonly hasBases: boolean;
	/** The batch was sent before, and may have been stored. */
	readonly isAgain: boolean;
}

export function shapeOf(batch: PutBatch, isAgain: boolean): PutShape {
	const { checkpoint, onlyOnHead, blobs, writes, deltaBases = [] } = batch;
	return {
		hasCheckpoint: checkpoint !== undefined,
		isGuarded: checkpoint !== undefined && onlyOnHead === true,
		hasBlobs: blobs.length > 0,
		hasWrites: writes.length > 0,
		hasBases: deltaBases.length > 0,
		isAgain,
	};
}

/**
 * One statement that stores a whole batch, so that it takes one round trip and one commit.
 *
 * All parts of it see the database as it was when it began, but rows that it locks or finds taken as they are by then.
 * So the thread comes first: once it is locked, its stamp is that of now and stays so until the commit. Writers of
 * one task at once collide in the key of what they write, and the later one begins anew.
 *
 * Answers what became of it, with what else is known of that, see {@link readPut}; nothing if the batch is out of date.
 */
export function putStatement(schema: string, shape: PutShape): Statement {
	const [thread, checkpoint, blob] = ["thread", "checkpoint", "blob"].map((name) => tableName(schema, name));
	const [write, base] = ["write", "base"].map((name) => tableName(schema, name));
	const { hasCheckpoint, isGuarded, hasBlobs, hasWrites, hasBases, isAgain } = shape;
	const isCurrent = "$stamp::bigint IS NULL OR stamp = $stamp::bigint";
	/** What keeps the batch from being stored, besides a stamp that is not the thread's. */
	const obstacles = [hasBlobs && "taken", isGuarded && "raced", isGuarded && "branch"].filter(Boolean);
	const isFree = obstacles.map((name) => `AND NOT EXISTS (SELECT FROM ${name})`).join(" ");
	const isNotApplied = isAgain ? "AND NOT EXISTS (SELECT FROM applied)" : "";
	const parts = [
		`guard AS MATERIALIZED (
			SELECT number, family, stamp, checkpoints FROM ${thread} WHERE thread_id = $thread::text
			FOR ${hasCheckpoint ? "NO KEY UPDATE" : "KEY SHARE"}
		)`,
		isAgain && appliedPart(),
		hasBlobs &&
			`taken AS MATERIALIZED (
				SELECT FROM ${blob} WHERE id = ANY ($blobIds::bigint[]) ${isNotApplied} LIMIT 1
			)`,
		isGuarded && branchPart(),
		`created AS (
			INSERT INTO ${thread}
				(thread_id, number, family, stamp, created_at, updated_at, updated_minute, checkpoints, head)
			SELECT $thread::text, $fresh::bigint, $fresh::bigint, $fresh::bigint, $now::bigint, $now::bigint,
				$minute::bigint, ${hasCheckpoint ? "1, $head::text" : "0, NULL"}
			WHERE $stamp::bigint IS NULL AND NOT EXISTS (SELECT FROM guard) ${isFree}
			ON CONFLICT DO NOTHING RETURNING number, family, stamp
		)`,
		`thread AS MATERIALIZED (
			SELECT number, family, stamp FROM guard
			WHERE (${isCurrent} ${isAgain ? "OR EXISTS (SELECT FROM applied)" : ""}) ${isFree}
			UNION ALL SELECT number, family, stamp FROM created
		)`,
		hasCheckpoint && checkpointPart(),
		hasCheckpoint && touchPart(),
		hasWrites && writesPart(),
		hasBlobs && blobsPart(),
		hasBases && basesPart(),
	];
	const replaced = hasCheckpoint ? "(SELECT puts > 1 FROM point)" : "false";
	const stamp = `CASE WHEN ${replaced} THEN $fresh::bigint ELSE stamp END`;
	const answers = [`SELECT 'stored', family::text, (${stamp})::text, (${replaced})::text FROM thread`];
	if (hasBlobs) answers.push("SELECT 'taken', NULL, NULL, NULL FROM taken");
	if (isGuarded) answers.push("SELECT 'raced', NULL, NULL, NULL FROM raced");
	if (isGuarded) answers.push("SELECT 'branch', id, NULL, NULL FROM branch");
	return compile(`WITH ${parts.filter(Boolean).join(", ")} ${answers.join(" UNION ALL ")}`);

	function appliedPart(): string {
		if (hasCheckpoint)
			return `applied AS MATERIALIZED (
				SELECT FROM guard g JOIN ${checkpoint} c ON c.thread = g.number
				WHERE c.ns = $ns::text AND c.id = $id::text AND c.batch = $fresh::bigint
			)`;
		if (hasWrites)
			return `applied AS MATERIALIZED (
				SELECT FROM guard g JOIN ${write} w ON w.thread = g.number
				WHERE w.ns = $writeNs::text AND w.checkpoint = $writeId::text AND w.task = $task::text AND w.batch = $fresh::bigint LIMIT 1
			)`;
		// All else that a batch can bring may be stored twice.
		return `applied AS (SELECT FROM guard WHERE false)`;
	}

	/**
	 * The rule of `checkHead`. The newest checkpoint is that of when the statement began: if the thread has changed since,
	 * the statement must begin anew.
	 */
	function branchPart(): string {
		return `raced AS MATERIALIZED (
			SELECT FROM guard g WHERE NOT EXISTS (
				SELECT FROM ${thread} t
				WHERE t.thread_id = $thread::text AND t.stamp = g.stamp AND t.checkpoints = g.checkpoints
			)
		), newest AS MATERIALIZED (
			SELECT c.id, c.parent FROM guard g JOIN ${checkpoint} c ON c.thread = g.number
			WHERE c.ns = $ns::text ORDER BY c.id DESC LIMIT 1
		), branch AS MATERIALIZED (
			SELECT n.id FROM newest n WHERE n.id <> $id::text
				AND NOT coalesce(n.id = $parent::text AND n.id < $id::text, false)
				AND NOT coalesce(n.parent = $id::text AND NOT EXISTS (
					SELECT FROM guard g JOIN ${checkpoint} c ON c.thread = g.number WHERE c.ns = $ns::text AND c.id = $id::text
				), false)
				AND NOT EXISTS (SELECT FROM raced) ${isNotApplied}
		)`;
	}

	function checkpointPart(): string {
		return `point AS (
			INSERT INTO ${checkpoint} AS c
				(thread, batch, puts, step, ns, id, parent, run_id, source, labels, blobs, head)
			SELECT number, $fresh::bigint, 1, $step::bigint, $ns::text, $id::text, $parent::text, $run::text, $source::text, $labels::jsonb, $namedBlobs::bigint[],
				$row::bytea
			FROM thread
			ON CONFLICT (thread, ns, id) DO UPDATE SET batch = excluded.batch, step = excluded.step,
				puts = ${isAgain ? "CASE WHEN c.batch = excluded.batch THEN c.puts ELSE c.puts + 1 END" : "c.puts + 1"},
				run_id = excluded.run_id, source = excluded.source, labels = excluded.labels, blobs = excluded.blobs,
				head = excluded.head
			RETURNING puts
		)`;
	}

	/** A thread that was just made has all this already. */
	function touchPart(): string {
		return `touched AS (
			UPDATE ${thread} t SET updated_at = $now::bigint, updated_minute = $minute::bigint,
				checkpoints = t.checkpoints + CASE WHEN point.puts = 1 ${isNotApplied} THEN 1 ELSE 0 END,
				head = CASE WHEN t.head > $head::text THEN t.head ELSE coalesce($head::text, t.head) END,
				stamp = CASE WHEN point.puts > 1 THEN $fresh::bigint ELSE t.stamp END
			FROM point WHERE t.thread_id = $thread::text
		)`;
	}

	function writesPart(): string {
		const columns = "thread, batch, ns, checkpoint, task, generation, idx, actor, run_id, channel, type, blob, value";
		const select = (
			generation: string,
		) => `SELECT thread.number, $fresh::bigint, $writeNs::text, $writeId::text, $task::text, ${generation},
			i.idx, i.actor, i.run_id, i.channel, i.type, i.blob,
			CASE WHEN i.blob IS NULL THEN substr($writeData::bytea, i.start, i.length) END`;
		// Checked always: the batch may be sent again while the first sending is still on its way.
		const isNotStored = "AND NOT EXISTS (SELECT FROM before WHERE batch = $fresh::bigint)";
		return `before AS MATERIALIZED (
			SELECT w.generation, w.idx, w.batch FROM thread t JOIN ${write} w ON w.thread = t.number
			WHERE w.ns = $writeNs::text AND w.checkpoint = $writeId::text AND w.task = $task::text
		), incoming AS MATERIALIZED (
			SELECT i.*, i.conflict = 'drop' AND EXISTS (SELECT FROM before b WHERE b.idx = i.idx) AS is_dropped
			FROM unnest($idxs::bigint[], $conflicts::text[], $channels::text[], $types::text[], $actors::bigint[],
				$runs::text[], $writeBlobs::bigint[], $writeStarts::int[], $writeLengths::int[])
				AS i (idx, conflict, channel, type, actor, run_id, blob, start, length)
		), added AS (
			INSERT INTO ${write} (${columns})
			${select("CASE WHEN i.conflict = 'add' THEN (SELECT coalesce(max(b.generation) + 1, 0) FROM before b) ELSE 0 END")}
			FROM thread, incoming i WHERE i.conflict <> 'replace' AND NOT i.is_dropped ${isNotStored}
		), replaced AS (
			INSERT INTO ${write} (${columns}) ${select("0")} FROM thread, incoming i
			WHERE i.conflict = 'replace' ${isNotStored}
			ON CONFLICT (thread, ns, checkpoint, task, generation, idx) DO UPDATE SET batch = excluded.batch,
				actor = excluded.actor, run_id = excluded.run_id, channel = excluded.channel, type = excluded.type,
				blob = excluded.blob, value = excluded.value
		)`;
	}

	function blobsPart(): string {
		const isDropped = "EXISTS (SELECT FROM incoming i WHERE i.is_dropped AND i.blob = b.id)";
		return `blobs AS (
			INSERT INTO ${blob} (id, family, base, type, data)
			SELECT b.id, thread.family, b.base, b.type, substr($blobData::bytea, b.start, b.length)
			FROM thread, unnest($blobIds::bigint[], $blobBases::bigint[], $blobTypes::text[], $blobStarts::int[],
				$blobLengths::int[]) AS b (id, base, type, start, length)
			WHERE b.id <> ALL ($unused::bigint[]) ${hasWrites ? `AND NOT ${isDropped}` : ""} ${isNotApplied}
		)`;
	}

	function basesPart(): string {
		return `bases AS (
			INSERT INTO ${base} (thread, ns, checkpoint, channel, data)
			SELECT thread.number, b.ns, b.id, b.channel, substr($baseData::bytea, b.start, b.length)
			FROM thread, unnest($baseNss::text[], $baseIds::text[], $baseChannels::text[], $baseStarts::int[],
				$baseLengths::int[]) AS b (ns, id, channel, start, length)
			ON CONFLICT (thread, ns, checkpoint, channel) DO UPDATE SET data = excluded.data
		)`;
	}
}

/** Reads the answer of {@link putStatement}. */
export function readPut([row]: SqlRow[], batch: PutBatch): PutResult | undefined {
	const [outcome, first, stamp, replaced] = row ?? [];
	if (outcome === "stored") return { family: Number(first), stamp: Number(stamp), replaced: replaced === "true" };
	if (outcome === "taken") throw new CheckpointError("STORAGE", "A blob id is taken already.");
	if (outcome === "branch") throw new ConcurrencyError(batch.checkpoint as CheckpointRow, fromText(first as string));
	if (outcome === undefined && batch.stamp !== undefined) return undefined;
	// Another call stored something, or made the thread, while this one was under way.
	throw Object.assign(new Error("The thread changed at the same time"), { code: "40001" });
}

/** What the parameters of {@link putStatement} stand for. */
export function putValues(batch: PutBatch): Values {
	const { threadId, fresh, now, checkpoint, blobs, deltaBases = [] } = batch;
	const { kept, unused } = withoutRepeats(batch.writes);
	const [write] = kept;
	const written = writeColumns(kept);
	const bases = baseColumns(deltaBases);
	const data = packBytes(blobs.map((row) => row.data));
	return {
		thread: toText(threadId),
		stamp: batch.stamp ?? null,
		fresh,
		now,
		minute: minuteOf(now),
		...(checkpoint && {
			ns: toText(checkpoint.ns),
			id: toText(checkpoint.id),
			head: checkpoint.ns === "" ? toText(checkpoint.id) : null,
			parent: text(checkpoint.parentId),
			run: text(checkpoint.runId),
			source: text(checkpoint.source),
			step: checkpoint.step ?? null,
			labels: null,
			namedBlobs: batch.namedBlobs?.length ? batch.namedBlobs : null,
			row: asBuffer(checkpoint.head),
		}),
		...(write && {
			writeNs: toText(write.ns),
			writeId: toText(write.id),
			task: toText(write.taskId),
			idxs: written.idxs,
			conflicts: kept.map(({ conflict }) => conflict),
			channels: written.channels,
			types: written.types,
			actors: written.actors,
			runs: written.runs,
			writeBlobs: written.blobs,
			writeData: written.data,
			writeStarts: written.starts,
			writeLengths: written.lengths,
		}),
		blobIds: blobs.map(({ id }) => id),
		blobBases: blobs.map((row) => row.base ?? null),
		blobTypes: blobs.map(({ type }) => text(type)),
		blobData: data.data,
		blobStarts: data.starts,
		blobLengths: data.lengths,
		unused,
		baseNss: bases.nss,
		baseIds: bases.ids,
		baseChannels: bases.channels,
		baseData: bases.data,
		baseStarts: bases.starts,
		baseLengths: bases.lengths,
	};
}

/** Of writes with one index in a batch the first counts, or the last that replaces. */
function withoutRepeats(writes: readonly NewWrite[]): { kept: NewWrite[]; unused: number[] } {
	const kept = new Map<number, NewWrite>();
	const unused: number[] = [];
	for (const write of writes) {
		const other = kept.get(write.idx);
		const loser = other && write.conflict !== "replace" ? write : other;
		if (typeof loser?.value === "number" && loser === write) unused.push(loser.value);
		if (loser !== write) kept.set(write.idx, write);
	}
	return { kept: [...kept.values()], unused };
}

/** Threads are found by the minute of their last update, so that most updates leave the index alone. */
export function minuteOf(time: number): number {
	return Math.floor(time / 60_000);
}
