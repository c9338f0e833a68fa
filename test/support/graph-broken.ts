import type { RunnableConfig } from "@langchain/core/runnables";
import {
	type BaseCheckpointSaver,
	type ChannelVersions,
	type Checkpoint,
	type CheckpointListOptions,
	type CheckpointMetadata,
	type CheckpointTuple,
	MemorySaver,
	type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Core } from "./core.ts";
import type { Durability } from "./graph-bench.ts";
import type { Comparison } from "./graph-scenario.ts";
import { OfficialSaver } from "./official-saver.ts";

type Put = Parameters<BaseCheckpointSaver["put"]>;

const { put: storePut } = OfficialSaver.prototype;

/** The official saver with its put replaced; `store` stores as the official one does. */
const withPut = (put: (store: (...args: Put) => Promise<RunnableConfig>, ...args: Put) => Promise<RunnableConfig>) =>
	class extends OfficialSaver {
		override put(
			config: RunnableConfig,
			checkpoint: Checkpoint,
			metadata: CheckpointMetadata,
			versions?: ChannelVersions,
		) {
			const store = (...args: Put) => storePut.apply(this, [args[0], args[1], args[2]]);
			return put(store, config, checkpoint, metadata, versions ?? {});
		}
	};

/** The official saver with its answers changed on the way out. */
const withTuples = (change: (tuple: CheckpointTuple) => CheckpointTuple) =>
	class extends OfficialSaver {
		override async getTuple(config: RunnableConfig) {
			const tuple = await super.getTuple(config);
			return tuple && change(tuple);
		}
		override async *list(config: RunnableConfig, options?: CheckpointListOptions) {
			for await (const tuple of super.list(config, options)) yield change(tuple);
		}
	};

/** The official saver with its list options changed. */
const withOptions = (change: (options: CheckpointListOptions) => CheckpointListOptions) =>
	class extends OfficialSaver {
		override list(config: RunnableConfig, options: CheckpointListOptions = {}) {
			return super.list(config, change(options));
		}
	};

const only = <T>(record: Record<string, T>, keep: (key: string, value: T) => boolean): Record<string, T> =>
	Object.fromEntries(Object.entries(record).filter(([key, value]) => keep(key, value)));

const changeValues = (tuple: CheckpointTuple, keep: (key: string, value: unknown) => boolean): CheckpointTuple => ({
	...tuple,
	checkpoint: { ...tuple.checkpoint, channel_values: only(tuple.checkpoint.channel_values, keep) },
});

function versionsAsText(tuple: CheckpointTuple): CheckpointTuple {
	const versions = Object.entries(tuple.checkpoint.channel_versions).map(([key, version]) => [key, `${version}`]);
	return { ...tuple, checkpoint: { ...tuple.checkpoint, channel_versions: Object.fromEntries(versions) } };
}

/** Values of the parent, and over them those that have a new version. */
function changedChannelsOnly(): new () => OfficialSaver {
	return class extends OfficialSaver {
		override async put(
			config: RunnableConfig,
			checkpoint: Checkpoint,
			metadata: CheckpointMetadata,
			versions: ChannelVersions = {},
		) {
			const parent = config.configurable?.checkpoint_id === undefined ? undefined : await super.getTuple(config);
			const changed = only(checkpoint.channel_values, (key) => key in versions);
			const channel_values = { ...parent?.checkpoint.channel_values, ...changed };
			return super.put(config, { ...checkpoint, channel_values }, metadata);
		}
	};
}

