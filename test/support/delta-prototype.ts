import type { RunnableConfig } from "@langchain/core/runnables";
import {
	type Checkpoint,
	type CheckpointMetadata,
	type CheckpointTuple,
	MemorySaver,
	type PendingWrite,
	WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import {
	absorbedTasks,
	attributeOrphans,
	attributeOwnWrites,
	attributeWrites,
	findOriginal,
	type PathCheckpoint,
	type StoredWrite,
	type TaskState,
} from "../../src/engine/attribution.ts";

interface Row {
	path: PathCheckpoint;
	channels: Set<string>;
	/** Values that an earlier put of it held and the last one left out. */
	base: Record<string, unknown>;
	tasks: TaskState;
}

interface Write extends StoredWrite {
	checkpointId: string;
	stored: [type: string, data: Uint8Array];
}

interface Namespace {
	rows: Map<string, Row>;
	writes: Write[];
}

/** The smallest saver that keeps what the attribution of writes needs. Everything else is left to the official one. */
export class AttributingSaver extends MemorySaver {
	readonly #namespaces = new Map<string, Namespace>();
	readonly #actors = new WeakMap<object, number>();
	readonly #tupleOfParent = new WeakMap<object, string>();
	readonly #pause: () => Promise<void>;
	/** Calls for one task at one checkpoint take effect in their order. */
	readonly #calls = new Map<string, Promise<void>>();
	#lastActor = 0;

	/** `pause` is awaited before a call takes effect, to make calls overtake each other. */
	constructor(pause: () => Promise<void> = async () => {}) {
		super();
		this.#pause = pause;
	}

	override async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
		const space = this.#space(config);
		const actor = this.#actor(config);
		if (metadata.source === "update") this.#actors.delete(actorKey(config));
		const copied = this.#tupleOfParent.get(config);
		const { id } = checkpoint;
		const tasks = taskState(checkpoint);
		await this.#pause();
		const known = space.rows.get(id);
		const asked = config.configurable?.checkpoint_id as string | undefined;
		const parentId = known || asked === id ? known?.path.parentId : asked;
		const held = known && (await super.getTuple({ configurable: { ...config.configurable, checkpoint_id: id } }));
		const row: Row = {
			base: { ...known?.base, ...held?.checkpoint.channel_values },
			channels: new Set(Object.keys(checkpoint.channel_values)),
			tasks,
			path: known
				? { ...known.path, versions: tasks.versions, again: [...(known.path.again ?? []), actor] }
				: pathCheckpoint(id, tasks, metadata, parentId, space.rows.get(parentId ?? ""), actor),
		};
		if (!known) {
			const original = (copied && space.rows.get(copied)) || originalOf(space, row);
			if (original && originalOf(space, row)) row.path = { ...row.path, actor: original.path.actor };
		}
		space.rows.set(id, row);
		const target = { configurable: { ...config.configurable, checkpoint_id: parentId } };
		return super.put(target, checkpoint, metadata);
	}

	override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string) {
		const space = this.#space(config);
		const actor = this.#actor(config);
		const checkpointId = config.configurable?.checkpoint_id as string;
		const stored = await Promise.all(writes.map(([, value]) => this.serde.dumpsTyped(value)));
		const earlier = this.#calls.get(`${checkpointId} ${taskId}`);
		const call = this.#pause().then(() => earlier);
		this.#calls.set(`${checkpointId} ${taskId}`, call);
		await call;
		const before = space.writes.filter((w) => w.checkpointId === checkpointId && w.taskId === taskId);
		const generation = before.reduce((max, w) => Math.max(max, (w.generation ?? 0) + 1), 0);
		const special = writes.every(([channel]) => channel in WRITES_IDX_MAP);
		writes.forEach(([channel], position) => {
			const idx = WRITES_IDX_MAP[channel] ?? position;
			if (special) space.writes = space.writes.filter((w) => !(before.includes(w) && w.idx === idx));
			const facts = { checkpointId, taskId, idx, channel, actor, generation: special ? 0 : generation };
			space.writes.push({ ...facts, stored: stored[position] as Write["stored"] });
		});
		return super.putWrites({ configurable: { checkpoint_ns: "", ...config.configurable } }, writes, taskId);
	}

	override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		const tuple = await super.getTuple(config);
		if (tuple?.parentConfig) this.#tupleOfParent.set(tuple.parentConfig, tuple.checkpoint.id);
		return tuple;
	}

	override async getDeltaChannelHistory({ config, channels }: { config: RunnableConfig; channels: string[] }) {
		const space = this.#space(config);
		const result: Record<string, { writes: [string, string, unknown][]; seed?: unknown }> = {};
		for (const channel of channels) {
			const { writes, seed, base } = history(space, config.configurable?.checkpoint_id as string, channel);
			const values = await Promise.all(writes.map((w) => this.serde.loadsTyped(...w.stored)));
			result[channel] = { writes: writes.map((w, i) => [w.taskId, w.channel, values[i]]) };
			if (base) result[channel].seed = base.value;
			if (!seed) continue;
			const tuple = await super.getTuple({ configurable: { ...config.configurable, checkpoint_id: seed.path.id } });
			result[channel].seed = tuple?.checkpoint.channel_values[channel];
		}
		return result as Awaited<ReturnType<MemorySaver["getDeltaChannelHistory"]>>;
	}

	#space(config: RunnableConfig): Namespace {
		const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
		const key = JSON.stringify([thread_id, checkpoint_ns]);
		const space = this.#namespaces.get(key) ?? { rows: new Map(), writes: [] };
		this.#namespaces.set(key, space);
		return space;
	}

	#actor(config: RunnableConfig): number {
		const key = actorKey(config);
		const actor = this.#actors.get(key) ?? Math.max(this.#lastActor + 1, Date.now() * 1000);
		this.#actors.set(key, actor);
		this.#lastActor = Math.max(this.#lastActor, actor);
		return actor;
	}
}

