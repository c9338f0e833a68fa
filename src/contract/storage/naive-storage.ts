import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	RowCount,
	WriteKey,
	WriteRow,
} from "../../storage/storage.ts";
import type { readAll } from "./audit.ts";
import { compareIds, compareKeys, plainWrite, sorted } from "./plain.ts";

interface Thread {
	readonly threadId: string;
	readonly family: number;
	stamp: number;
	readonly createdAt: number;
	updatedAt: number;
}

/** What a storage promises, in lists that are searched from end to end: the model that others are compared with. */
export class NaiveStorage {
	threads: Thread[] = [];
	#rows: CheckpointRow[] = [];
	#writes: WriteRow[] = [];
	#deltaBases: DeltaBaseRow[] = [];
	#blobs: (BlobRow & { readonly family: number })[] = [];

	put(batch: PutBatch): PutResult | undefined {
		const { threadId, stamp, fresh, now, checkpoint } = batch;
		let thread = this.#thread(threadId);
		if (stamp !== undefined && thread?.stamp !== stamp) return undefined;
		if (thread === undefined) {
			thread = { threadId, family: fresh, stamp: fresh, createdAt: now, updatedAt: now };
			this.threads.push(thread);
		}
		const { family } = thread;
		const dropped = this.#putWrites(batch.writes);
		this.#blobs.push(...batch.blobs.filter(({ id }) => !dropped.has(id)).map((blob) => ({ ...blob, family })));
		for (const base of batch.deltaBases ?? []) this.#putBase(base);
		if (checkpoint === undefined) return { family, stamp: thread.stamp, replaced: false };
		const older = this.#rows.find((one) => isSame(one, checkpoint));
		const next = older === undefined ? checkpoint : { ...checkpoint, parentId: older.parentId };
		this.#rows = [...this.#rows.filter((one) => one !== older), next];
		thread.updatedAt = now;
		if (older !== undefined) thread.stamp = fresh;
		return { family, stamp: thread.stamp, replaced: older !== undefined };
	}

