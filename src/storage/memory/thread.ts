import { compareIds } from "../compare-ids.ts";
import type {
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	NewWrite,
	PathReading,
	RowCount,
	Scan,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";

/** A thread: its namespaces by name. */
export class Thread {
	readonly id: string;
	readonly family: number;
	stamp: number;
	readonly createdAt: number;
	updatedAt: number;
	readonly namespaces = new Map<string, Namespace>();

	constructor(id: string, family: number, stamp: number, now: number) {
		this.id = id;
		this.family = family;
		this.stamp = stamp;
		this.createdAt = now;
		this.updatedAt = now;
	}

	/** The namespace with this name, created if it is not there. */
	open(ns: string): Namespace {
		let namespace = this.namespaces.get(ns);
		if (namespace === undefined) {
			namespace = new Namespace(this);
			this.namespaces.set(ns, namespace);
		}
		return namespace;
	}

	describe(): ThreadRow {
		const { id: threadId, family, stamp, createdAt, updatedAt } = this;
		let checkpoints = 0;
		for (const { ids } of this.namespaces.values()) checkpoints += ids.length;
		const newest = this.namespaces.get("")?.ids.at(-1);
		return { threadId, family, stamp, createdAt, updatedAt, checkpoints, newest };
	}

	*slots(): Generator<Slot> {
		for (const { slots } of this.namespaces.values()) yield* slots.values();
	}

	count(): RowCount {
		const count: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };
		for (const slot of this.slots()) countSlot(count, slot);
		return count;
	}
}

/** Everything that is stored under one checkpoint id; the checkpoint itself need not be there. */
export interface Slot {
	row: CheckpointRow | undefined;
	/** Arrays in a slot are replaced, never changed: most have one element or none, and `push` would reserve 16 more. */
	writes: readonly WriteRow[];
	deltaBases: readonly DeltaBaseRow[];
	/** Ids of the checkpoints whose parent this is. */
	children: readonly string[];
}

const NONE: readonly never[] = [];

/** The checkpoints of one namespace, and all that is stored under their ids. */
export class Namespace {
	readonly #thread: Thread;
	/** Of the checkpoints, ascending. */
	ids: string[] = [];
	readonly slots = new Map<string, Slot>();

	constructor(thread: Thread) {
		this.#thread = thread;
	}

	/** The slot of an id, created if it is not there. */
	open(id: string): Slot {
		let slot = this.slots.get(id);
		if (slot === undefined) {
			slot = { row: undefined, writes: NONE, deltaBases: NONE, children: NONE };
			this.slots.set(id, slot);
		}
		return slot;
	}

	/** Adds a checkpoint, or puts it in place of the one with its id. Answers whether there was one. */
	setRow(row: CheckpointRow): boolean {
		const { threadId, ns, id, parentId, runId, source, step, blobs, head } = row;
		const slot = this.open(id);
		const replaced = slot.row;
		slot.row = { threadId, ns, id, parentId, runId, source, step, blobs, head: holdBytes(head) };
		if (replaced === undefined) {
			const place = this.placeOf(id);
			if (place === this.ids.length) this.ids.push(id);
			else this.ids.splice(place, 0, id);
		} else if (replaced.parentId === parentId) return true;
		else this.#unlink(replaced);
		if (parentId !== undefined) {
			const parent = this.open(parentId);
			parent.children = [...parent.children, id];
		}
		return replaced !== undefined;
	}

	/** Removes all that is stored under these ids. */
	remove(ids: ReadonlySet<string>, removed: RowCount): void {
		this.ids = this.ids.filter((id) => !ids.has(id));
		for (const id of ids) {
			const slot = this.slots.get(id);
			if (slot === undefined) continue;
			countSlot(removed, slot);
			if (slot.row !== undefined) this.#unlink(slot.row);
			slot.row = undefined;
			slot.writes = NONE;
			slot.deltaBases = NONE;
			this.#dropIfEmpty(id, slot);
		}
	}

	removeWrite(key: WriteKey, removed: RowCount): void {
		const slot = this.slots.get(key.id);
		const write = slot?.writes.find((one) => isSameWrite(one, key));
		if (slot === undefined || write === undefined) return;
		removed.writes++;
		removed.bytes += write.value.length;
		slot.writes = slot.writes.filter((one) => one !== write);
		this.#dropIfEmpty(key.id, slot);
	}

	/** Adds what one task wrote at one checkpoint. */
	addWrites(writes: readonly NewWrite[]): void {
		const [{ id, taskId }] = writes as [NewWrite];
		const slot = this.open(id);
		let next = 0;
		for (const one of slot.writes) if (one.taskId === taskId && one.generation >= next) next = one.generation + 1;
		const added: WriteRow[] = [];
		for (const write of writes) {
			const row = toWriteRow(write, write.conflict === "add" ? next : 0);
			// Where the task has no writes yet, there is nothing to look for.
			const isSame = (one: WriteRow) => one.taskId === taskId && one.idx === row.idx;
			if (next === 0 || write.conflict === "add") added.push(row);
			else if (write.conflict === "drop") {
				if (!slot.writes.some(isSame)) added.push(row);
			} else {
				slot.writes = slot.writes.filter((one) => one.generation !== 0 || !isSame(one));
				added.push(row);
			}
		}
		slot.writes = slot.writes === NONE ? added : slot.writes.concat(added);
	}

