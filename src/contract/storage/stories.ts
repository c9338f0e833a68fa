import assert from "node:assert/strict";
import type { CheckpointKey, CheckpointRow, RowCount } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { NaiveStorage } from "./naive-storage.ts";
import { assertBases, assertBlobs, assertRows, assertWrites, compareKeys } from "./plain.ts";
import { ALL } from "./reads.ts";
import { blob, bytes, deltaBase, row, type StorageScene, type TestWrite, write } from "./storage-scene.ts";

/** Enough for every operation to meet every state that the few names below allow. */
const STEPS = 120;
const THREADS = ["a", "ab", "b"];
/** Threads that may come from a copy alone, so that not every copy meets a thread in its place. */
const TARGETS = [...THREADS, "c", "cd"];
const NAMESPACES = ["", "x"];
const UUIDS = [1, 2, 3].map((n) => `1ef4f797-8335-6428-8001-8a1503f9b87${n}`);
const IDS = ["1", "10", "2", ...UUIDS];

/** Long random stories, told to the storage and to a model that is too simple to be wrong. */
export function storyRules(test: StorageTest): void {
	for (const seed of [1, 2, 3])
		test(`STORY-SAME: after each step of random story ${seed} everything reads as in a naive model`, async (scene) => {
			const model = new NaiveStorage();
			const story = new Story(scene, model, seed);
			for (let step = 1; step <= STEPS; step++) {
				const name = await story.step();
				const [actual, expected] = [await readAll(scene.storage), model.readAll()];
				const totals = scene.counted(expected.totals);
				assert.deepEqual(
					{ ...actual, totals: scene.counted(actual.totals) },
					{ ...expected, totals },
					`step ${step}, ${name}`,
				);
				await story.compareReads();
			}
		});
}

class Story {
	readonly #scene: StorageScene;
	readonly #model: NaiveStorage;
	#state: number;
	#blobs: number[] = [];

	constructor(scene: StorageScene, model: NaiveStorage, seed: number) {
		this.#scene = scene;
		this.#model = model;
		this.#state = seed;
	}

	/** Does one thing to both, which must answer the same. Answers what it was. */
	async step(): Promise<string> {
		const kinds = [this.put, this.put, this.put, this.put, this.remove, this.copy, this.removeThread, this.removeBlobs];
		const kind = this.#pick(kinds);
		await kind.call(this);
		return kind.name;
	}

