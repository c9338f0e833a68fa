import { packPlain, unpackPlain } from "../../codec/codec.ts";
import type { CheckpointKey, DeltaBaseRow } from "../../storage/storage.ts";
import { type Cell, type Head, packCell, unpackCell } from "../head.ts";
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

/** `[seed cell or null, included run or null, task id, cell, task id, cell...]` */
export function packHistory({ seed, writes, includes }: RawHistory): Uint8Array {
	const fields: unknown[] = [seed === undefined ? null : packCell(seed), includes ?? null];
	for (const { taskId, cell } of writes) fields.push(taskId, packCell(cell));
	return packPlain(fields);
}

export function unpackHistory(data: Uint8Array): RawHistory {
	const [seed, includes, ...rest] = unpackPlain(data);
	const writes: PastWrite[] = [];
	for (let i = 0; i < rest.length; i += 2) writes.push({ taskId: rest[i] as string, cell: unpackCell(rest[i + 1]) });
	return {
		seed: seed === null ? undefined : unpackCell(seed),
		writes,
		includes: typeof includes === "number" ? includes : undefined,
	};
}
