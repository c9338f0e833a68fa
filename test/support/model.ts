import type { CheckpointMetadata, CheckpointPendingWrite } from "@langchain/langgraph-checkpoint";
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { compareWritesSortKeys, writesSortKey } from "../langgraph-next/checkpoint.mjs";

/** A checkpoint as a saver must give it back. */
export interface ModelCheckpoint {
	ns: string;
	id: string;
	parentId: string | undefined;
	runId: string | undefined;
	values: Record<string, unknown>;
	versions: Record<string, number>;
	metadata: CheckpointMetadata;
}

interface ModelWrite {
	ns: string;
	id: string;
	taskId: string;
	taskPath: string | undefined;
	idx: number;
	channel: string;
	value: unknown;
	runId: string | undefined;
}

export interface ModelThread {
	checkpoints: Map<string, ModelCheckpoint>;
	writes: ModelWrite[];
}

const keyOf = (ns: string, id: string) => JSON.stringify([ns, id]);

const sortKeyOf = ({ taskPath, taskId, idx }: ModelWrite) => writesSortKey(taskPath, taskId, idx);

/** Keeps a full copy of everything and does every operation in the most obvious way. The oracle of the random histories. */
export class Model {
	readonly threads = new Map<string, ModelThread>();

	thread(threadId: string): ModelThread {
		const thread = this.threads.get(threadId) ?? { checkpoints: new Map(), writes: [] };
		this.threads.set(threadId, thread);
		return thread;
	}

	put(threadId: string, checkpoint: ModelCheckpoint): void {
		const { checkpoints } = this.thread(threadId);
		const key = keyOf(checkpoint.ns, checkpoint.id);
		const before = checkpoints.get(key);
		const asked = checkpoint.parentId === checkpoint.id ? undefined : checkpoint.parentId;
		checkpoints.set(key, { ...structuredClone(checkpoint), parentId: asked ?? before?.parentId });
	}

	putWrites(
		threadId: string,
		at: { ns: string; id: string; taskId: string; taskPath?: string | undefined; runId: string | undefined },
		writes: [string, unknown][],
	): void {
		const thread = this.thread(threadId);
		const isSpecial = writes.every(([channel]) => channel in WRITES_IDX_MAP);
		for (const [position, [channel, value]] of writes.entries()) {
			const idx = WRITES_IDX_MAP[channel] ?? position;
			const found = thread.writes.findIndex(
				(w) => w.ns === at.ns && w.id === at.id && w.taskId === at.taskId && w.idx === idx,
			);
			const write = { taskPath: undefined, ...at, idx, channel, value: structuredClone(value) };
			if (found < 0 || idx >= 0) thread.writes.push(write);
			else if (isSpecial) thread.writes[found] = write;
		}
	}

	/** By task path, task id and index. Of several writes of one task with the same index, the first is seen. */
	pendingWrites(threadId: string, ns: string, id: string): CheckpointPendingWrite[] {
		return this.thread(threadId)
			.writes.filter((write) => write.ns === ns && write.id === id)
			.filter((write, i, all) => all.findIndex((w) => w.taskId === write.taskId && w.idx === write.idx) === i)
			.sort((a, b) => compareWritesSortKeys(sortKeyOf(a), sortKeyOf(b)))
			.map(({ taskId, channel, value }) => [taskId, channel, value]);
	}

	/** Newest first. */
	list(threadId: string, ns?: string): ModelCheckpoint[] {
		const all = [...(this.threads.get(threadId)?.checkpoints.values() ?? [])];
		return all
			.filter((checkpoint) => ns === undefined || checkpoint.ns === ns)
			.sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : a.ns < b.ns ? -1 : 1));
	}

	namespaces(threadId: string): string[] {
		return [...new Set(this.list(threadId).map(({ ns }) => ns))];
	}

	copyThread(source: string, target: string, options: { upTo?: string; latestOnly?: boolean } = {}): void {
		const from = this.threads.get(source);
		if (from === undefined) return;
		this.threads.set(target, structuredClone(from));
		if (options.upTo !== undefined) {
			const kept = new Set<string>();
			const byId = new Map(this.list(source, "").map((checkpoint) => [checkpoint.id, checkpoint]));
			for (let id: string | undefined = options.upTo; id && byId.has(id) && !kept.has(id); id = byId.get(id)?.parentId)
				kept.add(id);
			this.#keep(target, ({ ns, id, metadata }) => kept.has(ns === "" ? id : String(metadata.parents[""])), true);
		}
		if (options.latestOnly) {
			const newest = new Set(this.namespaces(source).map((ns) => this.list(source, ns)[0]?.id));
			this.#keep(target, ({ ns, id }) => newest.has(id) && this.list(source, ns)[0]?.id === id, true);
		}
	}

	prune(threadId: string, keepLast: number): void {
		if (!this.threads.has(threadId)) return;
		const kept = new Set(
			this.namespaces(threadId).flatMap((ns) =>
				this.list(threadId, ns)
					.slice(0, keepLast)
					.map((c) => keyOf(ns, c.id)),
			),
		);
		this.#keep(threadId, ({ ns, id }) => kept.has(keyOf(ns, id)), false);
	}

	deleteForRuns(runIds: string[]): void {
		for (const [threadId, thread] of this.threads) {
			const isGone = ({ runId }: { runId: string | undefined }) => runId !== undefined && runIds.includes(runId);
			const touched = thread.writes.some(isGone) || [...thread.checkpoints.values()].some(isGone);
			if (!touched) continue;
			this.#keep(threadId, (checkpoint) => !isGone(checkpoint), false);
			thread.writes = thread.writes.filter((write) => !isGone(write));
		}
	}

	deleteThread(threadId: string): void {
		this.threads.delete(threadId);
	}

	/** Removes checkpoints with their writes and links the rest to their nearest ancestors that stay. */
	#keep(threadId: string, stays: (checkpoint: ModelCheckpoint) => boolean, dropOrphans: boolean): void {
		const thread = this.thread(threadId);
		const before = new Map(thread.checkpoints);
		const hadCheckpoints = before.size > 0;
		for (const [key, checkpoint] of before) {
			if (stays(checkpoint)) continue;
			thread.checkpoints.delete(key);
			thread.writes = thread.writes.filter((write) => write.ns !== checkpoint.ns || write.id !== checkpoint.id);
		}
		for (const [key, checkpoint] of thread.checkpoints) {
			const seen = new Set<string>();
			let parentId = checkpoint.parentId;
			while (parentId !== undefined) {
				const parentKey = keyOf(checkpoint.ns, parentId);
				if (thread.checkpoints.has(parentKey) || !before.has(parentKey)) break;
				if (seen.has(parentKey)) {
					parentId = undefined;
					break;
				}
				seen.add(parentKey);
				parentId = before.get(parentKey)?.parentId;
			}
			thread.checkpoints.set(key, { ...checkpoint, parentId });
		}
		if (dropOrphans) thread.writes = thread.writes.filter((write) => thread.checkpoints.has(keyOf(write.ns, write.id)));
		if (hadCheckpoints && thread.checkpoints.size === 0) this.threads.delete(threadId);
	}
}
