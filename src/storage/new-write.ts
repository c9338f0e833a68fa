import type { NewWrite, WriteRow } from "./storage.ts";

/** The row of a write that has found its place. */
export function inGeneration(write: NewWrite, generation: number): WriteRow {
	const { threadId, ns, id, taskId, idx, taskPath, channel, runId, actor, type, value } = write;
	return { threadId, ns, id, taskId, generation, idx, taskPath, channel, runId, actor, type, value };
}