/** All calls of one run carry the same metadata object, those of a state update the same configurable. */
function actorKey(config: RunnableConfig): object {
	return config.metadata ?? config.configurable ?? config;
}

function taskState(checkpoint: Checkpoint): TaskState {
	const sends = JSON.stringify(checkpoint.channel_values.__pregel_tasks);
	return { versions: checkpoint.channel_versions, seen: structuredClone(checkpoint.versions_seen), value: () => sends };
}

function pathCheckpoint(
	id: string,
	tasks: TaskState,
	{ source, step }: CheckpointMetadata,
	parentId: string | undefined,
	parent: Row | undefined,
	actor: number,
): PathCheckpoint {
	const absorbed = source === "update" && parent !== undefined && absorbedTasks(parent.tasks, tasks);
	return { id, parentId, source, step, versions: tasks.versions, actor, absorbed };
}

interface History {
	writes: Write[];
	seed?: Row;
	base?: { value: unknown };
}

function history(space: Namespace, id: string, channel: string): History {
	const at = (checkpointId: string | undefined) => space.writes.filter((w) => w.checkpointId === checkpointId);
	const parts: Write[][] = [];
	const seen = new Set<Row>();
	let child = space.rows.get(id);
	let last: PathCheckpoint | undefined;
	while (child && !seen.has(child)) {
		seen.add(child);
		const { path } = child;
		const own = attributeOwnWrites({ checkpoint: path, child: last, channel, writes: at(path.id) });
		parts.unshift(own);
		if (Object.hasOwn(child.base, channel)) return { writes: parts.flat(), base: { value: child.base[channel] } };
		const original = originalOf(space, child);
		if (original) {
			child = original;
			continue;
		}
		const parent = space.rows.get(path.parentId ?? "");
		if (!parent) {
			const writes = space.writes.filter((w) => !space.rows.has(w.checkpointId));
			parts.unshift(attributeOrphans({ root: path, channel, writes }));
			break;
		}
		parts.unshift(
			attributeWrites({
				parent: parent.path,
				child: path,
				siblings: siblingsOf(space, child),
				channel,
				own,
				writes: at(path.parentId),
				inherited: new Set(at(parent.path.parentId).map((w) => w.taskId)),
			}),
		);
		if (parent.channels.has(channel)) return { writes: parts.flat(), seed: parent };
		last = path;
		child = parent;
	}
	return { writes: parts.flat() };
}

function originalOf(space: Namespace, child: Row): Row | undefined {
	const parent = space.rows.get(child.path.parentId ?? "")?.path;
	const original = findOriginal({ child: child.path, parent, siblings: siblingsOf(space, child) });
	return original && space.rows.get(original.id);
}

function siblingsOf(space: Namespace, child: Row): PathCheckpoint[] {
	const paths = [...space.rows.values()].map((row) => row.path);
	return paths.filter((path) => path.parentId === child.path.parentId && path.id !== child.path.id);
}
