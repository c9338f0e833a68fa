import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	ListedCheckpoint,
	RowCount,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { SqlRow, Values } from "./statement.ts";
import { fromText, toText } from "./text.ts";

// Columns of each kind of row, in the order in which the function below them takes them. Bytes are asked for in digits:
// how the server would write them by itself is a setting. Objects are written out in full: V8 takes ten times as long for
// one that begins with the spread of another.

export const LISTED_CHECKPOINT = ["thread_id", "ns", "id", "parent"];

export function toListedCheckpoint([threadId, ns, id, parent]: SqlRow): ListedCheckpoint {
	return { threadId: mustText(threadId), ns: mustText(ns), id: mustText(id), parentId: maybeText(parent) };
}

export const CHECKPOINT = [...LISTED_CHECKPOINT, "stamp", "run_id", "source", "step", "blobs", "encode(head, 'hex')"];

export function toCheckpoint(row: SqlRow): FoundCheckpoint {
	const [threadId, ns, id, parent, stamp, runId, source, step, blobs, head] = row;
	return {
		threadId: mustText(threadId),
		ns: mustText(ns),
		id: mustText(id),
		parentId: maybeText(parent),
		stamp: Number(stamp),
		runId: maybeText(runId),
		source: maybeText(source),
		step: maybeNumber(step),
		blobs: numbers(blobs),
		head: bytes(head),
	};
}

export const WRITE_KEY = ["thread_id", "ns", "checkpoint", "task", "generation", "idx"];

export function toWriteKey([threadId, ns, id, taskId, generation, idx]: SqlRow): WriteKey {
	return {
		threadId: mustText(threadId),
		ns: mustText(ns),
		id: mustText(id),
		taskId: mustText(taskId),
		generation: Number(generation),
		idx: Number(idx),
	};
}

export const WRITE = [...WRITE_KEY, "task_path", "channel", "run_id", "actor", "type", "blob", "encode(value, 'hex')"];

export function toWrite(row: SqlRow): WriteRow {
	const [threadId, ns, id, taskId, generation, idx, taskPath, channel, runId, actor, type, blob, value] = row;
	return {
		threadId: mustText(threadId),
		ns: mustText(ns),
		id: mustText(id),
		taskId: mustText(taskId),
		generation: Number(generation),
		idx: Number(idx),
		taskPath: maybeText(taskPath),
		channel: mustText(channel),
		runId: maybeText(runId),
		actor: maybeNumber(actor),
		type: maybeText(type),
		blob: maybeNumber(blob),
		value: bytes(value),
	};
}

export const BASE = ["thread_id", "ns", "checkpoint", "channel", "encode(data, 'hex')"];

export function toBase([threadId, ns, id, channel, data]: SqlRow): DeltaBaseRow {
	return {
		threadId: mustText(threadId),
		ns: mustText(ns),
		id: mustText(id),
		channel: mustText(channel),
		data: bytes(data),
	};
}

export const BLOB = ["id", "base", "source", "type", "encode(data, 'hex')"];

export function toBlob([id, base, source, type, data]: SqlRow): BlobRow {
	return {
		id: Number(id),
		base: maybeNumber(base),
		source: maybeNumber(source),
		type: maybeText(type),
		data: bytes(data),
	};
}

export const LISTED_BLOB = ["id", "base", "source", "octet_length(data)"];

export function toListedBlob([id, base, source, bytes]: SqlRow): ListedBlob {
	return { id: Number(id), base: maybeNumber(base), source: maybeNumber(source), bytes: Number(bytes) };
}

export const THREAD = ["thread_id", "family", "stamp", "created_at", "updated_at", "checkpoints", "newest"];

export function toThread([threadId, family, stamp, createdAt, updatedAt, checkpoints, newest]: SqlRow): ThreadRow {
	return {
		threadId: mustText(threadId),
		family: Number(family),
		stamp: Number(stamp),
		createdAt: Number(createdAt),
		updatedAt: Number(updatedAt),
		checkpoints: Number(checkpoints),
		newest: maybeText(newest),
	};
}

/** Adds up counts of rows: of checkpoints, of their bytes, of writes, of their bytes. */
export function addCount(sum: RowCount, [row]: SqlRow[]): void {
	const [checkpoints = 0, headBytes = 0, writes = 0, valueBytes = 0] = row?.map(Number) ?? [];
	sum.checkpoints += checkpoints;
	sum.writes += writes;
	sum.bytes += headBytes + valueBytes;
}