	async put(): Promise<void> {
		const { fresh, tick, storage } = this.#scene;
		const threadId = this.#pick(THREADS);
		const id = await fresh();
		const batch = {
			threadId,
			stamp: this.#pick([undefined, undefined, this.#stamp(threadId)]),
			fresh: await fresh(),
			now: this.#pick([tick(), tick() - 1]),
			checkpoint: this.#pick([undefined, this.#row(threadId), this.#row(threadId)]),
			blobs: [blob(id, `blob ${id}`, this.#anyBlob(), undefined, this.#anyBlob())],
			writes: this.#writes(threadId, id),
			deltaBases: this.#pick([[], [], [this.#deltaBase(threadId)]]),
		};
		assert.deepEqual(await storage.put(batch), this.#model.put(batch));
		this.#blobs = [...this.#blobs, id].slice(-6);
	}

	/** Reads in some way, which must be as in the model. */
	async compareReads(): Promise<void> {
		const { storage } = this.#scene;
		const threadId = this.#thread();
		const scan = {
			threadId: this.#pick([undefined, threadId, threadId]),
			ns: this.#pick([undefined, ...NAMESPACES]),
			before: this.#pick([undefined, undefined, ...IDS]),
			after: this.#pick([undefined, undefined, this.#key(threadId)]),
			source: this.#pick([undefined, undefined, "loop"]),
			step: this.#pick([undefined, undefined, 1]),
			limit: this.#below(8),
		};
		const keys = IDS.filter(() => this.#below(2) === 0).map((id) => ({ ...this.#key(threadId), id }));
		const known = this.#blobs.filter(() => this.#below(3) === 0);
		for (const [which, rows] of [
			[scan, this.#model.scan(scan)],
			[keys, keys.flatMap((key) => this.#model.find(key) ?? [])],
		] as const) {
			const found = await storage.read(which, "values", known);
			const values = this.#model.readValues(rows, known);
			assertRows(found.checkpoints, rows);
			assertWrites(found.writes, values.writes);
			assertBlobs(found.blobs, values.blobs);
		}
		await this.#comparePath(this.#key(threadId), this.#below(7));
	}

	async #comparePath(start: CheckpointKey, limit: number): Promise<void> {
		const found = await this.#scene.storage.readPath(start, limit);
		const expected = this.#model.readPath(start, limit);
		assertRows(found.path, expected.path);
		assertRows([...found.siblings].sort(compareKeys), expected.siblings.sort(compareKeys));
		assertWrites(found.writes, expected.writes);
		assertBases(found.deltaBases, expected.deltaBases);
		assert.equal(found.orphans === undefined, expected.orphans === undefined, "orphans are missing or too many");
		assertWrites(found.orphans ?? [], expected.orphans ?? []);
	}

	async remove(): Promise<void> {
		const threadId = this.#thread();
		const some = <T>(make: () => T) => Array.from({ length: this.#below(3) }, make);
		const { ns } = this.#key(threadId);
		const run = UUIDS.slice(this.#below(2)).map((id) => ({ threadId, ns, id }));
		const removal = {
			threadId,
			stamp: this.#stamp(threadId),
			newStamp: await this.#scene.fresh(),
			checkpoints: this.#pick([run, some(() => this.#key(threadId))]),
			writes: some(() => this.#write(this.#key(threadId), this.#below(3) - 1, 0)),
			orphans: some(() => this.#write(this.#key(threadId), this.#below(3) - 1, 0)),
			deltaBases: some(() => this.#deltaBase(threadId)),
		};
		const isGone = (row: CheckpointKey) => removal.checkpoints.some(({ ns, id }) => ns === row.ns && id === row.id);
		const survivors = this.#model.scan({ threadId, limit: ALL }).filter((row) => !isGone(row));
		const relinked = survivors.filter(() => this.#below(3) === 0).map((row) => this.#relinked(row));
		const batch = { ...removal, relinked };
		this.#assertCounted(await this.#scene.storage.remove(batch), this.#model.remove(batch));
	}

	async copy(): Promise<void> {
		const source = this.#thread();
		const known = this.#model.threads.map(({ threadId }) => threadId);
		const free = TARGETS.filter((threadId) => !known.includes(threadId));
		const keys = NAMESPACES.flatMap((ns) => IDS.map((id) => ({ threadId: source, ns, id })));
		const chosen = keys.filter(() => this.#below(2) === 0);
		const target = this.#pick([...TARGETS, ...free, ...free, ...free]);
		const batch = {
			source,
			stamp: this.#stamp(source),
			target,
			fresh: await this.#scene.fresh(),
			now: this.#scene.tick(),
			keys: this.#pick([undefined, chosen]),
			checkpoints: this.#pick([[], [this.#row(target)]]),
			writes: this.#pick([[], [write(this.#pick(IDS), `task of ${target}`, 0, { threadId: target, generation: 1 })]]),
			deltaBases: [this.#deltaBase(target)],
		};
		this.#assertCounted(await this.#scene.storage.copy(batch), this.#model.copy(batch));
	}

	async removeThread(): Promise<void> {
		const threadId = this.#pick(TARGETS);
		this.#assertCounted(await this.#scene.storage.removeThread(threadId), this.#model.removeThread(threadId));
	}

	async removeBlobs(): Promise<void> {
		const family = this.#pick([...this.#model.threads.map((thread) => thread.family), 0]);
		const ids = this.#blobs.filter(() => this.#below(2) === 0);
		await this.#scene.storage.removeBlobs(family, ids);
		this.#model.removeBlobs(family, ids);
		assertBlobs(await this.#scene.storage.getBlobs(this.#blobs), this.#model.getBlobs(this.#blobs));
	}

	#assertCounted(actual: RowCount | undefined, expected: RowCount | undefined): void {
		const { counted } = this.#scene;
		assert.deepEqual(actual && counted(actual), expected && counted(expected));
	}

	#row(threadId: string) {
		const { ns, id } = this.#key(threadId);
		const parentId = this.#pick([undefined, ...IDS]);
		return row(id, {
			threadId,
			ns,
			parentId,
			runId: this.#pick([undefined, "run"]),
			source: this.#pick([undefined, "loop", "input"]),
			step: this.#pick([undefined, 0, 1]),
			blobs: [...new Set([this.#anyBlob() ?? 1, this.#anyBlob() ?? 2])],
			head: bytes(`head ${this.#below(1_000)}`),
		});
	}

	#relinked(row: CheckpointRow): CheckpointRow {
		const blobs = this.#blobs.filter(() => this.#below(3) === 0);
		return { ...row, parentId: this.#pick([undefined, ...IDS]), blobs, head: bytes(`relinked ${this.#below(1_000)}`) };
	}

	/** A blob that may be there, or none. */
	#anyBlob(): number | undefined {
		return this.#pick([undefined, ...this.#blobs]);
	}

	/** Some of one task. */
	#writes(threadId: string, blobId: number): TestWrite[] {
		const at = {
			...this.#key(threadId),
			taskId: this.#pick(["task", "task 1"]),
			taskPath: this.#pick([undefined, "", "~__pregel_pull, a", "~__pregel_push, 0000000001, 0000000000"]),
			actor: this.#pick([undefined, 1, 2, 3]),
		};
		return [-1, 0, 1].filter(() => this.#below(2) === 0).map((idx) => ({ ...this.#write(at, idx, blobId), ...at }));
	}

	#write({ threadId, ns, id }: CheckpointKey, idx: number, blobId: number): TestWrite {
		const conflict = this.#pick(["replace", "add", "drop"] as const);
		const blob = conflict === "add" ? this.#pick([undefined, blobId]) : undefined;
		const value = blob === undefined ? bytes(`value ${this.#below(1_000)}`) : new Uint8Array(0);
		const place = { threadId, ns, blob, value, conflict, generation: this.#below(3), channel: `${this.#below(9)}` };
		return write(id, this.#pick(["task", "task 1"]), idx, place);
	}

	#deltaBase(threadId: string) {
		const { ns, id } = this.#key(threadId);
		return deltaBase(id, this.#pick(["log", "log 1"]), `base ${this.#below(1_000)}`, { threadId, ns });
	}

	#key(threadId: string): CheckpointKey {
		return { threadId, ns: this.#pick(NAMESPACES), id: this.#pick(IDS) };
	}

	/** Most likely one that is there. */
	#thread(): string {
		const known = this.#model.threads.map(({ threadId }) => threadId);
		return this.#pick([...TARGETS, ...known, ...known, ...known]);
	}

	/** The stamp of a thread, or once in a while another. */
	#stamp(threadId: string): number {
		const stamp = this.#model.threads.find((thread) => thread.threadId === threadId)?.stamp ?? 0;
		return this.#below(8) === 0 ? stamp + 1 : stamp;
	}

	#pick<T>(items: readonly T[]): T {
		return items[this.#below(items.length)] as T;
	}

	/** Mulberry32: the same story for the same seed, everywhere. */
	#below(limit: number): number {
		this.#state = (this.#state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
	}
}
