import assert from "node:assert/strict";
import type {
	CheckpointKey,
	CopyBatch,
	Depth,
	FoundCheckpoint,
	PathReading,
	PutBatch,
	Reading,
	RemoveBatch,
	Replacement,
	Scan,
	Storage,
	ThreadReading,
	ThreadRow,
	WriteKey,
} from "../../storage/storage.ts";
import type { NaiveStorage } from "./naive-storage.ts";
import { plainBase, plainBlob, plainFound, plainKey, plainWrite, plainWriteKey, sorted } from "./plain.ts";

type Counted = { readonly bytes: unknown };

/**
 * A storage that does everything on a model too and fails where the answers differ: a test makes its calls one after the
 * other, and states only what it is about. What comes in any order is compared in any order.
 */
export class CheckedStorage implements Storage {
	readonly #backend: Storage;
	readonly #model: NaiveStorage;
	readonly #counted: <T extends Counted>(count: T) => object;

	/** @param counted a count fit to be compared */
	constructor(backend: Storage, model: NaiveStorage, counted: <T extends Counted>(count: T) => object) {
		this.#backend = backend;
		this.#model = model;
		this.#counted = counted;
	}

	async #both<T>(
		call: (storage: Storage) => Promise<T>,
		plain: (answer: T) => unknown = (answer) => answer,
	): Promise<T> {
		const actual = await call(this.#backend);
		const expected = await call(this.#model).catch((error) => assert.fail(`a call was not rejected with: ${error}`));
		assert.deepEqual(plain(actual), plain(expected));
		return actual;
	}

	reserveIds(count: number) {
		return this.#backend.reserveIds(count);
	}

	async read(which: Scan | readonly CheckpointKey[], depth: Depth, known?: readonly number[]): Promise<Reading> {
		if (!("limit" in which) || which.labels === undefined)
			return this.#both((storage) => storage.read(which, depth, known), plainReading);
		const reading = await this.#backend.read(which, depth, known);
		await this.#checkLabelled(which, reading.checkpoints);
		return reading;
	}

	/** Rows with other labels may be among those that a scan for labels finds: otherwise it is as one without. */
	async #checkLabelled(scan: Scan, found: readonly FoundCheckpoint[]): Promise<void> {
		const wide = await this.#model.read({ ...scan, labels: undefined, limit: Number.MAX_SAFE_INTEGER }, "rows");
		const exact = await this.#model.read({ ...scan, limit: Number.MAX_SAFE_INTEGER }, "rows");
		const keys = new Set([...found, ...exact.checkpoints].map((key) => JSON.stringify(plainKey(key))));
		const expected = wide.checkpoints.filter((key) => keys.has(JSON.stringify(plainKey(key))));
		assert.deepEqual(found.map(plainFound), expected.slice(0, scan.limit).map(plainFound));
	}

	readPath(key: CheckpointKey, limit: number): Promise<PathReading> {
		return this.#both((storage) => storage.readPath(key, limit), plainPath);
	}

	readThread(threadId: string): Promise<ThreadReading> {
		return this.#both((storage) => storage.readThread(threadId), plainThread);
	}

	getBlobs(ids: readonly number[]) {
		return this.#both(
			(storage) => storage.getBlobs(ids),
			(blobs) => sorted(blobs.map(plainBlob)),
		);
	}

	findRuns(runIds: readonly string[]) {
		return this.#both((storage) => storage.findRuns(runIds), plainRuns);
	}

	getThread(threadId: string) {
		return this.#both((storage) => storage.getThread(threadId));
	}

	listThreads(limit: number, after: Pick<ThreadRow, "updatedAt" | "threadId"> | undefined) {
		return this.#both((storage) => storage.listThreads(limit, after));
	}

	readFamily(family: number) {
		return this.#both(
			(storage) => storage.readFamily(family),
			({ blobs, threads }) => ({ blobs: sorted(blobs.map(this.#counted)), threads: sorted(threads) }),
		);
	}

	listFamilies(limit: number, after: number | undefined) {
		return this.#both((storage) => storage.listFamilies(limit, after));
	}

	totals() {
		return this.#both((storage) => storage.totals(), this.#counted);
	}

	put(batch: PutBatch) {
		return this.#both((storage) => storage.put(batch));
	}

	remove(batch: RemoveBatch) {
		return this.#both(
			(storage) => storage.remove(batch),
			(count) => count && this.#counted(count),
		);
	}

	copy(batch: CopyBatch) {
		return this.#both(
			(storage) => storage.copy(batch),
			(count) => count && this.#counted(count),
		);
	}

	removeThread(threadId: string) {
		return this.#both((storage) => storage.removeThread(threadId), this.#counted);
	}

	removeBlobs(family: number, ids: readonly number[]) {
		return this.#both((storage) => storage.removeBlobs(family, ids));
	}

	replaceBytes(replacements: readonly Replacement[]) {
		return this.#both((storage) => storage.replaceBytes(replacements));
	}

	clear() {
		return this.#both((storage) => storage.clear());
	}

	check() {
		return this.#both((storage) => storage.check());
	}

	repair() {
		return this.#both((storage) => storage.repair());
	}

	tidy() {
		return this.#backend.tidy();
	}

	close() {
		return this.#backend.close();
	}
}

function plainReading({ checkpoints, writes, blobs }: Reading) {
	return {
		checkpoints: checkpoints.map(plainFound),
		writes: sorted(writes.map(plainWrite)),
		blobs: sorted(blobs.map(plainBlob)),
	};
}

/** Of an epoch nothing can be said but whether it changes. */
function plainPath({ path, siblings, writes, deltaBases, orphans }: PathReading) {
	return {
		path: path.map(plainFound),
		siblings: sorted(siblings.map(plainFound)),
		writes: sorted(writes.map(plainWrite)),
		deltaBases: sorted(deltaBases.map(plainBase)),
		orphans: orphans && sorted(orphans.map(plainWrite)),
	};
}

function plainThread({ checkpoints, writes, deltaBases }: ThreadReading) {
	return {
		checkpoints: checkpoints.map((row) => ({ ...plainKey(row), parentId: row.parentId })),
		writes: sorted(writes.map(plainWrite)),
		deltaBases: sorted(deltaBases.map(plainBase)),
	};
}

function plainRuns({ checkpoints, writes }: { checkpoints: CheckpointKey[]; writes: WriteKey[] }) {
	return { checkpoints: sorted(checkpoints.map(plainKey)), writes: sorted(writes.map(plainWriteKey)) };
}
