import { CheckpointError } from "../errors.ts";
import { ClassRegistry } from "./class-registry.ts";
import { fillGaps, Gap } from "./gaps.ts";
import { makeDeltaSnapshot, makeInstance } from "./instances.ts";
import { EXT_BIGINT, EXT_DATE, EXT_REF, EXT_SINGLE, EXT_TAG, LAYOUT, SINGLE, TAG, TYPED_ARRAYS } from "./wire.ts";

/** Up to this length a loop over char codes beats a native call. */
const SHORT_STRING = 16;
/** Property names repeat endlessly: this many, by length and first and last bytes, are kept as ready strings. */
const NAME_SLOTS = 1024;
/** Longer names are rare and not worth a slot. */
const LONGEST_NAME = 40;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Turns the bytes of an {@link Encoder} back into the value.
 *
 * The bytes need not be honest: whatever they say, the answer is a value of the closed set of types, or a
 * CheckpointError with code CORRUPT, in time and memory bounded by their length.
 */
export class Decoder {
	#bytes: Uint8Array = new Uint8Array(0);
	#view: DataView = new DataView(this.#bytes.buffer);
	#at = 0;
	/** Objects by number, kept only if the value has references. */
	#objects: unknown[] | undefined;
	/** Stand in the value for what could not be made on the spot. */
	#gaps: Gap[] = [];
	readonly #classes: ClassRegistry;
	readonly #names: ({ bytes: Uint8Array; text: string } | undefined)[] = new Array(NAME_SLOTS);

	constructor(classes = new ClassRegistry()) {
		this.#classes = classes;
	}

