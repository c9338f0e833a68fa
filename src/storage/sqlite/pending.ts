import { compareIds } from "../compare-ids.ts";
import type { CheckpointKey, WriteRow } from "../storage.ts";
import { isPackable, packId, unpackId } from "./ids.ts";

/**
 * Writes that stand in the row of their checkpoint.
 *
 * Most checkpoints have a few short writes, all of one task. In rows of their own, each would repeat the key of its
 * checkpoint, and one more page would be written with every commit. So they are packed into a column of the checkpoint,
 * until they become too many: then all of them get rows of their own.
 *
 * First comes what SQLite itself can use: how many there are, how many bytes their values have, and how many bytes the
 * names of their channels, each in two digits of seven bits; then those names. After that, each write is: its sum; flags;
 * the task and its path, unless they are those of the write before; generation, index, actor, type and value, as far as there are any. A run has to be
 * that of the checkpoint, by which it is found.
 */

/** More are not worth packing anew with each that is added. */
const MOST_WRITES = 16;
/** So that a page has room for several checkpoints. */
const MOST_BYTES = 1024;
/** Of a write, besides its texts and value: sum, flags, lengths and numbers. */
const OTHER_BYTES = 64;

/** Bytes before the names of channels. */
const HEADER_BYTES = 5;
/** Larger numbers have more than two digits. */
const MOST_CHANNEL_BYTES = 128 ** 2 - 1;

/** SQL for the number of writes in a row. */
export const PENDING_COUNT = sqlDigit(1);
/** SQL for the bytes of their values. */
export const PENDING_BYTES = `(${sqlDigit(2)} * 128 + ${sqlDigit(3)})`;
/** SQL for the names of their channels, see {@link channelsIn}. */
export const PENDING_CHANNELS = `substr(pending, ${HEADER_BYTES + 1}, ${sqlDigit(4)} * 128 + ${sqlDigit(5)})`;

/** As a character: SQLite has no other way to a byte. */
function sqlDigit(at: number): string {
	return `coalesce(unicode(substr(pending, ${at}, 1)), 0)`;
}

const SAME_TASK = 1;
const UUID_TASK = 2;
const HAS_RUN = 4;
const IS_NEGATIVE = 8;
const HAS_ACTOR = 16;
const HAS_TYPE = 32;
const IS_BLOB = 64;
const HAS_PATH = 128;

/** A write with its sum, see `sumOfWrite`. */
export interface SummedWrite {
	readonly row: WriteRow;
	readonly sum: number;
}

/** In the order that rows of their own would have. */
export function compareWrites({ row: a }: SummedWrite, { row: b }: SummedWrite): number {
	if (a.taskId === b.taskId) return a.generation - b.generation || a.idx - b.idx;
	const [isPackedA, isPackedB] = [isPackable(a.taskId), isPackable(b.taskId)];
	return isPackedA === isPackedB ? compareIds(a.taskId, b.taskId) : isPackedA ? 1 : -1;
}

/** @returns nothing if they are too many or too large for a row; else bytes that are to be stored at once */
export function packWrites(writes: readonly SummedWrite[], runId: string | undefined): Uint8Array | undefined {
	if (writes.length > MOST_WRITES) return undefined;
	let size = HEADER_BYTES;
	let bytes = 0;
	for (const { row } of writes) {
		const { channel, type = "", taskId, taskPath = "", value } = row;
		if (row.runId !== undefined && row.runId !== runId) return undefined;
		const length = typeof value === "number" ? 0 : value.length;
		bytes += length;
		// A character takes three bytes at most.
		size += OTHER_BYTES + length + 3 * (channel.length + type.length + taskId.length + taskPath.length);
	}
	if (bytes > MOST_BYTES || size > buffer.length) return undefined;
	let at = HEADER_BYTES;
	for (const { row } of writes) at = writeText(row.channel, at);
	const channelBytes = at - HEADER_BYTES;
	if (channelBytes > MOST_CHANNEL_BYTES) return undefined;
	buffer[0] = writes.length;
	writeDigits(bytes, 1);
	writeDigits(channelBytes, 3);
	let before: WriteRow | undefined;
	for (const { row, sum } of writes) {
		at = writeOne(row, sum, row.taskId === before?.taskId && row.taskPath === before.taskPath, at);
		before = row;
	}
	return buffer.subarray(0, at);
}

const buffer = Buffer.allocUnsafeSlow(8 * MOST_BYTES);

