import { CheckpointError } from "../errors.ts";
import { ClassRegistry } from "./class-registry.ts";
import { ElementMemos, Recorder } from "./element-memos.ts";
import { describeInstance, isLangGraphs, standInFor } from "./instances.ts";
import { EXT_BIGINT, EXT_DATE, EXT_REF, EXT_SINGLE, EXT_TAG, LAYOUT, SINGLE, TAG, TYPED_ARRAYS } from "./wire.ts";

/** Room for most values without growing; a larger one doubles it. */
const INITIAL_BYTES = 8192;
/** Below this length a loop over char codes beats a native call. */
const SHORT_STRING = 24;

const utf8 = new TextEncoder();

/** Buffer's own way to write text is several times as quick, but is not everywhere. */
const writeUtf8: (text: string, into: Uint8Array, at: number) => number =
	typeof Buffer === "undefined"
		? (text, into, at) => utf8.encodeInto(text, into.subarray(at)).written
		: (text, into, at) => (into as Buffer & { utf8Write(text: string, at: number): number }).utf8Write(text, at);

function allocate(bytes: number): Uint8Array {
	return typeof Buffer === "undefined" ? new Uint8Array(bytes) : Buffer.allocUnsafeSlow(bytes);
}

/**
 * Turns values into bytes, in the format that FORMAT describes (see wire.ts).
 *
 * The same value always gives the same bytes, whatever was encoded before: deltas and comparisons rely on it.
 */
export class Encoder {
	#bytes: Uint8Array = allocate(INITIAL_BYTES);
	#view: DataView = new DataView(this.#bytes.buffer);
	#at = 0;
	#busy = false;
	/** Objects seen in this value, with the number the decoder will give them. */
	#seen = new Map<object, number>();
	#count = 0;
	#hasRefs = false;
	readonly #memos = new ElementMemos();
	/** Notes what the bytes of the member being written depend on. */
	#recorder: Recorder | undefined;
	readonly #classes: ClassRegistry;
	readonly #isStrict: boolean;

	/** @param isStrict refuses what would not come back as it was: instances of unknown classes, functions, symbols */
	constructor(classes = new ClassRegistry(), isStrict = false) {
		this.#classes = classes;
		this.#isStrict = isStrict;
	}

	/** The bytes of one value. Throws a CheckpointError with code UNSERIALIZABLE if it has none. */
	encode(value: unknown): Uint8Array {
		// A toJSON that itself stores something would otherwise write into the middle of our buffer.
		if (this.#busy) return new Encoder(this.#classes, this.#isStrict).encode(value);
		this.#busy = true;
		this.#at = 0;
		try {
			this.#writeRoot(value);
			return new Uint8Array(this.#bytes.subarray(0, this.#at));
		} catch (error) {
			throw explain(error, value);
		} finally {
			this.#busy = false;
			if (this.#seen.size > 0) this.#seen = new Map();
		}
	}

	/** Arrays and plain objects are laid out open-ended at the top, so that an append changes nothing before it. */
	#writeRoot(value: unknown): void {
		const isArray = Array.isArray(value) && !isSparse(value);
		const isObject = !isArray && isPlain(value) && typeof (value as { toJSON?: unknown }).toJSON !== "function";
		const layout = isArray ? LAYOUT.array : isObject ? LAYOUT.object : LAYOUT.value;
		this.#start();
		if (layout === LAYOUT.value) this.#write(isUnstorable(value) && !this.#isStrict ? undefined : value);
		else if (!this.#writeMembers(value as object)) {
			this.#start();
			this.#number(value as object);
			if (isArray) this.#writeElements(value);
			else this.#writeEntries(value as Record<string, unknown>, this.#storedKeys(value as Record<string, unknown>));
		}
		this.#bytes[0] = this.#hasRefs ? layout | LAYOUT.refs : layout;
	}

	#start(): void {
		this.#reserve(16);
		this.#at = 1;
		this.#count = 0;
		this.#hasRefs = false;
		if (this.#seen.size > 0) this.#seen = new Map();
	}

	/**
	 * Writes an array or object whose members stand for themselves, using what is remembered of them. Answers false if
	 * some of them share objects, and then has to be done without.
	 */
	#writeMembers(root: object): boolean {
		this.#memos.begin();
		this.#number(root);
		if (Array.isArray(root)) return root.every((element) => this.#writeMember(element));
		const fields = root as Record<string, unknown>;
		return this.#storedKeys(fields).every((key) => {
			this.#writeString(key);
			return this.#writeMember(fields[key]);
		});
	}

