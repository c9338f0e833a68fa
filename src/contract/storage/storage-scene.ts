import assert from "node:assert/strict";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	NewWrite,
	PutBatch,
	PutResult,
	RemoveBatch,
	RowCount,
	Storage,
	ThreadRow,
	WriteRow,
} from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import { checkStorage } from "./checked-storage.ts";
import { NaiveStorage } from "./naive-storage.ts";
import { assertCounted, readEverything } from "./reads.ts";

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

/** What one test works with: an empty storage and short ways to fill it. */
export class StorageScene {
	/** Checked against a model with every call, so calls are to be made one after the other. */
	readonly storage: Storage;
	readonly #backend: Storage;
	readonly #model = new NaiveStorage();
	readonly #reopen: (() => Promise<Storage>) | undefined;
	readonly #opened: Storage[];
	readonly #countsBytes: boolean;
	#now = 1_000;
	#isChecked = true;
	#isClosed = false;

	/** @param countsBytes whether the bytes that it counts are those that it was given */
	constructor(backend: Storage, reopen?: () => Promise<Storage>, countsBytes = true) {
		this.#backend = backend;
		this.#countsBytes = countsBytes;
		this.#reopen = reopen;
		this.#opened = [backend];
		this.storage = checkStorage(backend, this.#model, this.counted);
	}

	/** A number that was never handed out. */
	readonly fresh = (): Promise<number> => this.#backend.reserveIds(1);

	/** Four numbers that were never handed out. */
	readonly fourIds = async (): Promise<[number, number, number, number]> => {
		const first = await this.#backend.reserveIds(4);
		return [first, first + 1, first + 2, first + 3];
	};

	/** A time later than all before. */
	readonly tick = (): number => {
		this.#now += 1;
		return this.#now;
	};

	/** A batch for the thread that its rows are of, or the one that most tests use. */
	readonly batch = async (fields: Partial<PutBatch>): Promise<PutBatch> => {
		const threadId = fields.checkpoint?.threadId ?? fields.writes?.[0]?.threadId ?? "thread";
		const nothing = { blobs: [], writes: [], deltaBases: [] };
		return { threadId, fresh: await this.fresh(), now: this.tick(), ...nothing, ...fields };
	};

	/** Puts a batch that must be taken; returns the thread's stamp. */
	readonly put = async (fields: Partial<PutBatch>): Promise<number> => {
		const result = await this.tryPut(fields);
		assert.ok(result, "a batch that is up to date was refused");
		return result.stamp;
	};

	readonly tryPut = async (fields: Partial<PutBatch>): Promise<PutResult | undefined> =>
		this.storage.put(await this.batch(fields));

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

	/** Puts `count` rows, each the parent of the next, with rising ids; returns their ids. */
	readonly chain = async (count: number): Promise<string[]> => {
		const ids = Array.from({ length: count }, (_, n) => checkpointId(n + 1));
		for (const [n, id] of ids.entries()) await this.put({ checkpoint: row(id, { parentId: ids[n - 1] }) });
		return ids;
	};

	/** A removal from a thread, with the stamp that it has. */
	readonly removal = async (fields: Partial<RemoveBatch>): Promise<RemoveBatch> => {
		const { threadId = "thread" } = fields;
		const stamp = (await this.#backend.getThread(threadId))?.stamp ?? 0;
		const nothing = { checkpoints: [], writes: [], orphans: [], relinked: [], deltaBases: [] };
		return { threadId, stamp, newStamp: await this.fresh(), ...nothing, ...fields };
	};

	/** Removes what must be removed. */
	readonly remove = async (fields: Partial<RemoveBatch>): Promise<RowCount> => {
		const removed = await this.storage.remove(await this.removal(fields));
		assert.ok(removed, "a removal that is up to date was refused");
		return removed;
	};

	/** A copy of the thread that most tests use, or of another, with the stamp that it has. */
	readonly copying = async (target: string, fields: Partial<CopyBatch> = {}): Promise<CopyBatch> => {
		const { source = "thread" } = fields;
		const stamp = (await this.#backend.getThread(source))?.stamp ?? 0;
		const everything = { keys: undefined, checkpoints: [], writes: [], deltaBases: [] };
		return { source, stamp, target, fresh: await this.fresh(), now: this.tick(), ...everything, ...fields };
	};

	/** Copies what must be copied. */
	readonly copy = async (target: string, fields: Partial<CopyBatch> = {}): Promise<RowCount> => {
		const copied = await this.storage.copy(await this.copying(target, fields));
		assert.ok(copied, "a copy that is up to date was refused");
		return copied;
	};

	/** A thread that must be there. */
	readonly thread = async (threadId = "thread"): Promise<ThreadRow> => {
		const thread = await this.#backend.getThread(threadId);
		assert.ok(thread, `thread ${JSON.stringify(threadId)} is not there`);
		return thread;
	};

	/** A count fit to be compared: without its bytes if they are the backend's own. */
	readonly counted = <T extends { readonly bytes: unknown }>(count: T): object =>
		this.#countsBytes ? count : { ...count, bytes: undefined };

	/** Another storage over the same data, or the same where they can't be opened twice. Checked against the same model. */
	readonly reopen = async (): Promise<Storage> => {
		if (this.#reopen === undefined) return this.storage;
		const backend = await this.#reopen();
		this.#opened.push(backend);
		return checkStorage(backend, this.#model, this.counted);
	};

	/** Two storages over the same data, or twice the same, for calls at the same time: from now on none is checked. */
	readonly race = async (): Promise<[Storage, Storage]> => {
		this.#isChecked = false;
		await this.reopen();
		return [this.#backend, this.#opened.at(-1) as Storage];
	};

	/** Ends a test that has passed: all that is stored must be what the model has, and be counted right. */
	async finish(): Promise<void> {
		if (this.#isClosed) return;
		if (this.#isChecked) await readEverything(this.storage);
		else await assertCounted(this.#backend);
	}

	readonly close = async (): Promise<void> => {
		this.#isClosed = true;
		for (const storage of this.#opened) await storage.close();
	};
}

/** Lets calls that are under way go on. */
export async function pause(): Promise<void> {
	await new Promise((resolve) => setImmediate(resolve));
}
