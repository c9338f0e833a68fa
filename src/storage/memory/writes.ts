import type { CheckpointKey, NewWrite, WriteRow } from "../storage.ts";
import { type KeptBytes, keepBytes, keepText, readBytes } from "./kept-bytes.ts";
import { insertAt, lowerBound, removeAt } from "./sorted-list.ts";

type Place = Pick<WriteRow, "taskId" | "idx" | "generation">;

/** A write, but for the checkpoint that it is kept at. */
export class KeptWrite {
	readonly taskId: string;
	readonly idx: number;
	readonly generation: number;
	readonly taskPath: string | undefined;
	readonly channel: string;
	readonly runId: string | undefined;
	readonly actor: number | undefined;
	readonly type: string | undefined;
	/** Bytes, or the id of a blob. */
	readonly value: KeptBytes | number;

	constructor(write: Omit<WriteRow, keyof CheckpointKey | "generation">, generation: number) {
		this.taskId = keepText(write.taskId);
		this.idx = write.idx;
		this.generation = generation;
		this.taskPath = write.taskPath;
		this.channel = write.channel;
		this.runId = write.runId;
		this.actor = write.actor;
		this.type = write.type;
		this.value = typeof write.value === "number" ? write.value : keepBytes(write.value);
	}

	/** How many bytes stand in the row itself. */
	get bytes(): number {
		return typeof this.value === "number" ? 0 : this.value.length;
	}

	toRow(threadId: string, ns: string, id: string): WriteRow {
		const { taskId, idx, generation, taskPath, channel, runId, actor, type } = this;
		const value = typeof this.value === "number" ? this.value : readBytes(this.value);
		return { threadId, ns, id, taskId, idx, generation, taskPath, channel, runId, actor, type, value };
	}
}

/** The writes at one checkpoint, by task, index and generation. A list to go on with is answered by all that change it. */
export type WriteList = KeptWrite[];

export const NO_WRITES: WriteList = [];

export function findWrite(list: WriteList, place: Place): KeptWrite | undefined {
	const at = placeOf(list, place);
	return isAt(list, at, place) ? list[at] : undefined;
}

/** Adds a write, or puts it in the place of the one with its task, index and generation. */
export function setWrite(list: WriteList, write: KeptWrite): WriteList {
	const at = placeOf(list, write);
	return isAt(list, at, write) ? list.with(at, write) : insertAt(list, at, write);
}

export function deleteWrite(list: WriteList, place: Place): WriteList {
	const at = placeOf(list, place);
	return isAt(list, at, place) ? removeAt(list, at) : list;
}

/** Adds what one task wrote. Answers the values of the writes that were dropped as well. */
export function putWrites(list: WriteList, writes: readonly NewWrite[]): { list: WriteList; dropped: unknown[] } {
	const dropped: unknown[] = [];
	const before = list.length === 0 ? list : ofTask(list, writes[0]?.taskId ?? "");
	let next = 0;
	for (const { generation } of before) if (generation >= next) next = generation + 1;
	for (const write of writes) {
		const { conflict } = write;
		const row = new KeptWrite(write, conflict === "add" ? next : 0);
		const at = placeOf(list, row);
		const isThere = isAt(list, at, row);
		const isKnown = conflict === "drop" && before.some(({ idx }) => idx === write.idx);
		if (isKnown || (isThere && conflict !== "replace")) dropped.push(write.value);
		else list = isThere ? list.with(at, row) : insertAt(list, at, row);
	}
	return { list, dropped };
}

function ofTask(list: WriteList, taskId: string): KeptWrite[] {
	const start = placeOf(list, { taskId, idx: Number.NEGATIVE_INFINITY, generation: 0 });
	let end = start;
	while (list[end]?.taskId === taskId) end++;
	return list.slice(start, end);
}

function placeOf(list: WriteList, place: Place): number {
	return lowerBound(list, (write) => compareWrites(write, place));
}

function isAt(list: WriteList, at: number, place: Place): boolean {
	const write = list[at];
	return write !== undefined && compareWrites(write, place) === 0;
}

function compareWrites(a: Place, b: Place): number {
	return a.taskId < b.taskId ? -1 : a.taskId > b.taskId ? 1 : a.idx - b.idx || a.generation - b.generation;
}
