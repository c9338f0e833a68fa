import { ConcurrencyError } from "../errors.ts";
import { compareIds } from "./compare-ids.ts";
import type { ListedCheckpoint } from "./storage.ts";

/**
 * Throws a ConcurrencyError if a checkpoint would start a branch: if it neither follows the newest one of its namespace
 * nor takes its place.
 *
 * A run may put its first two checkpoints at once, in either order: the one that the head names as its parent and that
 * was missing is welcome.
 *
 * @param head the newest checkpoint of the namespace, as the put itself sees it, in the same transaction
 * @param isStored whether there is a checkpoint with its key
 */
export function checkHead(checkpoint: ListedCheckpoint, head: ListedCheckpoint | undefined, isStored: boolean): void {
	if (head === undefined || head.id === checkpoint.id) return;
	if (head.parentId === checkpoint.id && !isStored) return;
	// With a smaller id it would not become the head, and the next put could follow the same parent.
	if (head.id === checkpoint.parentId && compareIds(head.id, checkpoint.id) < 0) return;
	throw new ConcurrencyError(checkpoint, head.id);
}
