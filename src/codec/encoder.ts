import {
	hasToJson,
	isBinary,
	isBuffer,
	isBuiltIn,
	isOddBuiltIn,
	isPlain,
	isUnstorable,
	nameOf,
	unboxed,
} from "./built-ins.ts";
import { utf16Bytes } from "./byte-writer.ts";
import { ClassRegistry } from "./class-registry.ts";
import { ElementMemos } from "./element-memos.ts";
import {
	describeInstance,
	type Fields,
	givenTo,
	isLangGraphs,
	isSetLater,
	messageTypeOf,
	standInFor,
} from "./instances.ts";
import { Recorder } from "./memo.ts";
import { MetObjects } from "./met-objects.ts";
import { ReadMembers } from "./read-members.ts";
import { RunWriter } from "./run-writer.ts";
import { Trail } from "./trail.ts";
import { explain, Refusal } from "./unserializable.ts";
import { DEEPEST, EXT_BIGINT, EXT_DATE, EXT_REF, LAYOUT, SINGLE, TAG, TYPED_ARRAYS } from "./wire.ts";

/** So many elements are taken to be new, or not to be, when the first of them is. */
const MET_TOGETHER = 16;

/** Longer lists that were read are not noted at once: most are read for their own sake, and should not wait for it. */
const MOST_NOTED = 512;

/** Properties of fewer bytes are quicker to encode than to remember. */
const WORTH_MEMO = 256;

/**
 * Turns values into bytes, in the format that FORMAT.md describes.
 *
 * The same value always gives the same bytes, whatever was encoded before: deltas and comparisons rely on it.
 */
export class Encoder extends RunWriter {
	/** Objects seen in this value. */
	readonly #seen = new MetObjects();
	/** The numbers that the decoder will give them, if the value is known to have references. */
	#numbers: Map<object, number> | undefined;
	#count = 0;
	#depth = 0;
	#hasRefs = false;
	readonly #memos = new ElementMemos();
	#usesMemos = true;
	readonly #trail = new Trail();
	/** Notes what the bytes of the member being written depend on. */
	#recorder: Recorder | undefined;
	readonly #classes: ClassRegistry;
	readonly #isStrict: boolean;

	/** @param isStrict refuses what would not come back as it was: instances of unknown classes, functions, symbols */
	constructor(classes = new ClassRegistry(), isStrict = false) {
		super();
		this.#classes = classes;
		this.#isStrict = isStrict;
	}

	/** The bytes of one value, which may be shared with others. Throws a CheckpointError with code UNSERIALIZABLE if it has none. */
	encode(value: unknown): Uint8Array {
		// A toJSON that itself stores something would otherwise write into the middle of our buffer.
		if (this.isBusy) return new Encoder(this.#classes, this.#isStrict).encode(value);
		return this.encodeSimple(value) ?? this.#trail.find(value) ?? this.#encodeAny(value);
	}

	#encodeAny(value: unknown): Uint8Array {
		this.isBusy = true;
		this.at = 0;
		try {
			const isFromMemory = this.#writeRoot(value);
			const bytes = this.takeBytes();
			if (isFromMemory) this.#memos.end(bytes, this.continued);
			this.#trail.end(value, bytes);
			return bytes;
		} catch (error) {
			throw explain(error, value);
		} finally {
			this.isBusy = false;
			this.#usesMemos = true;
			this.#numbers = undefined;
			this.#seen.clear();
			this.#trail.abandon();
			this.endRuns();
			this.dropLargeBuffer();
		}
	}

	/** A list that was read, and may be encoded more than once: what its elements hold is noted the first time. */
	expect(value: unknown): void {
		if (!Array.isArray(value) || value.length <= MET_TOGETHER) return;
		for (let i = 0; i < value.length; i += MET_TOGETHER) {
			// Four billion holes take no more bytes than one.
			if (!(i in value)) return;
			this.#memos.meet(value[i]);
		}
	}

