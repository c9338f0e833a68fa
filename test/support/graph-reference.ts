import type { RunnableConfig } from "@langchain/core/runnables";
import {
	type Checkpoint,
	type CheckpointMetadata,
	type PendingWrite,
	WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import type { Core } from "./core.ts";
import { OfficialSaver } from "./official-saver.ts";

/** A fault of the official MemorySaver that the reference does not have. */
export interface Correction {
	/** What the official saver does. */
	fault: string;
	/** Why that is wrong, or why it does not count. */
	reason: string;
	/** Where it shows when the official saver is compared with the reference. */
	where: RegExp;
	/** The scenario and durability that show it. */
	shownBy: { story: string; durability: "async" | "exit" };
	/** The LangGraph that shows it; any unless told. */
	core?: Core;
}

/** All that sets the reference apart from the official saver. */
export const corrections: readonly Correction[] = [
	{
		fault: "makes a checkpoint its own parent",
		reason:
			"with durability exit, a run that ends in the superstep it began in puts the same checkpoint again, named as its own parent; the true parent is lost and every walk over ancestors is endless",
		where: /parentConfig/,
		shownBy: { story: "a node asks three times in a row", durability: "exit" },
		core: "1.4",
	},
	{
		fault: "replaces a task's reserved writes by those of a call that has ordinary writes too",
		reason:
			"the official SQL savers and Python keep the first; nothing reads these writes again, as the task has finished with that call",
		where: /pendingWrites\[\d+\]\[2\]/,
		shownBy: { story: "a node asks three times in a row", durability: "async" },
	},
	{
		fault: "does not take a missing namespace for the root's",
		reason: "getTuple echoes the config as it came, and putWrites then refuses what core derives from it",
		where: /./,
		shownBy: { story: "a checkpoint is named without its namespace", durability: "async" },
		core: "1.4",
	},
];

/** The official MemorySaver in the right order, corrected: what the savers are measured by. */
export class Reference extends OfficialSaver {
	override async getTuple(config: RunnableConfig) {
		return super.getTuple(inNamespace(config));
	}

	override put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
		const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
		if (checkpoint_id !== checkpoint.id) return super.put(config, checkpoint, metadata);
		const parentId = this.storage[thread_id]?.[checkpoint_ns]?.[checkpoint_id]?.[2];
		return super.put({ configurable: { thread_id, checkpoint_ns, checkpoint_id: parentId } }, checkpoint, metadata);
	}

	override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string) {
		const rooted = inNamespace(config);
		return super.putWrites(
			rooted,
			writes.every(isReserved) ? writes : this.#withoutStored(rooted, writes, taskId),
			taskId,
			taskPath,
		);
	}

	/** Leaves holes where a reserved write is there already, so that the other writes keep their index. */
	#withoutStored({ configurable }: RunnableConfig, writes: PendingWrite[], taskId: string): PendingWrite[] {
		const { thread_id, checkpoint_ns, checkpoint_id } = configurable ?? {};
		const stored = new Set(Object.keys(this.writes[JSON.stringify([thread_id, checkpoint_ns, checkpoint_id])] ?? {}));
		const kept = [...writes];
		writes.forEach((write, at) => {
			const key = `${taskId},${WRITES_IDX_MAP[write[0]]}`;
			if (isReserved(write) && stored.has(key)) delete kept[at];
			stored.add(key);
		});
		return kept;
	}
}

const isReserved = ([channel]: PendingWrite) => Object.hasOwn(WRITES_IDX_MAP, channel);

const inNamespace = (config: RunnableConfig): RunnableConfig => ({
	...config,
	configurable: { ...config.configurable, checkpoint_ns: config.configurable?.checkpoint_ns ?? "" },
});