	#writeMember(value: unknown): boolean {
		if (typeof value !== "object" || value === null) {
			this.#write(value);
			return true;
		}
		const memo = this.#memos.find(value);
		if (memo === "twice") return false;
		if (memo !== undefined) {
			this.#reserve(memo.bytes.length);
			this.#bytes.set(memo.bytes, this.#at);
			this.#at += memo.bytes.length;
			this.#count += memo.objects;
			return true;
		}
		const start = this.#at;
		const count = this.#count;
		const recorder = new Recorder();
		this.#recorder = recorder;
		try {
			this.#write(value);
		} finally {
			this.#recorder = undefined;
		}
		if (this.#hasRefs) return false;
		return this.#memos.keep(value, recorder, () => new Uint8Array(this.#bytes.subarray(start, this.#at)), this.#count - count);
	}

	#write(value: unknown): void {
		switch (typeof value) {
			case "string":
				return this.#writeString(value);
			case "number":
				return this.#writeNumber(value);
			case "boolean":
				return this.#byte(value ? 0xc3 : 0xc2);
			case "bigint":
				return this.#writeBigInt(value);
			case "undefined":
				return this.#writeSingle(SINGLE.undefined);
			case "object":
				return value === null ? this.#byte(0xc0) : this.#writeObject(value);
			default:
				// Functions and symbols, where JSON would write null.
				if (this.#isStrict) throw new Refusal(value);
				return this.#byte(0xc0);
		}
	}

