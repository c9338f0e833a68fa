import type { CheckpointKey, CheckpointRow } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { ALL, readEverything } from "./reads.ts";
import { blob, bytes, deltaBase, row, type StorageScene, type TestWrite, write } from "./storage-scene.ts";

/** Enough for every operation to meet every state that the few names below allow. */
const STEPS = 120;
const THREADS = ["a", "ab", "b"];
/** Threads that may come from a copy alone, so that not every copy meets a thread in its place. */
const TARGETS = [...THREADS, "c", "cd"];
const NAMESPACES = ["", "x"];
const UUIDS = [1, 2, 3].map((n) => `1ef4f797-8335-6428-8001-8a1503f9b87${n}`);
const IDS = ["1", "10", "2", ...UUIDS];
const TASK_PATHS = [undefined, "", "~__pregel_pull, a", "~__pregel_push, 0000000001, 0000000000"];

/** Long random stories: whatever happens, all answers are those of the model. */
export function storyRules(test: StorageTest): void {
	for (const seed of [1, 2, 3])
		test(`STORY-SAME: after each step of random story ${seed} everything reads as in a naive model`, async (scene) => {
			const story = new Story(scene, seed);
			for (let step = 1; step <= STEPS; step++) {
				await story.step();
				await story.read();
				if (step % 5 === 0) await readEverything(scene.storage);
			}
		});
}

class Story {
	readonly #scene: StorageScene;
	#state: number;
	/** The threads that there were at the last step, with their stamps. */
	#stamps = new Map<string, number>();
	#families: number[] = [];
	#blobs: number[] = [];

	constructor(scene: StorageScene, seed: number) {
		this.#scene = scene;
		this.#state = seed;
	}

	async step(): Promise<void> {
		const threads = await this.#scene.storage.listThreads(ALL, undefined);
		this.#stamps = new Map(threads.map(({ threadId, stamp }) => [threadId, stamp]));
		this.#families = threads.map(({ family }) => family);
		const { put, remove, copy, removeThread, removeBlobs } = this;
		await this.#pick([put, put, put, put, remove, copy, removeThread, removeBlobs]).call(this);
	}

	async put(): Promise<void> {
		const threadId = this.#pick(THREADS);
		const id = await this.#scene.fresh();
		await this.#scene.tryPut({
			threadId,
			stamp: this.#pick([undefined, undefined, this.#stamp(threadId)]),
			checkpoint: this.#pick([undefined, this.#row(threadId), this.#row(threadId)]),
			blobs: [blob(id, `blob ${id}`, this.#anyBlob(), undefined, this.#anyBlob())],
			writes: this.#writes(threadId, id),
			deltaBases: this.#pick([[], [], this.#deltaBases(threadId)]),
		});
		this.#blobs = [...this.#blobs, id].slice(-6);
	}

