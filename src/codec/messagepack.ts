import { Packr, REUSE_BUFFER_MODE } from "msgpackr/pack";
import { CheckpointError } from "../errors.ts";
import { DEEPEST, LAST_TAG, LAYOUT, TAG } from "./format.ts";

/** msgpackr writes value after value into memory of this size, in which those that fit stay. */
const SHARED_BYTES = 8192;
/** An array or map header that can hold any length: its type byte and 32 bits. */
const HEADER_BYTES = 5;

const packr = new Packr({
	useRecords: false,
	variableMapSize: true,
	structuredClone: false,
	useBigIntExtension: true,
	copyBuffers: true,
	useToJSON: false,
});

/** The buffer that msgpackr writes to, and where a value is in it. */
type Written = Buffer & { start: number; end: number };

/** The layout byte and the MessagePack of a value that msgpackr keeps all of. */
export function pack(value: unknown, layout: number): Uint8Array {
	const isOpen = (layout & ~LAYOUT.refs) !== LAYOUT.value;
	const written = packr.pack(isOpen ? value : [value], REUSE_BUFFER_MODE) as Written;
	const head = written[written.start] as number;
	const headerSize = head < 0xa0 ? 1 : head === 0xdc || head === 0xde ? 3 : HEADER_BYTES;
	// The layout takes the place of the last byte of the header of an array or a map.
	const start = written.start + headerSize - 1;
	written[start] = layout;
	if (written.length <= SHARED_BYTES)
		return new Uint8Array(written.buffer, written.byteOffset + start, written.end - start);
	// A buffer that grew for one value would be held by all small ones after it.
	// biome-ignore lint/correctness/useHookAtTopLevel: no hook of React
	packr.useBuffer(typeof Buffer === "undefined" ? new Uint8Array(SHARED_BYTES) : Buffer.allocUnsafeSlow(SHARED_BYTES));
	return new Uint8Array(written.subarray(start, written.end));
}

/** The bytes of what most channels of a small state hold: a call of msgpackr takes much longer. */
const USUAL = new Map<unknown, Uint8Array>();
for (const value of [null, false, true, ...Array(16).keys()]) USUAL.set(value, pack(value, LAYOUT.value));

export function packUsual(value: unknown): Uint8Array | undefined {
	const isEmpty = Array.isArray(value) && value.length === 0 && Object.getPrototypeOf(value) === Array.prototype;
	return isEmpty ? Uint8Array.of(LAYOUT.array) : Object.is(value, -0) ? undefined : USUAL.get(value);
}

/** Where short values are read from, so that msgpackr neither makes a view of each nor changes the stored bytes' object. */
const shared = new Uint8Array(SHARED_BYTES);
const place = { start: 0, end: 0 };

/** The value of stored bytes, with tagged values as the arrays that they are, and whether there are any. */
export function unpack(bytes: Uint8Array) {
	const { count, hasTags, hasLoadables } = validate(bytes);
	// The header goes where the layout byte is, and before it.
	place.end = bytes.length + HEADER_BYTES - 1;
	const source = place.end <= SHARED_BYTES ? shared : new Uint8Array(place.end);
	source.set(bytes, HEADER_BYTES - 1);
	const layout = (bytes[0] as number) & ~LAYOUT.refs;
	place.start = layout === LAYOUT.value ? HEADER_BYTES : 0;
	source[0] = layout === LAYOUT.array ? 0xdd : 0xdf;
	for (let i = 1; i < HEADER_BYTES; i++) source[i] = count >>> (8 * (HEADER_BYTES - 1 - i));
	return { value: packr.unpack(source, place) as unknown, hasTags, hasLoadables };
}

/** Where each element of an encoded list ends. */
export function endsIn(bytes: Uint8Array): number[] {
	const ends: number[] = [];
	validate(bytes, ends);
	return ends;
}

/** Sizes by type byte, from c0 on: of the value, or of the length in front of it; -1 where none is stored. */
const SIZES = [0, -1, 0, 0, 1, 2, 4, 1, 2, 4, -1, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 16, 1, 2, 4, 2, 4, 2, 4];
const BIGINT_EXTENSION = 0x42;

