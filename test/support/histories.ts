import assert from "node:assert/strict";
import { type Checkpoint, type CheckpointTuple, DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { DeltaSaver } from "../../src/index.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { Model, type ModelCheckpoint } from "./model.ts";

/** A storage to run a history on, and a way to open what it holds once more. */
export interface HistoryBackend {
	readonly storage: Storage;
	/** A second storage on the same data; the first one is closed. `undefined` if the data dies with it. */
	reopen?(): Promise<Storage>;
	teardown?(): Promise<void>;
}

const NO_ROWS = { threads: 0, checkpoints: 0, writes: 0 };
const NO_BYTES = { checkpoints: 0, blobs: 0, writes: 0 };
const THREADS = ["a", "ab", "__proto__"];
const NAMESPACES = ["", "", "", "child:1"];
const CHANNELS = ["messages", "files", "text", "small"] as const;
const TASK_PATHS = [undefined, "", "~__pregel_pull, b", "~__pregel_push, 0000000001", "~\ufffd", "~\u{1f600}"];
const RUNS = ["run-1", "run-2", "run-3"];

/** Numbers that operations take their choices from, so that a failing history shrinks well. */
const pick = fc.nat(1000);
const edits = fc.array(fc.record({ channel: fc.constantFrom(...CHANNELS), how: pick, size: fc.nat(400) }), {
	maxLength: 3,
});

const operation = fc.oneof(
	{
		weight: 12,
		arbitrary: fc.record({
			do: fc.constant("put"),
			thread: pick,
			ns: pick,
			parent: pick,
			edits,
			kind: pick,
			run: pick,
		}),
	},
	{
		weight: 5,
		arbitrary: fc.record({
			do: fc.constant("writes"),
			thread: pick,
			ns: pick,
			at: pick,
			kind: pick,
			size: fc.nat(1500),
			run: pick,
		}),
	},
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("again"), thread: pick, at: pick, edits, how: pick }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("twin"), thread: pick, at: pick }) },
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("copy"), thread: pick, target: pick, how: pick, at: pick }) },
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("prune"), thread: pick, keep: pick }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("runs"), run: pick }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("delete"), thread: pick }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("reopen") }) },
);

type Operation = { do: string } & Record<string, number> & { edits?: { channel: string; how: number; size: number }[] };

export const histories = fc.array(operation, { minLength: 1, maxLength: 40 }) as unknown as fc.Arbitrary<Operation[]>;

/** Runs a history on a saver and on the model, and compares all that can be read after every step that deletes, and at the end. */
export async function runHistory(
	operations: readonly Operation[],
	setup: () => Promise<HistoryBackend>,
): Promise<void> {
	const backend = await setup();
	try {
		await new HistoryRun(backend).run(operations);
	} finally {
		await backend.teardown?.();
	}
}

class HistoryRun {
	readonly #model = new Model();
	readonly #backend: HistoryBackend;
	#storage: Storage;
	#saver: DeltaSaver;
	#clock = 0;

	constructor(backend: HistoryBackend) {
		this.#backend = backend;
		this.#storage = backend.storage;
		// A small cache, so that values are also read back from storage.
		this.#saver = new DeltaSaver(backend.storage, { cacheBytes: 4096 });
	}

	async run(operations: readonly Operation[]): Promise<void> {
		for (const operation of operations) await this.#step(operation);
		await this.#compareAll();
		for (const threadId of THREADS) await this.#saver.deleteThread(threadId);
		const { bytes, ...counts } = await this.#storage.totals();
		assert.deepEqual([counts, bytes], [NO_ROWS, NO_BYTES]);
	}

