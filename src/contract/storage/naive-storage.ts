import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	NewWrite,
	PathReading,
	PutBatch,
	PutResult,
	RemoveBatch,
	RowCount,
	Scan,
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
		this.#putWrites(batch.writes);
		this.#blobs.push(...batch.blobs.map((blob) => ({ ...blob, family })));
		for (const base of batch.deltaBases) this.#putBase(base);
		if (checkpoint === undefined) return { family, stamp: thread.stamp, replaced: false };
		const replaced = this.#putRow(checkpoint);
		thread.updatedAt = now;
		if (replaced) thread.stamp = fresh;
		return { family, stamp: thread.stamp, replaced };
	}

	remove(batch: RemoveBatch): RowCount | undefined {
		const { threadId, checkpoints, relinked } = batch;
		const thread = this.#thread(threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const isGone = (row: CheckpointKey) => checkpoints.some((key) => isSame(row, key));
		const isGoneWrite = (row: WriteRow) =>
			isGone(row) ||
			batch.writes.some((key) => isSameWrite(row, key)) ||
			(batch.orphans.some((key) => isSameWrite(row, key)) && this.find(row) === undefined);
		const removed = count(this.#rows.filter(isGone), this.#writes.filter(isGoneWrite));
		this.#writes = this.#writes.filter((write) => !isGoneWrite(write));
		this.#rows = this.#rows.filter((row) => !isGone(row));
		this.#deltaBases = this.#deltaBases.filter((base) => !isGone(base));
		for (const row of relinked) this.#putRow(row);
		for (const base of batch.deltaBases) this.#putBase(base);
		return removed;
	}

	copy(batch: CopyBatch): RowCount | undefined {
		const { source, target: threadId, keys, now } = batch;
		const from = this.#thread(source);
		if (from?.stamp !== batch.stamp || this.#thread(threadId) !== undefined) return undefined;
		this.threads.push({ threadId, family: from.family, stamp: batch.fresh, createdAt: now, updatedAt: now });
		const isCopied = (row: CheckpointKey) =>
			row.threadId === source && (keys === undefined || keys.some((key) => isSame(key, row)));
		const isThere = (row: CheckpointKey) => row.threadId === threadId;
		this.#rows.push(...this.#rows.filter(isCopied).map((row) => ({ ...row, threadId })));
		for (const row of batch.checkpoints) this.#putRow(row);
		this.#writes.push(...this.#writes.filter(isCopied).map((write) => ({ ...write, threadId })));
		this.#writes.push(...batch.writes.map(plainWrite));
		for (const base of this.#deltaBases.filter(isCopied)) this.#putBase({ ...base, threadId });
		for (const base of batch.deltaBases) this.#putBase(base);
		return count(this.#rows.filter(isThere), this.#writes.filter(isThere));
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

	find(key: CheckpointKey): CheckpointRow | undefined {
		return this.#rows.find((row) => isSame(row, key));
	}

	scan({ threadId, ns, before, after, source, step, limit }: Scan): CheckpointRow[] {
		const matching = this.#rows.filter(
			(row) =>
				(threadId ?? row.threadId) === row.threadId &&
				(ns ?? row.ns) === row.ns &&
				(before === undefined || compareIds(row.id, before) < 0) &&
				(after === undefined || compareKeys(after, row) < 0) &&
				(source === undefined || row.source === source) &&
				(step === undefined || row.step === step),
		);
		return matching.sort(compareKeys).slice(0, limit);
	}

	/** The writes of these checkpoints, and the blobs that it takes to decode both, without those that are known. */
	readValues(rows: readonly CheckpointRow[], known: readonly number[]) {
		const writes = this.#writes.filter((write) => rows.some((row) => isSame(row, write)));
		const named = [...rows.flatMap(({ blobs }) => blobs), ...writes.flatMap(({ blob }) => blob ?? [])];
		return { writes, blobs: this.getBlobs(named, known) };
	}

	readPath(
		key: CheckpointKey,
		limit: number,
	): Omit<PathReading, "path" | "siblings" | "epoch"> & {
		path: CheckpointRow[];
		siblings: CheckpointRow[];
	} {
		const path: CheckpointRow[] = [];
		let next = this.find(key);
		while (next !== undefined && path.length < limit && !path.includes(next)) {
			path.push(next);
			const { parentId } = next;
			next = parentId === undefined ? undefined : this.find({ ...key, id: parentId });
		}
		const isHere = (row: CheckpointKey) => row.threadId === key.threadId && row.ns === key.ns;
		const last = path.at(-1);
		const isOrphan = (write: WriteRow, before: string) =>
			isHere(write) && this.find(write) === undefined && compareIds(write.id, before) < 0;
		return {
			path,
			siblings: this.#rows.filter(
				(row) => isHere(row) && !path.includes(row) && path.some(({ id }) => id === row.parentId),
			),
			writes: this.#writes.filter((write) => path.some((row) => isSame(row, write))),
			deltaBases: this.#deltaBases.filter((base) => path.some((row) => isSame(row, base))),
			orphans:
				last === undefined || next !== undefined ? undefined : this.#writes.filter((write) => isOrphan(write, last.id)),
		};
	}

	/** These blobs and all that they are built on, but for those that are known. */
	getBlobs(ids: readonly number[], known: readonly number[] = []): BlobRow[] {
		const found = new Map<number, BlobRow>();
		const open = [...ids];
		for (const id of open) {
			const blob = this.#blobs.find((one) => one.id === id);
			if (blob === undefined || found.has(id) || known.includes(id)) continue;
			const { family: _, ...row } = blob;
			found.set(id, row);
			for (const other of [blob.base, blob.source]) if (other !== undefined) open.push(other);
		}
		return [...found.values()];
	}

	readAll(): Awaited<ReturnType<typeof readAll>> {
		const total = count(this.#rows, []);
		const writes = count([], this.#writes);
		const blobBytes = this.#blobs.reduce((sum, { data }) => sum + data.length, 0);
		return {
			threads: this.threads.map((thread) => this.#describe(thread)).sort(compareThreads),
			rows: [...this.#rows].sort(compareKeys) as ReturnType<typeof this.readAll>["rows"],
			writes: sorted(this.#writes.map(plainWrite)),
			deltaBases: sorted(this.#deltaBases),
			families: [...new Set(this.#blobs.map(({ family }) => family))].sort((a, b) => a - b),
			blobs: sorted(this.getBlobs(this.#blobs.map(({ id }) => id))),
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
		const [newest] = rows.filter(({ ns }) => ns === "").sort(compareKeys);
		return { ...thread, checkpoints: rows.length, newest: newest?.id };
	}

	#thread(threadId: string): Thread | undefined {
		return this.threads.find((thread) => thread.threadId === threadId);
	}

	/** Answers whether it took the place of another. */
	#putRow(row: CheckpointRow): boolean {
		const others = this.#rows.filter((one) => !isSame(one, row));
		const replaced = others.length < this.#rows.length;
		this.#rows = [...others, row];
		return replaced;
	}

	#putWrites(writes: readonly NewWrite[]): void {
		const isOfTask = (one: WriteRow) => writes.some((write) => isSame(one, write) && one.taskId === write.taskId);
		const task = this.#writes.filter(isOfTask);
		const next = Math.max(-1, ...task.map(({ generation }) => generation)) + 1;
		for (const write of writes) {
			if (write.conflict === "drop" && task.some(({ idx }) => idx === write.idx)) continue;
			const stored = plainWrite({ ...write, generation: write.conflict === "add" ? next : 0 });
			this.#writes = [...this.#writes.filter((one) => !isSameWrite(one, stored)), stored];
		}
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
	const values = writes.reduce((sum, { value }) => sum + value.length, 0);
	return { checkpoints: rows.length, writes: writes.length, bytes: heads + values };
}

function compareThreads(a: Thread, b: Thread): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}
