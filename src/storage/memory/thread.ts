import { compareIds } from "../compare-ids.ts";
import type { CheckpointRow, DeltaBaseRow, FoundCheckpoint, ThreadRow, WriteRow } from "../storage.ts";
import { changedText, findChanges, type KeptBytes, keepBytes, readBytes, readChanged } from "./kept-bytes.ts";
import { copyList, findIn, insertAt, lowerBound, removeAt } from "./sorted-list.ts";
import { KeptWrite, NO_WRITES, type WriteList } from "./writes.ts";

export class MemoryThread {
	readonly id: string;
	readonly family: number;
	readonly createdAt: number;
	updatedAt: number;
	stamp: number;
	/** By ascending name. */
	namespaces: Namespace[] = [];

	constructor(id: string, family: number, stamp: number, now: number) {
		this.id = id;
		this.family = family;
		this.stamp = stamp;
		this.createdAt = now;
		this.updatedAt = now;
	}

	find(ns: string): Namespace | undefined {
		return findIn(this.namespaces, ({ name }) => compareIds(name, ns));
	}

	/** The namespace, which is there from now on. */
	open(ns: string): Namespace {
		const at = lowerBound(this.namespaces, ({ name }) => compareIds(name, ns));
		const known = this.namespaces[at];
		if (known?.name === ns) return known;
		const added = new Namespace(this, ns);
		this.namespaces = insertAt(this.namespaces, at, added);
		return added;
	}

	describe(): ThreadRow {
		const { id: threadId, family, stamp, createdAt, updatedAt } = this;
		const checkpoints = this.namespaces.reduce((sum, namespace) => sum + namespace.checkpoints, 0);
		return { threadId, family, stamp, createdAt, updatedAt, checkpoints, head: this.find("")?.newest()?.id };
	}
}

/** The steps of a graph take turns, and each kind of them has a length of its own. */
const MOST_PATTERNS = 4;
const NO_PATTERNS: readonly string[] = [];

export class Namespace {
	readonly thread: MemoryThread;
	readonly name: string;
	/** By ascending id. */
	slots: Slot[] = [];
	/** How many slots have one. */
	checkpoints = 0;
	/** Heads that were kept as they are, the last of each length: most that follow differ from one in a few numbers. */
	#patterns = NO_PATTERNS;

	constructor(thread: MemoryThread, name: string) {
		this.thread = thread;
		this.name = name;
	}

	find(id: string): Slot | undefined {
		return findIn(this.slots, (slot) => compareIds(slot.id, id));
	}

	/** The slot with an id, which is there from now on. */
	open(id: string): Slot {
		const at = this.placeOf(id);
		const known = this.slots[at];
		if (known?.id === id) return known;
		const added = new Slot(id);
		this.slots = insertAt(this.slots, at, added);
		return added;
	}

	/** The first place whose slot has this id or a greater one. */
	placeOf(id: string): number {
		return lowerBound(this.slots, (slot) => compareIds(slot.id, id));
	}

	newest(): Slot | undefined {
		return this.slots.findLast(({ checkpoint }) => checkpoint !== undefined);
	}

	/** Puts a checkpoint into a slot. */
	putCheckpoint(slot: Slot, row: CheckpointRow, parentId: string | undefined): void {
		const { head } = row;
		const pattern = this.#patterns.find(({ length }) => length === head.length);
		const changes = pattern === undefined ? undefined : findChanges(pattern, head);
		if (changes !== undefined) return this.setCheckpoint(slot, new KeptCheckpoint(row, parentId, changes, pattern));
		const kept = keepBytes(head);
		this.setCheckpoint(slot, new KeptCheckpoint(row, parentId, kept, undefined));
		if (typeof kept !== "string") return;
		const others = this.#patterns.filter((other) => other !== pattern);
		this.#patterns = [kept, ...others.slice(0, MOST_PATTERNS - 1)];
	}

	setCheckpoint(slot: Slot, checkpoint: KeptCheckpoint): void {
		if (slot.checkpoint === undefined) this.checkpoints++;
		slot.checkpoint = checkpoint;
	}

	/** Takes a slot out, with all that is in it. */
	remove(slot: Slot): void {
		if (slot.checkpoint !== undefined) this.checkpoints--;
		this.slots = removeAt(this.slots, this.placeOf(slot.id));
	}