	async #step(operation: Operation): Promise<void> {
		switch (operation.do) {
			case "put":
				return this.#put(operation);
			case "writes":
				return this.#putWrites(operation);
			case "again":
				return this.#putAgain(operation);
			case "twin":
				return this.#putTwin(operation);
			case "reopen":
				return this.#reopen();
			default:
				return this.#maintain(operation);
		}
	}

	/** Deletions and copies: what they leave must read as before, and nothing else may be left. */
	async #maintain(operation: Operation): Promise<void> {
		const before = await this.#deltaHistories();
		const { source, target } = await this.#change(operation);
		await this.#compareAll();
		const after = await this.#deltaHistories();
		for (const [key, history] of after) {
			const [threadId, ...rest] = JSON.parse(key) as string[];
			const known = threadId === target ? JSON.stringify([source, ...rest]) : key;
			assert.deepEqual(history, before.get(known), `delta history of ${key} after ${JSON.stringify(operation)}`);
		}
	}

	async #change(operation: Operation): Promise<{ source?: string; target?: string }> {
		const thread = choose(THREADS, operation.thread);
		switch (operation.do) {
			case "copy": {
				const target = choose(THREADS, operation.target);
				if (this.#model.threads.has(target) || target === thread) return {};
				const roots = this.#model.list(thread, "");
				const upTo = choose(roots, operation.at)?.id;
				const how = (operation.how ?? 0) % 3;
				const options = how === 1 && upTo !== undefined ? { upTo } : how === 2 ? { latestOnly: true } : {};
				await this.#saver.copyThread(thread, target, options);
				this.#model.copyThread(thread, target, options);
				return { source: thread, target };
			}
			case "prune": {
				const keepLast = 1 + ((operation.keep ?? 0) % 4);
				await this.#saver.prune([thread], { keepLast });
				this.#model.prune(thread, keepLast);
				return {};
			}
			case "runs": {
				const run = choose(RUNS, operation.run);
				await this.#saver.deleteForRuns([run]);
				this.#model.deleteForRuns([run]);
				return {};
			}
			default:
				await this.#saver.deleteThread(thread);
				this.#model.deleteThread(thread);
				return {};
		}
	}

	async #reopen(): Promise<void> {
		if (this.#backend.reopen === undefined) return;
		await this.#saver.close();
		this.#storage = await this.#backend.reopen();
		this.#saver = new DeltaSaver(this.#storage, { cacheBytes: 4096 });
	}

	/** A child of some checkpoint, or of none, or of one that was never stored. */
	async #put(operation: Operation): Promise<void> {
		const threadId = choose(THREADS, operation.thread);
		const ns = choose(NAMESPACES, operation.ns);
		const known = this.#model.list(threadId, ns);
		const places = [undefined, ...known, ...known.slice(0, 3), ...known.slice(0, 1)];
		const parent = choose(places, operation.parent);
		const kind = (operation.kind ?? 0) % 10;
		const parentId = parent?.id ?? (kind === 9 ? "never-stored" : undefined);
		const source = parent === undefined ? "input" : kind < 6 ? "loop" : kind < 8 ? "update" : "fork";
		const values = structuredClone(parent?.values ?? {});
		const versions = { ...parent?.versions };
		const newVersions: Record<string, number> = {};
		for (const edit of operation.edits ?? []) {
			edit_(values, edit);
			// An update may change a channel without saying so.
			if (source !== "loop" && source !== "input" && edit.size % 2 === 1 && versions[edit.channel]) continue;
			versions[edit.channel] = (versions[edit.channel] ?? 0) + 1;
			newVersions[edit.channel] = versions[edit.channel] as number;
		}
		if (kind % 2 === 0) newVersions.delta = versions.delta = (versions.delta ?? 0) + 1;
		if (kind === 4) values.delta = new DeltaSnapshot(["snapshot", this.#clock]);
		else delete values.delta;
		if (parent === undefined) Object.assign(newVersions, versions);
		values.unversioned = [];
		const step = (parent?.metadata.step ?? -2) + 1;
		const parents = ns === "" ? {} : { "": this.#model.list(threadId, "")[0]?.id ?? "" };
		const counters = kind % 2 === 0 ? { counters_since_delta_snapshot: { delta: [1, step] as [number, number] } } : {};
		await this.#store(threadId, newVersions, {
			ns,
			id: this.#nextId(),
			parentId,
			runId: choose([undefined, ...RUNS], operation.run),
			values,
			versions,
			metadata: { source, step, parents, ...counters } as ModelCheckpoint["metadata"],
		});
	}

	/**
	 * The same id once more, as its own parent: what LangGraph does when a run ends where it began. Or as others may do it:
	 * without a parent, or with the one that it has and all values.
	 */
	async #putAgain(operation: Operation): Promise<void> {
		const threadId = choose(THREADS, operation.thread);
		const known = choose(this.#model.list(threadId), operation.at);
		if (known === undefined) return;
		const values = structuredClone(known.values);
		const versions = { ...known.versions };
		const newVersions: Record<string, number> = {};
		for (const edit of operation.edits ?? []) {
			edit_(values, edit);
			newVersions[edit.channel] = versions[edit.channel] = (versions[edit.channel] ?? 0) + 1;
		}
		const parentId = choose([known.id, undefined, known.parentId], operation.how);
		const isStep = parentId === undefined || parentId === known.id;
		await this.#store(threadId, isStep ? newVersions : versions, { ...known, parentId, values, versions });
	}

	/** What LangGraph's `__copy__` does: the same values beside the original, none of them new. */
	async #putTwin(operation: Operation): Promise<void> {
		const threadId = choose(THREADS, operation.thread);
		const known = choose(this.#model.list(threadId, ""), operation.at);
		if (known === undefined) return;
		const metadata = { ...known.metadata, source: "fork" as const, step: known.metadata.step + 1 };
		await this.#store(threadId, {}, { ...known, id: this.#nextId(), metadata });
	}

	async #store(threadId: string, newVersions: Record<string, number>, checkpoint: ModelCheckpoint): Promise<void> {
		const { ns, id, parentId, runId, values, versions, metadata } = checkpoint;
		const config = {
			configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: parentId, run_id: runId },
		};
		const given: Checkpoint = {
			v: 4,
			id,
			ts: new Date(this.#clock).toISOString(),
			channel_values: clone(values),
			channel_versions: { ...versions },
			versions_seen: { node: { ...versions } },
		};
		const stored = this.#saver.put(config, given, structuredClone(metadata), newVersions);
		// Whatever the caller does afterwards must not be stored.
		mutate(given.channel_values);
		await stored;
		this.#model.put(threadId, checkpoint);
	}

	async #putWrites(operation: Operation): Promise<void> {
		const threadId = choose(THREADS, operation.thread);
		const ns = choose(NAMESPACES, operation.ns);
		const known = this.#model.list(threadId, ns);
		const id = choose([...known.slice(0, 5).map((checkpoint) => checkpoint.id), "orphan"], operation.at);
		const kind = (operation.kind ?? 0) % 6;
		const value = { text: "w".repeat(operation.size ?? 0), n: this.#clock++ };
		const writes: [string, unknown][] = [
			[
				["delta", value],
				["messages", [value]],
			],
			[["__interrupt__", [value]]],
			[["__resume__", value]],
			[
				["__error__", { message: "no" }],
				["delta", value],
			],
			[],
			[
				["delta", value],
				["delta", { second: value.n }],
			],
		][kind] as [string, unknown][];
		const taskId = `task-${(operation.kind ?? 0) % 4}`;
		const runId = choose([undefined, ...RUNS], operation.run);
		const config = { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id, run_id: runId } };
		const taskPath = choose(TASK_PATHS, operation.size);
		await this.#saver.putWrites(config, structuredClone(writes), taskId, taskPath);
		this.#model.putWrites(threadId, { ns, id, taskId, taskPath, runId }, writes);
	}

	#nextId(): string {
		return `1f0-${String(this.#clock++).padStart(8, "0")}`;
	}

	async #compareAll(): Promise<void> {
		for (const threadId of THREADS) {
			const expected = this.#model.list(threadId);
			const tuples: CheckpointTuple[] = [];
			for await (const tuple of this.#saver.list({ configurable: { thread_id: threadId } })) tuples.push(tuple);
			assert.deepEqual(
				tuples.map((tuple) => tuple.checkpoint.id),
				expected.map((checkpoint) => checkpoint.id),
				`ids of thread ${threadId}`,
			);
			for (const [i, checkpoint] of expected.entries()) {
				this.#compare(threadId, checkpoint, tuples[i] as CheckpointTuple);
				const { ns, id } = checkpoint;
				const config = { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
				this.#compare(threadId, checkpoint, (await this.#saver.getTuple(config)) as CheckpointTuple);
			}
			for (const ns of new Set(NAMESPACES)) {
				const head = await this.#saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: ns } });
				assert.equal(head?.checkpoint.id, this.#model.list(threadId, ns)[0]?.id, `head of ${threadId} ${ns}`);
			}
		}
		await this.#compareCounts();
		await this.#checkNoGarbage();
	}

	#compare(threadId: string, expected: ModelCheckpoint, tuple: CheckpointTuple): void {
		const { ns, id, parentId, values, versions, metadata } = expected;
		const where = `${threadId} ${ns} ${id}`;
		const config = (checkpointId: string) => ({
			configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpointId },
		});
		assert.deepEqual(tuple.config, config(id), where);
		assert.deepEqual(tuple.parentConfig, parentId === undefined ? undefined : config(parentId), `parent of ${where}`);
		assert.deepEqual(tuple.checkpoint.channel_values, clone(values), `values of ${where}`);
		assert.deepEqual(Object.keys(tuple.checkpoint.channel_values), Object.keys(values), `channels of ${where}`);
		assert.deepEqual(tuple.checkpoint.channel_versions, versions, `versions of ${where}`);
		assert.deepEqual(tuple.metadata, metadata, `metadata of ${where}`);
		assert.deepEqual(tuple.pendingWrites, this.#model.pendingWrites(threadId, ns, id), `writes of ${where}`);
	}

	async #compareCounts(): Promise<void> {
		const { threads } = await this.#saver.listThreads({ limit: 100 });
		const listed = threads.map(({ threadId, checkpoints, head }) => ({ threadId, checkpoints, head }));
		const expected = [...this.#model.threads].map(([threadId, thread]) => ({
			threadId,
			checkpoints: thread.checkpoints.size,
			head: this.#model.list(threadId, "")[0]?.id,
		}));
		const byId = (a: { threadId: string }, b: { threadId: string }) => (a.threadId < b.threadId ? -1 : 1);
		assert.deepEqual(listed.sort(byId), expected.sort(byId), "listed threads");
		const { checkpoints, writes } = await this.#saver.stats();
		const all = [...this.#model.threads.values()];
		assert.equal(
			checkpoints,
			all.reduce((sum, thread) => sum + thread.checkpoints.size, 0),
			"checkpoints counted",
		);
		assert.equal(
			writes,
			all.reduce((sum, thread) => sum + thread.writes.length, 0),
			"writes counted",
		);
	}

	/** Every blob that is stored is named by some channel that is stored: `stats` gives one that is not the name "". */
	async #checkNoGarbage(): Promise<void> {
		const { channels, blobs, bytes } = await this.#saver.stats();
		assert.ok(!channels.some(({ channel }) => channel === ""), "a blob that nothing refers to");
		assert.equal(
			channels.reduce((sum, channel) => sum + channel.blobs, 0),
			blobs.whole + blobs.patched,
			"blobs by channel",
		);
		assert.equal(
			channels.reduce((sum, channel) => sum + channel.bytes, 0),
			bytes.blobs,
			"all blob bytes belong to a family",
		);
	}

	async #deltaHistories(): Promise<Map<string, unknown>> {
		const found = new Map<string, unknown>();
		for (const threadId of this.#model.threads.keys())
			for (const { ns, id, values } of this.#model.list(threadId)) {
				if ("delta" in values) continue;
				const config = { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
				const history = await this.#saver.getDeltaChannelHistory({ config, channels: ["delta"] });
				found.set(JSON.stringify([threadId, ns, id]), history);
			}
		return found;
	}
}

