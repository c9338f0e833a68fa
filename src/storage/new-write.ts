import type { NewWrite, WriteRow } from "./storage.ts";

/** The row of a write that has found its place. */
export function inGeneration(write: NewWrite, generation: number): WriteRow {
	const { threadId, ns, id, taskId, idx, channel, runId, actor, type, value } = write;
	return { threadId, ns, id, taskId, generation, idx, channel, runId, actor, type, value };
}
