import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	RowCount,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { SqlRow } from "./session.ts";
import type { Values } from "./statement.ts";
import { fromText, toText } from "./text.ts";

/** Text for a parameter. */
export function text(value: string | undefined): string | null {
	return value === undefined ? null : toText(value);
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

/** The server writes bytes as `\x` and digits. */
function bytes(column: string | null | undefined): Buffer {
	return Buffer.from((column as string).slice(2), "hex");
}

export function toCheckpoint([threadId, stamp, ns, id, parent, runId, source, step, head]: SqlRow): FoundCheckpoint {
	return {
		threadId: mustText(threadId),
		stamp: Number(stamp),
		ns: mustText(ns),
		id: mustText(id),
		parentId: maybeText(parent),
		runId: maybeText(runId),
		source: maybeText(source),
		step: maybeNumber(step),
		head: bytes(head),
	};
}

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
		value: value === null || value === undefined ? Number(blob) : bytes(value),
	};
}

export function toBase([threadId, ns, id, channel, data]: SqlRow): DeltaBaseRow {
	return {
		threadId: mustText(threadId),
		ns: mustText(ns),
		id: mustText(id),
		channel: mustText(channel),
		data: bytes(data),
	};
}

export function toBlob([id, base, source, type, data]: SqlRow): BlobRow {
	return {
		id: Number(id),
		base: maybeNumber(base),
		source: maybeNumber(source),
		type: maybeText(type),
		data: bytes(data),
	};
}

export function toThread([threadId, family, stamp, createdAt, updatedAt, checkpoints, head]: SqlRow): ThreadRow {
	return {
		threadId: mustText(threadId),
		family: Number(family),
		stamp: Number(stamp),
		createdAt: Number(createdAt),
		updatedAt: Number(updatedAt),
		checkpoints: Number(checkpoints),
		head: maybeText(head),
	};
}

/** Adds what a statement counted: checkpoints, their bytes, writes, their bytes. */
export function addCount(sum: RowCount, [row]: SqlRow[]): void {
	const [checkpoints = 0, checkpointBytes = 0, writes = 0, writeBytes = 0] = row?.map(Number) ?? [];
	sum.checkpoints += checkpoints;
	sum.writes += writes;
	sum.bytes += checkpointBytes + writeBytes;
}

/** Rows that go into one statement: an array for each column, as `unnest` takes them. */
export function keyColumns(keys: readonly CheckpointKey[]): Values {
	return {
		threads: keys.map(({ threadId }) => toText(threadId)),
		nss: keys.map(({ ns }) => toText(ns)),
		ids: keys.map(({ id }) => toText(id)),
	};
}

export function writeKeyColumns(keys: readonly WriteKey[]): Values {
	return {
		...keyColumns(keys),
		tasks: keys.map(({ taskId }) => toText(taskId)),
		generations: keys.map(({ generation }) => generation),
		idxs: keys.map(({ idx }) => idx),
	};
}

export function checkpointColumns(rows: readonly CheckpointRow[]): Values {
	return {
		...keyColumns(rows),
		parents: rows.map(({ parentId }) => text(parentId)),
		runs: rows.map(({ runId }) => text(runId)),
		sources: rows.map(({ source }) => text(source)),
		steps: rows.map(({ step }) => step ?? null),
		...packBytes(rows.map(({ head }) => head)),
	};
}

/** Columns of writes that do not say where a write is. */
export function writeColumns(rows: readonly Omit<WriteRow, "generation">[]): Values {
	const values = rows.map(({ value }) => value);
	return {
		idxs: rows.map(({ idx }) => idx),
		paths: rows.map(({ taskPath }) => text(taskPath)),
		channels: rows.map(({ channel }) => toText(channel)),
		runs: rows.map(({ runId }) => text(runId)),
		actors: rows.map(({ actor }) => actor ?? null),
		types: rows.map(({ type }) => text(type)),
		blobs: values.map((value) => (typeof value === "number" ? value : null)),
		...packBytes(values.map((value) => (typeof value === "number" ? EMPTY : value))),
	};
}

export function baseColumns(rows: readonly DeltaBaseRow[]): Values {
	// A statement can't put a row in the place of one that it has just put there.
	const last = new Map(rows.map((row) => [JSON.stringify([row.ns, row.id, row.channel]), row]));
	const distinct = [...last.values()];
	return {
		...keyColumns(distinct),
		channels: distinct.map(({ channel }) => toText(channel)),
		...packBytes(distinct.map(({ data }) => data)),
	};
}

const EMPTY = new Uint8Array(0);

/**
 * The bytes of several rows in one parameter, and which part is whose. An array of bytes would be sent as text, twice
 * as long.
 */
export function packBytes(parts: readonly Uint8Array[]): Values {
	const starts: number[] = [];
	let end = 0;
	for (const part of parts) {
		starts.push(end + 1);
		end += part.length;
	}
	return { starts, lengths: parts.map((part) => part.length), data: joinBytes(parts) };
}

function joinBytes(parts: readonly Uint8Array[]): Buffer {
	const [only] = parts;
	return parts.length === 1 && only !== undefined ? asBuffer(only) : Buffer.concat(parts);
}

/** pg sends a Buffer as it is; it would take other bytes for an object. */
export function asBuffer(part: Uint8Array): Buffer {
	return Buffer.from(part.buffer, part.byteOffset, part.length);
}