	/** Takes out all slots with these ids, and answers them. */
	removeAll(ids: ReadonlySet<string>): Slot[] {
		const removed: Slot[] = [];
		const kept: Slot[] = [];
		for (const slot of this.slots) {
			const isGoing = ids.has(slot.id);
			if (isGoing && slot.checkpoint !== undefined) this.checkpoints--;
			(isGoing ? removed : kept).push(slot);
		}
		this.slots = kept;
		return removed;
	}

	/** Whether slots of another thread, by ascending id, are still as they were copied from here or to here. */
	sharesAll(slots: readonly Slot[]): boolean {
		let at = 0;
		for (const slot of slots) {
			const { id, checkpoint, deltaBases } = slot;
			if (this.slots[at]?.id !== id) at = this.placeOf(id);
			const twin = this.slots[at++];
			if (twin?.id !== id || twin.checkpoint !== checkpoint || deltaBases !== undefined) return false;
			if (!slot.sharesWrites(twin)) return false;
		}
		return true;
	}

	/** The checkpoint of a slot that has one. */
	read(slot: Slot): FoundCheckpoint {
		const { id: threadId, stamp } = this.thread;
		const checkpoint = slot.checkpoint as KeptCheckpoint;
		const { parentId, runId, source, step } = checkpoint;
		const head = checkpoint.readHead();
		return { threadId, ns: this.name, id: slot.id, parentId, runId, source, step, head, stamp };
	}

	readWrites(slot: Slot): WriteRow[] {
		return slot.writes.map((write) => write.toRow(this.thread.id, this.name, slot.id));
	}

	readDeltaBases({ id, deltaBases }: Slot): DeltaBaseRow[] {
		const { thread, name: ns } = this;
		return [...(deltaBases ?? [])].map(([channel, data]) => ({
			threadId: thread.id,
			ns,
			id,
			channel,
			data: readBytes(data),
		}));
	}
}

/** What is kept under one checkpoint id. Writes and delta bases may be there without the checkpoint. */
export class Slot {
	readonly id: string;
	checkpoint: KeptCheckpoint | undefined;
	/** A list of one is not worth its room. */
	#writes: WriteList | KeptWrite = NO_WRITES;
	/** By channel. */
	deltaBases: Map<string, KeptBytes> | undefined;

	constructor(id: string) {
		this.id = id;
	}

	get writes(): WriteList {
		return this.#writes instanceof KeptWrite ? [this.#writes] : this.#writes;
	}

	set writes(list: WriteList) {
		this.#writes = list.length === 1 ? (list[0] as KeptWrite) : list;
	}

	/** Whether another slot still has the writes that were copied from here or to here, or this one has none. */
	sharesWrites(other: Slot): boolean {
		return this.writes.length === 0 || this.#writes === other.#writes;
	}

	setDeltaBase(channel: string, data: KeptBytes): void {
		this.deltaBases ??= new Map();
		this.deltaBases.set(channel, data);
	}

	/** Takes over what is in another slot, but its checkpoint. */
	copyFrom({ writes, deltaBases }: Slot): void {
		this.writes = copyList(writes);
		this.deltaBases = deltaBases && new Map(deltaBases);
	}

	get isEmpty(): boolean {
		return this.checkpoint === undefined && this.writes.length === 0 && this.deltaBases === undefined;
	}
}

/** A checkpoint, but for its key. */
export class KeptCheckpoint {
	readonly parentId: string | undefined;
	readonly runId: string | undefined;
	readonly source: string | undefined;
	readonly step: number | undefined;
	/** The head, or how it differs from the pattern, if there is one. */
	readonly #head: KeptBytes;
	readonly #pattern: string | undefined;

	constructor(
		{ runId, source, step }: CheckpointLabels,
		parentId: string | undefined,
		head: KeptBytes,
		pattern: string | undefined,
	) {
		this.parentId = parentId;
		this.runId = runId;
		this.source = source;
		this.step = step;
		this.#head = head;
		this.#pattern = pattern;
	}

	get head(): KeptBytes {
		return this.#pattern === undefined ? this.#head : changedText(this.#pattern, this.#head as string);
	}

	get headLength(): number {
		return (this.#pattern ?? this.#head).length;
	}

	readHead(): Uint8Array {
		return this.#pattern === undefined ? readBytes(this.#head) : readChanged(this.#pattern, this.#head as string);
	}

	withParent(parentId: string | undefined): KeptCheckpoint {
		return parentId === this.parentId ? this : new KeptCheckpoint(this, parentId, this.#head, this.#pattern);
	}
}

type CheckpointLabels = Pick<CheckpointRow, "runId" | "source" | "step">;
