import { ConcurrencyError } from "../../errors.ts";
import type { BlobRow, CheckpointRow, DeltaBaseRow, NewWrite, PutBatch, PutResult } from "../storage.ts";
import { splitLabels, UNKNOWN_LABELS } from "./labels.ts";
import { asBuffer, baseColumns, packBytes, text, writeColumns } from "./rows.ts";
import type { SqlRow } from "./session.ts";
import type { Values } from "./statement.ts";
import { fromText, toText } from "./text.ts";

/** Reads the answer of `putStatement`. */
export function readPut([row]: SqlRow[], batch: PutBatch): PutResult | undefined {
	const [outcome, first, stamp, replaced] = row ?? [];
	if (outcome === "stored") return { family: Number(first), stamp: Number(stamp), replaced: replaced === "true" };
	if (outcome === "branch") throw new ConcurrencyError(batch.checkpoint as CheckpointRow, fromText(first as string));
	if (outcome === undefined && batch.stamp !== undefined) return undefined;
	// Another call stored something, or made the thread, while this one was under way.
	throw Object.assign(new Error("The thread changed at the same time"), { code: "40001" });
}

/** What the parameters of `putStatement` stand for. */
export function putValues(batch: PutBatch): Values {
	const { threadId, stamp, fresh, now, checkpoint, blobs, writes, deltaBases = [] } = batch;
	const values = { thread: toText(threadId), stamp: stamp ?? null, fresh, now, minute: minuteOf(now) };
	return Object.assign(
		values,
		checkpoint && checkpointValues(batch, checkpoint),
		blobs.length > 0 && blobValues(blobs),
		writes.length > 0 && writeValues(writes),
		deltaBases.length > 0 && baseValues(deltaBases),
	);
}

function checkpointValues({ namedBlobs, labels }: PutBatch, row: CheckpointRow): Values {
	return {
		ns: toText(row.ns),
		id: toText(row.id),
		head: row.ns === "" ? toText(row.id) : null,
		parent: text(row.parentId),
		run: text(row.runId),
		source: text(row.source),
		step: row.step ?? null,
		labels: labels === undefined ? UNKNOWN_LABELS : (splitLabels(labels).rest ?? null),
		namedBlobs: namedBlobs?.length ? namedBlobs : null,
		row: asBuffer(row.head),
	};
}

function blobValues(blobs: readonly BlobRow[]): Values {
	const { data, starts, lengths } = packBytes(blobs.map((row) => row.data));
	return {
		blobIds: blobs.map(({ id }) => id),
		blobBases: blobs.map((row) => row.base ?? null),
		blobSources: blobs.map((row) => row.source ?? null),
		blobTypes: blobs.map(({ type }) => text(type)),
		blobData: data,
		blobStarts: starts,
		blobLengths: lengths,
	};
}

function writeValues(writes: readonly NewWrite[]): Values {
	const { ns, id, taskId } = writes[0] as NewWrite;
	const { blobs, data, starts, lengths, ...columns } = writeColumns(writes);
	return {
		...columns,
		writeNs: toText(ns),
		writeId: toText(id),
		task: toText(taskId),
		conflicts: writes.map(({ conflict }) => conflict),
		writeBlobs: blobs,
		writeData: data,
		writeStarts: starts,
		writeLengths: lengths,
	};
}

function baseValues(rows: readonly DeltaBaseRow[]): Values {
	const { nss, ids, channels, data, starts, lengths } = baseColumns(rows);
	return {
		baseNss: nss,
		baseIds: ids,
		baseChannels: channels,
		baseData: data,
		baseStarts: starts,
		baseLengths: lengths,
	};
}

/** Of writes with one index the first counts, or the last that replaces. The blobs of the others are left out. */
export function withoutRepeats(batch: PutBatch): PutBatch {
	const kept = new Map<number, NewWrite>();
	const unused = new Set<unknown>();
	for (const write of batch.writes) {
		const isKept = write.conflict === "replace" || !kept.has(write.idx);
		if (isKept) kept.set(write.idx, write);
		else unused.add(write.value);
	}
	if (kept.size === batch.writes.length) return batch;
	return { ...batch, writes: [...kept.values()], blobs: batch.blobs.filter(({ id }) => !unused.has(id)) };
}

/** Threads are found by the minute of their last update, so that most updates leave the index alone. */
export function minuteOf(time: number): number {
	return Math.floor(time / 60_000);
}
