import { inGeneration } from "../new-write.ts";
import type { CheckpointKey, NewWrite } from "../storage.ts";
import { packId } from "./ids.ts";
import { compareWrites, packWrites, type SummedWrite } from "./pending.ts";
import type { FreshCheckpoint, SqliteSession, TaskWrite } from "./session.ts";
import { addSums, NO_WRITES, subtractSums } from "./sums.ts";
import type { SqlThread } from "./threads.ts";
import {
	addToTotal,
	addWrite,
	findPlace,
	hasPending,
	openPending,
	ownSum,
	sumOfWrite,
	totalOfPending,
} from "./writes.ts";

/** The row of a checkpoint, as far as writes are concerned. */
export type WritesPlace = Pick<FreshCheckpoint, "pk" | "runId" | "writes" | "pending" | "tasks">;

/** Stores writes of one task. Answers the values of those that were dropped. */
export function putWrites(session: SqliteSession, thread: SqlThread, writes: readonly NewWrite[]): Set<unknown> {
	const [first] = writes;
	if (first === undefined) return new Set();
	const { ns, id, taskId } = first;
	const place = session.findFresh(thread, ns, id) ?? findWritesPlace(session, thread, ns, id);
	if (place?.pending === undefined) {
		const known = place?.tasks === undefined ? findTask(session, thread, first) : (place.tasks.get(taskId) ?? []);
		const { added, dropped } = settle(writes, known);
		addRows(session, thread, place, added, known);
		return dropped;
	}
	const { after, dropped } = addToPending(place.pending, taskId, writes);
	setPending(session, thread, place, after);
	return dropped;
}

/**
 * The same by a single statement, for a checkpoint that this connection has added, as long as nobody else has changed it
 * since. Answers whether that was so; if not, nothing has changed.
 */
export function putWritesAlone(session: SqliteSession, thread: SqlThread, writes: readonly NewWrite[]): boolean {
	const { ns, id, taskId } = writes[0] as NewWrite;
	const place = session.findFresh(thread, ns, id);
	if (place?.pending === undefined) return false;
	const { after } = addToPending(place.pending, taskId, writes);
	const packed = packWrites(after, place.runId);
	if (packed === undefined) return false;
	const total = totalOfPending(after);
	if (session.sql.setPendingIf.run(total, packed, place.pk, place.writes, place.sum).changes === 0) return false;
	place.writes = total;
	place.pending = after;
	return true;
}

/** What stands in a row once a task has added writes to it, in order. */
function addToPending(
	pending: readonly SummedWrite[],
	taskId: string,
	writes: readonly NewWrite[],
): { after: readonly SummedWrite[]; dropped: Set<unknown> } {
	const before = pending.filter(({ row }) => row.taskId === taskId);
	const known = before.map(({ row, sum }) => ({ generation: row.generation, idx: row.idx, sum }));
	const { added, dropped } = settle(writes, known);
	const isReplaced = (write: SummedWrite) => before.includes(write) && added.some(({ row }) => isSame(row, write.row));
	const after = pending.length === 0 ? added : [...pending.filter((write) => !isReplaced(write)), ...added];
	return { after: after.length > 1 ? after.sort(compareWrites) : after, dropped };
}

/** Where the writes of a checkpoint are to be stored that this connection has not added; nowhere if it has no row. */
export function findWritesPlace(
	session: SqliteSession,
	thread: SqlThread,
	ns: string,
	id: string,
): WritesPlace | undefined {
	const found = findPlace(session, thread, ns, id);
	if (found === undefined) return undefined;
	const { pk, run_id, writes } = found;
	const inRow = hasPending(found) ? openPending(thread, { ns, id, ...found }) : writes === NO_WRITES ? [] : undefined;
	return { pk, runId: run_id ?? undefined, writes, pending: inRow, tasks: undefined };
}

/**
 * Stores all writes of a checkpoint, which are in order: in its row, or, if they have become too many for that, in rows of
 * their own.
 */
