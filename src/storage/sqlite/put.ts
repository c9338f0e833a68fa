import { checkHead } from "../guard.ts";
import type { CheckpointRow, PutBatch, PutResult } from "../storage.ts";
import { addBlob } from "./blobs.ts";
import { addCheckpoint, findCheckpoint, findLatest, replaceCheckpoint, toCheckpoint } from "./checkpoints.ts";
import { putWrites, putWritesAlone } from "./put-writes.ts";
import { Outdated, type SqliteSession } from "./session.ts";
import { createThread, findThread, type SqlThread, saveThread } from "./threads.ts";
import { putBase } from "./writes.ts";

/** Stores a batch. Answers nothing if the thread has another stamp than the batch builds on. */
export function put(session: SqliteSession, batch: PutBatch): PutResult | undefined {
	const { threadId } = batch;
	const known = buildsOnThreadAlone(batch) ? session.peekKnown(threadId) : undefined;
	if (known === undefined) return store(session, batch, session.findKnown(threadId) ?? findThread(session, threadId));
	try {
		return store(session, batch, known);
	} catch (cause) {
		// Whatever went wrong, it may be because somebody else has changed the thread.
		throw new Outdated({ cause });
	}
}

/** Whether a batch depends on nothing but the row of its thread: if that is no longer what it was, it can't be saved. */
function buildsOnThreadAlone({ checkpoint, writes, onlyOnHead }: PutBatch): boolean {
	return checkpoint !== undefined && writes.length === 0 && !onlyOnHead;
}

function store(session: SqliteSession, batch: PutBatch, found: SqlThread | undefined): PutResult | undefined {
	const { threadId, fresh, now, checkpoint } = batch;
	if (batch.stamp !== undefined && found?.stamp !== batch.stamp) return undefined;
	const thread = found ?? createThread(session, { threadId, family: fresh, stamp: fresh, now });
	if (checkpoint && batch.onlyOnHead) guard(session, thread, checkpoint);
	const { loose } = thread;
	const dropped = putWrites(session, thread, batch.writes);
	for (const blob of batch.blobs) if (!dropped.has(blob.id)) addBlob(session, thread.family, blob);
	for (const row of batch.deltaBases ?? []) putBase(session, thread, row);
	const added = checkpoint && addCheckpoint(session, thread, checkpoint);
	const replaced = checkpoint !== undefined && added === undefined;
	if (replaced) {
		replaceCheckpoint(session, thread, checkpoint);
		session.forgetCheckpoint(thread, checkpoint.ns, checkpoint.id);
		thread.stamp = fresh;
	}
	if (checkpoint !== undefined) thread.updated_at = now;
	if (checkpoint !== undefined || found === undefined || thread.loose !== loose) saveThread(session, thread);
	session.remember(thread, added);
	return { family: thread.family, stamp: thread.stamp, replaced };
}

function guard(session: SqliteSession, thread: SqlThread, checkpoint: CheckpointRow): void {
	const { ns, id } = checkpoint;
	const head = findLatest(session, thread, ns);
	const isStored = findCheckpoint(session, thread, ns, id) !== undefined;
	checkHead(checkpoint, head && toCheckpoint(session, thread, head), isStored);
}

/** Whether a batch has nothing but writes, which build on nothing. */
export function isWritesAlone({ checkpoint, stamp, blobs, writes, deltaBases = [] }: PutBatch): boolean {
	return checkpoint === undefined && stamp === undefined && blobs.length + deltaBases.length === 0 && writes.length > 0;
}

/** Stores writes by a single statement. Answers nothing if that can't be done. */
export function putAlone(session: SqliteSession, { threadId, writes }: PutBatch): PutResult | undefined {
	const thread = session.peekKnown(threadId);
	if (thread === undefined || !putWritesAlone(session, thread, writes)) return undefined;
	session.recent.clear();
	return { family: thread.family, stamp: thread.stamp, replaced: false };
}
