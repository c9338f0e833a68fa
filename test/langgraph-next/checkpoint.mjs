/*
 * What `@langchain/langgraph-checkpoint` 1.2 exports and 1.1 does not: the order of the writes at a checkpoint, by task
 * path, task id and index. Text is compared by code points.
 */
export * from "@langchain/langgraph-checkpoint";

export function writesSortKey(taskPath = "", taskId = "", idx = 0) {
	return [taskPath, taskId, idx];
}

export function compareWritesSortKeys(left, right) {
	return compareText(left[0], right[0]) || compareText(left[1], right[1]) || left[2] - right[2];
}

function compareText(left, right) {
	return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
