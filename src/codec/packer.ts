import { Packr, REUSE_BUFFER_MODE } from "msgpackr/pack";
import { LAYOUT } from "./format.ts";

/** msgpackr writes value after value into memory of this size, in which those that fit stay. */
const SHARED_BYTES = 8192;
/** An array or map header that can hold any length: its type byte and 32 bits. */
const HEADER_BYTES = 5;
const ARRAY_HEADER = 0xdd;
const MAP_HEADER = 0xdf;

const packr = new Packr({
	useRecords: false,
	variableMapSize: true,
	structuredClone: false,
	useBigIntExtension: true,
	copyBuffers: true,
	useToJSON: false,
});

/** The layout byte and the MessagePack of a value that msgpackr keeps all of. */
export function pack(value: unknown, layout: number): Uint8Array {
	const isOpen = (layout & ~LAYOUT.refs) !== LAYOUT.value;
	const written = packr.pack(isOpen ? value : [value], REUSE_BUFFER_MODE) as Uint8Array & {
		start: number;
		end: number;
	};
	// The layout takes the place of the last byte of the header.
	const start = written.start + headerSize(written[written.start] as number) - 1;
	written[start] = layout;
	if (written.length <= SHARED_BYTES)
		return new Uint8Array(written.buffer, written.byteOffset + start, written.end - start);
	// A buffer that grew for one value would be held by all small ones after it.
	// biome-ignore lint/correctness/useHookAtTopLevel: no hook of React
	packr.useBuffer(typeof Buffer === "undefined" ? new Uint8Array(SHARED_BYTES) : Buffer.allocUnsafeSlow(SHARED_BYTES));
	return new Uint8Array(written.subarray(start, written.end));
}

/** Bytes of the header of an array or a map. */
function headerSize(head: number): number {
	return head < 0xa0 ? 1 : head === 0xdc || head === 0xde ? 3 : HEADER_BYTES;
}

/** Where short values are read from, so that msgpackr neither makes a view of each nor changes the stored bytes' object. */
const shared = new Uint8Array(SHARED_BYTES);
const place = { start: 0, end: 0 };

/**
 * The value of checked bytes, with tagged values as the arrays that they are.
 *
 * @param count elements or entries at the top, which the bytes do not say
 */
export function unpack(bytes: Uint8Array, count: number): unknown {
	// The header goes where the layout byte is, and before it.
	place.end = bytes.length + HEADER_BYTES - 1;
	const source = place.end <= SHARED_BYTES ? shared : new Uint8Array(place.end);
	source.set(bytes, HEADER_BYTES - 1);
	const layout = (bytes[0] as number) & ~LAYOUT.refs;
	place.start = layout === LAYOUT.value ? HEADER_BYTES : 0;
	if (layout !== LAYOUT.value) {
		source[0] = layout === LAYOUT.array ? ARRAY_HEADER : MAP_HEADER;
		for (let i = 1; i < HEADER_BYTES; i++) source[i] = count >>> (8 * (HEADER_BYTES - 1 - i));
	}
	return packr.unpack(source, place);
}
