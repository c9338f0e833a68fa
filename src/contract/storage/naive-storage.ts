import { CheckpointError } from "../../errors.ts";
import { checkHead } from "../../storage/guard.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	Depth,
	FoundCheckpoint,
	Labels,
	NewWrite,
	PutBatch,
	RemoveBatch,
	Replacement,
	RowCount,
	Scan,
	Storage,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../../storage/storage.ts";
import { compareIds, compareKeys, plainWrite } from "./plain.ts";

type Thread = { -readonly [F in keyof Omit<ThreadRow, "checkpoints" | "newest">]: ThreadRow[F] };
type LabelledRow = CheckpointRow & { readonly labels: Labels | undefined };
type ThreadPlace = Pick<ThreadRow, "updatedAt" | "threadId">;

/**
 * What a storage promises, in lists that are searched from end to end: too simple to be wrong. Every answer of the storage
 * under test is compared with the one of this model.
 */
export class NaiveStorage implements Storage {
	#threads: Thread[] = [];
	#rows: LabelledRow[] = [];
	#writes: WriteRow[] = [];
	#deltaBases: DeltaBaseRow[] = [];
	#blobs: (BlobRow & { readonly family: number })[] = [];
	#nextId = 1;

	async reserveIds(count: number) {
		this.#nextId += count;
		return this.#nextId - count;
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known: readonly number[] = []) {
		const rows = "limit" in which ? this.#scan(which) : which.flatMap((key) => this.#find(key) ?? []);
		const checkpoints = rows.map((row) => this.#toFound(row));
		if (depth === "rows") return { checkpoints, writes: [], blobs: [] };
		const writes = this.#writes.filter((write) => rows.some((row) => isSame(row, write)));
		const named = [...rows.flatMap(({ blobs }) => blobs), ...writes.flatMap(({ blob }) => blob ?? [])];
		return { checkpoints, writes, blobs: this.#collectBlobs(named, known) };
	}

	#scan({ threadId, ns, before, after, source, step, labels, limit }: Scan): LabelledRow[] {
		const matching = this.#rows.filter(
			(row) =>
				(threadId ?? row.threadId) === row.threadId &&
				(ns ?? row.ns) === row.ns &&
				(before === undefined || compareIds(row.id, before) < 0) &&
				(after === undefined || compareKeys(after, row) < 0) &&
				(source ?? row.source) === row.source &&
				(step ?? row.step) === row.step &&
				hasLabels(row, labels),
		);
		return matching.sort(compareKeys).slice(0, limit);
	}

