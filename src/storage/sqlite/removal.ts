import { compareIds } from "../compare-ids.ts";
import type { CheckpointKey, RemoveBatch, RemovedRows, RowCount, WriteKey } from "../storage.ts";
import { countOut, type Entry, findCheckpoint, newestId, relinkCheckpoint, separate } from "./checkpoints.ts";
import { handOn } from "./heads.ts";
import { isPackable, type PackedId, packId } from "./ids.ts";
import type { SummedWrite } from "./pending.ts";
import { incomplete, proveKeys } from "./proofs.ts";
import { findWritesPlace, setPending } from "./put-writes.ts";
import type { SqliteSession } from "./session.ts";
import { subtractSums } from "./sums.ts";
import { type InRows, Tally } from "./tally.ts";
import { findThread, type SqlThread, saveThread } from "./threads.ts";
import { addToTotal, putBase, type SumCount, totalOf, totalOfCount } from "./writes.ts";

export function remove(session: SqliteSession, batch: RemoveBatch): RemovedRows | undefined {
	const thread = findThread(session, batch.threadId);
	if (thread === undefined || thread.stamp !== batch.stamp) return undefined;
	const removed = new Tally();
	const orphans = (batch.orphans ?? []).filter(({ ns, id }) => findCheckpoint(session, thread, ns, id) === undefined);
	const writes = [...batch.writes, ...orphans];
	let hasTwins = writes.length === 0;
	for (const keys of byNamespace(batch.checkpoints)) {
		const run = findRun(session, thread, keys);
		hasTwins &&= run !== undefined && haveTwins(session, thread, run);
		if (run !== undefined) removeRun(session, thread, run, removed.count);
		else for (const key of keys) removeCheckpoint(session, thread, key, removed);
	}
	for (const key of writes) removeWrite(session, thread, key, removed);
	for (const { key, parentId } of batch.relink) relinkCheckpoint(session, thread, key.ns, key.id, parentId);
	for (const row of batch.deltaBases) putBase(session, thread, row);
	thread.head = newestId(session, thread, "") ?? null;
	thread.stamp = batch.newStamp;
	saveThread(session, thread);
	return { ...removed.count, hasTwins };
}

function byNamespace(keys: readonly CheckpointKey[]): Iterable<CheckpointKey[]> {
	const groups = new Map<string, CheckpointKey[]>();
	for (const key of keys) {
		const group = groups.get(key.ns);
		if (group === undefined) groups.set(key.ns, [key]);
		else group.push(key);
	}
	return groups.values();
}

/** Checkpoints of one namespace with all that come between them, so that a few statements remove them with what they have. */
interface Run {
	readonly thread: number;
	readonly ns: string;
	readonly ids: readonly string[];
	readonly first: string;
	readonly last: string;
	readonly firstPacked: PackedId;
	readonly lastPacked: PackedId;
	readonly writes: number;
	readonly bases: number;
	/** How many have heads of their own. */
	readonly holders: number;
	readonly bytes: number;
}

/** The run that these keys are, if nothing else is between the first and the last: no checkpoint, and no write without one. */
function findRun(session: SqliteSession, thread: SqlThread, keys: readonly CheckpointKey[]): Run | undefined {
	const ids = [...new Set(keys.map(({ id }) => id))].sort(compareIds);
	const [first, last] = [ids[0] as string, ids.at(-1) as string];
	// Packed and unpacked ids have an order of their own.
	if (ids.length < 2 || !ids.every(isPackable)) return undefined;
	proveKeys(session, thread);
	const { sql } = session;
	const { ns } = keys[0] as CheckpointKey;
	const place = { thread: thread.pk, ns, ids, first, last, firstPacked: packId(first), lastPacked: packId(last) };
	const found = sql.countCheckpoints.get(place) as Record<
		"count" | "writes" | "bases" | "holders" | keyof InRows,
		number
	>;
	const writes = sql.countWrites.get(place) as SumCount & { bytes: number };
	const bases = sql.countBases.get(place) as SumCount;
	const isAll =
		found.count === ids.length &&
		totalOfCount(writes, thread) === (found.writes | 0) &&
		totalOfCount(bases, thread) === (found.bases | 0);
	if (!isAll) return undefined;
	const { pendingWrites, holders } = found;
	const bytes = found.bytes + writes.bytes;
	return { ...place, writes: writes.count + pendingWrites, bases: bases.count, holders, bytes };
}

/** Whether other threads of the family name every blob that the rows of a run do. */
function haveTwins({ sql }: SqliteSession, { family }: SqlThread, run: Run): boolean {
	const place = { ...run, family };
	const others = [sql.findOnlyPending, sql.findOnlyWrite];
	const findOnly = run.holders > 0 ? [sql.findOnlyCheckpoint, ...others] : others;
	return run.bases === 0 && findOnly.every((find) => find.get(place) === undefined);
}

function removeRun(session: SqliteSession, thread: SqlThread, run: Run, removed: RowCount): void {
	const { sql } = session;
	const forks = sql.listForksBetween.all(run) as Entry[];
	if (run.holders > 0) handOn(session, thread, sql.listHolders.pluck().all(run) as number[]);
	sql.removeCheckpoints.run(run);
	sql.removeKeys.run(run);
	sql.removeWritesBetween.run(run);
	sql.removeBasesBetween.run(run);
	countOut(session, thread, run.ns, run.ids, forks);
	separate(session, thread, run.ns, run.last);
	removed.checkpoints += run.ids.length;
	removed.writes += run.writes;
	removed.bytes += run.bytes;
}

function removeWrite(session: SqliteSession, thread: SqlThread, key: WriteKey, removed: Tally): void {
	const { ns, id, taskId, generation, idx } = key;
	const place = findWritesPlace(session, thread, ns, id);
	if (place?.pending === undefined) {
		const rows = session.sql.removeWrite.all(thread.pk, ns, packId(id), packId(taskId), generation, idx);
		removed.writes(rows);
		return addToTotal(session, thread, ns, id, "writes", subtractSums(0, totalOf(rows, thread)));
	}
	const isIt = ({ row }: SummedWrite) => row.taskId === taskId && row.generation === generation && row.idx === idx;
	const gone = place.pending.filter(isIt);
	if (gone.length === 0) return;
	removed.writes(gone.map(({ row: { value } }) => ({ bytes: typeof value === "number" ? 0 : value.length })));
	setPending(
		session,
		thread,
		place,
		place.pending.filter((write) => !isIt(write)),
	);
}

function removeCheckpoint(session: SqliteSession, thread: SqlThread, { ns, id }: CheckpointKey, removed: Tally): void {
	const { sql } = session;
	const entry = sql.findEntry.get(thread.pk, ns, id) as Entry | undefined;
	if (entry?.pk === null) throw incomplete(thread);
	const writes = sql.removeWrites.all(thread.pk, ns, packId(id));
	const bases = sql.removeBases.all(thread.pk, ns, packId(id));
	removed.writes(writes);
	if (entry === undefined) thread.loose = subtractSums(thread.loose, totalOf([...writes, ...bases], thread));
	else {
		handOn(session, thread, [entry.pk]);
		sql.removeCheckpoint.run(entry.pk);
		sql.removeKey.run(thread.pk, ns, id);
		countOut(session, thread, ns, [id], [entry]);
		separate(session, thread, ns, id);
		removed.checkpoints([entry]);
	}
}
