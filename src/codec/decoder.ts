import { CheckpointError } from "../errors.ts";
import { isRecord } from "./built-ins.ts";
import { ClassRegistry } from "./class-registry.ts";
import { fillGaps, Gap } from "./gaps.ts";
import { makeDeltaSnapshot, makeInstance } from "./instances.ts";
import {
	DEEPEST,
	EXT_BIGINT,
	EXT_DATE,
	EXT_REF,
	EXT_SINGLE,
	EXT_TAG,
	LAYOUT,
	NAMES,
	SINGLE,
	TAG,
	TYPED_ARRAYS,
} from "./wire.ts";

/** Up to this length a loop over char codes beats a native call. */
const SHORT_STRING = 16;
/** Property names repeat endlessly: this many, by length and first and last bytes, are kept as ready strings. */
const NAME_SLOTS = 1024;
/** Longer names are rare and not worth a slot. */
const LONGEST_NAME = 40;
/** One more than the greatest index of an array. */
const MOST_ELEMENTS = 2 ** 32 - 1;
/** Code units that become a string in one call: all of them at once would not fit on the stack. */
const UNITS_AT_ONCE = 4096;

const NOTHING = new Uint8Array(0);

/** For one number at a time. A view of the bytes of each value would take longer than most values do. */
const float = new DataView(new ArrayBuffer(8));

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Buffer's own way, for any array of bytes: twice as quick, but bytes that are no text become U+FFFD. */
const utf8Slice: ((this: Uint8Array, start: number, end: number) => string) | undefined =
	typeof Buffer === "undefined" ? undefined : (Buffer.prototype as never as { utf8Slice: never }).utf8Slice;

/**
 * Turns the bytes of an {@link Encoder} back into the value.
 *
 * The bytes need not be honest: whatever they say, the answer is a value of the closed set of types, or a
 * CheckpointError with code CORRUPT, in time and memory bounded by their length.
 */
export class Decoder {
	#bytes: Uint8Array = NOTHING;
	#at = 0;
	#depth = 0;
	#busy = false;
	/** Objects by number, kept only if the value has references. */
	#objects: unknown[] | undefined;
	/** Stand in the value for what could not be made on the spot. */
	#gaps: Gap[] = [];
	readonly #classes: ClassRegistry;
	readonly #names: ({ bytes: Uint8Array; text: string } | undefined)[] = new Array(NAME_SLOTS);

	constructor(classes = new ClassRegistry()) {
		this.#classes = classes;
	}