function maybeText(column: string | null | undefined): string | undefined {
	return column === null || column === undefined ? undefined : fromText(column);
}

function mustText(column: string | null | undefined): string {
	return fromText(column as string);
}

function maybeNumber(column: string | null | undefined): number | undefined {
	return column === null || column === undefined ? undefined : Number(column);
}

/** The server writes arrays as `{1,2}`. An empty one is stored as NULL. */
function numbers(column: string | null | undefined): number[] {
	return column === null || column === undefined ? [] : column.slice(1, -1).split(",").map(Number);
}

function bytes(column: string | null | undefined): Buffer {
	return Buffer.from(column as string, "hex");
}

// Rows as parameters: an array for each column, as `unnest` takes them.

export function keyColumns(keys: readonly CheckpointKey[]): Values {
	return {
		threads: keys.map(({ threadId }) => toText(threadId)),
		nss: keys.map(({ ns }) => toText(ns)),
		ids: keys.map(({ id }) => toText(id)),
	};
}

export function checkpointColumns(rows: readonly CheckpointRow[]): Values {
	return {
		...keyColumns(rows),
		parents: rows.map(({ parentId }) => text(parentId)),
		runs: rows.map(({ runId }) => text(runId)),
		sources: rows.map(({ source }) => text(source)),
		steps: rows.map(({ step }) => step ?? null),
		// An array of arrays can have only such of one length.
		blobLists: rows.map(({ blobs }) => (blobs.length > 0 ? `{${blobs.join()}}` : null)),
		...packBytes("head", rows, ({ head }) => head),
	};
}

export function writeKeyColumns(keys: readonly (Omit<WriteKey, "generation"> & { generation?: number })[]): Values {
	return {
		writeNss: keys.map(({ ns }) => toText(ns)),
		writeIds: keys.map(({ id }) => toText(id)),
		tasks: keys.map(({ taskId }) => toText(taskId)),
		generations: keys.map(({ generation }) => generation ?? null),
		idxs: keys.map(({ idx }) => idx),
	};
}

export function writeColumns(rows: readonly Omit<WriteRow, "generation">[]): Values {
	return {
		...writeKeyColumns(rows),
		paths: rows.map(({ taskPath }) => text(taskPath)),
		channels: rows.map(({ channel }) => toText(channel)),
		writeRuns: rows.map(({ runId }) => text(runId)),
		actors: rows.map(({ actor }) => actor ?? null),
		types: rows.map(({ type }) => text(type)),
		writeBlobs: rows.map(({ blob }) => blob ?? null),
		...packBytes("value", rows, ({ value }) => value),
	};
}

export function baseColumns(rows: readonly DeltaBaseRow[]): Values {
	// One statement can't replace a row twice: of several with one key only the last is sent.
	const byKey = new Map(rows.map((row) => [JSON.stringify([row.ns, row.id, row.channel]), row]));
	const last = [...byKey.values()];
	return {
		baseNss: last.map(({ ns }) => toText(ns)),
		baseIds: last.map(({ id }) => toText(id)),
		baseChannels: last.map(({ channel }) => toText(channel)),
		...packBytes("base", last, ({ data }) => data),
	};
}

export function blobColumns(rows: readonly BlobRow[]): Values {
	return {
		blobIds: rows.map(({ id }) => id),
		blobBases: rows.map(({ base }) => base ?? null),
		blobSources: rows.map(({ source }) => source ?? null),
		blobTypes: rows.map(({ type }) => text(type)),
		...packBytes("blob", rows, ({ data }) => data),
	};
}

/** Text for a parameter. */
export function text(value: string | undefined): string | null {
	return value === undefined ? null : toText(value);
}

/** pg sends a Buffer as it is; it would take other bytes for an object. */
export function asBuffer(part: Uint8Array): Buffer {
	return Buffer.from(part.buffer, part.byteOffset, part.length);
}

/**
 * The bytes of several rows in one parameter, and where those of each row are in it. An array of bytes would be sent as
 * text, twice as long.
 */
function packBytes<Row>(name: string, rows: readonly Row[], pick: (row: Row) => Uint8Array): Values {
	const parts = rows.map(pick);
	const starts: number[] = [];
	let end = 0;
	for (const part of parts) {
		starts.push(end + 1);
		end += part.length;
	}
	const [only] = parts;
	return {
		[`${name}Bytes`]: parts.length === 1 && only !== undefined ? asBuffer(only) : Buffer.concat(parts),
		[`${name}Starts`]: starts,
		[`${name}Lengths`]: parts.map((part) => part.length),
	};
}
