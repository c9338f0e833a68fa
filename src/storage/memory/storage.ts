import { compareIds } from "../compare-ids.ts";
import { checkHead } from "../guard.ts";
import type {
	BlobRow,
	CheckpointKey,
	CopyBatch,
	Depth,
	FoundCheckpoint,
	ListedBlob,
	ListedCheckpoint,
	PathReading,
	PutBatch,
	PutResult,
	Reading,
	RemoveBatch,
	Replacement,
	RowCount,
	Scan,
	Storage,
	StorageDamage,
	StorageTotals,
	ThreadReading,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import { compareRows, holdBytes, isSameWrite, type Namespace, type Slot, Thread, toWriteRow } from "./thread.ts";

interface StoredBlob extends BlobRow {
	readonly family: number;
}

/** Everything in Maps: lives and dies with the object. Labels are not kept, since rows are filtered as fast without. */
export class MemoryStorage implements Storage {
	readonly #threads = new Map<string, Thread>();
	readonly #blobs = new Map<number, StoredBlob>();
	/** The ids of the blobs of each family that has some. */
	readonly #families = new Map<number, number[]>();
	#nextId = 1;

	async reserveIds(count: number): Promise<number> {
		this.#nextId += count;
		return this.#nextId - count;
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known?: readonly number[]): Promise<Reading> {
		const checkpoints = "limit" in which ? this.#scan(which) : this.#findAll(which);
		if (depth === "rows" || checkpoints.length === 0) return { checkpoints, writes: [], blobs: [] };
		const writes: WriteRow[] = [];
		const named: number[] = [];
		for (const { threadId, ns, id, blobs } of checkpoints) {
			const slot = this.#threads.get(threadId)?.namespaces.get(ns)?.slots.get(id) as Slot;
			for (const write of slot.writes) {
				writes.push(write);
				if (write.blob !== undefined) named.push(write.blob);
			}
			for (const blob of blobs) named.push(blob);
		}
		return { checkpoints, writes, blobs: this.#collectBlobs(named, known) };
	}

	async readPath({ threadId, ns, id }: CheckpointKey, limit: number): Promise<PathReading> {
		const reading = this.#threads.get(threadId)?.namespaces.get(ns)?.readPath(id, limit);
		if (reading !== undefined) return { ...reading, epoch: 0 };
		return { path: [], siblings: [], writes: [], deltaBases: [], orphans: undefined, epoch: 0 };
	}

	async readThread(threadId: string): Promise<ThreadReading> {
		const thread = this.#threads.get(threadId);
		const slots = thread === undefined ? [] : [...thread.slots()];
		const checkpoints: ListedCheckpoint[] = [];
		for (const { row } of slots)
			if (row !== undefined) checkpoints.push({ threadId, ns: row.ns, id: row.id, parentId: row.parentId });
		return {
			checkpoints: checkpoints.sort(compareRows),
			writes: slots.flatMap(({ writes }) => writes),
			deltaBases: slots.flatMap(({ deltaBases }) => deltaBases),
		};
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		return this.#collectBlobs([...ids], undefined);
	}

	async findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		const wanted = new Set<string | undefined>(runIds);
		const checkpoints: CheckpointKey[] = [];
		const writes: WriteKey[] = [];
		for (const thread of this.#threads.values())
			for (const { row, writes: all } of thread.slots()) {
				if (row !== undefined && wanted.has(row.runId)) checkpoints.push(row);
				for (const write of all) if (wanted.has(write.runId)) writes.push(write);
			}
		return { checkpoints, writes };
	}

	async getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#threads.get(threadId)?.describe();
	}

	async listThreads(limit: number, after: ThreadPlace | undefined): Promise<ThreadRow[]> {
		const rows = [...this.#threads.values()].map((thread) => thread.describe());
		const rest = after === undefined ? rows : rows.filter((row) => compareThreads(after, row) < 0);
		return rest.sort(compareThreads).slice(0, limit);
	}

	async readFamily(family: number): Promise<{ blobs: ListedBlob[]; threads: ThreadRow[] }> {
		const ids = this.#families.get(family) ?? [];
		const blobs = ids.map((id) => {
			const { base, source, data } = this.#blobs.get(id) as StoredBlob;
			return { id, base, source, bytes: data.length };
		});
		const members = [...this.#threads.values()].filter((thread) => thread.family === family);
		return { blobs, threads: members.map((thread) => thread.describe()) };
	}

	async listFamilies(limit: number, after = -1): Promise<number[]> {
		const rest = [...this.#families.keys()].filter((family) => family > after);
		return rest.sort((a, b) => a - b).slice(0, limit);
	}

	async totals(): Promise<StorageTotals> {
		const rows: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		let heads = 0;
		let blobs = 0;
		for (const thread of this.#threads.values()) {
			const { checkpoints, writes, bytes } = thread.count();
			rows.checkpoints += checkpoints;
			rows.writes += writes;
			rows.bytes += bytes;
			for (const { row } of thread.slots()) heads += row?.head.length ?? 0;
		}
		for (const { data } of this.#blobs.values()) blobs += data.length;
		return {
			threads: this.#threads.size,
			checkpoints: rows.checkpoints,
			writes: rows.writes,
			bytes: { checkpoints: heads, blobs, writes: rows.bytes - heads },
		};
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		const { threadId, fresh, now, checkpoint, blobs, writes, deltaBases } = batch;
		let thread = this.#threads.get(threadId);
		if (batch.stamp !== undefined && thread?.stamp !== batch.stamp) return undefined;
		if (checkpoint !== undefined && batch.onlyOnHead) {
			const namespace = thread?.namespaces.get(checkpoint.ns);
			const newest = namespace?.find(namespace.ids.at(-1) as string);
			checkHead(checkpoint, newest, namespace?.find(checkpoint.id) !== undefined);
		}
		for (const { id } of blobs) if (this.#blobs.has(id)) throw new Error(`Blob ${id} is there already.`);
		if (thread === undefined) {
			thread = new Thread(threadId, fresh, fresh, now);
			this.#threads.set(threadId, thread);
		}
		if (blobs.length > 0) this.#addBlobs(thread.family, blobs);
		const first = writes[0];
		if (first !== undefined) thread.open(first.ns).addWrites(writes);
		for (const base of deltaBases) thread.open(base.ns).setDeltaBase(base);
		let replaced = false;
		if (checkpoint !== undefined) {
			replaced = thread.open(checkpoint.ns).setRow(checkpoint);
			thread.updatedAt = now;
			if (replaced) thread.stamp = fresh;
		}
		return { family: thread.family, stamp: thread.stamp, replaced };
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		const thread = this.#threads.get(batch.threadId);
		if (thread?.stamp !== batch.stamp) return undefined;
		const removed: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const [ns, ids] of groupIds(batch.checkpoints)) thread.namespaces.get(ns)?.remove(ids, removed);
		for (const key of batch.writes) thread.namespaces.get(key.ns)?.removeWrite(key, removed);
		for (const key of batch.orphans) {
			const namespace = thread.namespaces.get(key.ns);
			if (namespace?.slots.get(key.id)?.row === undefined) namespace?.removeWrite(key, removed);
		}
		for (const row of batch.relinked) thread.namespaces.get(row.ns)?.setRow(row);
		for (const base of batch.deltaBases) thread.open(base.ns).setDeltaBase(base);
		thread.stamp = batch.newStamp;
		return removed;
	}

	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const { target: threadId, keys, checkpoints, writes, deltaBases } = batch;
		const source = this.#threads.get(batch.source);
		if (source?.stamp !== batch.stamp || this.#threads.has(threadId)) return undefined;
		const target = new Thread(threadId, source.family, batch.fresh, batch.now);
		const copySlot = (ns: string, id: string) => {
			const slot = source.namespaces.get(ns)?.slots.get(id);
			if (slot === undefined) return;
			const namespace = target.open(ns);
			if (slot.row !== undefined) namespace.setRow({ ...slot.row, threadId });
			const copy = namespace.open(id);
			copy.writes = slot.writes.map((write) => ({ ...write, threadId }));
			copy.deltaBases = slot.deltaBases.map((base) => ({ ...base, threadId }));
		};
		if (keys !== undefined) for (const { ns, id } of keys) copySlot(ns, id);
		else for (const [ns, { slots }] of source.namespaces) for (const id of slots.keys()) copySlot(ns, id);
		for (const row of checkpoints) target.open(row.ns).setRow(row);
		for (const write of writes) {
			const slot = target.open(write.ns).open(write.id);
			slot.writes = [...slot.writes, toWriteRow(write, write.generation)];
		}
		for (const base of deltaBases) target.open(base.ns).setDeltaBase(base);
		this.#threads.set(threadId, target);
		return target.count();
	}

	async removeThread(threadId: string): Promise<RowCount> {
		const removed = this.#threads.get(threadId)?.count();
		this.#threads.delete(threadId);
		return removed ?? { checkpoints: 0, writes: 0, bytes: 0 };
	}

	async removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		for (const id of ids) if (this.#blobs.get(id)?.family === family) this.#blobs.delete(id);
		const left = this.#families.get(family)?.filter((id) => this.#blobs.has(id)) ?? [];
		if (left.length > 0) this.#families.set(family, left);
		else this.#families.delete(family);
	}

	async replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return replacements.filter((replacement) => this.#replace(replacement)).length;
	}

	async clear(): Promise<void> {
		this.#threads.clear();
		this.#blobs.clear();
		this.#families.clear();
	}

	async check(): Promise<StorageDamage[]> {
		return [];
	}

	async repair(): Promise<StorageDamage[]> {
		return [];
	}

	async tidy(): Promise<boolean> {
		return false;
	}

	async close(): Promise<void> {}

	#scan(scan: Scan): FoundCheckpoint[] {
		const found: FoundCheckpoint[] = [];
		const namespaces = this.#namespacesOf(scan);
		for (const namespace of namespaces) namespace.scan(scan, found);
		return namespaces.length > 1 ? found.sort(compareRows).slice(0, scan.limit) : found;
	}

	#namespacesOf({ threadId, ns }: Scan): Namespace[] {
		const one = threadId === undefined ? undefined : this.#threads.get(threadId);
		if (threadId !== undefined && one === undefined) return [];
		const found: Namespace[] = [];
		for (const { namespaces } of one === undefined ? this.#threads.values() : [one]) {
			const named = ns === undefined ? undefined : namespaces.get(ns);
			if (named !== undefined) found.push(named);
			else if (ns === undefined) found.push(...namespaces.values());
		}
		return found;
	}

	#findAll(keys: readonly CheckpointKey[]): FoundCheckpoint[] {
		const found: FoundCheckpoint[] = [];
		for (const { threadId, ns, id } of keys) {
			const row = this.#threads.get(threadId)?.namespaces.get(ns)?.find(id);
			if (row !== undefined) found.push(row);
		}
		return found;
	}

	/** Blobs and all that they are built on. `ids` is used up. */
	#collectBlobs(ids: number[], known: readonly number[] | undefined): BlobRow[] {
		const found: BlobRow[] = [];
		if (ids.length === 0) return found;
		const seen = new Set(known);
		for (const id of ids) {
			const blob = seen.has(id) ? undefined : this.#blobs.get(id);
			if (blob === undefined) continue;
			seen.add(id);
			found.push(blob);
			if (blob.base !== undefined) ids.push(blob.base);
			if (blob.source !== undefined) ids.push(blob.source);
		}
		return found;
	}

	#addBlobs(family: number, blobs: readonly BlobRow[]): void {
		let ids = this.#families.get(family);
		if (ids === undefined) {
			ids = [];
			this.#families.set(family, ids);
		}
		for (const { id, base, source, type, data } of blobs) {
			this.#blobs.set(id, { id, family, base, source, type, data: holdBytes(data) });
			ids.push(id);
		}
	}

	#replace(replacement: Replacement): boolean {
		const { kind, from } = replacement;
		const to = holdBytes(replacement.to);
		if (kind === "blob") {
			const blob = this.#blobs.get(replacement.id);
			if (blob === undefined || !areEqual(blob.data, from)) return false;
			this.#blobs.set(blob.id, { ...blob, data: to });
			return true;
		}
		const { threadId, ns, id } = replacement.key;
		const slot = this.#threads.get(threadId)?.namespaces.get(ns)?.slots.get(id);
		if (slot === undefined) return false;
		if (kind === "checkpoint") {
			if (slot.row === undefined || !areEqual(slot.row.head, from)) return false;
			slot.row = { ...slot.row, head: to };
		} else if (kind === "write") {
			const write = slot.writes.find((one) => isSameWrite(one, replacement.key));
			if (write === undefined || !areEqual(write.value, from)) return false;
			slot.writes = slot.writes.map((one) => (one === write ? { ...write, value: to } : one));
		} else {
			const base = slot.deltaBases.find(({ channel }) => channel === replacement.channel);
			if (base === undefined || !areEqual(base.data, from)) return false;
			slot.deltaBases = slot.deltaBases.map((one) => (one === base ? { ...base, data: to } : one));
		}
		return true;
	}
}

type ThreadPlace = { updatedAt: number; threadId: string };

function compareThreads(a: ThreadPlace, b: ThreadPlace): number {
	return b.updatedAt - a.updatedAt || compareIds(b.threadId, a.threadId);
}

function groupIds(keys: readonly CheckpointKey[]): Map<string, Set<string>> {
	const groups = new Map<string, Set<string>>();
	for (const { ns, id } of keys) {
		const ids = groups.get(ns);
		if (ids === undefined) groups.set(ns, new Set([id]));
		else ids.add(id);
	}
	return groups;
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === b.length && a.every((byte, n) => byte === b[n]);
}