function writeOne(row: WriteRow, sum: number, isSameTask: boolean, start: number): number {
	const { taskId, generation, idx, taskPath, runId, actor, type, value } = row;
	const path = isSameTask ? undefined : taskPath;
	const task = isSameTask ? undefined : packId(taskId);
	const isNumber = typeof value === "number";
	let at = buffer.writeInt32LE(sum, start);
	buffer[at++] =
		(isSameTask ? SAME_TASK : 0) |
		(typeof task === "object" ? UUID_TASK : 0) |
		(runId === undefined ? 0 : HAS_RUN) |
		(idx < 0 ? IS_NEGATIVE : 0) |
		(actor === undefined ? 0 : HAS_ACTOR) |
		(type === undefined ? 0 : HAS_TYPE) |
		(isNumber ? IS_BLOB : 0) |
		(path === undefined ? 0 : HAS_PATH);
	if (typeof task === "string") at = writeText(task, at);
	else if (task !== undefined) {
		buffer.set(task, at);
		at += task.length;
	}
	if (path !== undefined) at = writeText(path, at);
	at = writeNumber(generation, at);
	at = writeNumber(Math.abs(idx), at);
	if (actor !== undefined) at = writeNumber(actor, at);
	if (type !== undefined) at = writeText(type, at);
	if (isNumber) return writeNumber(value, at);
	at = writeNumber(value.length, at);
	buffer.set(value, at);
	return at + value.length;
}

function writeDigits(number: number, at: number): void {
	buffer[at] = number >> 7;
	buffer[at + 1] = number & 127;
}

/** Seven bits at a time, the lowest first. */
function writeNumber(number: number, start: number): number {
	let at = start;
	let rest = number;
	for (; rest > 127; rest = Math.floor(rest / 128)) buffer[at++] = (rest % 128) + 128;
	buffer[at] = rest;
	return at + 1;
}

function writeText(text: string, start: number): number {
	const length = Buffer.byteLength(text);
	const at = writeNumber(length, start);
	return at + buffer.write(text, at);
}

/**
 * The writes of a checkpoint, with the sums that were stored with them: whether they are right is for the caller to see.
 * Stops where the bytes make no sense.
 */
export function* unpackWrites(
	packed: Uint8Array,
	key: CheckpointKey,
	runId: string | undefined,
): Generator<SummedWrite> {
	const channels = new Reader(packed, HEADER_BYTES);
	const reader = new Reader(packed, HEADER_BYTES + (packed[3] ?? 0) * 128 + (packed[4] ?? 0));
	let taskId = "";
	let taskPath: string | undefined;
	for (let left = packed[0] ?? 0; left > 0 && reader.isSound; left--) {
		const sum = reader.sum();
		const flags = reader.byte();
		if ((flags & SAME_TASK) === 0) {
			taskId = flags & UUID_TASK ? unpackId(reader.bytes(16)) : reader.text();
			taskPath = flags & HAS_PATH ? reader.text() : undefined;
		}
		const generation = reader.number();
		const idx = flags & IS_NEGATIVE ? 0 - reader.number() : reader.number();
		const actor = flags & HAS_ACTOR ? reader.number() : undefined;
		const channel = channels.text();
		const type = flags & HAS_TYPE ? reader.text() : undefined;
		const value = flags & IS_BLOB ? reader.number() : reader.bytes(reader.number());
		const { threadId, ns, id } = key;
		const ran = flags & HAS_RUN ? runId : undefined;
		const row = { threadId, ns, id, taskId, generation, idx, taskPath, channel, runId: ran, actor, type, value };
		if (reader.isSound) yield { row, sum };
	}
}

/** The names of channels as {@link PENDING_CHANNELS} answers them. */
export function channelsIn(names: Uint8Array): string[] {
	const channels: string[] = [];
	for (const reader = new Reader(names, 0); !reader.isAtEnd; ) channels.push(reader.text());
	return channels;
}

/** Reads what was packed. What there is not reads as nothing, and then all of it is not sound. */
class Reader {
	readonly #from: Buffer;
	#at: number;

	constructor({ buffer, byteOffset, length }: Uint8Array, start: number) {
		this.#from = Buffer.from(buffer, byteOffset, length);
		this.#at = start;
	}

	get isSound(): boolean {
		return this.#at <= this.#from.length;
	}

	get isAtEnd(): boolean {
		return this.#at >= this.#from.length;
	}

	byte(): number {
		return this.#from[this.#at++] ?? 0;
	}

	sum(): number {
		const at = this.#at;
		this.#at += 4;
		return this.isSound ? this.#from.readInt32LE(at) : 0;
	}

	number(): number {
		let number = 0;
		for (let scale = 1; ; scale *= 128) {
			const byte = this.byte();
			number += (byte & 127) * scale;
			if (byte < 128) return number;
		}
	}

	bytes(length: number): Buffer {
		const start = this.#at;
		this.#at += length;
		return this.#from.subarray(start, this.#at);
	}

	text(): string {
		return this.bytes(this.number()).toString();
	}
}
