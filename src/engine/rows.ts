import { CheckpointError } from "../errors.ts";
import type { CheckpointKey, FoundCheckpoint, WriteRow } from "../storage/storage.ts";
import { type Cell, type Head, unpackHead } from "./head.ts";

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

export function writeCell({ value, type }: WriteRow): Cell {
	return typeof value === "number" ? value : { type, bytes: value };
}

/** Writes by checkpoint, each group by task and index. */
export function groupWrites(rows: readonly WriteRow[]): Map<string, WriteRow[]> {
	const groups = new Map<string, WriteRow[]>();
	for (const row of rows) {
		const key = cacheKey(row);
		const group = groups.get(key);
		if (group === undefined) groups.set(key, [row]);
		else group.push(row);
	}
	for (const group of groups.values()) group.sort(compareWrites);
	return groups;
}

function compareWrites(a: WriteRow, b: WriteRow): number {
	return a.taskId < b.taskId ? -1 : a.taskId > b.taskId ? 1 : a.idx - b.idx || a.generation - b.generation;
}

/** Of several with the same task and index, the first. Expects them sorted. */
export function visibleWrites(rows: readonly WriteRow[]): WriteRow[] {
	return rows.filter(({ taskId, idx }, i) => taskId !== rows[i - 1]?.taskId || idx !== rows[i - 1]?.idx);
}
