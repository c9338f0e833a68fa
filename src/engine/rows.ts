import { CheckpointError } from "../errors.ts";
import { compareIds } from "../storage/compare-ids.ts";
import type { CheckpointKey, FoundCheckpoint, WriteRow } from "../storage/storage.ts";
import type { Cell } from "./cells.ts";
import { type Head, unpackHead } from "./head.ts";

/** Unique for a key: the lengths keep the parts apart. */
export function cacheKey({ threadId, ns, id }: CheckpointKey): string {
	return `${threadId.length}:${threadId}${ns.length}:${ns}${id}`;
}

export function unpackRow(row: FoundCheckpoint): Head {
	try {
		return unpackHead(row.head);
	} catch (cause) {
		const where = `checkpoint "${row.id}" in thread "${row.threadId}", namespace "${row.ns}"`;
		const { threadId, ns, id: checkpointId } = row;
		const place = { threadId, ns, checkpointId };
		throw new CheckpointError("CORRUPT", `Can't read ${where}: ${(cause as Error).message}`, { cause, place });
	}
}

export function writeCell({ blob, value, type }: WriteRow): Cell {
	return blob ?? { type, bytes: value };
}

/** Writes by checkpoint, as LangGraph applies them: by task path and task id, compared by code points, then by index. */
export function groupWrites(rows: readonly WriteRow[]): Map<string, WriteRow[]> {
	const groups = new Map<string, WriteRow[]>();
	for (const row of rows) {
		const key = cacheKey(row);
		const group = groups.get(key);
		if (group === undefined) groups.set(key, [row]);
		else group.push(row);
	}
	for (const group of groups.values())
		group.sort((a, b) => compareTasks(a, b) || a.idx - b.idx || a.generation - b.generation);
	return groups;
}

/** What says where a write stands among the others at its checkpoint. */
type Placed = Pick<WriteRow, "taskPath" | "taskId" | "idx" | "generation">;

export function compareTasks(a: Placed, b: Placed): number {
	return compareIds(a.taskPath ?? "", b.taskPath ?? "") || compareIds(a.taskId, b.taskId);
}

/** Of several writes of one task with the same index, the one that was stored first. */
export function visibleWrites<W extends Placed>(writes: readonly W[]): W[] {
	const isFirst = (write: W) =>
		write.generation === 0 ||
		!writes.some(
			({ taskId, idx, generation }) => taskId === write.taskId && idx === write.idx && generation < write.generation,
		);
	return writes.filter(isFirst);
}