export function setPending(
	session: SqliteSession,
	thread: SqlThread,
	place: WritesPlace,
	writes: readonly SummedWrite[],
): void {
	const packed = packWrites(writes, place.runId);
	if (packed === undefined) return spread(session, thread, place, writes);
	place.writes = totalOfPending(writes);
	place.pending = writes;
	session.sql.setPending.run(place.writes, writes.length === 0 ? null : packed, place.pk);
}

/** Gives writes rows of their own that stood in the row of their checkpoint. */
function spread(session: SqliteSession, thread: SqlThread, place: WritesPlace, writes: readonly SummedWrite[]): void {
	const tasks = new Map<string, TaskWrite[]>();
	for (const { row, sum } of writes) {
		addWrite(session, thread, row, sum);
		const { taskId, generation, idx } = row;
		tasks.set(taskId, [...(tasks.get(taskId) ?? []), { generation, idx, sum }]);
	}
	Object.assign(place, { writes: totalOfPending(writes), pending: undefined, tasks });
	session.sql.setPending.run(place.writes, null, place.pk);
}

/** The same for a checkpoint that may have some. */
export function spreadPending(session: SqliteSession, thread: SqlThread, ns: string, id: string): void {
	const place = findWritesPlace(session, thread, ns, id);
	if (place?.pending?.length) spread(session, thread, place, place.pending);
}

function findTask(
	session: SqliteSession,
	thread: SqlThread,
	{ ns, id, taskId }: CheckpointKey & { taskId: string },
): TaskWrite[] {
	const rows = session.sql.getTaskWrites.all(thread.pk, ns, packId(id), packId(taskId)) as TaskWrite[];
	return rows.map(({ generation, idx, sum }) => ({ generation, idx, sum: ownSum({ sum }, thread) }));
}

/** Which of the writes of a task are added to those that it has, and the values of those that are not. */
function settle(
	writes: readonly NewWrite[],
	before: readonly TaskWrite[],
): { added: SummedWrite[]; dropped: Set<unknown> } {
	const next = before.reduce((most, { generation }) => Math.max(most, generation + 1), 0);
	const added = new Map<number, SummedWrite>();
	const dropped = new Set<unknown>();
	for (const write of writes) {
		const { conflict, idx, value } = write;
		const isTaken = added.has(idx) || (conflict === "drop" && before.some((known) => known.idx === idx));
		if (isTaken && conflict !== "replace") {
			dropped.add(value);
			continue;
		}
		const row = inGeneration(write, conflict === "add" ? next : 0);
		added.set(idx, { row, sum: sumOfWrite(row) });
	}
	return { added: [...added.values()], dropped };
}

/** Adds rows of their own, in the place of those with their keys. */
function addRows(
	session: SqliteSession,
	thread: SqlThread,
	place: WritesPlace | undefined,
	added: readonly SummedWrite[],
	before: readonly TaskWrite[],
): void {
	const [first] = added;
	if (first === undefined) return;
	let change = 0;
	for (const { row, sum } of added) {
		addWrite(session, thread, row, sum);
		const older = before.find((write) => isSame(write, row));
		change = subtractSums(addSums(change, sum), older?.sum ?? 0);
	}
	const { ns, id, taskId } = first.row;
	if (place === undefined) return addToTotal(session, thread, ns, id, "writes", change);
	const others = before.filter((write) => !added.some(({ row }) => isSame(write, row)));
	place.tasks?.set(taskId, [
		...others,
		...added.map(({ row: { generation, idx }, sum }) => ({ generation, idx, sum })),
	]);
	place.writes = addSums(place.writes, change);
	if (change !== 0) session.sql.setPending.run(place.writes, null, place.pk);
}

function isSame(a: { generation: number; idx: number }, b: { generation: number; idx: number }): boolean {
	return a.generation === b.generation && a.idx === b.idx;
}
