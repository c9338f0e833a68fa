import type { CheckpointKey, DeltaBaseRow } from "../../storage/storage.ts";
import { type Cell, corrupt, packFields, unpackFields } from "../cells.ts";
import type { Head } from "../head.ts";
import { isInternal } from "./origin.ts";

/** What made a delta channel's value, not decoded: a value to start from, if there is one, and writes, oldest first. */
export interface RawHistory {
	readonly seed: Cell | undefined;
	readonly writes: readonly PastWrite[];
	/** The run whose writes at the checkpoint itself are part of the seed. */
	readonly includes?: number | undefined;
}

export interface PastWrite {
	readonly taskId: string;
	readonly cell: Cell;
}

/** The seed, if there is one, and the writes. */
export function cellsOf({ seed, writes }: RawHistory): Cell[] {
	const cells = writes.map(({ cell }) => cell);
	return seed === undefined ? cells : [seed, ...cells];
}

/** What a checkpoint held and lacks now that it is put again: its channels start from there. */
export function keepLost(
	key: CheckpointKey,
	before: Head,
	now: { manifest: ReadonlyMap<string, Cell> },
): DeltaBaseRow[] {
	const lost = [...before.manifest].filter(([channel]) => !now.manifest.has(channel) && !isInternal(channel));
	const includes = before.origin?.actor;
	return lost.map(([channel, seed]) => ({ ...key, channel, data: packHistory({ seed, writes: [], includes }) }));
}

/** `[included run or null, task ids]`, then the cells of the seed, if there is one, and of the writes. */
export function packHistory(history: RawHistory): Uint8Array {
	const tasks = history.writes.map(({ taskId }) => taskId);
	return packFields([history.includes ?? null, tasks], cellsOf(history));
}

export function unpackHistory(data: Uint8Array): RawHistory {
	const { fields, cells } = unpackFields(data);
	const [includes, tasks] = fields;
	const seeds = Array.isArray(tasks) ? cells.length - tasks.length : -1;
	if (!Array.isArray(tasks) || (seeds !== 0 && seeds !== 1)) throw corrupt("lacks writes");
	return {
		seed: seeds === 1 ? cells[0] : undefined,
		writes: tasks.map((taskId: string, i) => ({ taskId, cell: cells[i + seeds] as Cell })),
		includes: typeof includes === "number" ? includes : undefined,
	};
}