	/**
	 * The value, or a promise of it if LangChain has to load a part.
	 *
	 * @param ends takes down where each element of a list ends, if they have nothing to do with each other
	 */
	decode(bytes: Uint8Array, ends?: number[]): unknown {
		// A class of the application that itself decodes something would otherwise move us to other bytes.
		if (this.#busy) return new Decoder(this.#classes).decode(bytes, ends);
		this.#busy = true;
		this.#bytes = bytes;
		this.#at = 1;
		this.#depth = 0;
		try {
			const value = this.#readRoot(bytes[0] ?? -1, ends);
			if (this.#at !== bytes.length) throw corrupt("bytes are left over");
			if (this.#gaps.length === 0) return value;
			const filled = fillGaps(value, this.#gaps, this.#objects ?? []);
			return filled instanceof Promise ? filled.catch(explain) : filled;
		} catch (error) {
			return explain(error);
		} finally {
			this.#busy = false;
			this.#bytes = NOTHING;
			this.#objects = undefined;
			this.#gaps = [];
		}
	}

	#readRoot(layout: number, ends: number[] | undefined): unknown {
		if (layout & LAYOUT.refs) this.#objects = [];
		switch (layout & ~LAYOUT.refs) {
			case LAYOUT.value:
				return this.#read();
			case LAYOUT.array: {
				const value: unknown[] = [];
				this.#objects?.push(value);
				while (this.#at < this.#bytes.length) {
					value.push(this.#read());
					if (ends !== undefined && this.#objects === undefined) ends.push(this.#at);
				}
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
		this.#enter();
		const isTagged = length > 0 && this.#bytes[this.#at] === 0xd4 && this.#bytes[this.#at + 1] === EXT_TAG;
		const value = isTagged ? this.#readTagged(length - 1) : this.#readElements(length);
		this.#depth--;
		return value;
	}

	#readElements(length: number): unknown[] {
		const value: unknown[] = [];
		this.#objects?.push(value);
		for (let i = 0; i < length; i++) value.push(this.#read());
		return value;
	}

	#enter(): void {
		if (++this.#depth > DEEPEST) throw corrupt("it is nested too deeply");
	}

	#readMap(length: number): Record<string, unknown> {
		if (length * 2 > this.#bytes.length - this.#at) throw corrupt(`a map of ${length} in too few bytes`);
		this.#enter();
		const value: Record<string, unknown> = {};
		this.#objects?.push(value);
		for (let i = 0; i < length; i++) this.#readEntry(value);
		this.#depth--;
		return value;
	}

	#readEntry(target: Record<string, unknown>): void {
		const name = this.#readName();
		const value = this.#read();
		if (name === "__proto__") define(target, name, value, true);
		else target[name] = value;
	}

	#readName(): string {
		const head = this.#bytes[this.#at] ?? 0;
		if (head < NAMES.length) {
			this.#take(1);
			return NAMES[head] as string;
		}
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
		// A copy also of a Buffer, whose `slice` would share its memory.
		this.#names[slot] = { bytes: new Uint8Array(bytes.subarray(start, start + length)), text };
		return text;
	}

	#readText(length: number): string {
		const start = this.#take(length);
		if (length <= SHORT_STRING) {
			const text = asciiText(this.#bytes, start, length);
			if (text !== undefined) return text;
		}
		return readUtf8(this.#bytes, start, start + length);
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
				if (length === 1 && this.#bytes[start] === SINGLE.undefined) return undefined;
				if (length === 1 && this.#bytes[start] === SINGLE.negativeZero) return -0;
				throw corrupt("unknown single value");
			case EXT_DATE: {
				if (length !== 8) throw corrupt("a date that is not eight bytes");
				const value = new Date(this.#float64At(start));
				this.#objects?.push(value);
				return value;
			}
			case EXT_BIGINT:
				return readBigInt(this.#bytes.subarray(start, start + length));
			case EXT_REF:
				return this.#resolve(length === 4 ? this.#uint32At(start) : -1);
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

	#readTagged(fields: number): unknown {
		this.#at += 2;
		const tag = this.#byte();
		switch (tag) {
			case TAG.map: {
				if (fields % 2 !== 0) throw corrupt("a map with a key that has no value");
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
				return this.#readUtf16(fields);
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
		if (!isIndex(length, MOST_ELEMENTS + 1) || fields % 2 === 0) throw corrupt("a length that no array has");
		// Setting `length` would make room for all of it; an element far out makes no more room than it needs.
		if (length > 0) {
			value[length - 1] = undefined;
			delete value[length - 1];
		}
		for (let i = 1; i < fields; i += 2) {
			const index = this.#read();
			if (!isIndex(index, length)) throw corrupt("an index that its array does not have");
			value[index] = this.#read();
		}
		return value;
	}

	#readError(fields: number): Error {
		const number = this.#objects === undefined ? -1 : this.#objects.push(undefined) - 1;
		if (fields < 5 || fields > 7) throw corrupt(`an error with ${fields} fields`);
		const type = this.#read();
		const name = this.#read();
		const message = this.#read();
		const stack = this.#read();
		const error = makeError(type, message);
		if (this.#objects !== undefined) this.#objects[number] = error;
		// Set before anything looks at it: the engine would put it into words, with whatever name the error has then.
		error.stack = stack as string;
		const own = this.#read();
		if (!isRecord(own)) throw corrupt("an error whose properties are not an object");
		for (const key of Object.keys(own)) define(error, key, own[key], true);
		for (const [key, hidden] of Object.entries({ name, message }))
			if (!Object.hasOwn(own, key) && error[key as keyof Error] !== hidden) define(error, key, hidden);
		if (fields > 5) {
			const cause = this.#read();
			if (cause !== undefined || fields === 6) define(error, "cause", cause);
		}
		if (fields > 6) define(error, "errors", this.#read());
		return error;
	}

	#readUtf16(fields: number): string {
		const bytes = fields === 1 ? this.#read() : undefined;
		if (!(bytes instanceof Uint8Array) || bytes.length % 2 !== 0) throw corrupt("a string that is not code units");
		let text = "";
		for (let start = 0; start < bytes.length; start += UNITS_AT_ONCE * 2) {
			const units: number[] = [];
			const end = Math.min(bytes.length, start + UNITS_AT_ONCE * 2);
			for (let i = start; i < end; i += 2) units.push((bytes[i] as number) | ((bytes[i + 1] as number) << 8));
			text += String.fromCharCode(...units);
		}
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
		return this.#uint16At(this.#take(2));
	}

	#uint32(): number {
		return this.#uint32At(this.#take(4));
	}

	#float64(): number {
		return this.#float64At(this.#take(8));
	}

	#uint16At(at: number): number {
		const bytes = this.#bytes;
		return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
	}

	#uint32At(at: number): number {
		return this.#uint16At(at) * 0x10000 + this.#uint16At(at + 2);
	}

	#float64At(at: number): number {
		float.setUint32(0, this.#uint32At(at));
		float.setUint32(4, this.#uint32At(at + 4));
		return float.getFloat64(0);
	}
}

function corrupt(reason: string): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`);
}

function explain(error: unknown): never {
	if (error instanceof CheckpointError && error.code === "CORRUPT") throw error;
	const reason = error instanceof Error ? error.message : "what it is made of threw something";
	throw new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`, { cause: error });
}

function isIndex(value: unknown, end: number): value is number {
	return Number.isInteger(value) && (value as number) >= 0 && (value as number) < end;
}

function sameBytes(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
	if (known.length !== length) return false;
	for (let i = 0; i < length; i++) if (known[i] !== bytes[start + i]) return false;
	return true;
}

/** Throws if the bytes are no text. */
function readUtf8(bytes: Uint8Array, start: number, end: number): string {
	const text = utf8Slice?.call(bytes, start, end);
	if (text !== undefined && !text.includes("\ufffd")) return text;
	return utf8.decode(bytes.subarray(start, end));
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
	if (bytes.length < 2 || (bytes[0] as number) > 1) throw corrupt("an integer without a sign or digits");
	let hex = "0x0";
	for (let i = 1; i < bytes.length; i++) hex += (bytes[i] as number).toString(16).padStart(2, "0");
	const magnitude = BigInt(hex);
	return bytes[0] === 1 ? -magnitude : magnitude;
}

const ERROR_TYPES: ReadonlyMap<unknown, ErrorConstructor> = new Map(
	[EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [type.name, type]),
);

/** An error that knows nothing of the stack it was made on, which would be the decoder's. */
function makeError(type: unknown, message: unknown): Error {
	const text = typeof message === "string" ? message : undefined;
	const limit = Error.stackTraceLimit;
	Error.stackTraceLimit = 0;
	try {
		if (type === "AggregateError") return new AggregateError([], text);
		return new (ERROR_TYPES.get(type) ?? Error)(text);
	} finally {
		Error.stackTraceLimit = limit;
	}
}

function define(target: object, key: string, value: unknown, enumerable = false): void {
	Object.defineProperty(target, key, { value, writable: true, enumerable, configurable: true });
}

function construct(tag: number, fields: unknown[]): unknown {
	const [first, second, third] = fields;
	switch (tag) {
		// Only from text: what anything else turns into when it is made text may have no end.
		case TAG.regexp: {
			if (typeof first !== "string" || typeof second !== "string" || typeof third !== "number") return undefined;
			const value = new RegExp(first, second);
			value.lastIndex = third;
			return value;
		}
		case TAG.url:
			return typeof first === "string" ? new URL(first) : undefined;
		case TAG.buffer:
			return first instanceof Uint8Array ? first.buffer : undefined;
		case TAG.nodeBuffer:
			return first instanceof Uint8Array ? toNodeBuffer(first) : undefined;
		case TAG.typedArray:
			return typeof first === "number" && second instanceof Uint8Array ? toTypedArray(first, second) : undefined;
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

function toTypedArray(kind: number, bytes: Uint8Array): unknown {
	const View = (globalThis as Record<string, unknown>)[TYPED_ARRAYS[kind] ?? ""];
	if (typeof View !== "function") return undefined;
	return new (View as new (buffer: ArrayBufferLike) => ArrayBufferView)(new Uint8Array(bytes).buffer);
}
