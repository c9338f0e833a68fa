import { compareIds } from "./compare-ids.ts";
import { packId, unpackId } from "./sqlite-ids.ts";
import type { Statements } from "./sqlite-statements.ts";
import type {
	BlobRow,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	NewWrite,
	Replacement,
	StoredValue,
	ThreadRow,
	WriteRow,
} from "./storage.ts";

type PackedId = Buffer | string;

interface SqlCheckpoint {
	thread_id: string;
	stamp: number;
	ns: string;
	id: string;
	parent: PackedId | null;
	run_id: string | null;
	source: string | null;
	step: number | null;
	head: Uint8Array;
}

interface SqlWrite {
	thread_id: string;
	ns: string;
	checkpoint: PackedId;
	task: PackedId;
	generation: number;
	idx: number;
	channel: string;
	run_id: string | null;
	actor: number | null;
	type: string | null;
	value: StoredValue;
}

interface SqlBlob {
	id: number;
	base: number | null;
	source: number | null;
	type: string | null;
	data: Uint8Array;
}

export interface SqlThread {
	pk: number;
	thread_id: string;
	family: number;
	stamp: number;
	created_at: number;
	updated_at: number;
	checkpoints: number;
	head: string | null;
}

/** Answers the thread's stamp, which is `fresh` if the row took the place of another. */
export function putCheckpoint(
	sql: Statements,
	thread: SqlThread,
	row: CheckpointRow,
	fresh: number,
	now: number,
): number {
	const { ns, id } = row;
	const added = addCheckpoint(sql, thread.pk, row);
	if (added === 0)
		sql.updateCheckpoint.run(row.runId ?? null, row.source ?? null, row.step ?? null, row.head, thread.pk, ns, id);
	const isHead = ns === "" && (thread.head === null || compareIds(thread.head, id) < 0);
	const stamp = added === 0 ? fresh : thread.stamp;
	sql.touchThread.run(stamp, now, thread.checkpoints + added, isHead ? id : thread.head, thread.pk);
	return stamp;
}

/** Answers how many were added: none if the key is taken. */
export function addCheckpoint(sql: Statements, thread: number, row: CheckpointRow): number {
	const { ns, id, parentId, runId, source, step, head } = row;
	const parent = parentId === undefined ? null : packId(parentId);
	return sql.insertCheckpoint.run(thread, ns, id, parent, runId ?? null, source ?? null, step ?? null, head).changes;
}

export function addWrite(sql: Statements, thread: number, row: WriteRow): number {
	return insertWrite(sql, thread, packId(row.id), packId(row.taskId), row, row.generation);
}

/** @param checkpoint and `task` are the row's ids, packed */
function insertWrite(
	sql: Statements,
	thread: number,
	checkpoint: PackedId,
	task: PackedId,
	row: Omit<WriteRow, "generation">,
	generation: number,
): number {
	const { ns, idx, channel, runId, actor, type, value } = row;
	// better-sqlite3 binds a number as a float unless it is told otherwise, and a column of type ANY keeps that.
	const stored = typeof value === "number" ? BigInt(value) : value;
	return sql.putWrite.run(
		thread,
		ns,
		checkpoint,
		task,
		generation,
		idx,
		channel,
		runId ?? null,
		actor ?? null,
		type ?? null,
		stored,
	).changes;
}

export function putBase(sql: Statements, thread: number, { ns, id, channel, data }: DeltaBaseRow): void {
	sql.putBase.run(thread, ns, packId(id), channel, data);
}

export function replaceBytes(sql: Statements, replacement: Replacement): number {
	const { from, to } = replacement;
	if (replacement.kind === "blob") return sql.replaceBlob.run(to, replacement.id, from).changes;
	const { threadId, ns, id } = replacement.key;
	if (replacement.kind === "checkpoint") return sql.replaceHead.run(to, threadId, ns, id, from).changes;
	if (replacement.kind === "deltaBase")
		return sql.replaceBase.run(to, threadId, ns, packId(id), replacement.channel, from).changes;
	const { taskId, generation, idx } = replacement.key;
	return sql.replaceValue.run(to, threadId, ns, packId(id), packId(taskId), generation, idx, from).changes;
}

/** Answers the values of the writes that were dropped. */
export function putWrites(sql: Statements, thread: number, writes: readonly NewWrite[]): Set<unknown> {
	const dropped = new Set<unknown>();
	const [first] = writes;
	if (first === undefined) return dropped;
	const checkpoint = packId(first.id);
	const task = packId(first.taskId);
	const before = sql.getTaskWrites.all(thread, first.ns, checkpoint, task) as { generation: number; idx: number }[];
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	const taken = new Set<number>();
	for (const write of writes) {
		const { conflict } = write;
		const isTaken = taken.has(write.idx) || (conflict === "drop" && before.some((row) => row.idx === write.idx));
		if (isTaken && conflict !== "replace") {
			dropped.add(write.value);
			continue;
		}
		taken.add(write.idx);
		insertWrite(sql, thread, checkpoint, task, write, conflict === "add" ? next : 0);
	}
	return dropped;
}

export function toCheckpoint(row: unknown): FoundCheckpoint | undefined {
	if (row === undefined) return undefined;
	const { thread_id, stamp, ns, id, parent, run_id, source, step, head } = row as SqlCheckpoint;
	return {
		threadId: thread_id,
		stamp,
		ns,
		id,
		parentId: parent === null ? undefined : unpackId(parent),
		runId: run_id ?? undefined,
		source: source ?? undefined,
		step: step ?? undefined,
		head,
	};
}

export function toWrite(row: unknown): WriteRow {
	const { thread_id, ns, checkpoint, task, generation, idx, channel, run_id, actor, type, value } = row as SqlWrite;
	return {
		threadId: thread_id,
		ns,
		id: unpackId(checkpoint),
		taskId: unpackId(task),
		generation,
		idx,
		channel,
		runId: run_id ?? undefined,
		actor: actor ?? undefined,
		type: type ?? undefined,
		value,
	};
}

export function toBase(row: unknown): DeltaBaseRow {
	const { thread_id, ns, checkpoint, channel, data } = row as Record<string, string> & {
		checkpoint: PackedId;
		data: Uint8Array;
	};
	return {
		threadId: thread_id as string,
		ns: ns as string,
		id: unpackId(checkpoint),
		channel: channel as string,
		data,
	};
}

export function toBlob(row: unknown): BlobRow | undefined {
	if (row === undefined) return undefined;
	const { id, base, source, type, data } = row as SqlBlob;
	return { id, base: base ?? undefined, source: source ?? undefined, type: type ?? undefined, data };
}

export function toThread(row: unknown): ThreadRow {
	const { thread_id, family, stamp, created_at, updated_at, checkpoints, head } = row as SqlThread;
	return {
		threadId: thread_id,
		family,
		stamp,
		createdAt: created_at,
		updatedAt: updated_at,
		checkpoints,
		head: head ?? undefined,
	};
}