function choose<T>(items: readonly T[], number = 0): T {
	return items[number % Math.max(1, items.length)] as T;
}

/** structuredClone, but DeltaSnapshot stays one. */
function clone(values: Record<string, unknown>): Record<string, unknown> {
	const copy = structuredClone(values);
	if (values.delta !== undefined) copy.delta = new DeltaSnapshot((copy.delta as DeltaSnapshot).value);
	return copy;
}

function mutate(values: Record<string, unknown>): void {
	if (Array.isArray(values.messages)) values.messages.push("after the call");
	values.late = true;
}

/** One change of a channel, of the kinds that reducers make. */
function edit_(
	values: Record<string, unknown>,
	{ channel, how, size }: { channel: string; how: number; size: number },
): void {
	const filler = `${how}:${"x".repeat(size)}`;
	if (channel === "small") values.small = how;
	else if (channel === "text") values.text = how % 5 === 0 ? filler : `${values.text ?? ""}${filler}`;
	else if (channel === "files") {
		const files = { ...(values.files as Record<string, string>) };
		if (how % 4 === 0) delete files[`f${how % 7}`];
		else files[`f${how % 7}`] = filler;
		values.files = files;
	} else {
		const list = [...((values.messages as unknown[]) ?? [])];
		const message = { id: how, content: filler, tags: [how % 3] };
		if (how % 6 < 3) list.push(message);
		else if (how % 6 === 3) list.shift();
		else if (how % 6 === 4 && list.length > 0) list[how % list.length] = message;
		else list.splice(list.length >> 1, 1, message, message);
		values.messages = list;
	}
}
