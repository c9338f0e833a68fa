import { compareIds } from "./compare-ids.ts";
import { checkHead } from "./guard.ts";
import { lowerBound, scanRows } from "./memory-scan.ts";
import { MemoryWrites } from "./memory-writes.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	PutBatch,
	PutResult,
	RemoveBatch,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "./storage.ts";

/** Checkpoints of one namespace, and what hangs on checkpoint ids whether or not they have a row. */
class Namespace {
	readonly rows = new Map<string, CheckpointRow>();
	/** Keys of `rows`, ascending. */
	readonly order: string[] = [];
	/** By checkpoint id. */
	readonly writes = new Map<string, MemoryWrites>();
	/** By checkpoint id, then by channel. */
	readonly deltaBases = new Map<string, Map<string, DeltaBaseRow>>();

	add(row: CheckpointRow): void {
		if (!this.rows.has(row.id)) this.order.splice(lowerBound(this.order, row.id), 0, row.id);
		this.rows.set(row.id, row);
	}

	remove(id: string): void {
		if (this.rows.delete(id)) this.order.splice(lowerBound(this.order, id), 1);
		this.writes.delete(id);
		this.deltaBases.delete(id);
	}

	writesAt(id: string): MemoryWrites {
		return getOrAdd(this.writes, id, () => new MemoryWrites());
	}

	addDeltaBase(row: DeltaBaseRow): void {
		getOrAdd(this.deltaBases, row.id, () => new Map<string, DeltaBaseRow>()).set(row.channel, row);
	}
}

interface Thread {
	family: number;
	stamp: number;
	createdAt: number;
	updatedAt: number;
	readonly namespaces: Map<string, Namespace>;
}

/** Everything in maps. Lives and dies with the process. */
export class MemoryStorage implements Storage {
	readonly #threads = new Map<string, Thread>();
	/** By family, so that a family can be collected without looking at the others. */
	readonly #blobs = new Map<number, { row: BlobRow; family: number }>();
	#nextId = 1;

	async reserveIds(count: number): Promise<number> {
		this.#nextId += count;
		return this.#nextId - count;
	}

	async getEpoch(): Promise<number> {
		return 0;
	}