/** Values by channel and version, the first one stored for a version staying, whatever branch it came from. */
function valuesByVersion(): new () => OfficialSaver {
	return class extends OfficialSaver {
		readonly #values = new Map<string, unknown>();
		override put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
			const values = only(checkpoint.channel_values, () => true);
			for (const [channel, version] of Object.entries(checkpoint.channel_versions)) {
				const key = JSON.stringify([
					config.configurable?.thread_id,
					config.configurable?.checkpoint_ns,
					channel,
					version,
				]);
				if (!this.#values.has(key)) this.#values.set(key, structuredClone(values[channel]));
				if (this.#values.get(key) !== undefined) values[channel] = this.#values.get(key);
			}
			return super.put(config, { ...checkpoint, channel_values: values }, metadata);
		}
	};
}

/** Answers kept and handed out again, as if nobody ever changed what they were given. */
function sharedAnswers(): new () => OfficialSaver {
	return class extends OfficialSaver {
		readonly #answers = new Map<string, CheckpointTuple>();
		override async getTuple(config: RunnableConfig) {
			const tuple = await super.getTuple(config);
			const key = `${tuple?.checkpoint.id} ${tuple?.pendingWrites?.length}`;
			if (tuple !== undefined && !this.#answers.has(key)) this.#answers.set(key, tuple);
			return this.#answers.get(key);
		}
	};
}

const later = () => new Promise((resolve) => setTimeout(resolve, 2));

/** A saver that is wrong, and the scenario that shows it. */
export interface Broken {
	Saver: new () => BaseCheckpointSaver;
	story: string;
	/** The first durability of the story unless told. */
	durability?: Durability;
	way?: Comparison;
	/** The LangGraph that shows it; any unless told. */
	core?: Core;
}

const ASKING = "a node asks three times in a row";
const FORKING = "two updates fork one checkpoint, and both branches run on in turns";
const HALFWAY = "a half-finished superstep is updated without naming the checkpoint";
const PACKETS = "twenty tasks are sent out and their results gathered";
const MUTATING = "a node changes the state it was given in place and returns it";

/** Savers that are each wrong in one way that real ones have been wrong in, or could be. */
export const brokenSavers: Record<string, Broken> = {
	"forgets whose child a checkpoint is": {
		story: FORKING,
		Saver: withTuples(({ parentConfig: _, ...tuple }) => tuple),
	},
	"takes the checkpoint for its own parent": {
		story: FORKING,
		Saver: withPut((store, config, ...args) =>
			store({ configurable: { ...config.configurable, checkpoint_id: args[0].id } }, ...args),
		),
	},
	"forgets the metadata": {
		story: ASKING,
		Saver: withTuples((tuple) => ({ ...tuple, metadata: { source: "loop", step: 0, parents: {} } })),
	},
	"forgets pending writes": { story: ASKING, Saver: withTuples((tuple) => ({ ...tuple, pendingWrites: [] })) },
	"forgets the order of a task's writes": {
		story: HALFWAY,
		Saver: withTuples((tuple) => ({ ...tuple, pendingWrites: tuple.pendingWrites?.toReversed() })),
	},
	"has writes in the order in which they came": { story: ASKING, Saver: MemorySaver },
	"forgets task paths": {
		story: PACKETS,
		core: "1.7",
		Saver: class extends OfficialSaver {
			override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string) {
				return super.putWrites(config, writes, taskId);
			}
		},
	},
	"lets a later write win": {
		story: "a question is answered again from the checkpoint that asked it",
		Saver: class extends OfficialSaver {
			override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string) {
				const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
				const stored = this.writes[JSON.stringify([thread_id, checkpoint_ns, checkpoint_id])] ?? {};
				for (const key of Object.keys(stored)) if (key.startsWith(taskId)) delete stored[key as never];
				await super.putWrites(config, writes, taskId, taskPath);
			}
		},
	},
	"refuses writes for a checkpoint it has not got yet": {
		story: "a thread begins with a command",
		Saver: class extends OfficialSaver {
			override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string) {
				const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
				if (!this.storage[thread_id]?.[checkpoint_ns]?.[checkpoint_id]) throw new Error("no such checkpoint");
				await super.putWrites(config, writes, taskId, taskPath);
			}
		},
	},
	"loses values that are undefined": {
		story: "a deferred node runs when everything else is done",
		Saver: withTuples((tuple) => changeValues(tuple, (_, value) => value !== undefined)),
	},
	"loses channels without a version": {
		story: ASKING,
		Saver: withTuples((tuple) => changeValues(tuple, (key) => key in tuple.checkpoint.channel_versions)),
	},
	"stores only channels with a new version": { story: HALFWAY, Saver: changedChannelsOnly() },
	"keeps values by channel and version": { story: FORKING, Saver: valuesByVersion() },
	"turns versions into text": { story: ASKING, Saver: withTuples(versionsAsText) },
	"hands out the same objects again": { story: "a reducer changes its left argument in place", Saver: sharedAnswers() },
	"serializes late": {
		story: MUTATING,
		durability: "async",
		Saver: withPut(async (store, ...args) => {
			await later();
			return store(...args);
		}),
	},
	"ignores limits": { story: ASKING, Saver: withOptions(({ limit: _, ...options }) => options) },
	"ignores where a list is to begin": { story: ASKING, Saver: withOptions(({ before: _, ...options }) => options) },
	"ignores filters": { story: ASKING, Saver: withOptions(({ filter: _, ...options }) => options) },
	"lists oldest first": {
		story: ASKING,
		Saver: class extends OfficialSaver {
			override async *list(config: RunnableConfig, options?: CheckpointListOptions) {
				const tuples: CheckpointTuple[] = [];
				for await (const tuple of super.list(config, options)) tuples.push(tuple);
				yield* tuples.toReversed();
			}
		},
	},
	"keeps a thread that was to be deleted": {
		story: "a thread is deleted and begun again",
		Saver: class extends OfficialSaver {
			override async deleteThread() {}
		},
	},
	"mixes up threads with similar names": {
		story: "threads with odd names stay apart",
		way: "runs",
		Saver: class extends OfficialSaver {
			override getTuple(config: RunnableConfig) {
				const { thread_id, ...rest } = config.configurable ?? {};
				return super.getTuple({ configurable: { ...rest, thread_id: thread_id === "ab" ? "a" : thread_id } });
			}
		},
	},
};
