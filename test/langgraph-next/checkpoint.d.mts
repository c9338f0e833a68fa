export * from "@langchain/langgraph-checkpoint";

type SortKey = [taskPath: string, taskId: string, idx: number];

export function writesSortKey(taskPath?: string, taskId?: string, idx?: number): SortKey;
export function compareWritesSortKeys(left: SortKey, right: SortKey): number;