	/**
	 * Notes at once what the elements of a list hold.
	 *
	 * @param bytes those that it was read from
	 * @param ends where each element ends there
	 */
	noteRead(value: readonly unknown[], bytes: Uint8Array, ends: readonly number[]): void {
		if (value.length <= MET_TOGETHER || value.length > MOST_NOTED) return;
		const members = new ReadMembers(bytes, this.#classes);
		for (let i = 0; i < value.length; i++) {
			const member = value[i];
			if (typeof member === "object" && member !== null) members.add(member, ends[i - 1] ?? 1, ends[i] as number);
		}
		this.#memos.keepRead(members);
	}

	/**
	 * Few values have references, so that their objects are numbered only in a second go. Answers whether there was no
	 * need for one.
	 */
	#writeRoot(value: unknown): boolean {
		this.#memos.begin();
		this.#trail.begin();
		this.#writeTop(value);
		const isSound = !this.#memos.wereUsed || this.#memos.check(this.#seen.toSet());
		if (isSound && !this.#hasRefs) return true;
		this.#usesMemos = false;
		this.#trail.abandon();
		this.#numbers = new Map();
		this.#writeTop(value);
		return false;
	}

	/** Arrays and plain objects are laid out open-ended at the top, so that an append changes nothing before it. */
	#writeTop(value: unknown): void {
		this.#start();
		let layout: number = LAYOUT.value;
		if (Array.isArray(value) && !isSparse(value) && !this.#isSpecialArray(value)) {
			layout = LAYOUT.array;
			this.#meet(value);
			this.#writeElementsOfTop(value);
		} else if (isPlain(value) && !hasToJson(value)) {
			layout = LAYOUT.object;
			this.#meet(value as object);
			for (const key of Object.keys(value as object)) {
				const member = (value as Record<string, unknown>)[key];
				this.#trail.entry(key, member);
				if (isUnstorable(member) && !this.#isStrict) continue;
				this.writeRun();
				this.#writeKey(key);
				const start = this.at;
				this.#writeMember(member, this.#usesMemos && this.#memos.hasMet(member));
				if (this.#usesMemos && this.at - start >= WORTH_MEMO) this.#memos.meet(member);
			}
			this.#trail.endObject();
		} else this.#write(isUnstorable(value) && !this.#isStrict ? undefined : value);
		this.writeRun();
		// An older value has the same, and keeps it: one with references is written again.
		if (!this.isInOlder) this.bytes[0] = this.#hasRefs ? layout | LAYOUT.refs : layout;
	}

	#start(): void {
		this.endRuns();
		this.reserve(16);
		this.at = 1;
		this.#count = 0;
		this.#depth = 0;
		this.#hasRefs = false;
		this.#seen.clear();
	}

	/** Lists grow at their end: if one element was there before, those after it most likely were as well. */
	#writeElementsOfTop(value: unknown[]): void {
		let isKnown = false;
		this.#trail.array(value.length);
		for (let i = 0; i < value.length; i++) {
			const element = value[i];
			this.#trail.element(element);
			// A short list is quicker to encode than to remember.
			if (i % MET_TOGETHER === 0 && value.length > MET_TOGETHER) isKnown = this.#usesMemos && this.#memos.meet(element);
			this.#writeMember(element, isKnown);
		}
	}

	/**
	 * Writes an element or property of the top, from memory if it is as it was when it was written before.
	 *
	 * @param isKnown whether it was there before, so that it is worth while to remember it
	 */
	#writeMember(value: unknown, isKnown: boolean): void {
		if (!this.#usesMemos || typeof value !== "object" || value === null) {
			this.writeRun();
			return this.#write(value);
		}
		const memo = this.#memos.find(value);
		if (memo !== undefined) {
			this.#trail.abandon();
			return this.addToRun(memo);
		}
		this.writeRun();
		if (!isKnown || !this.#memos.canRecord(value)) return this.#write(value);
		const start = this.at;
		const recorder = new Recorder();
		this.#recorder = recorder;
		try {
			this.#write(value);
		} finally {
			this.#recorder = undefined;
		}
		this.#memos.keep(value, recorder, start, this.at - start);
	}