	/** Answers the values of those that were dropped. */
	#putWrites(writes: readonly NewWrite[]): Set<unknown> {
		const dropped = new Set<unknown>();
		const task = this.#writes.filter((one) =>
			writes.some((write) => isSame(one, write) && one.taskId === write.taskId),
		);
		const next = Math.max(-1, ...task.map(({ generation }) => generation)) + 1;
		for (const write of writes) {
			const stored = { ...write, generation: write.conflict === "add" ? next : 0 };
			if (write.conflict === "drop" && task.some(({ idx }) => idx === write.idx)) dropped.add(write.value);
			else this.#writes = [...this.#writes.filter((one) => !isSameWrite(one, stored)), plainWrite(stored)];
		}
		return dropped;
	}

	remove(batch: RemoveBatch): RowCount | undefined {
		const { threadId, checkpoints, relink } = batch;
		const thread = this.#thread(threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const isGone = (row: CheckpointKey) => checkpoints.some((key) => isSame(row, { ...key, threadId }));
		const isGoneOrphan = (row: WriteRow) =>
			!this.#rows.some((one) => isSame(one, row)) &&
			(batch.orphans ?? []).some((key) => isSameWrite(row, { ...key, threadId }));
		const isGoneWrite = (row: WriteRow) =>
			isGone(row) || batch.writes.some((key) => isSameWrite(row, { ...key, threadId })) || isGoneOrphan(row);
		const removed = count(this.#rows.filter(isGone), this.#writes.filter(isGoneWrite));
		this.#rows = this.#rows.filter((row) => !isGone(row));
		this.#writes = this.#writes.filter((write) => !isGoneWrite(write));
		this.#deltaBases = this.#deltaBases.filter((base) => !isGone(base));
		for (const { key, parentId } of relink)
			this.#rows = this.#rows.map((row) => (isSame(row, key) ? { ...row, parentId } : row));
		for (const base of batch.deltaBases) this.#putBase(base);
		return removed;
	}

	copy(batch: CopyBatch): RowCount | undefined {
		const { source, target: threadId, checkpoints, now } = batch;
		const from = this.#thread(source);
		if (from?.stamp !== batch.stamp || this.#thread(threadId) !== undefined) return undefined;
		this.threads.push({ threadId, family: from.family, stamp: batch.fresh, createdAt: now, updatedAt: now });
		const chosen = (row: CheckpointKey) => checkpoints?.find(({ key }) => isSame(key, row));
		const isCopied = (row: CheckpointKey) =>
			row.threadId === source && (checkpoints === undefined || chosen(row) !== undefined);
		const parentOf = (row: CheckpointRow) => (checkpoints === undefined ? row.parentId : chosen(row)?.parentId);
		const rows = this.#rows.filter(isCopied).map((row) => ({ ...row, threadId, parentId: parentOf(row) }));
		const writes = this.#writes.filter(isCopied).map((write) => ({ ...write, threadId }));
		this.#rows.push(...rows);
		this.#writes.push(...writes);
		for (const base of [...this.#deltaBases.filter(isCopied), ...batch.deltaBases])
			this.#putBase({ ...base, threadId });
		return count(rows, writes);
	}

	removeThread(threadId: string): RowCount {
		const isGone = (row: { threadId: string }) => row.threadId === threadId;
		const removed = count(this.#rows.filter(isGone), this.#writes.filter(isGone));
		this.threads = this.threads.filter((thread) => !isGone(thread));
		this.#rows = this.#rows.filter((row) => !isGone(row));
		this.#writes = this.#writes.filter((write) => !isGone(write));
		this.#deltaBases = this.#deltaBases.filter((base) => !isGone(base));
		return removed;
	}

	removeBlobs(family: number, ids: readonly number[]): void {
		this.#blobs = this.#blobs.filter((blob) => blob.family !== family || !ids.includes(blob.id));
	}

	/** The ids of these blobs and of all that they are built on. */
	getBlobs(ids: readonly number[]): { id: number }[] {
		const found = new Set(ids);
		for (const id of found) {
			const blob = this.#blobs.find((one) => one.id === id);
			if (blob === undefined) found.delete(id);
			else for (const other of [blob.base, blob.source]) if (other !== undefined) found.add(other);
		}
		return [...found].map((id) => ({ id }));
	}

	readAll(): Awaited<ReturnType<typeof readAll>> {
		const families = new Set(this.threads.map(({ family }) => family));
		const blobs = this.#blobs.filter(({ family }) => families.has(family));
		const reached = new Set(this.getBlobs(blobs.map(({ id }) => id)).map(({ id }) => id));
		const total = count(this.#rows, []);
		const writes = count([], this.#writes);
		const blobBytes = this.#blobs.reduce((sum, { data }) => sum + data.length, 0);
		return {
			threads: this.threads.map((thread) => this.#describe(thread)).sort(compareThreads),
			rows: [...this.#rows].sort(compareKeys),
			writes: sorted(this.#writes),
			deltaBases: sorted(this.#deltaBases),
			blobs: sorted(this.#blobs.filter(({ id }) => reached.has(id)).map(({ family: _, ...blob }) => blob)),
			totals: {
				threads: this.threads.length,
				checkpoints: total.checkpoints,
				writes: writes.writes,
				bytes: { checkpoints: total.bytes, blobs: blobBytes, writes: writes.bytes },
			},
		};
	}

	#describe(thread: Thread) {
		const rows = this.#rows.filter(({ threadId }) => threadId === thread.threadId);
		const [head] = rows.filter(({ ns }) => ns === "").sort(compareKeys);
		return { ...thread, checkpoints: rows.length, head: head?.id };
	}

	#thread(threadId: string): Thread | undefined {
		return this.threads.find((thread) => thread.threadId === threadId);
	}

	#putBase(base: DeltaBaseRow): void {
		const others = this.#deltaBases.filter((one) => !isSame(one, base) || one.channel !== base.channel);
		this.#deltaBases = [...others, base];
	}
}

function isSame(a: CheckpointKey, b: CheckpointKey): boolean {
	return a.threadId === b.threadId && a.ns === b.ns && a.id === b.id;
}

function isSameWrite(a: WriteKey, b: WriteKey): boolean {
	return isSame(a, b) && a.taskId === b.taskId && a.idx === b.idx && a.generation === b.generation;
}

function count(rows: readonly CheckpointRow[], writes: readonly WriteRow[]): RowCount {
	const heads = rows.reduce((sum, { head }) => sum + head.length, 0);
	const inline = writes.reduce((sum, { value }) => sum + (typeof value === "number" ? 0 : value.length), 0);
	return { checkpoints: rows.length, writes: writes.length, bytes: heads + inline };
}

function compareThreads(a: Thread, b: Thread): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}
