import assert from "node:assert/strict";
import type { CheckpointKey, RowCount } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { readAll } from "./audit.ts";
import { NaiveStorage } from "./naive-storage.ts";
import { sorted } from "./plain.ts";
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
			blobs: [blob(id, `blob ${id}`, this.#pick([undefined, ...this.#blobs]))],
			writes: this.#writes(threadId, id),
			deltaBases: this.#pick([undefined, undefined, [this.#deltaBase(threadId)]]),
		};
		assert.deepEqual(await storage.put(batch), this.#model.put(batch));
		this.#blobs = [...this.#blobs, id].slice(-6);
	}

	async remove(): Promise<void> {
		const threadId = this.#thread();
		const some = <T>(make: () => T) => Array.from({ length: this.#below(3) }, make);
		const { ns } = this.#key(threadId);
		const run = UUIDS.slice(this.#below(2)).map((id) => ({ threadId, ns, id }));
		const batch = {
			threadId,
			stamp: this.#stamp(threadId),
			newStamp: await this.#scene.fresh(),
			checkpoints: this.#pick([run, some(() => this.#key(threadId))]),
			writes: some(() => this.#write(this.#key(threadId), this.#below(3) - 1, 0)),
			relink: some(() => ({ key: this.#key(threadId), parentId: this.#pick([undefined, ...IDS]) })),
			deltaBases: some(() => this.#deltaBase(threadId)),
		};
		this.#assertCounted(await this.#scene.storage.remove(batch), this.#model.remove(batch));
	}

	async copy(): Promise<void> {
		const source = this.#thread();
		const known = this.#model.threads.map(({ threadId }) => threadId);
		const free = TARGETS.filter((threadId) => !known.includes(threadId));
		const keys = new Map(NAMESPACES.flatMap((ns) => IDS.map((id) => [`${ns} ${id}`, { threadId: source, ns, id }])));
		const chosen = [...keys.values()].filter(() => this.#below(2) === 0);
		const parents = chosen.map((key) => ({ key, parentId: this.#pick([undefined, ...IDS]) }));
		const batch = {
			source,
			stamp: this.#stamp(source),
			target: this.#pick([...TARGETS, ...free, ...free, ...free]),
			fresh: await this.#scene.fresh(),
			now: this.#scene.tick(),
			checkpoints: this.#pick([undefined, parents]),
			deltaBases: [this.#deltaBase(source)],
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
		const left = await this.#scene.storage.getBlobs(this.#blobs);
		assert.deepEqual(sorted(left.map(({ id }) => ({ id }))), sorted(this.#model.getBlobs(this.#blobs)));
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
			head: bytes(`head ${this.#below(1_000)}`),
		});
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
		const value = this.#pick([bytes(`value ${this.#below(1_000)}`), blobId]);
		const conflict = this.#pick(["replace", "add", "drop"] as const);
		const place = { threadId, ns, value, conflict, generation: this.#below(3), channel: `${this.#below(9)}` };
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
