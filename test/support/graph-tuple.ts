import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { type Canonical, canonical } from "./graph-canonical.ts";

type PendingWrites = NonNullable<CheckpointTuple["pendingWrites"]>;

/** A tuple in canonical form. */
export function canonicalTuple(
	tuple: CheckpointTuple | undefined,
	arrange: (writes: PendingWrites) => PendingWrites = (writes) => writes,
): Canonical {
	if (tuple === undefined) return canonical(undefined);
	const { checkpoint, metadata, pendingWrites = [] } = tuple;
	const [config, parentConfig] = [nameOf(tuple.config), tuple.parentConfig && nameOf(tuple.parentConfig)];
	return canonical({ config, parentConfig, checkpoint, metadata, pendingWrites: arrange(pendingWrites) });
}

/** Only what names a checkpoint: the official saver echoes whatever else was in the config it was asked with. */
const nameOf = ({ configurable: { thread_id, checkpoint_ns = "", checkpoint_id } = {} }: RunnableConfig) => ({
	thread_id,
	checkpoint_ns,
	checkpoint_id,
});

/** What is wrong with the form of a tuple, beyond its content: what core relies on but the official saver need not show. */
export function formFaults(tuple: CheckpointTuple): string[] {
	const faults = [...configFaults("config", tuple.config)];
	if (tuple.parentConfig !== undefined) faults.push(...configFaults("parentConfig", tuple.parentConfig));
	if (!Array.isArray(tuple.pendingWrites)) faults.push("pendingWrites is not an array");
	return faults;
}

/** Reports a config that is anything but the three keys that name a checkpoint. */
export function configFaults(name: string, config: RunnableConfig): string[] {
	const keys = Object.keys(config.configurable ?? {}).sort();
	const exact =
		keys.join() === "checkpoint_id,checkpoint_ns,thread_id" && Object.keys(config).join() === "configurable";
	return exact ? [] : [`${name} is ${Object.keys(config)} with ${keys}, not just the three keys of a checkpoint`];
}
