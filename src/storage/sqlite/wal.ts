import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { uptime } from "node:os";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The last bit says in which order checksums take the bytes of a word. */
const MAGIC = 0x377f0682;
const VERSION = 3_007_000;
/** Of every file that this package makes. */
const USUAL_PAGE_SIZE = 4096;

/** A page as the log has it. */
export interface WalFrame {
	/** Counted from 1. */
	readonly page: number;
	/** Pages of the database if this frame ends a transaction, else 0. */
	readonly commit: number;
	readonly data: Uint8Array;
}

/** What a write-ahead log says of its own state. */
export interface WalState {
	/** Frames that SQLite will use when nobody else has the log open. */
	readonly committed: number;
	/** Commits that it will not use, because bytes before or in them are damaged; how many at least. */
	readonly lost: number;
	/** Frames up to the last commit of either kind. */
	readonly evident: number;
	/** Changes with everything that is written to the log. */
	readonly version: string;
}

/** A checksum over pairs of words, as SQLite keeps it in frames. */
type Sum = readonly [number, number];

interface Header {
	readonly pageSize: number;
	readonly isBigEndian: boolean;
	readonly salts: string;
	/** `undefined` if it is not known, so that the first frame has to be believed. */
	readonly sum: Sum | undefined;
}

interface RawFrame extends WalFrame {
	readonly salts: string;
	/** As it stands in the frame. */
	readonly stored: Sum;
	/** What is summed up. */
	readonly summed: readonly Uint8Array[];
}

const EMPTY = { committed: 0, lost: 0, evident: 0 };

/**
 * Reads a write-ahead log as SQLite does when it is the first to open it after a crash, and looks further: SQLite takes
 * the first frame whose checksum is wrong for the end of the log, whatever was committed behind it.
 *
 * A process that is killed in the middle of a commit leaves such an end as well. It is damage if a sound frame behind it
 * ends a transaction, or if the frame itself would be sound with one other byte; a frame that is more damaged than that
 * and the last of all can't be told from one that was never finished.
 */
export function inspectWal(path: string): WalState {
	const log = openLog(path);
	if (log === undefined) return { ...EMPTY, version: "" };
	try {
		const { size, mtimeMs } = fstatSync(log);
		const version = `${size} ${mtimeMs}`;
		if (size <= HEADER_BYTES) return { ...EMPTY, version };
		const header = readHeader(log);
		if (header === undefined) {
			const guessed = guessHeader(log);
			const { evident, committed, lost } = guessed
				? walk(guessed, framesOf(log, guessed.pageSize), false)
				: { ...EMPTY, lost: 0 };
			return { committed: 0, lost: Math.max(1, lost, committed), evident, version };
		}
		// A machine that lost power may have written frames in any order, and none of the last ones was promised.
		const isCrash = mtimeMs < Date.now() - uptime() * 1000;
		return { ...walk(header, framesOf(log, header.pageSize), isCrash), version };
	} finally {
		closeSync(log);
	}
}

/** The first frames of a log, sound or not. */
export function* readFrames(path: string, count: number): Generator<WalFrame> {
	const log = openLog(path);
	if (log === undefined) return;
	try {
		const header = readHeader(log) ?? guessHeader(log);
		let left = count;
		if (header === undefined || left === 0) return;
		for (const frame of framesOf(log, header.pageSize)) {
			yield frame;
			if (--left === 0) return;
		}
	} finally {
		closeSync(log);
	}
}

function walk(header: Header, frames: Iterable<RawFrame>, isCrash: boolean): Omit<WalState, "version"> {
	let count = 0;
	let committed = 0;
	let lost = 0;
	let evident = 0;
	let isBroken = false;
	let { sum } = header;
	for (const frame of frames) {
		count++;
		const before = lost;
		const computed = sum === undefined ? frame.stored : add(sum, frame.summed, header.isBigEndian);
		const isSound = same(computed, frame.stored);
		const isOurs = frame.salts === header.salts;
		if (!isBroken && isSound && isOurs) {
			if (frame.commit > 0) committed = count;
		} else if (!isBroken) {
			isBroken = true;
			if (!isCrash && (isOurs ? isOneByteOff(computed, frame) : isSound)) lost++;
		} else if (isSound && isOurs && frame.commit > 0) lost++;
		if (committed === count || lost > before) evident = count;
		sum = frame.stored;
	}
	return { committed, lost, evident };
}

