import { compareIds } from "../compare-ids.ts";
import { compareRows } from "../compare-rows.ts";
import { checkHead } from "../guard.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	ListedCheckpoint,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	RemovedRows,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadOutline,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import { MemoryBlobs } from "./blobs.ts";
import { areSame, keepBytes } from "./kept-bytes.ts";
import { scanNamespaces } from "./scan.ts";
import { KeptCheckpoint, MemoryThread, type Namespace, type Slot } from "./thread.ts";
import { deleteWrite, findWrite, KeptWrite, putWrites, setWrite } from "./writes.ts";

/** Everything in maps and sorted lists. Lives and dies with the process. */
export class MemoryStorage implements Storage {
	readonly isInMemory = true;
	readonly #threads = new Map<string, MemoryThread>();
	readonly #blobs = new MemoryBlobs();
	#nextId = 1;

	async reserveIds(count: number): Promise<number> {
		this.#nextId += count;
		return this.#nextId - count;
	}

	async getEpoch(): Promise<number> {
		return 0;
	}

	async getCheckpoint({ threadId, ns, id }: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		const namespace = this.#find(threadId, ns);
		const slot = namespace?.find(id);
		return slot?.checkpoint && namespace?.read(slot);
	}

	async getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		const namespace = this.#find(threadId, ns);
		const slot = namespace?.newest();
		return slot && namespace?.read(slot);
	}

	async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return scanNamespaces(this.#namespaces(query), query);
	}

	async getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		const namespace = this.#find(key.threadId, key.ns);
		const path = new Set<Slot>();
		let slot = namespace?.find(key.id);
		while (slot?.checkpoint !== undefined && !path.has(slot) && path.size < limit) {
			path.add(slot);
			const { parentId } = slot.checkpoint;
			slot = parentId === undefined ? undefined : namespace?.find(parentId);
		}
		return [...path].map((slot) => (namespace as Namespace).read(slot));
	}

	async getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		const wanted = new Set<string | undefined>(parentIds);
		const namespace = this.#find(threadId, ns);
		const children = (namespace?.slots ?? []).filter(({ checkpoint }) => wanted.has(checkpoint?.parentId));
		return children.map((slot) => (namespace as Namespace).read(slot));
	}

	async findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		const wanted = new Set<string | undefined>(runIds);
		const checkpoints: CheckpointKey[] = [];
		const writes: WriteKey[] = [];
		for (const { thread, name: ns, slots } of this.#namespaces({}))
			for (const { id, checkpoint, writes: all } of slots) {
				const key = { threadId: thread.id, ns, id };
				if (wanted.has(checkpoint?.runId)) checkpoints.push(key);
				for (const { taskId, idx, generation, runId } of all)
					if (wanted.has(runId)) writes.push({ ...key, taskId, idx, generation });
			}
		return { checkpoints, writes };
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return this.#readSlots(keys, (namespace, slot) => namespace.readWrites(slot));
	}

	async getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		const namespace = this.#find(threadId, ns);
		if (namespace === undefined) return [];
		const older = namespace.slots.slice(0, namespace.placeOf(before));
		const orphans = older.filter(({ checkpoint }) => checkpoint === undefined);
		return orphans.flatMap((slot) => namespace.readWrites(slot));
	}

	async getThreadWrites(threadId: string): Promise<WriteRow[]> {
		const namespaces = [...this.#namespaces({ threadId })];
		return namespaces.flatMap((namespace) => namespace.slots.flatMap((slot) => namespace.readWrites(slot)));
	}

	async getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return this.#readSlots(keys, (namespace, slot) => namespace.readDeltaBases(slot));
	}

	async getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		const namespaces = [...this.#namespaces({ threadId })];
		return namespaces.flatMap((namespace) => namespace.slots.flatMap((slot) => namespace.readDeltaBases(slot)));
	}

	async getOutline(threadId: string): Promise<ThreadOutline> {
		const checkpoints: ListedCheckpoint[] = [];
		const written = new Map<string, Set<string>>();
		const { namespaces } = this.#threads.get(threadId) ?? { namespaces: [] };
		for (const { name: ns, slots } of namespaces) {
			const channels = new Set<string>();
			for (let i = slots.length - 1; i >= 0; i--) {
				const { id, checkpoint, writes } = slots[i] as Slot;
				if (checkpoint !== undefined) checkpoints.push({ threadId, ns, id, parentId: checkpoint.parentId });
				for (const { channel } of writes) channels.add(channel);
			}
			written.set(ns, channels);
		}
		return { checkpoints: namespaces.length > 1 ? checkpoints.sort(compareRows) : checkpoints, written };
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		const found = new Map<number, BlobRow>();
		const open = [...ids];
		for (let id = open.pop(); id !== undefined; id = open.pop()) {
			const blob = found.has(id) ? undefined : this.#blobs.get(id);
			if (blob === undefined) continue;
			const { base, source, type, data } = blob;
			found.set(id, { id, base, source, type, data });
			if (base !== undefined) open.push(base);
			if (source !== undefined) open.push(source);
		}
		return [...found.values()];
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#threads.get(threadId)?.describe();
	}

	async listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		const rows = [...this.#threads.values()].map((thread) => thread.describe());
		rows.sort(compareThreads);
		const start = after === undefined ? 0 : rows.findIndex((row) => compareThreads(after, row) < 0);
		return start < 0 ? [] : rows.slice(start, start + limit);
	}

	async getFamily(family: number): Promise<ThreadRow[]> {
		const members = [...this.#threads.values()].filter((thread) => thread.family === family);
		return members.map((thread) => thread.describe());
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		const families = new Set<number>();
		for (const { family } of this.#blobs.list()) families.add(family);
		const ascending = [...families].sort((a, b) => a - b);
		return ascending.filter((family) => family > after).slice(0, limit);
	}

	async listBlobs(family: number): Promise<ListedBlob[]> {
		const listed: ListedBlob[] = [];
		for (const { id, family: itsFamily, base, source, bytes } of this.#blobs.list())
			if (itsFamily === family) listed.push({ id, base, source, bytes });
		return listed;
	}

	async totals(): Promise<StorageTotals> {
		const checkpoints: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		const writes: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const { slots } of this.#namespaces({}))
			for (const slot of slots) {
				countCheckpoint(checkpoints, slot);
				countWrites(writes, slot.writes);
			}
		let blobs = 0;
		for (const { bytes } of this.#blobs.list()) blobs += bytes;
		return {
			threads: this.#threads.size,
			checkpoints: checkpoints.checkpoints,
			writes: writes.writes,
			bytes: { checkpoints: checkpoints.bytes, blobs, writes: writes.bytes },
		};
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		const { threadId, checkpoint, fresh, now } = batch;
		let thread = this.#threads.get(threadId);
		if (batch.stamp !== undefined && thread?.stamp !== batch.stamp) return undefined;
		if (checkpoint && batch.onlyOnHead) this.#checkHead(checkpoint);
		this.#checkBlobs(batch.blobs);
		if (thread === undefined) {
			thread = new MemoryThread(threadId, fresh, fresh, now);
			this.#threads.set(threadId, thread);
		}
		const { family } = thread;
		const dropped = addWrites(thread, batch.writes);
		for (const row of batch.blobs) if (!dropped.includes(row.id)) this.#blobs.set(family, row);
		if (batch.deltaBases !== undefined) addDeltaBases(thread, batch.deltaBases);
		const replaced = checkpoint !== undefined && putCheckpoint(thread, checkpoint);
		if (checkpoint !== undefined) thread.updatedAt = now;
		if (replaced) thread.stamp = fresh;
		return { family, stamp: thread.stamp, replaced };
	}

	async remove(batch: RemoveBatch): Promise<RemovedRows | undefined> {
		const thread = this.#threads.get(batch.threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		thread.stamp = batch.newStamp;
		const removed = { checkpoints: 0, writes: 0, bytes: 0, hasTwins: batch.writes.length === 0 };
		const others = [...this.#threads.values()].filter((one) => one.family === thread.family && one !== thread);
		for (const [ns, ids] of idsByNamespace(batch.checkpoints)) {
			const slots = thread.find(ns)?.removeAll(ids) ?? [];
			for (const slot of slots) countSlot(removed, slot);
			removed.hasTwins &&= others.some((other) => other.find(ns)?.sharesAll(slots));
		}
		const isOrphan = ({ ns, id }: WriteKey) => thread.find(ns)?.find(id)?.checkpoint === undefined;
		for (const key of [...batch.writes, ...(batch.orphans ?? []).filter(isOrphan)]) removeWrite(thread, key, removed);
		for (const { key, parentId } of batch.relink) {
			const slot = thread.find(key.ns)?.find(key.id);
			if (slot?.checkpoint !== undefined) slot.checkpoint = slot.checkpoint.withParent(parentId);
		}
		addDeltaBases(thread, batch.deltaBases);
		return removed;
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const source = this.#threads.get(batch.source);
		if (source?.stamp !== batch.stamp || this.#threads.has(batch.target)) return undefined;
		const target = new MemoryThread(batch.target, source.family, batch.fresh, batch.now);
		const copied: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		const copySlot = (ns: string, slot: Slot, parentId: string | undefined) => {
			const to = target.open(ns);
			const added = to.open(slot.id);
			added.copyFrom(slot);
			if (slot.checkpoint !== undefined) to.setCheckpoint(added, slot.checkpoint.withParent(parentId));
			countSlot(copied, slot);
		};
		if (batch.rows !== undefined) {
			for (const row of batch.rows.checkpoints) putCheckpoint(target, row);
			for (const row of batch.rows.writes) {
				const slot = target.open(row.ns).open(row.id);
				slot.writes = setWrite(slot.writes, new KeptWrite(row, row.generation));
			}
			for (const { slots } of target.namespaces) for (const slot of slots) countSlot(copied, slot);
		} else if (batch.checkpoints === undefined) {
			for (const { name, slots } of source.namespaces)
				for (const slot of slots) copySlot(name, slot, slot.checkpoint?.parentId);
		} else
			for (const { key, parentId } of batch.checkpoints) {
				const slot = source.find(key.ns)?.find(key.id);
				if (slot !== undefined) copySlot(key.ns, slot, parentId);
			}
		addDeltaBases(target, batch.deltaBases);
		this.#threads.set(batch.target, target);
		return copied;
	}

	async removeThread(threadId: string): Promise<RowCount> {
		const removed: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const { slots } of this.#namespaces({ threadId })) for (const slot of slots) countSlot(removed, slot);
		this.#threads.delete(threadId);
		return removed;
	}

	async removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		for (const id of ids) this.#blobs.remove(family, id);
	}

	async replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return replacements.filter((replacement) => this.#replace(replacement)).length;
	}

	#replace(replacement: Replacement): boolean {
		if (replacement.kind === "blob") return this.#blobs.replace(replacement.id, replacement.from, replacement.to);
		const [from, to] = [keepBytes(replacement.from), keepBytes(replacement.to)];
		const { threadId, ns, id } = replacement.key;
		const slot = this.#find(threadId, ns)?.find(id);
		if (slot === undefined) return false;
		if (replacement.kind === "checkpoint") {
			const { checkpoint } = slot;
			if (checkpoint === undefined || !areSame(checkpoint.head, from)) return false;
			slot.checkpoint = new KeptCheckpoint(checkpoint, checkpoint.parentId, to, undefined);
		} else if (replacement.kind === "write") {
			const write = findWrite(slot.writes, replacement.key);
			if (write === undefined || typeof write.value === "number" || !areSame(write.value, from)) return false;
			slot.writes = setWrite(slot.writes, new KeptWrite({ ...write, value: replacement.to }, write.generation));
		} else {
			const data = slot.deltaBases?.get(replacement.channel);
			if (data === undefined || !areSame(data, from)) return false;
			slot.deltaBases?.set(replacement.channel, to);
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
		if (blobs.length === 0) return;
		const ids = new Set(blobs.map(({ id }) => id));
		for (const id of ids) if (this.#blobs.has(id)) throw new Error(`Blob ${id} is there already.`);
		if (ids.size < blobs.length) throw new Error("A blob id was given twice.");
	}

	#checkHead(checkpoint: CheckpointRow): void {
		const { threadId, ns, id } = checkpoint;
		const namespace = this.#find(threadId, ns);
		const newest = namespace?.newest();
		const head = newest && { threadId, ns, id: newest.id, parentId: newest.checkpoint?.parentId };
		checkHead(checkpoint, head, namespace?.find(id)?.checkpoint !== undefined);
	}

	#readSlots<T>(keys: readonly CheckpointKey[], read: (namespace: Namespace, slot: Slot) => T[]): T[] {
		return keys.flatMap(({ threadId, ns, id }) => {
			const namespace = this.#find(threadId, ns);
			const slot = namespace?.find(id);
			return namespace === undefined || slot === undefined ? [] : read(namespace, slot);
		});
	}

	#find(threadId: string, ns: string): Namespace | undefined {
		return this.#threads.get(threadId)?.find(ns);
	}

	*#namespaces(query: { threadId?: string | undefined; ns?: string | undefined }): Generator<Namespace> {
		const one = query.threadId === undefined ? undefined : this.#threads.get(query.threadId);
		const threads = query.threadId === undefined ? this.#threads.values() : one ? [one] : [];
		for (const { namespaces } of threads)
			for (const namespace of namespaces) if (query.ns === undefined || query.ns === namespace.name) yield namespace;
	}
}

/** Answers whether it took the place of another. */
function putCheckpoint(thread: MemoryThread, row: CheckpointRow): boolean {
	const namespace = thread.open(row.ns);
	const slot = namespace.open(row.id);
	const replaced = slot.checkpoint;
	const { parentId } = replaced ?? row;
	namespace.putCheckpoint(slot, row, parentId);
	return replaced !== undefined;
}

/** Answers the values of the writes that were dropped. */
function addWrites(thread: MemoryThread, writes: readonly NewWrite[]): unknown[] {
	const [first] = writes;
	if (first === undefined) return [];
	const slot = thread.open(first.ns).open(first.id);
	const { list, dropped } = putWrites(slot.writes, writes);
	slot.writes = list;
	return dropped;
}

function addDeltaBases(thread: MemoryThread, rows: readonly DeltaBaseRow[]): void {
	for (const { ns, id, channel, data } of rows) thread.open(ns).open(id).setDeltaBase(channel, keepBytes(data));
}

function removeWrite(thread: MemoryThread, key: WriteKey, removed: RowCount): void {
	const namespace = thread.find(key.ns);
	const slot = namespace?.find(key.id);
	const write = slot && findWrite(slot.writes, key);
	if (slot === undefined || write === undefined) return;
	countWrites(removed, [write]);
	slot.writes = deleteWrite(slot.writes, key);
	if (slot.isEmpty) namespace?.remove(slot);
}

function idsByNamespace(keys: readonly CheckpointKey[]): Map<string, Set<string>> {
	const groups = new Map<string, Set<string>>();
	for (const { ns, id } of keys) {
		const ids = groups.get(ns);
		if (ids === undefined) groups.set(ns, new Set([id]));
		else ids.add(id);
	}
	return groups;
}

function countSlot(count: RowCount, slot: Slot): void {
	countCheckpoint(count, slot);
	countWrites(count, slot.writes);
}

function countCheckpoint(count: RowCount, { checkpoint }: Slot): void {
	if (checkpoint === undefined) return;
	count.checkpoints++;
	count.bytes += checkpoint.headLength;
}

function countWrites(count: RowCount, writes: readonly KeptWrite[]): void {
	for (const { bytes } of writes) {
		count.writes++;
		count.bytes += bytes;
	}
}

type ThreadPlace = { updatedAt: number; threadId: string };

function compareThreads(a: ThreadPlace, b: ThreadPlace): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}