	setDeltaBase(base: DeltaBaseRow): void {
		const slot = this.open(base.id);
		const others = slot.deltaBases.filter(({ channel }) => channel !== base.channel);
		const { threadId, ns, id, channel, data } = base;
		slot.deltaBases = [...others, { threadId, ns, id, channel, data: holdBytes(data) }];
	}

	find(id: string): FoundCheckpoint | undefined {
		const row = this.slots.get(id)?.row;
		return row && this.#toFound(row);
	}

	/** Appends the matching checkpoints to `found`, newest first: at most `limit` of them. */
	scan({ before, after, source, step, limit }: Scan, found: FoundCheckpoint[]): void {
		let place = before === undefined ? this.ids.length : this.placeOf(before);
		// The place of `after` itself may hold a row of another thread or namespace with its id.
		if (after !== undefined) place = Math.min(place, this.placeOf(after.id) + 1);
		for (let missing = limit; missing > 0 && --place >= 0; ) {
			const row = this.slots.get(this.ids[place] as string)?.row as CheckpointRow;
			if (source !== undefined && row.source !== source) continue;
			if (step !== undefined && row.step !== step) continue;
			if (after !== undefined && compareRows(after, row) >= 0) continue;
			found.push(this.#toFound(row));
			missing--;
		}
	}

	readPath(start: string, limit: number): Omit<PathReading, "epoch"> {
		const path: FoundCheckpoint[] = [];
		const seen = new Set<string>();
		const slots: Slot[] = [];
		let slot = this.slots.get(start);
		while (slot?.row !== undefined && path.length < limit && !seen.has(slot.row.id)) {
			slots.push(slot);
			seen.add(slot.row.id);
			path.push(this.#toFound(slot.row));
			const { parentId } = slot.row;
			slot = parentId === undefined ? undefined : this.slots.get(parentId);
		}
		const siblings: FoundCheckpoint[] = [];
		const writes: WriteRow[] = [];
		const deltaBases: DeltaBaseRow[] = [];
		for (const one of slots) {
			for (const id of one.children) if (!seen.has(id)) siblings.push(this.find(id) as FoundCheckpoint);
			writes.push(...one.writes);
			deltaBases.push(...one.deltaBases);
		}
		const last = path.at(-1);
		const orphans = last === undefined || slot?.row !== undefined ? undefined : this.#orphans(last.id);
		return { path, siblings, writes, deltaBases, orphans };
	}

	/** Where an id stands among those of the checkpoints, or would stand. */
	placeOf(id: string): number {
		const { ids } = this;
		let high = ids.length;
		// Most are new, and greater than all others.
		if (high === 0 || compareIds(ids[high - 1] as string, id) < 0) return high;
		let low = 0;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (compareIds(ids[middle] as string, id) < 0) low = middle + 1;
			else high = middle;
		}
		return low;
	}

	#orphans(before: string): WriteRow[] {
		const orphans: WriteRow[] = [];
		if (this.slots.size === this.ids.length) return orphans;
		for (const [id, { row, writes }] of this.slots)
			if (row === undefined && writes.length > 0 && compareIds(id, before) < 0) orphans.push(...writes);
		return orphans;
	}

	#toFound({ threadId, ns, id, parentId, runId, source, step, blobs, head }: CheckpointRow): FoundCheckpoint {
		return { threadId, ns, id, parentId, runId, source, step, blobs, head, stamp: this.#thread.stamp };
	}

	/** Takes a checkpoint from the children of its parent. */
	#unlink({ id, parentId }: CheckpointRow): void {
		const parent = parentId === undefined ? undefined : this.slots.get(parentId);
		if (parentId === undefined || parent === undefined) return;
		parent.children = parent.children.filter((child) => child !== id);
		this.#dropIfEmpty(parentId, parent);
	}

	#dropIfEmpty(id: string, { row, writes, deltaBases, children }: Slot): void {
		if (row === undefined && writes.length + deltaBases.length + children.length === 0) this.slots.delete(id);
	}
}

/** V8 keeps the content of typed arrays up to this length in its heap; asking one for its buffer would move it out. */
const LONGEST_IN_HEAP = 64;

/** Bytes to hold: a copy if they are a small part of a buffer, all of which they would keep in memory. */
export function holdBytes(bytes: Uint8Array): Uint8Array {
	const isWhole = bytes.length > LONGEST_IN_HEAP && bytes.length * 2 > bytes.buffer.byteLength;
	return isWhole ? bytes : new Uint8Array(bytes);
}

export function toWriteRow(write: Omit<WriteRow, "generation">, generation: number): WriteRow {
	const { threadId, ns, id, taskId, idx, taskPath, channel, runId, actor, type, blob } = write;
	const value = holdBytes(write.value);
	return { threadId, ns, id, taskId, idx, generation, taskPath, channel, runId, actor, type, blob, value };
}

export function isSameWrite(a: WriteKey, b: WriteKey): boolean {
	return a.idx === b.idx && a.generation === b.generation && a.taskId === b.taskId;
}

/** The order of a scan. */
export function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}

function countSlot(count: RowCount, { row, writes }: Slot): void {
	if (row !== undefined) {
		count.checkpoints++;
		count.bytes += row.head.length;
	}
	for (const { value } of writes) {
		count.writes++;
		count.bytes += value.length;
	}
}