	#write(value: unknown): void {
		switch (typeof value) {
			case "string":
				return this.#writeString(value);
			case "number":
				return this.writeNumber(value);
			case "boolean":
				return this.writeByte(value ? 0xc3 : 0xc2);
			case "bigint":
				return this.#writeBigInt(value);
			case "undefined":
				return this.writeSingle(SINGLE.undefined);
			case "object":
				return value === null ? this.writeByte(0xc0) : this.#writeObject(value);
			default:
				// Functions and symbols, where JSON would write null.
				if (this.#isStrict) throw new Refusal(value);
				return this.writeByte(0xc0);
		}
	}

	#writeObject(value: object): void {
		const number = this.#count;
		if (!this.#meet(value)) return this.#writeRef(value);
		if (++this.#depth > DEEPEST) throw new Error("it is nested too deeply");
		if (Array.isArray(value) && !this.#isSpecialArray(value)) this.#writeArray(value);
		else if (isPlain(value) && !hasToJson(value)) {
			this.#recorder?.visit(value);
			this.#writeMap(value as Record<string, unknown>);
		} else this.#writeInstance(value, number);
		this.#depth--;
	}

	/** Whether a class of its own decides what becomes of it. */
	#isSpecialArray(value: unknown[]): boolean {
		if (Object.getPrototypeOf(value) === Array.prototype) return false;
		return this.#isStrict || this.#classes.has(value);
	}

	#writeArray(value: unknown[]): void {
		if (isSparse(value)) return this.#writeSparse(value);
		this.#recorder?.visit(value);
		this.#trail.array(value.length);
		this.writeArrayHeader(value.length);
		for (let i = 0; i < value.length; i++) {
			const element = value[i];
			this.#trail.element(element);
			this.#write(element);
		}
	}

