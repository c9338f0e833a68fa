import { compareIds } from "./compare-ids.ts";
import type { CheckpointKey } from "./storage.ts";

/** The order of a scan. */
export function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}
