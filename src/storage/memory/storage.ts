import { compareIds, compareRows } from "../compare-ids.ts";
import { checkHead } from "../guard.ts";
import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	DeltaBaseRow,
	Depth,
	FoundCheckpoint,
	PutBatch,
	RemoveBatch,
	Replacement,
	Scan,
	Storage,
	ThreadRow,
	WriteRow,
} from "../storage.ts";
import { holdBytes, Namespace, type StoredRow, toFound } from "./namespace.ts";

interface Thread extends Pick<ThreadRow, "threadId" | "family" | "createdAt"> {
	stamp: number;
	updatedAt: number;
	readonly namespaces: Map<string, Namespace>;
}

/** Rows in Maps, which live and die with the object. A scan compares labels row by row. */
export class MemoryStorage implements Storage {
	readonly #threads = new Map<string, Thread>();
	readonly #blobs = new Map<number, BlobRow>();
	/** The ids of the blobs of each family that has some. */
	readonly #families = new Map<number, Set<number>>();
	#nextId = 1;

	/** Maps have neither damage nor files. */
	readonly check = async () => [];
	readonly tidy = async () => false;
	readonly close = async () => {};

	async reserveIds(count: number): Promise<number> {
		this.#nextId += count;
		return this.#nextId - count;
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known?: readonly number[]) {
		const checkpoints = "limit" in which ? this.#scan(which) : which.flatMap((key) => this.#find(key) ?? []);
		const writes: WriteRow[] = [];
		const named: number[] = [];
		if (depth === "rows") return { checkpoints, writes, blobs: [] };
		for (const { threadId, ns, id, blobs } of checkpoints) {
			for (const write of this.#threads.get(threadId)?.namespaces.get(ns)?.writes.get(id) ?? []) {
				writes.push(write);
				if (write.blob !== undefined) named.push(write.blob);
			}
			for (const blob of blobs) named.push(blob);
		}
		return { checkpoints, writes, blobs: await this.getBlobs(named, known) };
	}

	#scan(scan: Scan): FoundCheckpoint[] {
		const { threadId, ns, limit } = scan;
		const found: FoundCheckpoint[] = [];
		for (const { namespaces, stamp } of threadId === undefined ? this.#threads.values() : this.#only(threadId))
			for (const namespace of ns === undefined ? namespaces.values() : [namespaces.get(ns)]) {
				namespace?.scan(scan, stamp, found);
				// Rows that can't be on the page are left out soon: there may be many namespaces.
				if (found.length > 2 * limit) found.sort(compareRows).splice(limit);
			}
		return found.sort(compareRows).slice(0, limit);
	}