	async getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#found([this.#namespace(threadId, ns)?.rows.get(id)])[0];
	}

	async getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#found([this.#newest(this.#threads.get(threadId), ns)])[0];
	}

	async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#found(scanRows(this.#namespaces(query), query));
	}

	async getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		const rows = this.#namespace(key.threadId, key.ns)?.rows;
		const path = new Set<CheckpointRow>();
		let row = rows?.get(key.id);
		while (row !== undefined && !path.has(row) && path.size < limit) {
			path.add(row);
			row = row.parentId === undefined ? undefined : rows?.get(row.parentId);
		}
		return this.#found([...path]);
	}

	async getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		const wanted = new Set(parentIds);
		const rows = this.#namespace(threadId, ns)?.rows.values() ?? [];
		return this.#found([...rows].filter((row) => row.parentId !== undefined && wanted.has(row.parentId)));
	}

	async findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		const wanted = new Set<string | undefined>(runIds);
		const checkpoints: CheckpointKey[] = [];
		const writes: WriteKey[] = [];
		for (const namespace of this.#namespaces({})) {
			for (const row of namespace.rows.values()) if (wanted.has(row.runId)) checkpoints.push(row);
			for (const write of allWrites(namespace)) if (wanted.has(write.runId)) writes.push(write);
		}
		return { checkpoints, writes };
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return keys.flatMap(({ threadId, ns, id }) => [...(this.#namespace(threadId, ns)?.writes.get(id) ?? [])]);
	}

	async getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		const namespace = this.#namespace(threadId, ns);
		const orphans = [...(namespace?.writes ?? [])].filter(
			([id]) => compareIds(id, before) < 0 && !namespace?.rows.has(id),
		);
		return orphans.flatMap(([, writes]) => [...writes]);
	}

	async getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return [...this.#namespaces({ threadId })].flatMap((namespace) => [...allWrites(namespace)]);
	}

	async getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return keys.flatMap(({ threadId, ns, id }) => [
			...(this.#namespace(threadId, ns)?.deltaBases.get(id)?.values() ?? []),
		]);
	}

	async getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		const namespaces = [...this.#namespaces({ threadId })];
		return namespaces.flatMap((namespace) => [...namespace.deltaBases.values()].flatMap((rows) => [...rows.values()]));
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		const found = new Map<number, BlobRow>();
		const open = [...ids];
		for (let id = open.pop(); id !== undefined; id = open.pop()) {
			const row = found.has(id) ? undefined : this.#blobs.get(id)?.row;
			if (row === undefined) continue;
			found.set(id, row);
			if (row.base !== undefined) open.push(row.base);
			if (row.source !== undefined) open.push(row.source);
		}
		return [...found.values()];
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		const thread = this.#threads.get(threadId);
		return thread && describeThread(threadId, thread);
	}

	async listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		const rows = [...this.#threads].map(([threadId, thread]) => describeThread(threadId, thread));
		rows.sort(compareThreads);
		const start = after === undefined ? 0 : rows.findIndex((row) => compareThreads(after, row) < 0);
		return start < 0 ? [] : rows.slice(start, start + limit);
	}

	async getFamily(family: number): Promise<ThreadRow[]> {
		const members = [...this.#threads].filter(([, thread]) => thread.family === family);
		return members.map(([threadId, thread]) => describeThread(threadId, thread));
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		const families = new Set([...this.#blobs.values()].map(({ family }) => family));
		const ascending = [...families].sort((a, b) => a - b);
		return ascending.filter((family) => family > after).slice(0, limit);
	}

	async listBlobs(family: number): Promise<ListedBlob[]> {
		const blobs = [...this.#blobs.values()].filter((blob) => blob.family === family);
		return blobs.map(({ row: { data, type, ...row } }) => ({ ...row, bytes: data.length }));
	}

	async totals(): Promise<StorageTotals> {
		const count = { checkpoints: 0, writes: 0 };
		const bytes = { checkpoints: 0, blobs: 0, writes: 0 };
		for (const namespace of this.#namespaces({})) {
			count.checkpoints += namespace.rows.size;
			for (const row of namespace.rows.values()) bytes.checkpoints += row.head.length;
			for (const write of allWrites(namespace)) {
				count.writes++;
				bytes.writes += inlineBytes(write);
			}
		}
		for (const { row } of this.#blobs.values()) bytes.blobs += row.data.length;
		return { threads: this.#threads.size, ...count, bytes };
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		let thread = this.#threads.get(batch.threadId);
		if (batch.stamp !== undefined && thread?.stamp !== batch.stamp) return undefined;
		const { checkpoint, onlyOnHead } = batch;
		if (checkpoint && onlyOnHead) {
			const isStored = thread?.namespaces.get(checkpoint.ns)?.rows.has(checkpoint.id) === true;
			checkHead(checkpoint, this.#newest(thread, checkpoint.ns), isStored);
		}
		this.#checkBlobs(batch.blobs);
		if (thread === undefined) {
			thread = newThread(batch.fresh, batch.fresh, batch.now);
			this.#threads.set(batch.threadId, thread);
		}
		const { family } = thread;
		const [write] = batch.writes;
		const dropped = write === undefined ? [] : addNamespace(thread, write.ns).writesAt(write.id).put(batch.writes);
		for (const row of batch.blobs) if (!dropped.includes(row.id)) this.#blobs.set(row.id, { row, family });
		for (const row of batch.deltaBases ?? []) addNamespace(thread, row.ns).addDeltaBase(row);
		const replaced = batch.checkpoint !== undefined && putCheckpoint(thread, batch.checkpoint, batch.now);
		if (replaced) thread.stamp = batch.fresh;
		return { family, stamp: thread.stamp, replaced };
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		const thread = this.#threads.get(batch.threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const removed: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const { ns, id } of batch.checkpoints) {
			const namespace = thread.namespaces.get(ns);
			if (namespace === undefined) continue;
			countRows(removed, [namespace.rows.get(id)], namespace.writes.get(id) ?? []);
			namespace.remove(id);
		}
		const orphans = (batch.orphans ?? []).filter(({ ns, id }) => !thread.namespaces.get(ns)?.rows.has(id));
		for (const key of [...batch.writes, ...orphans]) {
			const writes = thread.namespaces.get(key.ns)?.writes.get(key.id);
			const write = writes?.get(key);
			if (write !== undefined) countRows(removed, [], [write]);
			writes?.delete(key);
		}
		for (const { key, parentId } of batch.relink) {
			const namespace = thread.namespaces.get(key.ns);
			const row = namespace?.rows.get(key.id);
			if (row !== undefined) namespace?.add({ ...row, parentId });
		}
		for (const row of batch.deltaBases) addNamespace(thread, row.ns).addDeltaBase(row);
		return removed;
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const source = this.#threads.get(batch.source);
		if (source?.stamp !== batch.stamp || this.#threads.has(batch.target)) return undefined;
		const threadId = batch.target;
		const target = newThread(source.family, batch.fresh, batch.now);
		const copied: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		const copyRow = (from: Namespace, ns: string, id: string, parentId?: string | undefined) => {
			const to = addNamespace(target, ns);
			const row = from.rows.get(id);
			if (row !== undefined) to.add({ ...row, threadId, parentId });
			const writes = [...(from.writes.get(id) ?? [])];
			for (const write of writes) to.writesAt(id).set({ ...write, threadId });
			for (const base of from.deltaBases.get(id)?.values() ?? []) to.addDeltaBase({ ...base, threadId });
			countRows(copied, [row], writes);
		};
		const { rows } = batch;
		for (const row of rows?.checkpoints ?? []) addNamespace(target, row.ns).add(row);
		for (const write of rows?.writes ?? []) addNamespace(target, write.ns).writesAt(write.id).set(write);
		countRows(copied, rows?.checkpoints ?? [], rows?.writes ?? []);
		if (batch.checkpoints === undefined && rows === undefined)
			for (const [ns, from] of source.namespaces)
				for (const id of new Set([...from.order, ...from.writes.keys(), ...from.deltaBases.keys()]))
					copyRow(from, ns, id, from.rows.get(id)?.parentId);
		for (const { key, parentId } of rows === undefined ? (batch.checkpoints ?? []) : [])
			copyRow(source.namespaces.get(key.ns) ?? new Namespace(), key.ns, key.id, parentId);
		for (const row of batch.deltaBases) addNamespace(target, row.ns).addDeltaBase({ ...row, threadId });
		this.#threads.set(threadId, target);
		return copied;
	}

	async removeThread(threadId: string): Promise<RowCount> {
		const removed: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const namespace of this.#namespaces({ threadId }))
			countRows(removed, namespace.rows.values(), allWrites(namespace));
		this.#threads.delete(threadId);
		return removed;
	}

	async removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		for (const id of ids) if (this.#blobs.get(id)?.family === family) this.#blobs.delete(id);
	}

	async replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return replacements.filter((replacement) => this.#replace(replacement)).length;
	}

	#replace({ from, to, ...place }: Replacement): boolean {
		if (place.kind === "blob") {
			const blob = this.#blobs.get(place.id);
			if (blob === undefined || !isSame(blob.row.data, from)) return false;
			this.#blobs.set(place.id, { ...blob, row: { ...blob.row, data: to } });
			return true;
		}
		const namespace = this.#namespace(place.key.threadId, place.key.ns);
		if (place.kind === "checkpoint") {
			const row = namespace?.rows.get(place.key.id);
			if (row === undefined || !isSame(row.head, from)) return false;
			namespace?.add({ ...row, head: to });
		} else if (place.kind === "write") {
			const write = namespace?.writes.get(place.key.id)?.get(place.key);
			if (write === undefined || !isSame(write.value, from)) return false;
			namespace?.writesAt(write.id).set({ ...write, value: to });
		} else {
			const row = namespace?.deltaBases.get(place.key.id)?.get(place.channel);
			if (row === undefined || !isSame(row.data, from)) return false;
			namespace?.addDeltaBase({ ...row, data: to });
		}
		return true;
	}

	async clear(): Promise<void> {
		this.#threads.clear();
		this.#blobs.clear();
	}

	async check(): Promise<StorageDamage[]> {
		return [];
	}

	async tidy(): Promise<boolean> {
		return false;
	}

	async close(): Promise<void> {}

	#checkBlobs(blobs: readonly BlobRow[]): void {
		const ids = new Set(blobs.map(({ id }) => id));
		for (const id of ids) if (this.#blobs.has(id)) throw new Error(`Blob ${id} is there already.`);
		if (ids.size < blobs.length) throw new Error("A blob id was given twice.");
	}

	#found(rows: readonly (CheckpointRow | undefined)[]): FoundCheckpoint[] {
		const found: FoundCheckpoint[] = [];
		for (const row of rows) if (row !== undefined) found.push(this.#withStamp(row));
		return found;
	}

	#withStamp({ threadId, ns, id, parentId, runId, source, step, head }: CheckpointRow): FoundCheckpoint {
		const stamp = this.#threads.get(threadId)?.stamp as number;
		return { threadId, ns, id, parentId, runId, source, step, head, stamp };
	}

	#newest(thread: Thread | undefined, ns: string): CheckpointRow | undefined {
		const namespace = thread?.namespaces.get(ns);
		return namespace?.rows.get(namespace.order.at(-1) ?? "");
	}

	#namespace(threadId: string, ns: string): Namespace | undefined {
		return this.#threads.get(threadId)?.namespaces.get(ns);
	}

	*#namespaces(query: { threadId?: string | undefined; ns?: string | undefined }): Generator<Namespace> {
		const one = query.threadId === undefined ? undefined : this.#threads.get(query.threadId);
		const threads = query.threadId === undefined ? this.#threads.values() : one ? [one] : [];
		for (const thread of threads)
			for (const [ns, namespace] of thread.namespaces) if (query.ns === undefined || query.ns === ns) yield namespace;
	}
}

function newThread(family: number, stamp: number, now: number): Thread {
	return { family, stamp, createdAt: now, updatedAt: now, namespaces: new Map() };
}

/** Answers whether it took the place of another. */
function putCheckpoint(thread: Thread, row: CheckpointRow, now: number): boolean {
	const namespace = addNamespace(thread, row.ns);
	const replaced = namespace.rows.get(row.id);
	namespace.add(replaced ? { ...row, parentId: replaced.parentId } : row);
	thread.updatedAt = now;
	return replaced !== undefined;
}

function addNamespace(thread: Thread, ns: string): Namespace {
	return getOrAdd(thread.namespaces, ns, () => new Namespace());
}

function describeThread(threadId: string, thread: Thread): ThreadRow {
	let checkpoints = 0;
	for (const namespace of thread.namespaces.values()) checkpoints += namespace.rows.size;
	const { family, stamp, createdAt, updatedAt } = thread;
	const head = thread.namespaces.get("")?.order.at(-1);
	return { threadId, family, stamp, createdAt, updatedAt, checkpoints, head };
}

function* allWrites(namespace: Namespace): Generator<WriteRow> {
	for (const writes of namespace.writes.values()) yield* writes;
}

function inlineBytes(write: WriteRow): number {
	return typeof write.value === "number" ? 0 : write.value.length;
}

function countRows(count: RowCount, rows: Iterable<CheckpointRow | undefined>, writes: Iterable<WriteRow>): void {
	for (const row of rows) {
		if (row === undefined) continue;
		count.checkpoints++;
		count.bytes += row.head.length;
	}
	for (const write of writes) {
		count.writes++;
		count.bytes += inlineBytes(write);
	}
}

function isSame(stored: Uint8Array | number, seen: Uint8Array): boolean {
	return typeof stored !== "number" && stored.length === seen.length && stored.every((byte, i) => byte === seen[i]);
}

type ThreadPlace = { updatedAt: number; threadId: string };

function compareThreads(a: ThreadPlace, b: ThreadPlace): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
	let value = map.get(key);
	if (value === undefined) {
		value = make();
		map.set(key, value);
	}
	return value;
}
