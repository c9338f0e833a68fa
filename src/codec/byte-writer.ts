import { EXT_SINGLE, EXT_TAG, NAMES, SINGLE } from "./wire.ts";

/** Room for most values without growing; a larger one doubles it. */
const INITIAL_BYTES = 8192;
/** A buffer that grew beyond this for one value is not kept for the next ones. */
export const MOST_KEPT_BYTES = 64 * 1024;
/** Room that a buffer has when it grows for a large value, as a share of it. */
const SLACK = 1 / 8;
/** Below this length a loop over char codes beats a native call. */
const SHORT_STRING = 24;
/** Up to this length bytes are part of the object that holds them, and a loop copies them as quickly as a native call. */
const SHORT_COPY = 64;
/** Up to this length values share memory, which is four times as quick as some for each. One that is kept keeps it all. */
const MOST_SHARED = 1024;
const SHARED_BYTES = 4096;

const NUMBERS: ReadonlyMap<string, number> = new Map(NAMES.map((name, number) => [name, number]));

const utf8 = new TextEncoder();

/** Buffer's own way to write text is several times as quick, but is not everywhere. */
const writeUtf8: (text: string, into: Uint8Array, at: number) => number =
	typeof Buffer === "undefined"
		? (text, into, at) => utf8.encodeInto(text, into.subarray(at)).written
		: (text, into, at) => (into as Buffer & { utf8Write(text: string, at: number): number }).utf8Write(text, at);

export function allocate(bytes: number): Uint8Array {
	return typeof Buffer === "undefined" ? new Uint8Array(bytes) : Buffer.allocUnsafeSlow(bytes);
}

/** A buffer that grows, and what every value is made of: numbers, text, bytes and the headers of lists and maps. */
export class ByteWriter {
	protected bytes: Uint8Array = allocate(INITIAL_BYTES);
	protected view: DataView = new DataView(this.bytes.buffer);
	protected at = 0;
	/** Memory that short values share, and how much of it is taken. */
	#shared: ArrayBuffer | undefined;
	#taken = 0;

	/** What was written. The next value starts from an empty buffer. */
	protected takeWritten(): Uint8Array {
		const bytes = this.copyWritten();
		this.dropLargeBuffer();
		return bytes;
	}

	protected dropLargeBuffer(): void {
		if (this.bytes.length > MOST_KEPT_BYTES) this.writeTo(allocate(INITIAL_BYTES));
	}

	/** What was written, in other memory than the buffer's. */
	protected copyWritten(): Uint8Array {
		const { bytes, at: length } = this;
		if (length <= SHORT_COPY) {
			const copy = new Uint8Array(length);
			for (let i = 0; i < length; i++) copy[i] = bytes[i] as number;
			return copy;
		}
		const written = new Uint8Array(bytes.buffer, bytes.byteOffset, length);
		if (length > MOST_SHARED) return new Uint8Array(written);
		const copy = this.#share(length);
		copy.set(written);
		return copy;
	}

	#share(length: number): Uint8Array {
		if (this.#shared === undefined || this.#taken + length > SHARED_BYTES) {
			this.#shared = new ArrayBuffer(SHARED_BYTES);
			this.#taken = 0;
		}
		const start = this.#taken;
		this.#taken += length;
		return new Uint8Array(this.#shared, start, length);
	}

	protected writeTo(bytes: Uint8Array): void {
		this.bytes = bytes;
		this.view = new DataView(bytes.buffer);
	}

	protected reserve(bytes: number, slack = SLACK): void {
		if (this.at + bytes <= this.bytes.length) return;
		const grown = allocate(this.roomFor(this.at + bytes, slack));
		grown.set(this.bytes.subarray(0, this.at));
		this.writeTo(grown);
	}

	/** How large the buffer becomes when it has to hold so many bytes. */
	protected roomFor(needed: number, slack: number): number {
		return Math.max(this.bytes.length * 2, Math.ceil(needed * (1 + slack)));
	}

	protected writeByte(value: number): void {
		this.reserve(1);
		this.bytes[this.at++] = value;
	}

	protected writeNumber(value: number): void {
		this.reserve(9);
		const bytes = this.bytes;
		if ((value | 0) === value && !Object.is(value, -0)) {
			if (value >= 0) {
				if (value < 0x80) bytes[this.at++] = value;
				else if (value < 0x100) {
					bytes[this.at++] = 0xcc;
					bytes[this.at++] = value;
				} else if (value < 0x10000) {
					bytes[this.at++] = 0xcd;
					bytes[this.at++] = value >> 8;
					bytes[this.at++] = value;
				} else {
					bytes[this.at++] = 0xce;
					this.view.setUint32(this.at, value);
					this.at += 4;
				}
			} else if (value >= -32) bytes[this.at++] = value;
			else {
				bytes[this.at++] = 0xd2;
				this.view.setInt32(this.at, value);
				this.at += 4;
			}
			return;
		}
		if (Object.is(value, -0)) return this.writeSingle(SINGLE.negativeZero);
		bytes[this.at++] = 0xcb;
		this.writeFloat(value);
	}

