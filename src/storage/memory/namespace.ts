import { compareIds, compareRows } from "../compare-ids.ts";
import type {
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	Labels,
	NewWrite,
	Scan,
	WriteKey,
	WriteRow,
} from "../storage.ts";

/** Lists by checkpoint id. They are replaced, by `concat`: most have one element, and `push` would reserve 16 more. */
type Lists<T> = Map<string, readonly T[]>;

/** A checkpoint without labels, as one that was relinked, is found by any. */
export type StoredRow = CheckpointRow & { labels: Labels | undefined };

/** The rows of one namespace of a thread. Writes and delta bases may be there without their checkpoint. */
export class Namespace {
	/** Of the checkpoints, ascending. */
	readonly ids: string[] = [];
	readonly checkpoints = new Map<string, StoredRow>();
	readonly writes: Lists<WriteRow> = new Map();
	readonly deltaBases: Lists<DeltaBaseRow> = new Map();

	/** Adds a checkpoint, or puts it in place of the one with its id. Returns whether there was one. */
	put(row: CheckpointRow, labels?: Labels): boolean {
		const { threadId, ns, id, parentId, runId, source, step } = row;
		const blobs = row.blobs.slice();
		const isThere = this.checkpoints.has(id);
		if (!isThere) this.ids.splice(this.#placeOf(id), 0, id);
		const head = holdBytes(row.head);
		this.checkpoints.set(id, { threadId, ns, id, parentId, runId, source, step, blobs, head, labels });
		return isThere;
	}

	/** Removes all that is stored under an id. */
	remove(id: string): void {
		if (this.checkpoints.has(id)) this.ids.splice(this.#placeOf(id), 1);
		for (const rows of [this.checkpoints, this.writes, this.deltaBases]) rows.delete(id);
	}

	/** Adds writes of one task at one checkpoint. */
	addWrites(id: string, taskId: string, writes: readonly NewWrite[]): void {
		let list = this.writes.get(id) ?? [];
		let next = 0;
		for (const one of list) if (one.taskId === taskId && one.generation >= next) next = one.generation + 1;
		const added: WriteRow[] = [];
		for (const write of writes) {
			const { idx, conflict } = write;
			if (next > 0 && conflict !== "add") {
				const isSame = (one: WriteRow) => one.taskId === taskId && one.idx === idx;
				if (conflict === "drop" && list.some(isSame)) continue;
				list = list.filter((one) => one.generation > 0 || !isSame(one));
			}
			added.push(toWriteRow(write, conflict === "add" ? next : 0));
		}
		this.writes.set(id, list.concat(added));
	}

	addWrite(write: WriteRow): void {
		this.writes.set(write.id, (this.writes.get(write.id) ?? []).concat(toWriteRow(write, write.generation)));
	}

	findWrite({ id, taskId, idx, generation }: WriteKey): WriteRow | undefined {
		const isIt = (one: WriteRow) => one.taskId === taskId && one.idx === idx && one.generation === generation;
		return this.writes.get(id)?.find(isIt);
	}

	removeWrite(key: WriteKey): void {
		const gone = this.findWrite(key);
		const left = this.writes.get(key.id)?.filter((one) => one !== gone) ?? [];
		if (left.length > 0) this.writes.set(key.id, left);
		else this.writes.delete(key.id);
	}

	putDeltaBase(base: DeltaBaseRow): void {
		const others = this.deltaBases.get(base.id)?.filter(({ channel }) => channel !== base.channel) ?? [];
		this.deltaBases.set(base.id, others.concat({ ...base, data: holdBytes(base.data) }));
	}

	/** Appends the matching checkpoints to `found`, newest first: at most `limit` of them. */
	scan({ before, after, source, step, labels, limit }: Scan, stamp: number, found: FoundCheckpoint[]): void {
		const wanted = labels && Object.entries(labels);
		let place = before === undefined ? this.ids.length : this.#placeOf(before);
		// A row with the id of `after` may still come, if it is of a later thread or namespace.
		if (after !== undefined) place = Math.min(place, this.#placeOf(after.id) + 1);
		for (let missing = limit; missing > 0 && place > 0; ) {
			const row = this.checkpoints.get(this.ids[--place] as string) as StoredRow;
			if ((source ?? row.source) !== row.source || (step ?? row.step) !== row.step) continue;
			if (after !== undefined && compareRows(after, row) >= 0) continue;
			if (row.labels && wanted?.some(([name, value]) => row.labels?.[name] !== value)) continue;
			found.push(toFound(row, stamp));
			missing--;
		}
	}

	/** A path, as `readPath` of the storage returns it. */
	readPath(start: string, limit: number, stamp: number) {
		const path = new Map<string, FoundCheckpoint>();
		let row = this.checkpoints.get(start);
		while (row !== undefined && path.size < limit && !path.has(row.id)) {
			path.set(row.id, toFound(row, stamp));
			row = row.parentId === undefined ? undefined : this.checkpoints.get(row.parentId);
		}
		const siblings = [...this.checkpoints.values()]
			.filter(({ id, parentId }) => parentId !== undefined && path.has(parentId) && !path.has(id))
			.map((row) => toFound(row, stamp));
		const writes = [...path.keys()].flatMap((id) => this.writes.get(id) ?? []);
		const deltaBases = [...path.keys()].flatMap((id) => this.deltaBases.get(id) ?? []);
		const rows = [...path.values()];
		const last = row === undefined ? rows.at(-1) : undefined;
		const isOrphan = (id: string, before: string) => !this.checkpoints.has(id) && compareIds(id, before) < 0;
		const orphans = last && [...this.writes].flatMap(([id, writes]) => (isOrphan(id, last.id) ? writes : []));
		return { path: rows, siblings, writes, deltaBases, orphans, epoch: 0 };
	}

	/** Where an id stands among those of the checkpoints, or would stand. */
	#placeOf(id: string): number {
		let low = 0;
		let high = this.ids.length;
		// Most are new, and greater than all others.
		if (high === 0 || compareIds(this.ids[high - 1] as string, id) < 0) return high;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (compareIds(this.ids[middle] as string, id) < 0) low = middle + 1;
			else high = middle;
		}
		return low;
	}
}

/** Small bytes stand in shared memory of this size: an `ArrayBuffer` for each would be larger than most of them. */
const SHARED_BYTES = 8192;
const NO_BYTES = new Uint8Array(0);
let shared = NO_BYTES;

/** Bytes to hold: a copy if they are a small part of a buffer, all of which they would keep in memory. */
export function holdBytes(bytes: Uint8Array): Uint8Array {
	const { length } = bytes;
	if (length === 0) return NO_BYTES;
	if (length > SHARED_BYTES / 8) return length * 2 > bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
	if (length > shared.length) shared = new Uint8Array(SHARED_BYTES);
	const held = shared.subarray(0, length);
	held.set(bytes);
	shared = shared.subarray(length);
	return held;
}

/** A row with a stamp. To name the fields is twenty times faster than `{ ...row, stamp }`, and every read does it. */
export function toFound(row: CheckpointRow, stamp: number): FoundCheckpoint {
	const { threadId, ns, id, parentId, runId, source, step, blobs, head } = row;
	return { threadId, ns, id, parentId, runId, source, step, blobs, head, stamp };
}

function toWriteRow(write: Omit<WriteRow, "generation">, generation: number): WriteRow {
	const { threadId, ns, id, taskId, idx, taskPath, channel, runId, actor, type, blob } = write;
	const value = holdBytes(write.value);
	return { threadId, ns, id, taskId, idx, generation, taskPath, channel, runId, actor, type, blob, value };
}