	#writeMap(value: Record<string, unknown>): void {
		const start = this.#startMap();
		let count = 0;
		// The loop over an object itself is the one that engines are quickest at.
		for (const key in value)
			if (Object.hasOwn(value, key)) {
				const member = value[key];
				this.#trail.entry(key, member);
				count += this.#writeEntry(key, member);
			}
		this.#trail.endObject();
		this.#endMap(start, count);
	}

	/** Answers how many entries it wrote: none for what JSON would leave out. */
	#writeEntry(key: string, value: unknown): number {
		if (isUnstorable(value) && !this.#isStrict) return 0;
		this.#writeKey(key);
		this.#write(value);
		return 1;
	}

	/** Leaves a byte for the header, which is written once the number of entries is known: most maps are small. */
	#startMap(): number {
		this.reserve(1);
		return this.at++;
	}

	#endMap(start: number, count: number): void {
		if (count < 16) this.bytes[start] = 0x80 | count;
		else this.#insertMapHeader(start, count);
	}

	#insertMapHeader(start: number, count: number): void {
		const end = this.at;
		const size = count < 0x10000 ? 3 : 5;
		this.reserve(size);
		this.bytes.copyWithin(start + size, start + 1, end);
		this.at = start;
		this.writeMapHeader(count);
		this.at = end + size - 1;
	}

	#writeSparse(value: unknown[]): void {
		if (this.#recorder !== undefined) this.#recorder.isWhole = false;
		this.#trail.abandon();
		const keys = Object.keys(value);
		// No array is longer; something that says it is would not be read again.
		if (!(value.length < 2 ** 32)) throw new Error(`it has a length of ${value.length}`);
		// Indexes come first, in order; other properties of an array are not stored.
		const end = keys.findIndex((key) => !(Number(key) < value.length));
		const indexes = (end < 0 ? keys : keys.slice(0, end)).map(Number);
		this.writeTag(TAG.sparse, 1 + indexes.length * 2);
		this.writeNumber(value.length);
		for (const index of indexes) {
			this.writeNumber(index);
			this.#write(value[index]);
		}
	}

	/** Anything with a prototype of its own: what the wire has a tag for, else what JSON would make of it. */
	#writeInstance(value: object, number: number): void {
		this.#trail.abandon();
		const registered = this.#classes.describe(value);
		const message = registered === undefined ? messageTypeOf(value) : undefined;
		if (message !== undefined) return this.#writeMessage(message, value as Fields);
		if (this.#recorder !== undefined) this.#recorder.isWhole = false;
		if (registered !== undefined) return this.#writeFields(TAG.registered, [registered.name, registered.data]);
		const described = describeInstance(value);
		if (described !== undefined) return this.#writeFields(described.tag, described.fields);
		if (this.#isStrict && isOddBuiltIn(value)) throw new Refusal(value);
		if (value instanceof Uint8Array && !isBuffer(value)) return this.writeBin(value);
		if (value instanceof Date) return this.#writeDate(value);
		if (value instanceof Map) return this.#writeFields(TAG.map, [...value].flat());
		if (value instanceof Set) return this.#writeFields(TAG.set, [...value]);
		if (isBinary(value)) return this.#writeBinary(value);
		if (value instanceof RegExp) return this.#writeFields(TAG.regexp, [value.source, value.flags, value.lastIndex]);
		if (value instanceof URL) return this.#writeFields(TAG.url, [value.href]);
		if (value instanceof Error) return this.#writeError(value);
		this.#writeForeign(value, number);
	}

	/** Gives an object the next number; false if it has one. */
	#meet(value: object): boolean {
		if (!this.#seen.add(value)) return false;
		this.#numbers?.set(value, this.#count);
		this.#count++;
		return true;
	}

	/** A class the wire has no tag for is stored as the plain object JSON would make of it. */
	#writeForeign(value: object, number: number): void {
		if (this.#isStrict && !isLangGraphs(value)) throw new Refusal(value);
		const stand = unboxed(standInFor(value));
		if (stand === value) return this.#writeMap(value as Record<string, unknown>);
		this.#count = number;
		// A new object takes the number of the one it stands for; anything else has none to give away.
		if (typeof stand !== "object" || stand === null || this.#seen.toSet().has(stand)) {
			this.#seen.delete(value);
			return this.#write(stand);
		}
		this.#writeStandIn(stand);
	}

	/** As JSON does it, an object is asked only once what should be stored in its place. */
	#writeStandIn(stand: object): void {
		const isForeign = !Array.isArray(stand) && !isBuiltIn(stand) && !isKnown(stand);
		if (!isForeign || this.#classes.has(stand)) return this.#write(stand);
		this.#meet(stand);
		this.#writeMap(stand as Record<string, unknown>);
	}

	/** What can be seen of an error goes as an object; what every error hides has a place of its own. */
	#writeError(error: Error): void {
		const own: Record<string, unknown> = {};
		for (const key of Object.keys(error)) defineKey(own, key, (error as never)[key]);
		const type = Object.getPrototypeOf(error).constructor?.name;
		const fields: unknown[] = [type, error.name, error.message, stackOf(error), own];
		const hasErrors = error instanceof AggregateError && isHidden(error, "errors");
		if (isHidden(error, "cause")) fields.push(error.cause);
		else if (hasErrors) fields.push(undefined);
		if (hasErrors) fields.push(error.errors);
		this.#writeFields(TAG.error, fields);
	}

	#writeBinary(value: ArrayBufferView | ArrayBuffer): void {
		if (value instanceof ArrayBuffer) return this.#writeFields(TAG.buffer, [new Uint8Array(value)]);
		const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
		if (isBuffer(value)) return this.#writeFields(TAG.nodeBuffer, [bytes]);
		// An array of bytes from another realm has the right name, but is not an instance of our class.
		if (nameOf(value) === "Uint8Array") return this.writeBin(bytes);
		this.#writeFields(TAG.typedArray, [TYPED_ARRAYS.indexOf(nameOf(value) as never), bytes]);
	}

	/** What a message was built from, as it is now: constructor arguments, and fields set since. */
	#writeMessage(type: number, message: Fields): void {
		const given = givenTo(message);
		this.#recorder?.visit(message);
		this.#recorder?.visit(given);
		if (++this.#depth > DEEPEST) throw new Error("it is nested too deeply");
		this.writeTag(TAG.langchain, 2);
		this.writeNumber(type);
		// To whoever reads it, the arguments are an object of their own.
		this.#count++;
		const start = this.#startMap();
		let count = 0;
		// An argument called `__proto__` is of no use to a message, and would not be an argument when it is read.
		for (const key in given)
			if (Object.hasOwn(given, key) && key !== "__proto__")
				count += this.#writeEntry(key, key in message ? message[key] : given[key]);
		for (const key in message) if (isSetLater(key, message, given)) count += this.#writeEntry(key, message[key]);
		this.#endMap(start, count);
		this.#depth--;
	}

	#writeFields(tag: number, fields: readonly unknown[]): void {
		this.writeTag(tag, fields.length);
		for (const field of fields) this.#write(field);
	}

	#writeDate(value: Date): void {
		this.reserve(10);
		this.bytes[this.at++] = 0xd7;
		this.bytes[this.at++] = EXT_DATE;
		this.writeFloat(value.getTime());
	}

	#writeBigInt(value: bigint): void {
		const digits = (value < 0n ? -value : value).toString(16);
		const hex = digits.length % 2 === 0 ? digits : `0${digits}`;
		const length = 1 + hex.length / 2;
		this.#extHeader(EXT_BIGINT, length);
		this.reserve(length);
		this.bytes[this.at++] = value < 0n ? 1 : 0;
		for (let i = 0; i < hex.length; i += 2) this.bytes[this.at++] = Number.parseInt(hex.slice(i, i + 2), 16);
	}

	#writeKey(key: string): void {
		if (!this.writeKey(key)) this.#writeString(key);
	}

	#writeString(value: string): void {
		if (!this.writeText(value)) this.#writeFields(TAG.utf16, [utf16Bytes(value)]);
	}

	#writeRef(value: object): void {
		this.#hasRefs = true;
		this.#trail.abandon();
		// The number depends on what comes before.
		if (this.#recorder !== undefined) this.#recorder.isWhole = false;
		this.reserve(6);
		this.bytes[this.at++] = 0xd6;
		this.bytes[this.at++] = EXT_REF;
		this.view.setUint32(this.at, this.#numbers?.get(value) ?? 0);
		this.at += 4;
	}

	#extHeader(type: number, length: number): void {
		this.reserve(6);
		if (length < 0x100) {
			this.bytes[this.at++] = 0xc7;
			this.bytes[this.at++] = length;
		} else {
			this.bytes[this.at++] = 0xc9;
			this.view.setUint32(this.at, length);
			this.at += 4;
		}
		this.bytes[this.at++] = type;
	}
}

/** Whether it is an instance of a class that has a place in the format. */
function isKnown(value: object): boolean {
	return messageTypeOf(value) !== undefined || describeInstance(value) !== undefined;
}

/** A stack is put into words when it is first looked at, by code that the application can replace. */
function stackOf(error: Error): unknown {
	try {
		return error.stack;
	} catch {
		return undefined;
	}
}

/** Sets a key that may be called `__proto__`. */
function defineKey(target: object, key: string, value: unknown): void {
	Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/** True if it is the object's own, but not to be found among its keys. */
function isHidden(value: object, key: string): boolean {
	return Object.getOwnPropertyDescriptor(value, key)?.enumerable === false;
}

/** True if an index below the length is missing. Reads no more than it must: dense arrays are the rule. */
function isSparse(value: unknown[]): boolean {
	for (let i = 0; i < value.length; i++) if (value[i] === undefined && !(i in value)) return true;
	return false;
}
