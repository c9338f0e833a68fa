import assert from "node:assert/strict";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	Storage,
	ThreadRow,
	WriteRow,
} from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import { audit } from "./audit.ts";

const text = new TextEncoder();

/** The bytes of a text: what a test stores where any bytes will do. */
export function bytes(content: string): Uint8Array {
	return text.encode(content);
}

/** A key in the thread that most tests use. */
export function key(id: string, ns = "", threadId = "thread"): CheckpointKey {
	return { threadId, ns, id };
}

/** A checkpoint row; what is not said is `undefined`, and its head is different for every key. */
export function row(id: string, fields: Partial<CheckpointRow> = {}): CheckpointRow {
	const { threadId, ns } = { threadId: "thread", ns: "", ...fields };
	const head = bytes(`head of ${threadId}/${ns}/${id}`);
	return {
		threadId,
		ns,
		id,
		parentId: undefined,
		runId: undefined,
		source: undefined,
		step: undefined,
		blobs: [],
		head,
		...fields,
	};
}

/** A write as it is put and, since nothing is in its way, as it is read. */
export type TestWrite = WriteRow & NewWrite;

/** A write at a checkpoint of the thread that most tests use, which is dropped if there is one in its place. */
export function write(id: string, taskId: string, idx: number, fields: Partial<TestWrite> = {}): TestWrite {
	const place = { ...key(id), taskId, idx, taskPath: undefined, generation: 0, conflict: "drop" as const };
	const rest = { channel: "channel", runId: undefined, actor: undefined, type: undefined, blob: undefined };
	return { ...place, ...rest, value: bytes(`${taskId} ${idx}`), ...fields };
}

/** A write whose value is in a blob, in the generation after the last. */
export function blobWrite(
	id: string,
	taskId: string,
	idx: number,
	blob: number,
	fields: Partial<TestWrite> = {},
): TestWrite {
	return write(id, taskId, idx, { blob, value: new Uint8Array(0), conflict: "add", ...fields });
}

export function blob(id: number, content: string | Uint8Array, base?: number, type?: string, source?: number): BlobRow {
	return { id, base, source, type, data: typeof content === "string" ? bytes(content) : content };
}

export function deltaBase(
	id: string,
	channel: string,
	content: string,
	fields: Partial<DeltaBaseRow> = {},
): DeltaBaseRow {
	return { ...key(id), channel, data: bytes(content), ...fields };
}

/** A removal that removes nothing. */
export const NO_REMOVAL = { checkpoints: [], writes: [], orphans: [], relinked: [], deltaBases: [] };
/** A copy of everything, with nothing besides. */
export const COPY_ALL = { keys: undefined, checkpoints: [], writes: [], deltaBases: [] };

/** What one test works with: an empty storage and short ways to fill it. */
export class StorageScene {
	readonly storage: Storage;
	readonly #reopen: (() => Promise<Storage>) | undefined;
	readonly #opened: Storage[];
	readonly #countsBytes: boolean;
	#now = 1_000;
	#isClosed = false;

	/** @param countsBytes whether the bytes that it counts are those that it was given */
	constructor(storage: Storage, reopen?: () => Promise<Storage>, countsBytes = true) {
		this.storage = storage;
		this.#countsBytes = countsBytes;
		this.#reopen = reopen;
		this.#opened = [storage];
	}

	/** A number that was never handed out. */
	readonly fresh = (): Promise<number> => this.storage.reserveIds(1);

	/** Four numbers that were never handed out. */
	readonly fourIds = async (): Promise<[number, number, number, number]> => {
		const first = await this.storage.reserveIds(4);
		return [first, first + 1, first + 2, first + 3];
	};

	/** A time later than all before. */
	readonly tick = (): number => {
		this.#now += 1;
		return this.#now;
	};

	/** Puts a batch that must be taken; answers the thread's stamp. */
	readonly put = async (batch: Partial<PutBatch>): Promise<number> => {
		const result = await this.tryPut(batch);
		assert.ok(result, "a batch that is up to date was refused");
		return result.stamp;
	};

	readonly tryPut = async (batch: Partial<PutBatch>): Promise<PutResult | undefined> => {
		const threadId = batch.checkpoint?.threadId ?? batch.writes?.[0]?.threadId ?? "thread";
		const nothing = { blobs: [], writes: [], deltaBases: [] };
		return this.storage.put({ threadId, fresh: await this.fresh(), now: this.tick(), ...nothing, ...batch });
	};

	/** Puts writes of several tasks, in a batch for each. */
	readonly putWrites = async (...writes: NewWrite[]): Promise<void> => {
		const tasks = new Map<string, NewWrite[]>();
		for (const one of writes) {
			const task = JSON.stringify([one.threadId, one.ns, one.id, one.taskId]);
			tasks.set(task, [...(tasks.get(task) ?? []), one]);
		}
		for (const batch of tasks.values()) await this.put({ writes: batch });
	};

	/** Puts each of these rows in a batch of its own. */
	readonly putRows = async (...rows: CheckpointRow[]): Promise<void> => {
		for (const checkpoint of rows) await this.put({ checkpoint });
	};

	/** Puts `count` rows, each the parent of the next, with rising ids; answers their ids. */
	readonly chain = async (count: number, fields: Partial<CheckpointRow> = {}): Promise<string[]> => {
		const ids = Array.from({ length: count }, (_, n) => checkpointId(n + 1));
		for (const [n, id] of ids.entries()) await this.put({ checkpoint: row(id, { parentId: ids[n - 1], ...fields }) });
		return ids;
	};

	/** Removes from a thread with the stamp that it has. */
	readonly remove = async (batch: Partial<RemoveBatch>) => {
		const threadId = batch.threadId ?? "thread";
		const { stamp } = await this.thread(threadId);
		const newStamp = await this.fresh();
		const removed = await this.storage.remove({ threadId, stamp, newStamp, ...NO_REMOVAL, ...batch });
		assert.ok(removed, "a removal that is up to date was refused");
		return removed;
	};

	/** Copies the thread that most tests use with the stamp that it has. */
	readonly copy = async (target: string, batch: Partial<Parameters<Storage["copy"]>[0]> = {}) => {
		const source = batch.source ?? "thread";
		const { stamp } = await this.thread(source);
		const rest = { fresh: await this.fresh(), now: this.tick(), ...COPY_ALL };
		const copied = await this.storage.copy({ source, stamp, target, ...rest, ...batch });
		assert.ok(copied, "a copy that is up to date was refused");
		return copied;
	};

	/** A thread that must be there. */
	readonly thread = async (threadId = "thread"): Promise<ThreadRow> => {
		const thread = await this.storage.getThread(threadId);
		assert.ok(thread, `thread ${JSON.stringify(threadId)} is not there`);
		return thread;
	};

	/** A count fit to be compared: without its bytes if they are the backend's own. */
	readonly counted = <T extends { readonly bytes: unknown }>(count: T) =>
		this.#countsBytes ? count : { ...count, bytes: undefined };

	/** Another storage over the same data, or the same storage where it can't be opened twice. */
	readonly reopen = async (): Promise<Storage> => {
		if (this.#reopen === undefined) return this.storage;
		const storage = await this.#reopen();
		this.#opened.push(storage);
		return storage;
	};

	/** Ends a test that has passed: whatever it did, the counters must be right. */
	async finish(): Promise<void> {
		if (!this.#isClosed) await audit(this.storage, this.counted);
	}

	readonly close = async (): Promise<void> => {
		this.#isClosed = true;
		for (const storage of this.#opened) await storage.close();
	};
}
