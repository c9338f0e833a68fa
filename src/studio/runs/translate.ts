import type { RunnableConfig } from "@langchain/core/runnables";
import { isRecord, type Json } from "../http/fields.ts";
import { serializeCheckpoint } from "../states/serialize-state.ts";

/** What a graph streams in a mode, as clients expect it. */
export function translateChunk(mode: string, data: unknown): unknown {
	if (!isRecord(data)) return data;
	if (mode === "tasks") return translateTask(data);
	if (mode === "checkpoints") {
		const { values, next, config, metadata, tasks } = data;
		return { values, next, config: publicConfig(config), metadata, tasks: (tasks as Json[]).map(translateTask) };
	}
	if (mode !== "debug" || !isRecord(data.payload)) return data;
	if (data.type === "checkpoint") return { ...data, payload: translateCheckpoint(data.payload) };
	if (data.type === "task_result") return { ...data, payload: translateTask(data.payload) };
	return data;
}

function translateCheckpoint({ parentConfig, config, tasks, ...rest }: Json): Json {
	return {
		...rest,
		config: publicConfig(config),
		parent_config: publicConfig(parentConfig),
		tasks: (tasks as Json[]).map(translateTask),
		checkpoint: serializeCheckpoint(config as RunnableConfig),
		parent_checkpoint: serializeCheckpoint(parentConfig as RunnableConfig | undefined),
	};
}

/** A task that is a subgraph tells where its states are. */
function translateTask(task: Json): Json {
	if (!isRecord(task.state) || !isRecord(task.state.configurable)) return task;
	const { state, ...rest } = task;
	const { thread_id, checkpoint_id, checkpoint_ns, checkpoint_map } = (state as RunnableConfig).configurable ?? {};
	return {
		...rest,
		checkpoint: {
			thread_id,
			checkpoint_id: checkpoint_id || null,
			checkpoint_ns: checkpoint_ns || "",
			checkpoint_map: checkpoint_map || null,
		},
	};
}

/** A config without what is only of use inside the process. */
function publicConfig(config: unknown): unknown {
	if (!isRecord(config) || !isRecord(config.configurable)) return config;
	const { callbacks: _, configurable, ...rest } = config;
	const entries = Object.entries(configurable as Json).filter(([key]) => !key.startsWith("__"));
	return { ...rest, configurable: Object.fromEntries(entries) };
}