	async remove(): Promise<void> {
		const { storage, removal } = this.#scene;
		const threadId = this.#thread();
		const some = <T>(make: () => T) => Array.from({ length: this.#below(3) }, make);
		const { ns } = this.#key(threadId);
		const run = UUIDS.slice(this.#below(2)).map((id) => ({ threadId, ns, id }));
		const checkpoints = this.#pick([run, some(() => this.#key(threadId))]);
		const isGone = (row: CheckpointKey) => checkpoints.some(({ ns, id }) => ns === row.ns && id === row.id);
		const rows = (await storage.read({ threadId, limit: ALL }, "rows")).checkpoints.filter((row) => !isGone(row));
		const batch = await removal({
			threadId,
			checkpoints,
			writes: some(() => this.#write(this.#key(threadId), this.#below(3) - 1, 0)),
			orphans: some(() => this.#write(this.#key(threadId), this.#below(3) - 1, 0)),
			relinked: rows.filter(() => this.#below(3) === 0).map((row) => this.#relinked(row)),
			deltaBases: this.#deltaBases(threadId),
		});
		await storage.remove({ ...batch, stamp: this.#stamp(threadId) });
	}

	async copy(): Promise<void> {
		const { storage, copying } = this.#scene;
		const source = this.#thread();
		const free = TARGETS.filter((threadId) => !this.#stamps.has(threadId));
		const target = this.#pick([...TARGETS, ...free, ...free, ...free]);
		const keys = NAMESPACES.flatMap((ns) => IDS.map((id) => ({ threadId: source, ns, id })));
		const added = write(this.#pick(IDS), `task of ${target}`, 0, { threadId: target, generation: 1 });
		const batch = await copying(target, {
			source,
			keys: this.#pick([undefined, keys.filter(() => this.#below(2) === 0)]),
			checkpoints: this.#pick([[], [this.#row(target)]]),
			writes: this.#pick([[], [added]]),
			deltaBases: this.#deltaBases(target),
		});
		await storage.copy({ ...batch, stamp: this.#stamp(source) });
	}

	async removeThread(): Promise<void> {
		await this.#scene.storage.removeThread(this.#pick(TARGETS));
	}

	async removeBlobs(): Promise<void> {
		const ids = this.#blobs.filter(() => this.#below(2) === 0);
		await this.#scene.storage.removeBlobs(this.#pick([...this.#families, 0]), ids);
		await this.#scene.storage.getBlobs(this.#blobs);
	}

	/** Reads something, in three ways. */
	async read(): Promise<void> {
		const { storage } = this.#scene;
		const threadId = this.#thread();
		const known = this.#blobs.filter(() => this.#below(3) === 0);
		const keys = IDS.filter(() => this.#below(2) === 0).map((id) => ({ ...this.#key(threadId), id }));
		const scan = {
			threadId: this.#pick([undefined, threadId, threadId]),
			ns: this.#pick([undefined, ...NAMESPACES]),
			before: this.#pick([undefined, undefined, ...IDS]),
			after: this.#pick([undefined, undefined, this.#key(threadId)]),
			source: this.#pick([undefined, undefined, "loop"]),
			step: this.#pick([undefined, undefined, 1]),
			limit: this.#below(8),
		};
		await storage.read(keys, "values", known);
		await storage.read(scan, "values", known);
		await storage.readPath(this.#key(threadId), this.#below(7));
	}

	#row(threadId: string): CheckpointRow {
		const { ns, id } = this.#key(threadId);
		return row(id, {
			threadId,
			ns,
			parentId: this.#pick([undefined, ...IDS]),
			runId: this.#pick([undefined, "run"]),
			source: this.#pick([undefined, "loop", "input"]),
			step: this.#pick([undefined, 0, 1]),
			blobs: this.#blobs.filter(() => this.#below(3) === 0),
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
		const task = { taskId: this.#pick(["task", "task 1"]), taskPath: this.#pick(TASK_PATHS) };
		const at = { ...this.#key(threadId), ...task, actor: this.#pick([undefined, 1, 2, 3]) };
		return [-1, 0, 1].filter(() => this.#below(2) === 0).map((idx) => ({ ...this.#write(at, idx, blobId), ...at }));
	}

	#write({ threadId, ns, id }: CheckpointKey, idx: number, blobId: number): TestWrite {
		const conflict = this.#pick(["replace", "add", "drop"] as const);
		const blob = conflict === "add" ? this.#pick([undefined, blobId]) : undefined;
		const value = blob === undefined ? bytes(`value ${this.#below(1_000)}`) : new Uint8Array(0);
		const place = { threadId, ns, blob, value, conflict, generation: this.#below(3), channel: `${this.#below(9)}` };
		return write(id, this.#pick(["task", "task 1"]), idx, place);
	}

	#deltaBases(threadId: string) {
		const channels = ["log", "log 1"].filter(() => this.#below(2) === 0);
		return channels.map((channel) => {
			const { ns, id } = this.#key(threadId);
			return deltaBase(id, channel, `base ${this.#below(1_000)}`, { threadId, ns });
		});
	}

	#key(threadId: string): CheckpointKey {
		return { threadId, ns: this.#pick(NAMESPACES), id: this.#pick(IDS) };
	}

	/** Most likely one that is there. */
	#thread(): string {
		const known = [...this.#stamps.keys()];
		return this.#pick([...TARGETS, ...known, ...known, ...known]);
	}

	/** The stamp of a thread, or once in a while another. */
	#stamp(threadId: string): number {
		const stamp = this.#stamps.get(threadId) ?? 0;
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