	#writeObject(value: object): void {
		const known = this.#seen.get(value);
		if (known !== undefined) return this.#writeRef(known);
		if (Array.isArray(value)) {
			this.#number(value);
			this.#recorder?.visit(value);
			return isSparse(value) ? this.#writeSparse(value) : this.#writeArray(value);
		}
		if (isPlain(value) && typeof (value as { toJSON?: unknown }).toJSON !== "function") {
			this.#number(value);
			this.#recorder?.visit(value);
			return this.#writeMap(value as Record<string, unknown>);
		}
		this.#writeInstance(value);
	}

	#writeArray(value: unknown[]): void {
		this.#arrayHeader(value.length);
		this.#writeElements(value);
	}

	#writeElements(value: unknown[]): void {
		for (let i = 0; i < value.length; i++) this.#write(value[i]);
	}

	#writeMap(value: Record<string, unknown>): void {
		const keys = this.#storedKeys(value);
		this.#mapHeader(keys.length);
		this.#writeEntries(value, keys);
	}

	/** Own keys without those whose values JSON would leave out. */
	#storedKeys(value: Record<string, unknown>): string[] {
		const keys = Object.keys(value);
		if (this.#isStrict || !keys.some((key) => isUnstorable(value[key]))) return keys;
		return keys.filter((key) => !isUnstorable(value[key]));
	}

	#writeEntries(value: Record<string, unknown>, keys: string[]): void {
		for (const key of keys) {
			this.#writeString(key);
			this.#write(value[key]);
		}
	}

	#writeSparse(value: unknown[]): void {
		const indexes = Object.keys(value).filter((key) => String(Number(key) >>> 0) === key);
		this.#tagged(TAG.sparse, 1 + indexes.length * 2);
		this.#writeNumber(value.length);
		for (const index of indexes) {
			this.#writeNumber(Number(index));
			this.#write(value[Number(index)]);
		}
	}

	/** Anything with a prototype of its own: what the wire has a tag for, else what JSON would make of it. */
	#writeInstance(value: object): void {
		const number = this.#number(value);
		const registered = this.#classes.describe(value);
		const described = registered === undefined ? describeInstance(value) : undefined;
		if (described?.madeFrom !== undefined) for (const source of described.madeFrom) this.#recorder?.visit(source);
		else if (this.#recorder !== undefined) this.#recorder.isWhole = false;
		if (registered !== undefined) return this.#writeFields(TAG.registered, [registered.name, registered.data]);
		if (described !== undefined) return this.#writeFields(described.tag, described.fields);
		if (value instanceof Uint8Array && !isBuffer(value)) return this.#writeBin(value);
		if (value instanceof Date) return this.#writeDate(value);
		if (value instanceof Map) return this.#writeFields(TAG.map, [...value].flat());
		if (value instanceof Set) return this.#writeFields(TAG.set, [...value]);
		if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return this.#writeBinary(value);
		if (value instanceof RegExp) return this.#writeFields(TAG.regexp, [value.source, value.flags, value.lastIndex]);
		if (value instanceof URL) return this.#writeFields(TAG.url, [value.href]);
		if (value instanceof Error) return this.#writeError(value);
		this.#writeForeign(value, number);
	}

	#number(value: object): number {
		this.#seen.set(value, this.#count);
		return this.#count++;
	}

	/** A class the wire has no tag for is stored as the plain object JSON would make of it. */
	#writeForeign(value: object, number: number): void {
		if (this.#isStrict && !isLangGraphs(value)) throw new Refusal(value);
		const stand = standInFor(value);
		if (stand !== value) {
			// The stand-in, if it is an object, takes the number of the object it stands for.
			this.#count = number;
			return this.#write(stand);
		}
		if (value instanceof Number || value instanceof String || value instanceof Boolean) {
			this.#count = number;
			this.#seen.delete(value);
			return this.#write(value.valueOf());
		}
		this.#writeMap(value as Record<string, unknown>);
	}

	#writeError(error: Error): void {
		const own: Record<string, unknown> = {};
		for (const key of Object.keys(error)) if (!ERROR_FIELDS.has(key)) own[key] = (error as never)[key];
		const fields: unknown[] = [error.constructor.name, error.name, error.message, error.stack, own];
		if (Object.hasOwn(error, "cause")) fields.push(error.cause);
		else if (error instanceof AggregateError) fields.push(undefined);
		if (error instanceof AggregateError) fields.push(error.errors);
		this.#writeFields(TAG.error, fields);
	}

	#writeBinary(value: ArrayBufferView | ArrayBuffer): void {
		if (value instanceof ArrayBuffer) return this.#writeFields(TAG.buffer, [new Uint8Array(value)]);
		const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
		if (isBuffer(value)) return this.#writeFields(TAG.nodeBuffer, [bytes]);
		const kind = TYPED_ARRAYS.findIndex((name) => name === value[Symbol.toStringTag as never]);
		this.#writeFields(TAG.typedArray, [kind, bytes]);
	}

	#writeFields(tag: number, fields: readonly unknown[]): void {
		this.#tagged(tag, fields.length);
		for (const field of fields) this.#write(field);
	}

	#writeDate(value: Date): void {
		this.#reserve(10);
		this.#bytes[this.#at++] = 0xd7;
		this.#bytes[this.#at++] = EXT_DATE;
		this.#view.setFloat64(this.#at, value.getTime());
		this.#at += 8;
	}

	#writeBigInt(value: bigint): void {
		const digits = (value < 0n ? -value : value).toString(16);
		const hex = digits.length % 2 === 0 ? digits : `0${digits}`;
		const length = 1 + hex.length / 2;
		this.#extHeader(EXT_BIGINT, length);
		this.#reserve(length);
		this.#bytes[this.#at++] = value < 0n ? 1 : 0;
		for (let i = 0; i < hex.length; i += 2) this.#bytes[this.#at++] = Number.parseInt(hex.slice(i, i + 2), 16);
	}

	#writeRef(number: number): void {
		this.#hasRefs = true;
		this.#reserve(6);
		this.#bytes[this.#at++] = 0xd6;
		this.#bytes[this.#at++] = EXT_REF;
		this.#view.setUint32(this.#at, number);
		this.#at += 4;
	}

	#writeSingle(kind: number): void {
		this.#reserve(3);
		this.#bytes[this.#at++] = 0xd4;
		this.#bytes[this.#at++] = EXT_SINGLE;
		this.#bytes[this.#at++] = kind;
	}

	/** A tagged value is an array whose first element is an extension that no stored value can be. */
	#tagged(tag: number, fields: number): void {
		this.#arrayHeader(fields + 1);
		this.#reserve(3);
		this.#bytes[this.#at++] = 0xd4;
		this.#bytes[this.#at++] = EXT_TAG;
		this.#bytes[this.#at++] = tag;
	}

	#writeNumber(value: number): void {
		this.#reserve(9);
		const bytes = this.#bytes;
		if ((value | 0) === value && !Object.is(value, -0)) {
			if (value >= 0) {
				if (value < 0x80) bytes[this.#at++] = value;
				else if (value < 0x100) {
					bytes[this.#at++] = 0xcc;
					bytes[this.#at++] = value;
				} else if (value < 0x10000) {
					bytes[this.#at++] = 0xcd;
					bytes[this.#at++] = value >> 8;
					bytes[this.#at++] = value;
				} else {
					bytes[this.#at++] = 0xce;
					this.#view.setUint32(this.#at, value);
					this.#at += 4;
				}
			} else if (value >= -32) bytes[this.#at++] = value;
			else {
				bytes[this.#at++] = 0xd2;
				this.#view.setInt32(this.#at, value);
				this.#at += 4;
			}
			return;
		}
		if (Object.is(value, -0)) return this.#writeSingle(SINGLE.negativeZero);
		bytes[this.#at++] = 0xcb;
		this.#view.setFloat64(this.#at, value);
		this.#at += 8;
	}

	#writeString(value: string): void {
		const length = value.length;
		if (length < SHORT_STRING && this.#writeAscii(value, length)) return;
		if (!value.isWellFormed()) return this.#writeFields(TAG.utf16, [utf16Bytes(value)]);
		// A UTF-16 unit takes at most three bytes; the text is moved once the true length of the header is known.
		this.#reserve(5 + length * 3);
		const guess = stringHeaderSize(length);
		const start = this.#at;
		const written = writeUtf8(value, this.#bytes, start + guess);
		const size = stringHeaderSize(written);
		if (size !== guess) this.#bytes.copyWithin(start + size, start + guess, start + guess + written);
		this.#stringHeader(written);
		this.#at = start + size + written;
	}

	/** Writes a short string of ASCII alone; otherwise writes nothing and answers false. */
	#writeAscii(value: string, length: number): boolean {
		this.#reserve(length + 2);
		const bytes = this.#bytes;
		const start = this.#at;
		bytes[start] = 0xa0 | length;
		for (let i = 0; i < length; i++) {
			const code = value.charCodeAt(i);
			if (code > 0x7f) return false;
			bytes[start + 1 + i] = code;
		}
		this.#at = start + 1 + length;
		return true;
	}

	#stringHeader(length: number): void {
		if (length < 32) this.#bytes[this.#at++] = 0xa0 | length;
		else if (length < 0x100) {
			this.#bytes[this.#at++] = 0xd9;
			this.#bytes[this.#at++] = length;
		} else if (length < 0x10000) {
			this.#bytes[this.#at++] = 0xda;
			this.#view.setUint16(this.#at, length);
			this.#at += 2;
		} else {
			this.#bytes[this.#at++] = 0xdb;
			this.#view.setUint32(this.#at, length);
			this.#at += 4;
		}
	}

	#writeBin(value: Uint8Array): void {
		const length = value.length;
		this.#reserve(5 + length);
		if (length < 0x100) {
			this.#bytes[this.#at++] = 0xc4;
			this.#bytes[this.#at++] = length;
		} else if (length < 0x10000) {
			this.#bytes[this.#at++] = 0xc5;
			this.#view.setUint16(this.#at, length);
			this.#at += 2;
		} else {
			this.#bytes[this.#at++] = 0xc6;
			this.#view.setUint32(this.#at, length);
			this.#at += 4;
		}
		this.#bytes.set(value, this.#at);
		this.#at += length;
	}

	#extHeader(type: number, length: number): void {
		this.#reserve(6);
		if (length < 0x100) {
			this.#bytes[this.#at++] = 0xc7;
			this.#bytes[this.#at++] = length;
		} else {
			this.#bytes[this.#at++] = 0xc9;
			this.#view.setUint32(this.#at, length);
			this.#at += 4;
		}
		this.#bytes[this.#at++] = type;
	}

	#arrayHeader(length: number): void {
		this.#header(length, 0x90, 0xdc);
	}

	#mapHeader(length: number): void {
		this.#header(length, 0x80, 0xde);
	}

	#header(length: number, fixed: number, long: number): void {
		this.#reserve(5);
		if (length < 16) this.#bytes[this.#at++] = fixed | length;
		else if (length < 0x10000) {
			this.#bytes[this.#at++] = long;
			this.#view.setUint16(this.#at, length);
			this.#at += 2;
		} else {
			this.#bytes[this.#at++] = long + 1;
			this.#view.setUint32(this.#at, length);
			this.#at += 4;
		}
	}

	#byte(value: number): void {
		this.#reserve(1);
		this.#bytes[this.#at++] = value;
	}

	#reserve(bytes: number): void {
		if (this.#at + bytes <= this.#bytes.length) return;
		const grown = allocate(Math.max(this.#bytes.length * 2, this.#at + bytes));
		grown.set(this.#bytes.subarray(0, this.#at));
		this.#bytes = grown;
		this.#view = new DataView(grown.buffer);
	}
}

const ERROR_FIELDS: ReadonlySet<string> = new Set(["name", "message", "stack", "cause", "errors"]);

function stringHeaderSize(length: number): number {
	return length < 32 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : 5;
}

function utf16Bytes(value: string): Uint8Array {
	const bytes = new Uint8Array(value.length * 2);
	for (let i = 0; i < value.length; i++) {
		bytes[i * 2] = value.charCodeAt(i);
		bytes[i * 2 + 1] = value.charCodeAt(i) >> 8;
	}
	return bytes;
}

function isPlain(value: unknown): boolean {
	if (typeof value !== "object" || value === null) return false;
	const prototype = Object.getPrototypeOf(value);
	return prototype === Object.prototype || prototype === null;
}

function isBuffer(value: ArrayBufferView): boolean {
	return typeof Buffer !== "undefined" && Buffer.isBuffer(value);
}

/** True if an index below the length is missing. Reads no more than it must: dense arrays are the rule. */
function isSparse(value: unknown[]): boolean {
	for (let i = 0; i < value.length; i++) if (value[i] === undefined && !(i in value)) return true;
	return false;
}

function isUnstorable(value: unknown): boolean {
	return typeof value === "function" || typeof value === "symbol";
}

/** Something that strict mode does not store. */
class Refusal extends Error {
	readonly value: unknown;

	constructor(value: unknown) {
		const kind =
			typeof value === "object" ? `an instance of ${value?.constructor?.name ?? "a class"}` : `a ${typeof value}`;
		super(`${kind} would not come back as it was; register its class in \`classes\`, or turn \`strict\` off`);
		this.value = value;
	}
}

function explain(error: unknown, root: unknown): unknown {
	if (error instanceof CheckpointError) return error;
	const path = error instanceof Refusal ? (findPath(root, error.value) ?? "") : "";
	const reason = error instanceof RangeError ? "it is nested too deeply" : (error as Error)?.message;
	return new UnserializableError("the value", path, reason, { cause: error });
}

/** A value that has no bytes. */
export class UnserializableError extends CheckpointError {
	/** Leads to the culprit from the value that was to be encoded: `[3].metadata.fn`. */
	readonly path: string;
	readonly reason: string;

	constructor(name: string, path: string, reason: string, options: ErrorOptions) {
		super("UNSERIALIZABLE", `Can't store ${name}${path}: ${reason}.`, options);
		this.path = path;
		this.reason = reason;
	}
}

function findPath(root: unknown, wanted: unknown, seen = new Set<unknown>()): string | undefined {
	if (root === wanted) return "";
	if (typeof root !== "object" || root === null || seen.has(root)) return undefined;
	seen.add(root);
	const entries: Iterable<[unknown, unknown]> =
		root instanceof Map ? root : root instanceof Set ? [...root].entries() : Object.entries(root);
	for (const [key, value] of entries) {
		const rest = findPath(value, wanted, seen);
		if (rest === undefined) continue;
		return Array.isArray(root) || root instanceof Set || root instanceof Map
			? `[${String(key)}]${rest}`
			: `.${String(key)}${rest}`;
	}
	return undefined;
}
