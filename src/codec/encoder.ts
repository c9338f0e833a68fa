import { isDeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { hasToJson, isBinary, isOddBuiltIn, isPlain, isUnstorable, nameOf } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { ARGUMENTS, DEEPEST, LAYOUT, TAG, TYPED_ARRAYS } from "./format.ts";
import { argumentsOf, type Fields, isLangGraphs, kindOf, standInFor, toLoadableJson } from "./instances.ts";
import { ListMemos } from "./list-memos.ts";
import { pack, packUsual } from "./messagepack.ts";
import { explain, Refusal } from "./unserializable.ts";

const NUMBER_OF: ReadonlyMap<unknown, number> = new Map(ARGUMENTS.map((name, number) => [name, number]));

const keysOfTypedArray: (this: unknown) => unknown = Object.getPrototypeOf(Uint8Array.prototype).keys;

/** msgpackr's reader takes a byte order mark at the beginning of a long string away. */
const BYTE_ORDER_MARK = 0xfeff;

interface Options {
	readonly classes: ClassRegistry;
	/** Refuses what would not come back as it was: instances of unknown classes, functions, symbols. */
	readonly isStrict: boolean;
}

/** Turns values into bytes, in the format that FORMAT.md describes. */
export class Encoder {
	readonly #options: Options;
	readonly memos: ListMemos;

	constructor(options: Options) {
		this.#options = options;
		this.memos = new ListMemos(options.classes);
	}

	/**
	 * The bytes of one value. Throws a CheckpointError with code UNSERIALIZABLE if it has none. The same value always gives the
	 * same bytes, whatever was encoded before: deltas and comparisons rely on it.
	 */
	encode(value: unknown): Uint8Array {
		try {
			return packUsual(value) ?? this.memos.extend(value, this.#encodeTail) ?? this.#encodeWhole(value);
		} catch (error) {
			throw explain(error, value);
		}
	}

	/** `undefined` if all must be walked: references count all objects of the list, and holes all elements. */
	readonly #encodeTail = (list: readonly unknown[], start: number) => {
		const walk = new Walk(this.#options, 0);
		const tail = list.slice(start).map((element) => walk.walk(element));
		if (walk.references.length > 0 || isSparse(list)) return undefined;
		return { bytes: pack(tail, LAYOUT.array), objects: walk.seen };
	};

	#encodeWhole(value: unknown): Uint8Array {
		const walk = new Walk(this.#options, -1);
		const plain = walk.walk(isUnstorable(value) && !this.#options.isStrict ? undefined : value);
		if (walk.references.length === 0) return pack(plain, layoutOf(plain));
		walk.numberReferences();
		return pack(plain, layoutOf(plain) | LAYOUT.refs);
	}
}

/**
 * The walk through one value before msgpackr: gives it the value itself where it keeps all of it, and a copy of the path to each
 * spot where it does not.
 */
class Walk {
	// No private names: one is made for each value, and to give an object those takes longer than most values.
	readonly options: Options;
	/** Objects of this value, in the order in which the decoder will number them. */
	readonly seen = new Set<unknown>();
	/** Tagged values that have an object in the place of its number. */
	readonly references: unknown[][] = [];
	/** What objects gave in their place. */
	standIns: Map<unknown, unknown> | undefined;
	depth: number;

	/** @param depth of what is around the value; -1 for the value at the top */
	constructor(options: Options, depth: number) {
		this.options = options;
		this.depth = depth;
	}

	/** Few values have references, so that objects are numbered only once some were found. */
	numberReferences(): void {
		const numbers = new Map([...this.seen].map((object, number) => [object, number]));
		for (const reference of this.references) reference[2] = numbers.get(reference[2]);
	}

	/** What msgpackr is to write for a value: the value itself if it keeps all of it. */
	walk(value: unknown): unknown {
		switch (typeof value) {
			case "string":
				return isKept(value) ? value : [undefined, TAG.text, utf16Bytes(value)];
			case "number":
				if (value === 0) return Object.is(value, -0) ? [undefined, TAG.negativeZero] : value;
				return Number.isNaN(value) ? [undefined, TAG.nan] : value;
			case "object":
				return value === null ? value : this.walkObject(value);
			case "function":
			case "symbol":
				// Where JSON would write null.
				if (this.options.isStrict) throw new Refusal(value);
				return null;
			default:
				return value;
		}
	}

	walkObject(value: object): unknown {
		if (!this.markSeen(value)) {
			const reference = [undefined, TAG.reference, value];
			this.references.push(reference);
			return reference;
		}
		if (++this.depth > DEEPEST) throw new Error("it is nested too deeply");
		const prototype = Object.getPrototypeOf(value);
		let walked: unknown;
		if (isPlain(prototype) && !hasToJson(value)) walked = this.walkProperties(value as Fields);
		else if (prototype === Array.prototype) walked = this.walkArray(value as unknown[]);
		else if (prototype === Uint8Array.prototype && !this.options.classes.has(value))
			walked = this.bytesOf(value as Uint8Array);
		else if (Array.isArray(value) && !this.options.isStrict && !this.options.classes.has(value))
			walked = this.walkArray(value);
		else walked = this.walkInstance(value);
		this.depth--;
		return walked;
	}

	/** Gives an object the next number; false if it has one. */
	markSeen(value: object): boolean {
		const { size } = this.seen;
		return this.seen.add(value).size > size;
	}

	walkArray(value: unknown[]): unknown[] {
		if (isSparse(value)) return this.walkSparse(value);
		let copy: unknown[] | undefined = value.length > 0 && value[0] === undefined ? [undefined, TAG.array] : undefined;
		for (let i = 0; i < value.length; i++) {
			const element = value[i];
			const walked = this.walk(element);
			if (walked !== element && copy === undefined) {
				copy = [];
				for (let j = 0; j < i; j++) copy.push(value[j]);
			}
			copy?.push(walked);
		}
		return copy ?? value;
	}

	walkSparse(value: unknown[]): unknown[] {
		// No array is longer; something that says it is would not be read again.
		if (!(value.length < 2 ** 32)) throw new Error(`it has a length of ${value.length}`);
		const parts: unknown[] = [undefined, TAG.sparse, value.length];
		for (const key of Object.keys(value)) {
			const index = Number(key);
			// Indexes come first, in order; other properties of an array are not stored.
			if (!(index < value.length)) break;
			parts.push(index, this.walk(value[index]));
		}
		return parts;
	}

	walkProperties(value: Fields): unknown {
		const keys = Object.keys(value);
		for (let i = 0; i < keys.length; i++)
			if (keys[i] === "__proto__" || !isKept(keys[i] as string))
				return this.walkPairs([undefined, TAG.object], Object.entries(value).flat());
		let copy: Fields | undefined;
		for (let i = 0; i < keys.length; i++) {
			const key = keys[i] as string;
			const member = value[key];
			const walked = this.walk(member);
			if (copy === undefined) {
				if (walked === member) continue;
				copy = {};
				for (let j = 0; j < i; j++) copy[keys[j] as string] = value[keys[j] as string];
			}
			if (!isUnstorable(member)) copy[key] = walked;
		}
		return copy ?? value;
	}

	/** Adds `key, value, key, value...`, without values that JSON would leave out, and with numbers for keys that have one. */
	walkPairs(parts: unknown[], list: readonly unknown[], numbers?: ReadonlyMap<unknown, number>): unknown[] {
		for (let i = 0; i < list.length; i += 2) {
			if (isUnstorable(list[i + 1]) && !this.options.isStrict) continue;
			parts.push(numbers?.get(list[i]) ?? this.walk(list[i]), this.walk(list[i + 1]));
		}
		return parts;
	}

	/** Anything with a prototype of its own: a tagged value if it has a tag, else what JSON would make of it. */
	walkInstance(value: object): unknown {
		const registered = this.options.classes.describe(value);
		if (registered !== undefined) return this.tag(TAG.registered, [registered.name, registered.data]);
		const kind = kindOf(value);
		if (kind !== null)
			return this.walkPairs([undefined, TAG.langchain + kind.number], argumentsOf(kind, value as Fields), NUMBER_OF);
		if (isDeltaSnapshot(value)) return this.tag(TAG.deltaSnapshot, [value.value]);
		const json = toLoadableJson(value);
		if (json !== undefined) return this.tag(TAG.loadable, [json]);
		if (this.options.isStrict && isOddBuiltIn(value)) throw new Refusal(value);
		if (isBinary(value)) return this.walkBinary(value);
		if (value instanceof Date) return this.tag(TAG.date, [value.getTime()]);
		if (value instanceof Map) return this.tag(TAG.map, [...value].flat());
		if (value instanceof Set) return this.tag(TAG.set, [...value]);
		if (value instanceof RegExp) return this.tag(TAG.regexp, [value.source, value.flags, value.lastIndex]);
		if (value instanceof URL) return this.tag(TAG.url, [value.href]);
		if (value instanceof Error) return this.walkError(value);
		return this.walkForeign(value);
	}

	tag(tag: number, fields: readonly unknown[]): unknown[] {
		const parts: unknown[] = [undefined, tag];
		for (const field of fields) parts.push(this.walk(field));
		return parts;
	}

	walkBinary(value: ArrayBufferView | ArrayBuffer): unknown {
		const bytes = this.bytesOf(value);
		if (value instanceof ArrayBuffer) return this.tag(TAG.arrayBuffer, [bytes]);
		if (typeof Buffer !== "undefined" && Buffer.isBuffer(value)) return this.tag(TAG.nodeBuffer, [bytes]);
		// Not the value itself: an array of bytes may be of another realm, or of a class that extends ours.
		if (nameOf(value) === "Uint8Array") return bytes;
		return this.tag(TAG.typedArray, [TYPED_ARRAYS.indexOf(nameOf(value)), bytes]);
	}

	/** The bytes of a buffer or of a view; none if their memory was transferred to somebody else, or shrank away. */
	bytesOf(value: ArrayBufferView | ArrayBuffer): Uint8Array {
		try {
			if (value instanceof ArrayBuffer) return new Uint8Array(value);
			// Looks at the memory: a length may be that of before, since V8 forgets to check it in optimized code.
			if (nameOf(value) !== "DataView") keysOfTypedArray.call(value);
			if (Object.getPrototypeOf(value) === Uint8Array.prototype) return value as Uint8Array;
			return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
		} catch {
			if (this.options.isStrict)
				throw new Refusal(value, "the memory of a buffer or a view is gone, transferred or resized");
			return new Uint8Array(0);
		}
	}

	/** Properties that can be seen follow as entries; what every error hides has a place of its own. */
	walkError(error: Error): unknown[] {
		const hasCause = isHidden(error, "cause");
		const hasErrors = error instanceof AggregateError && isHidden(error, "errors");
		const type = Object.getPrototypeOf(error).constructor?.name;
		const fields = [(hasCause ? 1 : 0) | (hasErrors ? 2 : 0), type, error.name, error.message, stackOf(error)];
		if (hasCause) fields.push(error.cause);
		if (hasErrors) fields.push(error.errors);
		return this.walkPairs(this.tag(TAG.error, fields), Object.entries(error).flat());
	}

	/** An instance of an unknown class is stored as the plain object JSON would make of it. */
	walkForeign(value: object): unknown {
		this.standIns ??= new Map();
		if (!this.standIns.has(value)) {
			if (this.options.isStrict && !isLangGraphs(value)) throw new Refusal(value);
			const stand = standInFor(value);
			this.standIns.set(value, stand);
			// As JSON does it, what stands for another is not asked in its turn.
			if (!this.standIns.has(stand)) this.standIns.set(stand, stand);
		}
		const stand = this.standIns.get(value);
		// msgpackr would see more in the object itself than its properties.
		if (stand === value) return this.walkProperties({ ...value });
		// Only what is stored in its place has a number.
		this.seen.delete(value);
		return this.walk(stand);
	}
}

/** Arrays and plain objects are laid out open-ended at the top, so that an append changes nothing before it. */
function layoutOf(plain: unknown): number {
	if (typeof plain !== "object" || plain === null || plain instanceof Uint8Array) return LAYOUT.value;
	if (!Array.isArray(plain)) return LAYOUT.object;
	return plain.length > 0 && plain[0] === undefined ? LAYOUT.value : LAYOUT.array;
}

/** True if an index below the length is missing. Reads no more than it must: dense arrays are the rule. */
function isSparse(value: readonly unknown[]): boolean {
	for (let i = 0; i < value.length; i++) if (value[i] === undefined && !(i in value)) return true;
	return false;
}

/** Whether a string comes back from msgpackr as it was. */
function isKept(text: string): boolean {
	return text.isWellFormed() && text.charCodeAt(0) !== BYTE_ORDER_MARK;
}

function utf16Bytes(text: string): Uint8Array {
	return new Uint8Array(Uint16Array.from({ length: text.length }, (_, i) => text.charCodeAt(i)).buffer);
}

/** A stack is put into words when it is first looked at, by code that the application can replace. */
function stackOf(error: Error): unknown {
	try {
		return error.stack;
	} catch {
		return undefined;
	}
}

/** True if it is the object's own, but not to be found among its keys. */
function isHidden(value: object, key: string): boolean {
	return Object.getOwnPropertyDescriptor(value, key)?.enumerable === false;
}
