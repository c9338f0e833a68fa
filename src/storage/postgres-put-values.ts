import { ConcurrencyError } from "../errors.ts";
import { splitLabels, UNKNOWN_LABELS } from "./postgres-labels.ts";
import { asBuffer, baseColumns, packBytes, text, writeColumns } from "./postgres-rows.ts";
import type { SqlRow } from "./postgres-session.ts";
import type { Values } from "./postgres-statement.ts";
import { fromText, toText } from "./postgres-text.ts";
import type { CheckpointRow, NewWrite, PutBatch, PutResult } from "./storage.ts";

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
	const { threadId, fresh, now, checkpoint, blobs, writes, deltaBases = [] } = batch;
	const [write] = writes;
	const written = writeColumns(writes);
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
			labels: batch.labels === undefined ? UNKNOWN_LABELS : (splitLabels(batch.labels).rest ?? null),
			namedBlobs: batch.namedBlobs?.length ? batch.namedBlobs : null,
			row: asBuffer(checkpoint.head),
		}),
		...(write && {
			writeNs: toText(write.ns),
			writeId: toText(write.id),
			task: toText(write.taskId),
			idxs: written.idxs,
			conflicts: writes.map(({ conflict }) => conflict),
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
		blobSources: blobs.map((row) => row.source ?? null),
		blobTypes: blobs.map(({ type }) => text(type)),
		blobData: data.data,
		blobStarts: data.starts,
		blobLengths: data.lengths,
		baseNss: bases.nss,
		baseIds: bases.ids,
		baseChannels: bases.channels,
		baseData: bases.data,
		baseStarts: bases.starts,
		baseLengths: bases.lengths,
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