	/** There are many NaNs, which are all the same to JavaScript but not in their bytes: one is written for all. */
	protected writeFloat(value: number): void {
		if (Number.isNaN(value)) {
			this.view.setUint32(this.at, 0x7ff80000);
			this.view.setUint32(this.at + 4, 0);
		} else this.view.setFloat64(this.at, value);
		this.at += 8;
	}

	protected writeSingle(kind: number): void {
		this.reserve(3);
		this.bytes[this.at++] = 0xd4;
		this.bytes[this.at++] = EXT_SINGLE;
		this.bytes[this.at++] = kind;
	}

	/** Writes nothing and answers false if there is half of a surrogate pair in the text. */
	protected writeText(value: string): boolean {
		const length = value.length;
		if (length < SHORT_STRING && this.#writeAscii(value, length)) return true;
		if (!value.isWellFormed()) return false;
		// A UTF-16 unit takes at most three bytes; the text is moved once the true length of the header is known.
		this.reserve(5 + length * 3);
		const guess = stringHeaderSize(length);
		const start = this.at;
		const written = writeUtf8(value, this.bytes, start + guess);
		const size = stringHeaderSize(written);
		if (size !== guess) this.bytes.copyWithin(start + size, start + guess, start + guess + written);
		this.#stringHeader(written);
		this.at = start + size + written;
		return true;
	}

	/** The key of an object. Writes nothing and answers false if there is half of a surrogate pair in it. */
	protected writeKey(key: string): boolean {
		const number = NUMBERS.get(key);
		if (number === undefined) return this.writeText(key);
		this.writeByte(number);
		return true;
	}

	/** Writes a short string of ASCII alone; otherwise writes nothing and answers false. */
	#writeAscii(value: string, length: number): boolean {
		this.reserve(length + 2);
		const bytes = this.bytes;
		const start = this.at;
		bytes[start] = 0xa0 | length;
		for (let i = 0; i < length; i++) {
			const code = value.charCodeAt(i);
			if (code > 0x7f) return false;
			bytes[start + 1 + i] = code;
		}
		this.at = start + 1 + length;
		return true;
	}

	#stringHeader(length: number): void {
		if (length < 32) this.bytes[this.at++] = 0xa0 | length;
		else if (length < 0x100) {
			this.bytes[this.at++] = 0xd9;
			this.bytes[this.at++] = length;
		} else if (length < 0x10000) {
			this.bytes[this.at++] = 0xda;
			this.view.setUint16(this.at, length);
			this.at += 2;
		} else {
			this.bytes[this.at++] = 0xdb;
			this.view.setUint32(this.at, length);
			this.at += 4;
		}
	}

	protected writeBin(value: Uint8Array): void {
		const length = value.length;
		this.reserve(5 + length);
		if (length < 0x100) {
			this.bytes[this.at++] = 0xc4;
			this.bytes[this.at++] = length;
		} else if (length < 0x10000) {
			this.bytes[this.at++] = 0xc5;
			this.view.setUint16(this.at, length);
			this.at += 2;
		} else {
			this.bytes[this.at++] = 0xc6;
			this.view.setUint32(this.at, length);
			this.at += 4;
		}
		this.writeRaw(value);
	}

	/** Bytes as they are, for which there is room. */
	protected writeRaw(value: Uint8Array): void {
		const { bytes, at } = this;
		const length = value.length;
		if (length > SHORT_COPY) bytes.set(value, at);
		else for (let i = 0; i < length; i++) bytes[at + i] = value[i] as number;
		this.at += length;
	}

	/** A tagged value is an array whose first element is an extension that no stored value can be. */
	protected writeTag(tag: number, fields: number): void {
		this.writeArrayHeader(fields + 1);
		this.reserve(3);
		this.bytes[this.at++] = 0xd4;
		this.bytes[this.at++] = EXT_TAG;
		this.bytes[this.at++] = tag;
	}

	protected writeArrayHeader(length: number): void {
		this.#header(length, 0x90, 0xdc);
	}

	protected writeMapHeader(length: number): void {
		this.#header(length, 0x80, 0xde);
	}

	#header(length: number, fixed: number, long: number): void {
		this.reserve(5);
		if (length < 16) this.bytes[this.at++] = fixed | length;
		else if (length < 0x10000) {
			this.bytes[this.at++] = long;
			this.view.setUint16(this.at, length);
			this.at += 2;
		} else {
			this.bytes[this.at++] = long + 1;
			this.view.setUint32(this.at, length);
			this.at += 4;
		}
	}
}

function stringHeaderSize(length: number): number {
	return length < 32 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : 5;
}

/** What stands for text that has half of a surrogate pair. */
export function utf16Bytes(value: string): Uint8Array {
	const bytes = new Uint8Array(value.length * 2);
	for (let i = 0; i < value.length; i++) {
		bytes[i * 2] = value.charCodeAt(i);
		bytes[i * 2 + 1] = value.charCodeAt(i) >> 8;
	}
	return bytes;
}