	#find({ threadId, ns, id }: CheckpointKey): FoundCheckpoint | undefined {
		const { namespaces, stamp } = this.#threads.get(threadId) ?? NO_THREAD;
		const row = namespaces.get(ns)?.checkpoints.get(id);
		return row && toFound(row, stamp);
	}

	async getBlobs(ids: readonly number[], known?: readonly number[]): Promise<BlobRow[]> {
		const found: BlobRow[] = [];
		const open = new Set(ids);
		const skipped = new Set(known);
		for (const id of open) {
			const blob = skipped.has(id) ? undefined : this.#blobs.get(id);
			if (blob === undefined) continue;
			found.push(blob);
			if (blob.base !== undefined) open.add(blob.base);
			if (blob.source !== undefined) open.add(blob.source);
		}
		return found;
	}

	async readPath({ threadId, ns, id }: CheckpointKey, limit: number) {
		const { namespaces, stamp } = this.#threads.get(threadId) ?? NO_THREAD;
		return (namespaces.get(ns) ?? new Namespace()).readPath(id, limit, stamp);
	}

	async readOutline(threadId: string) {
		const { checkpoints, writes } = this.#listRows(this.#only(threadId));
		return { checkpoints: checkpoints.sort(compareRows), written: writes };
	}

	async readThread(threadId: string) {
		const { writes, deltaBases } = this.#listRows(this.#only(threadId));
		return { writes, deltaBases };
	}

	async findRuns(runIds: readonly string[]) {
		const wanted = new Set<string | undefined>(runIds);
		const isWanted = ({ runId }: { readonly runId: string | undefined }) => wanted.has(runId);
		const { checkpoints, writes } = this.#listRows();
		return { checkpoints: checkpoints.filter(isWanted), writes: writes.filter(isWanted) };
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		const thread = this.#threads.get(threadId);
		return thread && describe(thread);
	}

	async listThreads(limit: number, after: ThreadPlace | undefined): Promise<ThreadRow[]> {
		const isAfter = (thread: Thread) => after === undefined || compareThreads(after, thread) < 0;
		return [...this.#threads.values()].filter(isAfter).sort(compareThreads).slice(0, limit).map(describe);
	}

	async readFamily(family: number) {
		const blobs = [...(this.#families.get(family) ?? [])].map((id) => this.#blobs.get(id) as BlobRow);
		const listed = blobs.map(({ id, base, source, data }) => ({ id, base, source, bytes: data.length }));
		const threads = [...this.#threads.values()].filter((thread) => thread.family === family);
		const { checkpoints, writes, deltaBases } = this.#listRows(threads);
		const named = [...checkpoints.flatMap((row) => row.blobs), ...writes.flatMap(({ blob }) => blob ?? [])];
		return { blobs: listed, named, deltaBases };
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		const families = [...this.#families.keys()].filter((family) => family > after);
		return families.sort((a, b) => a - b).slice(0, limit);
	}

	async totals() {
		const { checkpoints, writes } = this.#listRows();
		const blobs = sum([...this.#blobs.values()], "data");
		const bytes = { checkpoints: sum(checkpoints, "head"), blobs, writes: sum(writes, "value") };
		return { threads: this.#threads.size, checkpoints: checkpoints.length, writes: writes.length, bytes };
	}

	#only(threadId: string): Thread[] {
		return [this.#threads.get(threadId) ?? NO_THREAD];
	}

	/** All rows of some threads. */
	#listRows(threads: Iterable<Thread> = this.#threads.values()) {
		const rows = { checkpoints: [] as StoredRow[], writes: [] as WriteRow[], deltaBases: [] as DeltaBaseRow[] };
		for (const { namespaces } of threads)
			for (const { checkpoints, writes, deltaBases } of namespaces.values()) {
				for (const row of checkpoints.values()) rows.checkpoints.push(row);
				for (const list of writes.values()) for (const write of list) rows.writes.push(write);
				for (const list of deltaBases.values()) for (const base of list) rows.deltaBases.push(base);
			}
		return rows;
	}

	#count(threadId: string) {
		const { checkpoints, writes } = this.#listRows(this.#only(threadId));
		const bytes = sum(checkpoints, "head") + sum(writes, "value");
		return { checkpoints: checkpoints.length, writes: writes.length, bytes };
	}

	async put(batch: PutBatch) {
		const { threadId, fresh, now, checkpoint, blobs, writes } = batch;
		const known = this.#threads.get(threadId);
		if (batch.stamp !== undefined && known?.stamp !== batch.stamp) return undefined;
		if (checkpoint !== undefined && batch.onlyOnHead) {
			const { ids, checkpoints } = known?.namespaces.get(checkpoint.ns) ?? new Namespace();
			checkHead(checkpoint, checkpoints.get(ids.at(-1) ?? ""), checkpoints.has(checkpoint.id));
		}
		for (const { id } of blobs) if (this.#blobs.has(id)) throw new Error(`Blob ${id} is there already.`);
		const thread = known ?? newThread(threadId, fresh, fresh, now);
		this.#threads.set(threadId, thread);
		for (const { id, base, source, type, data } of blobs) {
			this.#blobs.set(id, { id, base, source, type, data: holdBytes(data) });
			this.#families.set(thread.family, (this.#families.get(thread.family) ?? new Set()).add(id));
		}
		for (const { ns, id, taskId } of writes.slice(0, 1)) openNamespace(thread, ns).addWrites(id, taskId, writes);
		for (const base of batch.deltaBases) openNamespace(thread, base.ns).putDeltaBase(base);
		const replaced = checkpoint !== undefined && openNamespace(thread, checkpoint.ns).put(checkpoint, batch.labels);
		if (checkpoint !== undefined) thread.updatedAt = now;
		if (replaced) thread.stamp = fresh;
		return { family: thread.family, stamp: thread.stamp, replaced };
	}

	async remove(batch: RemoveBatch) {
		const thread = this.#threads.get(batch.threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const removed = this.#count(batch.threadId);
		for (const { ns, id } of batch.checkpoints) thread.namespaces.get(ns)?.remove(id);
		for (const key of batch.writes) thread.namespaces.get(key.ns)?.removeWrite(key);
		for (const key of batch.orphans) if (this.#find(key) === undefined) thread.namespaces.get(key.ns)?.removeWrite(key);
		const left = this.#count(batch.threadId);
		for (const field of ["checkpoints", "writes", "bytes"] as const) removed[field] -= left[field];
		for (const row of batch.relinked) openNamespace(thread, row.ns).put(row);
		for (const base of batch.deltaBases) openNamespace(thread, base.ns).putDeltaBase(base);
		return removed;
	}

	async copy(batch: CopyBatch) {
		const { source: sourceId, target: threadId, keys } = batch;
		const source = this.#threads.get(sourceId);
		if (source?.stamp !== batch.stamp || this.#threads.has(threadId)) return undefined;
		const target = newThread(threadId, source.family, batch.fresh, batch.now);
		this.#threads.set(threadId, target);
		const chosen = keys && new Set(keys.map(({ ns, id }) => JSON.stringify([ns, id])));
		const isCopied = ({ ns, id }: CheckpointKey) => chosen?.has(JSON.stringify([ns, id])) ?? true;
		const move = <T extends CheckpointKey>(rows: T[]) => rows.filter(isCopied).map((row) => ({ ...row, threadId }));
		const { checkpoints, writes, deltaBases } = this.#listRows([source]);
		for (const row of move(checkpoints)) openNamespace(target, row.ns).put(row, row.labels);
		for (const row of batch.checkpoints) openNamespace(target, row.ns).put(row);
		for (const write of [...move(writes), ...batch.writes]) openNamespace(target, write.ns).addWrite(write);
		for (const base of [...move(deltaBases), ...batch.deltaBases]) openNamespace(target, base.ns).putDeltaBase(base);
		return this.#count(threadId);
	}

	async removeThread(threadId: string) {
		const removed = this.#count(threadId);
		this.#threads.delete(threadId);
		return removed;
	}

	async removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		const own = this.#families.get(family);
		for (const id of ids) if (own?.delete(id)) this.#blobs.delete(id);
		if (own?.size === 0) this.#families.delete(family);
	}

	async replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return replacements.filter((replacement) => this.#replace(replacement)).length;
	}

	#replace(replacement: Replacement): boolean {
		const { kind } = replacement;
		if (kind === "blob") return replaceIn(this.#blobs.get(replacement.id), "data", replacement);
		const { threadId, ns, id } = replacement.key;
		const namespace = this.#threads.get(threadId)?.namespaces.get(ns);
		const row = namespace?.checkpoints.get(id);
		if (kind === "checkpoint" && row !== undefined) row.labels = undefined;
		if (kind === "checkpoint") return replaceIn(row, "head", replacement);
		if (kind === "write") return replaceIn(namespace?.findWrite(replacement.key), "value", replacement);
		const base = namespace?.deltaBases.get(id)?.find(({ channel }) => channel === replacement.channel);
		return replaceIn(base, "data", replacement);
	}

	async clear(): Promise<void> {
		for (const map of [this.#threads, this.#blobs, this.#families]) map.clear();
	}
}

function newThread(threadId: string, family: number, stamp: number, now: number): Thread {
	return { threadId, family, stamp, createdAt: now, updatedAt: now, namespaces: new Map() };
}

const NO_THREAD = newThread("", 0, 0, 0);

function openNamespace({ namespaces }: Thread, ns: string): Namespace {
	const namespace = namespaces.get(ns) ?? new Namespace();
	namespaces.set(ns, namespace);
	return namespace;
}

function describe({ namespaces, ...thread }: Thread): ThreadRow {
	const checkpoints = [...namespaces.values()].reduce((sum, { ids }) => sum + ids.length, 0);
	return { ...thread, checkpoints, newest: namespaces.get("")?.ids.at(-1) };
}

function sum<F extends string>(rows: readonly { readonly [_ in F]: Uint8Array }[], field: F): number {
	return rows.reduce((total, row) => total + row[field].length, 0);
}

/** Changes a row in place: where it was read before, it has the new bytes too, which say the same. */
function replaceIn<F extends string>(row: { readonly [_ in F]: Uint8Array } | undefined, field: F, by: Replacement) {
	const bytes = row?.[field];
	if (bytes?.length !== by.from.length || !bytes.every((byte, n) => byte === by.from[n])) return false;
	(row as Record<F, Uint8Array>)[field] = holdBytes(by.to);
	return true;
}

type ThreadPlace = Pick<ThreadRow, "updatedAt" | "threadId">;

function compareThreads(a: ThreadPlace, b: ThreadPlace): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}