export function corrupt(reason: string, options?: ErrorOptions): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`, options);
}

/**
 * Goes over stored bytes before msgpackr sees them: every length fits, nothing is nested too deeply, keys are text, and the
 * only extensions are `undefined` and large integers. msgpackr itself would loop for ever on some bytes, and make functions
 * from others.
 *
 * @param ends takes the end of each element or entry at the top
 */
function validate(bytes: Uint8Array, ends?: number[]): { count: number; hasTags: boolean; hasLoadables: boolean } {
	const layout = (bytes[0] ?? -1) & ~LAYOUT.refs;
	if (layout < LAYOUT.value || layout > LAYOUT.object) throw corrupt(`unknown layout ${bytes[0]}`);
	const { length } = bytes;
	let [hasTags, hasLoadables] = [false, false];
	let at = 1;
	// Members that are left of what they stand in, keys too. At the top there may be any number: it is counted down from zero.
	let left = 0;
	let isMap = layout === LAYOUT.object;
	const around: { left: number; isMap: boolean }[] = [];
	for (;;) {
		while (left === 0 && around.length > 0) ({ left, isMap } = around.pop() as (typeof around)[number]);
		const isKey = isMap && (left & 1) === 0;
		if (around.length === 0) {
			if (at > 1 && isKey === isMap) ends?.push(at);
			if (at >= length) break;
		}
		left--;
		const head = bytes[at++];
		if (head === undefined) throw corrupt("it is cut short");
		if (isKey && (head < 0xa0 || (head > 0xbf && head < 0xd9) || head > 0xdb))
			throw corrupt("a key that is not a string");
		if (head < 0x80 || head >= 0xe0) continue;
		if (head >= 0xa0 && head < 0xc0) {
			at += head & 0x1f;
			continue;
		}
		const size = head < 0xc0 ? 0 : (SIZES[head - 0xc0] as number);
		if (size < 0) throw corrupt(`unknown type byte ${head}`);
		if (head < 0xc0 || head >= 0xdc) {
			const hasKeys = head < 0x90 || head >= 0xde;
			const members = (head < 0xc0 ? head & 0x0f : lengthAt(bytes, at, size)) * (hasKeys ? 2 : 1);
			at += size;
			// Each takes a byte at least, so that a length beyond the bytes left is a lie.
			if (members > length - at) throw corrupt(`${members} members in too few bytes`);
			// Tags for what is no object, such as -0, may stand one level below the deepest.
			if (around.length > DEEPEST) throw corrupt("it is nested too deeply");
			if (members === 0) continue;
			if (!hasKeys && isUndefined(bytes, at)) {
				const tag = bytes[at + 3] ?? LAST_TAG + 1;
				if (members < 2 || tag > LAST_TAG) throw corrupt("an invalid tag");
				hasTags = true;
				hasLoadables ||= tag === TAG.loadable;
			}
			around.push({ left, isMap });
			left = members;
			isMap = hasKeys;
		} else if (head >= 0xd9 || (head >= 0xc4 && head <= 0xc6)) at += size + lengthAt(bytes, at, size);
		else if (head === 0xd4 && isUndefined(bytes, at - 1)) at += 2;
		else if (head >= 0xd4) at += sizeOfBigInt(bytes, at, size);
		else if (head >= 0xc7 && head <= 0xc9) at += size + sizeOfBigInt(bytes, at + size, lengthAt(bytes, at, size));
		else at += size;
	}
	const count = -left / (layout === LAYOUT.object ? 2 : 1);
	if (at > length || !Number.isInteger(count)) throw corrupt("it is cut short");
	if (layout === LAYOUT.value && count !== 1) throw corrupt("it is not one value");
	return { count, hasTags, hasLoadables };
}

function lengthAt(bytes: Uint8Array, at: number, size: number): number {
	let length = 0;
	for (let i = 0; i < size; i++) length = length * 0x100 + (bytes[at + i] ?? 0);
	return length;
}

function isUndefined(bytes: Uint8Array, at: number): boolean {
	return bytes[at] === 0xd4 && bytes[at + 1] === 0 && bytes[at + 2] === 0;
}

function sizeOfBigInt(bytes: Uint8Array, at: number, length: number): number {
	if (bytes[at] !== BIGINT_EXTENSION || length === 0) throw corrupt("an unknown extension");
	return 1 + length;
}
