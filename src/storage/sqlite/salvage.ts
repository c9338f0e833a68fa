import type { WriteRow } from "../storage.ts";
import { type SqlBlob, sumOfBlob } from "./blobs.ts";
import { type SqlCheckpoint, sumOfCheckpoint } from "./checkpoints.ts";
import { unpackId } from "./ids.ts";
import type { SqlitePages, SqliteRecord, Value } from "./pages.ts";
import { packWrites, unpackWrites } from "./pending.ts";
import { addSums, sumOfThread } from "./sums.ts";
import { hashOf, type SqlThread, sumOfName, sumOfTotals, type ThreadTotals } from "./threads.ts";
import { sumOfBase, sumOfWrite } from "./writes.ts";

/** A row that was found by itself, and is as it was stored: its sum says which table it is of. */
export type SoundRow =
	| { readonly table: "delta_thread"; readonly row: FoundThread }
	| { readonly table: "delta_key"; readonly row: ThreadTotals }
	| {
			readonly table: "delta_checkpoint" | "delta_write" | "delta_base" | "delta_blob";
			readonly values: readonly Value[];
	  };

/** What never changes of a thread. */
export type FoundThread = Pick<SqlThread, "pk" | "thread_id" | "family" | "created_at" | "name_sum">;

/** All sound rows on the pages of a file. Of keys only the totals of threads: where checkpoints are, they know themselves. */
export function* findRows(pages: SqlitePages): Generator<SoundRow> {
	for (const record of pages.records()) {
		const found = recognize(record);
		if (found !== undefined) yield found;
	}
}

function recognize(record: SqliteRecord): SoundRow | undefined {
	const { rowid, values } = record;
	if (rowid === undefined) {
		const totals = asTotals(values);
		if (totals !== undefined) return { table: "delta_key", row: totals };
		return isWrite(values) ? { table: "delta_write", values } : asBase(values);
	}
	// The key of a table stands before its columns, and in its column is nothing.
	const row = [rowid, ...values.slice(1)];
	const checkpoint = asCheckpoint(row);
	if (checkpoint !== undefined) return { table: "delta_checkpoint", values: checkpoint };
	if (isBlob(row)) return { table: "delta_blob", values: row };
	const thread = asThread(row);
	return thread && { table: "delta_thread", row: thread };
}

function asThread(values: readonly Value[]): FoundThread | undefined {
	if (values.length !== 7) return undefined;
	const [pk, thread_id, , family, created_at, , name_sum] = values;
	const thread = { pk, thread_id, family, created_at, name_sum } as unknown as FoundThread;
	return typeof thread_id === "string" && name_sum === sumOfName(thread) ? thread : undefined;
}

function asTotals(values: readonly Value[]): ThreadTotals | undefined {
	if (values.length !== 12) return undefined;
	const [pk, , , , stamp, updated_at, checkpoints, head, keys, forks, loose, sum] = values;
	const totals = { pk, stamp, updated_at, checkpoints, head, keys, forks, loose } as unknown as ThreadTotals;
	return typeof stamp === "number" && sum === sumOfTotals(totals) ? totals : undefined;
}

/** The values of a sound row, with those of its writes that are. */
function asCheckpoint(values: readonly Value[]): Value[] | undefined {
	if (values.length !== 14) return undefined;
	const [pk, thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, pending, head] = values;
	const row = { pk, thread, ns, id, parent, fork, run_id, source, step, writes, bases, sum, pending, head };
	const isOne = (Buffer.isBuffer(head) || typeof head === "number") && (parent === null || isId(parent));
	if (!isOne || sum !== sumOfCheckpoint(row as unknown as SqlCheckpoint)) return undefined;
	const sound = Buffer.isBuffer(pending) ? soundPending(pending, row as unknown as SqlCheckpoint) : null;
	return [...values.slice(0, 12), sound, head as Value];
}

function soundPending(pending: Buffer, { ns, id, run_id }: SqlCheckpoint): Buffer | null {
	const runId = run_id ?? undefined;
	const writes = [...unpackWrites(pending, { threadId: "", ns, id }, runId)];
	const sound = writes.filter(({ row, sum }) => sum === sumOfWrite(row));
	const packed = packWrites(sound, runId);
	return packed === undefined || sound.length === 0 ? null : Buffer.from(packed);
}

function isBlob(values: readonly Value[]): boolean {
	if (values.length !== 7) return false;
	const [id, family, base, source, type, sum, data] = values;
	const row = { id, family, base, source, type, sum };
	return Buffer.isBuffer(data) && sum === sumOfBlob(row as unknown as SqlBlob);
}

function isWrite(values: readonly Value[]): boolean {
	if (values.length !== 13) return false;
	const [thread, ns, checkpoint, task, generation, idx, taskPath, channel, runId, actor, type, sum, value] = values;
	if (!isId(checkpoint) || !isId(task) || !(typeof value === "number" || Buffer.isBuffer(value))) return false;
	const place = { threadId: "", ns, id: unpackId(checkpoint), taskId: unpackId(task), generation, idx };
	const own = sumOfWrite({ ...place, taskPath, channel, runId, actor, type, value } as WriteRow);
	return sum === addSums(own, sumOfThread(thread as number));
}

function asBase(values: readonly Value[]): SoundRow | undefined {
	if (values.length !== 6) return undefined;
	const [thread, ns, checkpoint, channel, sum, data] = values;
	if (!isId(checkpoint) || !Buffer.isBuffer(data)) return undefined;
	const own = sumOfBase(ns as string, unpackId(checkpoint), channel as string);
	return sum === addSums(own, sumOfThread(thread as number)) ? { table: "delta_base", values } : undefined;
}

function isId(value: Value | undefined): value is string | Buffer {
	return typeof value === "string" || Buffer.isBuffer(value);
}

/** The ids and families of threads, by their numbers, as indexes have them: for threads whose rows are damaged. */
export function findThreadNames(pages: SqlitePages): Map<number, { threadId: string; family: number | undefined }> {
	const families = new Map<unknown, Value>();
	for (const { values } of pages.recordsOf("delta_thread_family")) families.set(values[1], values[0] as Value);
	const hashes = new Map<unknown, Value>();
	for (const { values } of pages.recordsOf("delta_thread_hash")) hashes.set(values[1], values[0] as Value);
	const names = new Map<number, { threadId: string; family: number | undefined }>();
	for (const { values } of pages.recordsOf("sqlite_autoindex_delta_thread_1")) {
		const [threadId, pk] = values;
		const family = families.get(pk);
		if (typeof threadId === "string" && typeof pk === "number" && hashes.get(pk) === hashOf(threadId))
			names.set(pk, { threadId, family: typeof family === "number" ? family : undefined });
	}
	return names;
}

/** Numbers of threads that were being removed. */
export function findGone(pages: SqlitePages): Set<number> {
	const rows = [...pages.recordsOf("delta_gone")];
	return new Set(rows.flatMap(({ rowid }) => (rowid === undefined ? [] : [rowid])));
}
