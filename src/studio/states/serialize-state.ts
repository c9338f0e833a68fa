import type { RunnableConfig } from "@langchain/core/runnables";
import type { StateSnapshot } from "@langchain/langgraph";
import type { Json } from "../http/fields.ts";

/**
 * A state as the API sends it, with those of subgraphs that it has.
 *
 * @param describe gives the metadata of a state
 */
export async function serializeState(state: StateSnapshot, describe: DescribeState): Promise<Json> {
	const tasks: Json[] = [];
	for (const task of state.tasks) tasks.push(await serializeTask(task, describe));
	return {
		values: state.values,
		next: state.next,
		tasks,
		metadata: await describe(state),
		created_at: state.createdAt ?? null,
		checkpoint: serializeCheckpoint(state.config),
		parent_checkpoint: serializeCheckpoint(state.parentConfig),
	};
}

export type DescribeState = (state: StateSnapshot) => Promise<Json | undefined>;

/** The state of a thread in which nothing has happened. */
export function emptyState(): Json {
	return { values: {}, next: [], tasks: [], created_at: null, checkpoint: null, parent_checkpoint: null };
}

/** The checkpoint that a config names, or null if it names none. */
export function serializeCheckpoint(config: RunnableConfig | undefined): Json | null {
	const { thread_id, checkpoint_id, checkpoint_ns, checkpoint_map } = config?.configurable ?? {};
	if (!thread_id || !checkpoint_id) return null;
	return {
		thread_id,
		checkpoint_id,
		checkpoint_ns: checkpoint_ns || "",
		checkpoint_map: checkpoint_map || null,
	};
}

async function serializeTask(task: StateSnapshot["tasks"][number], describe: DescribeState): Promise<Json> {
	const { state } = task;
	const isSnapshot = state !== undefined && "values" in state;
	return {
		id: task.id,
		name: task.name,
		error: serializeTaskError(task.error),
		interrupts: task.interrupts,
		path: (task as { path?: unknown }).path,
		checkpoint: state === undefined || isSnapshot ? null : (state.configurable ?? null),
		state: isSnapshot ? await serializeState(state, describe) : null,
		result: (task as { result?: unknown }).result ?? null,
	};
}

/** A task's error is text for clients. LangGraph stores name and message; old versions stored errors. */
function serializeTaskError(error: unknown): string | null {
	if (error === undefined || error === null) return null;
	return error instanceof Error ? error.message : JSON.stringify(error);
}