function openLog(path: string): number | undefined {
	try {
		return openSync(path, "r");
	} catch (error) {
		if ((error as { code?: unknown }).code === "ENOENT") return undefined;
		throw error;
	}
}

function readHeader(log: number): Header | undefined {
	const bytes = Buffer.alloc(HEADER_BYTES);
	if (readSync(log, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return undefined;
	const magic = bytes.readUInt32BE(0);
	const isBigEndian = (magic & 1) === 1;
	const sum = add([0, 0], [bytes.subarray(0, 24)], isBigEndian);
	const isSound = same(sum, [bytes.readUInt32BE(24), bytes.readUInt32BE(28)]);
	if ((magic & ~1) !== MAGIC || bytes.readUInt32BE(4) !== VERSION || !isSound) return undefined;
	return { pageSize: bytes.readUInt32BE(8), isBigEndian, salts: bytes.toString("hex", 16, 24), sum };
}

/** What the header of a log was, by the first frame behind it, if only the header is damaged. */
function guessHeader(log: number): Header | undefined {
	const [first] = framesOf(log, USUAL_PAGE_SIZE);
	if (first === undefined) return undefined;
	return { pageSize: USUAL_PAGE_SIZE, isBigEndian: false, salts: first.salts, sum: undefined };
}

function* framesOf(log: number, pageSize: number): Generator<RawFrame> {
	const length = FRAME_HEADER_BYTES + pageSize;
	for (let offset = HEADER_BYTES; ; offset += length) {
		const bytes = Buffer.alloc(length);
		// What is shorter was never finished.
		if (readSync(log, bytes, 0, length, offset) < length) return;
		const data = bytes.subarray(FRAME_HEADER_BYTES);
		yield {
			page: bytes.readUInt32BE(0),
			commit: bytes.readUInt32BE(4),
			salts: bytes.toString("hex", 8, 16),
			stored: [bytes.readUInt32BE(16), bytes.readUInt32BE(20)],
			summed: [bytes.subarray(0, 8), data],
			data,
		};
	}
}

function add(start: Sum, parts: readonly Uint8Array[], isBigEndian: boolean): Sum {
	let [a, b] = start;
	for (const part of parts) {
		const words = new DataView(part.buffer, part.byteOffset, part.byteLength);
		for (let i = 0; i < part.byteLength; i += 8) {
			a = (a + words.getUint32(i, !isBigEndian) + b) >>> 0;
			b = (b + words.getUint32(i + 4, !isBigEndian) + a) >>> 0;
		}
	}
	return [a, b];
}

/** Whether one other byte would make a checksum right: of the checksum itself, or of what it is over. */
function isOneByteOff(computed: Sum, { stored, summed }: RawFrame): boolean {
	const [a, b] = [stored[0] - computed[0], stored[1] - computed[1]].map((difference) => difference | 0) as [
		number,
		number,
	];
	if (bytesOf(stored[0] ^ computed[0]) + bytesOf(stored[1] ^ computed[1]) === 1) return true;
	const words = summed.reduce((sum, part) => sum + part.byteLength, 0) / 4;
	// What a word adds to either sum, from the last pair of words to the first.
	let [even, odd]: [Sum, Sum] = [
		[1, 1],
		[0, 1],
	];
	for (let left = words; left > 0; left -= 2) {
		if (isByteOff(even, a, b) || isByteOff(odd, a, b)) return true;
		[even, odd] = [next(even), next(odd)];
	}
	return false;
}

function next([a, b]: Sum): Sum {
	return [(a + b) | 0, (a + b + b) | 0];
}

function isByteOff([perA, perB]: Sum, a: number, b: number): boolean {
	for (let place = 0; place < 32; place += 8)
		for (let change = -255; change <= 255; change++) {
			const word = change << place;
			if (Math.imul(perA, word) === a && Math.imul(perB, word) === b && change !== 0) return true;
		}
	return false;
}

function bytesOf(word: number): number {
	return [0, 8, 16, 24].filter((place) => ((word >>> place) & 255) !== 0).length;
}

function same(a: Sum, b: Sum): boolean {
	return a[0] === b[0] && a[1] === b[1];
}