	/** The value, or a promise of it if LangChain has to load a part. */
	decode(bytes: Uint8Array): unknown {
		this.#bytes = bytes;
		this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		this.#at = 1;
		try {
			const value = this.#readRoot(bytes[0] ?? -1);
			if (this.#at !== bytes.length) throw corrupt("bytes are left over");
			return this.#gaps.length === 0 ? value : fillGaps(value, this.#gaps, this.#objects ?? []);
		} catch (error) {
			if (error instanceof CheckpointError) throw error;
			const reason = error instanceof RangeError ? "it is nested too deeply or cut short" : String(error);
			throw new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`, { cause: error });
		} finally {
			this.#objects = undefined;
			this.#gaps = [];
		}
	}

	#readRoot(layout: number): unknown {
		if (layout & LAYOUT.refs) this.#objects = [];
		switch (layout & ~LAYOUT.refs) {
			case LAYOUT.value:
				return this.#read();
			case LAYOUT.array: {
				const value: unknown[] = [];
				this.#objects?.push(value);
				while (this.#at < this.#bytes.length) value.push(this.#read());
				return value;
			}
			case LAYOUT.object: {
				const value: Record<string, unknown> = {};
				this.#objects?.push(value);
				while (this.#at < this.#bytes.length) this.#readEntry(value);
				return value;
			}
			default:
				throw corrupt(`unknown layout ${layout}`);
		}
	}

	#read(): unknown {
		const head = this.#byte();
		if (head < 0x80) return head;
		if (head < 0x90) return this.#readMap(head & 0x0f);
		if (head < 0xa0) return this.#readArray(head & 0x0f);
		if (head < 0xc0) return this.#readText(head & 0x1f);
		if (head >= 0xe0) return head - 0x100;
		switch (head) {
			case 0xc0:
				return null;
			case 0xc2:
				return false;
			case 0xc3:
				return true;
			case 0xc4:
				return this.#readBin(this.#uint8());
			case 0xc5:
				return this.#readBin(this.#uint16());
			case 0xc6:
				return this.#readBin(this.#uint32());
			case 0xcb:
				return this.#float64();
			case 0xcc:
				return this.#uint8();
			case 0xcd:
				return this.#uint16();
			case 0xce:
				return this.#uint32();
			case 0xd2:
				return this.#uint32() | 0;
			case 0xd9:
				return this.#readText(this.#uint8());
			case 0xda:
				return this.#readText(this.#uint16());
			case 0xdb:
				return this.#readText(this.#uint32());
			case 0xdc:
				return this.#readArray(this.#uint16());
			case 0xdd:
				return this.#readArray(this.#uint32());
			case 0xde:
				return this.#readMap(this.#uint16());
			case 0xdf:
				return this.#readMap(this.#uint32());
			default:
				return this.#readExtension(head);
		}
	}

	#readArray(length: number): unknown {
		// Every element takes a byte at least, so a length beyond the bytes left is a lie.
		if (length > this.#bytes.length - this.#at) throw corrupt(`an array of ${length} in too few bytes`);
		if (length > 0 && this.#bytes[this.#at] === 0xd4 && this.#bytes[this.#at + 1] === EXT_TAG) {
			this.#at += 2;
			return this.#readTagged(this.#byte(), length - 1);
		}
		const value: unknown[] = [];
		this.#objects?.push(value);
		for (let i = 0; i < length; i++) value.push(this.#read());
		return value;
	}

	#readMap(length: number): Record<string, unknown> {
		if (length * 2 > this.#bytes.length - this.#at) throw corrupt(`a map of ${length} in too few bytes`);
		const value: Record<string, unknown> = {};
		this.#objects?.push(value);
		for (let i = 0; i < length; i++) this.#readEntry(value);
		return value;
	}

	#readEntry(target: Record<string, unknown>): void {
		const name = this.#readName();
		const value = this.#read();
		if (name === "__proto__")
			Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
		else target[name] = value;
	}

	#readName(): string {
		const head = this.#bytes[this.#at] ?? 0;
		const length = head & 0x1f;
		if (head >= 0xa0 && head < 0xc0 && this.#at + 1 + length <= this.#bytes.length) {
			this.#at++;
			return this.#readCached(length);
		}
		const name = this.#read();
		if (typeof name !== "string") throw corrupt("a key that is not a string");
		return name;
	}

	/** The same name read before, if the slot for it still holds it: no new string, no decoding. */
	#readCached(length: number): string {
		if (length === 0 || length > LONGEST_NAME) return this.#readText(length);
		const start = this.#at;
		const bytes = this.#bytes;
		const first = bytes[start] as number;
		const last = bytes[start + length - 1] as number;
		const slot = (length * 31 + first * 7 + last * 13 + (bytes[start + (length >> 1)] as number) * 3) % NAME_SLOTS;
		const known = this.#names[slot];
		if (known !== undefined && sameBytes(known.bytes, bytes, start, length)) {
			this.#at = start + length;
			return known.text;
		}
		const text = this.#readText(length);
		this.#names[slot] = { bytes: bytes.slice(start, start + length), text };
		return text;
	}

	#readText(length: number): string {
		const start = this.#take(length);
		if (length <= SHORT_STRING) {
			const text = asciiText(this.#bytes, start, length);
			if (text !== undefined) return text;
		}
		return utf8.decode(this.#bytes.subarray(start, start + length));
	}

	#readBin(length: number): Uint8Array {
		const start = this.#take(length);
		const value = new Uint8Array(this.#bytes.subarray(start, start + length));
		this.#objects?.push(value);
		return value;
	}

	#readExtension(head: number): unknown {
		const fixed = head >= 0xd4 && head <= 0xd8 ? 1 << (head - 0xd4) : undefined;
		const length = fixed ?? (head === 0xc7 ? this.#uint8() : head === 0xc9 ? this.#uint32() : undefined);
		if (length === undefined) throw corrupt(`unknown type byte ${head}`);
		const type = this.#byte();
		const start = this.#take(length);
		switch (type) {
			case EXT_SINGLE:
				if (this.#bytes[start] === SINGLE.undefined) return undefined;
				if (this.#bytes[start] === SINGLE.negativeZero) return -0;
				throw corrupt("unknown single value");
			case EXT_DATE: {
				const value = new Date(length === 8 ? this.#view.getFloat64(start) : Number.NaN);
				this.#objects?.push(value);
				return value;
			}
			case EXT_BIGINT:
				return readBigInt(this.#bytes.subarray(start, start + length));
			case EXT_REF:
				return this.#resolve(length === 4 ? this.#view.getUint32(start) : -1);
			default:
				throw corrupt(`unknown extension ${type}`);
		}
	}

	#resolve(number: number): unknown {
		if (this.#objects === undefined || !(number in this.#objects))
			throw corrupt(`a reference to object ${number}, which is not there`);
		return this.#objects[number] ?? this.#gap({ number });
	}

	#gap(from: Gap["from"]): Gap {
		const gap = new Gap(from);
		this.#gaps.push(gap);
		return gap;
	}

	#readTagged(tag: number, fields: number): unknown {
		switch (tag) {
			case TAG.map: {
				const value = new Map<unknown, unknown>();
				this.#objects?.push(value);
				for (let i = 0; i < fields; i += 2) value.set(this.#read(), this.#read());
				return value;
			}
			case TAG.set: {
				const value = new Set<unknown>();
				this.#objects?.push(value);
				for (let i = 0; i < fields; i++) value.add(this.#read());
				return value;
			}
			case TAG.sparse:
				return this.#readSparse(fields);
			case TAG.error:
				return this.#readError(fields);
			case TAG.utf16:
				return this.#readUtf16();
			default:
				return this.#readConstructed(tag, fields);
		}
	}

	/** Values that exist only once all their fields are known. */
	#readConstructed(tag: number, count: number): unknown {
		const number = this.#objects === undefined ? -1 : this.#objects.push(undefined) - 1;
		const fields: unknown[] = [];
		for (let i = 0; i < count; i++) fields.push(this.#read());
		const value = this.#construct(tag, fields);
		if (value === undefined) throw corrupt(`unknown tag ${tag}, or fields that do not fit it`);
		if (this.#objects !== undefined) this.#objects[number] = value;
		return value;
	}

	#construct(tag: number, fields: unknown[]): unknown {
		if (tag === TAG.registered) return this.#classes.make(fields[0], fields[1]);
		return tag === TAG.loadable ? this.#gap({ json: fields[0] }) : construct(tag, fields);
	}

	#readSparse(fields: number): unknown[] {
		const value: unknown[] = [];
		this.#objects?.push(value);
		const length = this.#read();
		for (let i = 1; i < fields; i += 2) {
			const index = this.#read();
			if (typeof index !== "number") throw corrupt("an index that is not a number");
			value[index] = this.#read();
		}
		if (typeof length !== "number") throw corrupt("a length that is not a number");
		value.length = length;
		return value;
	}

	#readError(fields: number): Error {
		const number = this.#objects === undefined ? -1 : this.#objects.push(undefined) - 1;
		if (fields < 5) throw corrupt("an error with too few fields");
		const type = this.#read();
		const name = this.#read();
		const message = this.#read();
		const stack = this.#read();
		const error = makeError(type, String(message));
		if (this.#objects !== undefined) this.#objects[number] = error;
		if (error.name !== name) define(error, "name", name);
		if (typeof stack === "string") define(error, "stack", stack);
		Object.assign(error, this.#read());
		if (fields > 5) {
			const cause = this.#read();
			if (cause !== undefined || fields === 6) define(error, "cause", cause);
		}
		if (fields > 6) define(error, "errors", this.#read());
		return error;
	}

	#readUtf16(): string {
		const units = this.#read();
		if (!(units instanceof Uint8Array)) throw corrupt("a string that is not bytes");
		let text = "";
		for (let i = 0; i + 1 < units.length; i += 2)
			text += String.fromCharCode((units[i] as number) | ((units[i + 1] as number) << 8));
		return text;
	}

	#take(length: number): number {
		const start = this.#at;
		if (length > this.#bytes.length - start) throw corrupt("it is cut short");
		this.#at = start + length;
		return start;
	}

	#byte(): number {
		const value = this.#bytes[this.#at++];
		if (value === undefined) throw corrupt("it is cut short");
		return value;
	}

	#uint8(): number {
		return this.#byte();
	}

	#uint16(): number {
		return this.#view.getUint16(this.#take(2));
	}

	#uint32(): number {
		return this.#view.getUint32(this.#take(4));
	}

	#float64(): number {
		return this.#view.getFloat64(this.#take(8));
	}
}

function corrupt(reason: string): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`);
}

function sameBytes(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
	if (known.length !== length) return false;
	for (let i = 0; i < length; i++) if (known[i] !== bytes[start + i]) return false;
	return true;
}

function asciiText(bytes: Uint8Array, start: number, length: number): string | undefined {
	let text = "";
	for (let i = start; i < start + length; i++) {
		const code = bytes[i] as number;
		if (code > 0x7f) return undefined;
		text += String.fromCharCode(code);
	}
	return text;
}

function readBigInt(bytes: Uint8Array): bigint {
	let hex = "0x0";
	for (let i = 1; i < bytes.length; i++) hex += (bytes[i] as number).toString(16).padStart(2, "0");
	const magnitude = BigInt(hex);
	return bytes[0] === 1 ? -magnitude : magnitude;
}

const ERROR_TYPES: ReadonlyMap<unknown, ErrorConstructor> = new Map(
	[EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [type.name, type]),
);

function makeError(type: unknown, message: string): Error {
	if (type === "AggregateError") return new AggregateError([], message);
	return new (ERROR_TYPES.get(type) ?? Error)(message);
}

function define(target: object, key: string, value: unknown): void {
	Object.defineProperty(target, key, { value, writable: true, enumerable: false, configurable: true });
}

function construct(tag: number, fields: unknown[]): unknown {
	const [first, second, third] = fields;
	switch (tag) {
		case TAG.regexp: {
			const value = new RegExp(String(first), String(second));
			value.lastIndex = Number(third);
			return value;
		}
		case TAG.url:
			return new URL(String(first));
		case TAG.buffer:
			return first instanceof Uint8Array ? first.buffer : undefined;
		case TAG.nodeBuffer:
			return first instanceof Uint8Array ? toNodeBuffer(first) : undefined;
		case TAG.typedArray:
			return second instanceof Uint8Array ? toTypedArray(first, second) : undefined;
		case TAG.langchain:
			return makeInstance(first, second);
		case TAG.deltaSnapshot:
			return makeDeltaSnapshot(first);
		default:
			return undefined;
	}
}

/** Where there is no Buffer (a browser), a Uint8Array is the nearest thing. */
function toNodeBuffer(bytes: Uint8Array): Uint8Array {
	return typeof Buffer === "undefined" ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function toTypedArray(kind: unknown, bytes: Uint8Array): unknown {
	const name = TYPED_ARRAYS[kind as number];
	if (name === undefined) return undefined;
	const View = globalThis[name] as new (buffer: ArrayBufferLike) => ArrayBufferView;
	return new View(new Uint8Array(bytes).buffer);
}