	async readPath(key: CheckpointKey, limit: number) {
		const path: LabelledRow[] = [];
		let next = this.#find(key);
		while (next !== undefined && path.length < limit && !path.includes(next)) {
			path.push(next);
			const { parentId } = next;
			next = parentId === undefined ? undefined : this.#find({ ...key, id: parentId });
		}
		const isOnPath = (key: CheckpointKey) => path.some((row) => isSame(row, key));
		const isSibling = (row: LabelledRow) =>
			!path.includes(row) && row.parentId !== undefined && isOnPath({ ...row, id: row.parentId });
		const last = next === undefined ? path.at(-1) : undefined;
		const isOrphan = (write: WriteRow) =>
			isSame(write, { ...key, id: write.id }) &&
			this.#find(write) === undefined &&
			compareIds(write.id, last?.id ?? "") < 0;
		return {
			path: path.map((row) => this.#toFound(row)),
			siblings: this.#rows.filter(isSibling).map((row) => this.#toFound(row)),
			writes: this.#writes.filter(isOnPath),
			deltaBases: this.#deltaBases.filter(isOnPath),
			orphans: last && this.#writes.filter(isOrphan),
			epoch: 0,
		};
	}

	async readOutline(threadId: string) {
		const isIn = (row: CheckpointKey) => row.threadId === threadId;
		return { checkpoints: this.#rows.filter(isIn).sort(compareKeys), written: this.#writes.filter(isIn) };
	}

	async readThread(threadId: string) {
		const isIn = (row: CheckpointKey) => row.threadId === threadId;
		return {
			writes: this.#writes.filter(isIn),
			deltaBases: this.#deltaBases.filter(isIn),
		};
	}

	async getBlobs(ids: readonly number[]) {
		return this.#collectBlobs(ids, []);
	}

	#collectBlobs(ids: readonly number[], known: readonly number[]): BlobRow[] {
		const found = new Set<BlobRow>();
		const open = [...ids];
		for (const id of open) {
			const blob = this.#blobs.find((one) => one.id === id);
			if (blob === undefined || found.has(blob) || known.includes(id)) continue;
			found.add(blob);
			for (const other of [blob.base, blob.source]) if (other !== undefined) open.push(other);
		}
		return [...found];
	}

	async findRuns(runIds: readonly string[]) {
		const isWanted = ({ runId }: { readonly runId: string | undefined }) =>
			runId !== undefined && runIds.includes(runId);
		return { checkpoints: this.#rows.filter(isWanted), writes: this.#writes.filter(isWanted) };
	}

	async getThread(threadId: string) {
		const thread = this.#thread(threadId);
		return thread && this.#describe(thread);
	}

	async listThreads(limit: number, after: ThreadPlace | undefined) {
		const rest = this.#threads.filter((thread) => after === undefined || compareThreads(after, thread) < 0);
		return rest
			.sort(compareThreads)
			.slice(0, limit)
			.map((thread) => this.#describe(thread));
	}

	async readFamily(family: number) {
		const blobs = this.#blobs.filter((blob) => blob.family === family);
		const threads = new Set(this.#threads.filter((thread) => thread.family === family).map(({ threadId }) => threadId));
		const isOwn = (row: CheckpointKey) => threads.has(row.threadId);
		const writes = this.#writes.filter(isOwn);
		return {
			blobs: blobs.map(({ id, base, source, data }) => ({ id, base, source, bytes: data.length })),
			named: [...this.#rows.filter(isOwn).flatMap((row) => row.blobs), ...writes.flatMap(({ blob }) => blob ?? [])],
			deltaBases: this.#deltaBases.filter(isOwn),
		};
	}

	async listFamilies(limit: number, after = -1) {
		const families = [...new Set(this.#blobs.map(({ family }) => family))].sort((a, b) => a - b);
		return families.filter((family) => family > after).slice(0, limit);
	}

	async totals() {
		const [rows, writes] = [count(this.#rows, []), count([], this.#writes)];
		const blobs = this.#blobs.reduce((sum, { data }) => sum + data.length, 0);
		const bytes = { checkpoints: rows.bytes, blobs, writes: writes.bytes };
		return { threads: this.#threads.length, checkpoints: rows.checkpoints, writes: writes.writes, bytes };
	}

	async put(batch: PutBatch) {
		const { threadId, stamp, fresh, now, checkpoint, labels } = batch;
		let thread = this.#thread(threadId);
		if (stamp !== undefined && thread?.stamp !== stamp) return undefined;
		if (checkpoint !== undefined && batch.onlyOnHead) {
			const [newest] = this.#scan({ threadId, ns: checkpoint.ns, limit: 1 });
			checkHead(checkpoint, newest, this.#find(checkpoint) !== undefined);
		}
		if (batch.blobs.some(({ id }) => this.#blobs.some((blob) => blob.id === id)))
			throw new CheckpointError("STORAGE", "A blob id is taken.");
		if (thread === undefined) {
			thread = { threadId, family: fresh, stamp: fresh, createdAt: now, updatedAt: now };
			this.#threads.push(thread);
		}
		const { family } = thread;
		this.#blobs.push(...batch.blobs.map((blob) => ({ ...blob, family })));
		this.#putWrites(batch.writes);
		for (const base of batch.deltaBases) this.#putBase(base);
		const replaced = checkpoint !== undefined && this.#find(checkpoint) !== undefined;
		if (checkpoint !== undefined) this.#putRow({ ...checkpoint, labels });
		if (checkpoint !== undefined) thread.updatedAt = now;
		if (replaced) thread.stamp = fresh;
		return { family, stamp: thread.stamp, replaced };
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

	async remove(batch: RemoveBatch) {
		const thread = this.#thread(batch.threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const isGone = (row: CheckpointKey) => batch.checkpoints.some((key) => isSame(row, key));
		const isGoneWrite = (row: WriteRow) =>
			isGone(row) ||
			batch.writes.some((key) => isSameWrite(row, key)) ||
			(batch.orphans.some((key) => isSameWrite(row, key)) && this.#find(row) === undefined);
		const removed = this.#removeWhere(isGone, isGoneWrite);
		for (const row of batch.relinked) this.#putRow({ ...row, labels: this.#find(row)?.labels });
		for (const base of batch.deltaBases) this.#putBase(base);
		return removed;
	}

	async copy(batch: CopyBatch) {
		const { source, target: threadId, keys, now } = batch;
		const from = this.#thread(source);
		if (from?.stamp !== batch.stamp || this.#thread(threadId) !== undefined) return undefined;
		this.#threads.push({ threadId, family: from.family, stamp: batch.fresh, createdAt: now, updatedAt: now });
		const isCopied = (row: CheckpointKey) =>
			row.threadId === source && (keys === undefined || keys.some((key) => isSame(key, row)));
		const move = <T extends CheckpointKey>(rows: T[]) => rows.filter(isCopied).map((row) => ({ ...row, threadId }));
		this.#rows.push(...move(this.#rows));
		this.#writes.push(...move(this.#writes), ...batch.writes);
		this.#deltaBases.push(...move(this.#deltaBases));
		for (const row of batch.checkpoints) this.#putRow({ ...row, labels: this.#find(row)?.labels });
		for (const base of batch.deltaBases) this.#putBase(base);
		const isThere = (row: CheckpointKey) => row.threadId === threadId;
		return count(this.#rows.filter(isThere), this.#writes.filter(isThere));
	}

	async removeThread(threadId: string) {
		const isGone = (row: { threadId: string }) => row.threadId === threadId;
		this.#threads = this.#threads.filter((thread) => !isGone(thread));
		return this.#removeWhere(isGone, isGone);
	}

	#removeWhere(isGone: (row: CheckpointKey) => boolean, isGoneWrite: (row: WriteRow) => boolean): RowCount {
		const removed = count(this.#rows.filter(isGone), this.#writes.filter(isGoneWrite));
		this.#writes = this.#writes.filter((write) => !isGoneWrite(write));
		this.#rows = this.#rows.filter((row) => !isGone(row));
		this.#deltaBases = this.#deltaBases.filter((base) => !isGone(base));
		return removed;
	}

	async removeBlobs(family: number, ids: readonly number[]) {
		this.#blobs = this.#blobs.filter((blob) => blob.family !== family || !ids.includes(blob.id));
	}

	async replaceBytes(replacements: readonly Replacement[]) {
		return replacements.filter((one) => this.#replace(one)).length;
	}

	#replace(one: Replacement): boolean {
		const { from, to } = one;
		let replaced = false;
		const swap = <T>(row: T, isIt: boolean, bytes: Uint8Array, change: object): T => {
			if (!isIt || Buffer.compare(bytes, from) !== 0) return row;
			replaced = true;
			return { ...row, ...change };
		};
		if (one.kind === "checkpoint")
			this.#rows = this.#rows.map((row) => swap(row, isSame(row, one.key), row.head, { head: to, labels: undefined }));
		if (one.kind === "write")
			this.#writes = this.#writes.map((row) => swap(row, isSameWrite(row, one.key), row.value, { value: to }));
		if (one.kind === "deltaBase") {
			const isIt = (base: DeltaBaseRow) => isSame(base, one.key) && base.channel === one.channel;
			this.#deltaBases = this.#deltaBases.map((row) => swap(row, isIt(row), row.data, { data: to }));
		}
		if (one.kind === "blob")
			this.#blobs = this.#blobs.map((row) => swap(row, row.id === one.id, row.data, { data: to }));
		return replaced;
	}

	async clear() {
		this.#threads = [];
		this.#rows = [];
		this.#writes = [];
		this.#deltaBases = [];
		this.#blobs = [];
	}

	readonly check = async () => [];
	readonly tidy = async () => false;
	readonly close = async () => {};

	#find(key: CheckpointKey): LabelledRow | undefined {
		return this.#rows.find((row) => isSame(row, key));
	}

	#toFound(row: LabelledRow): FoundCheckpoint {
		return { ...row, stamp: this.#thread(row.threadId)?.stamp ?? 0 };
	}

	#describe(thread: Thread): ThreadRow {
		const { threadId } = thread;
		const [newest] = this.#scan({ threadId, ns: "", limit: 1 });
		const checkpoints = this.#rows.filter((row) => row.threadId === threadId).length;
		return { ...thread, checkpoints, newest: newest?.id };
	}

	#thread(threadId: string): Thread | undefined {
		return this.#threads.find((thread) => thread.threadId === threadId);
	}

	#putRow(row: LabelledRow): void {
		this.#rows = [...this.#rows.filter((one) => !isSame(one, row)), row];
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

/** A row without labels is found by any. */
function hasLabels(row: LabelledRow, wanted: Labels = {}): boolean {
	const { labels } = row;
	return labels === undefined || Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function count(rows: readonly CheckpointRow[], writes: readonly WriteRow[]): RowCount {
	const heads = rows.reduce((sum, { head }) => sum + head.length, 0);
	const values = writes.reduce((sum, { value }) => sum + value.length, 0);
	return { checkpoints: rows.length, writes: writes.length, bytes: heads + values };
}

function compareThreads(a: ThreadPlace, b: ThreadPlace): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}
