import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { CheckpointError } from "../errors.ts";
import { define } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { ARGUMENTS, LAYOUT, TAG, TYPED_ARRAYS } from "./format.ts";
import { type Fields, loadInstance, makeInstance } from "./instances.ts";
import { corrupt, unpack } from "./messagepack.ts";

/** Where the fields of a tagged value begin. */
const FIELDS = 2;

/** Stands for an object that was not finished when something inside referred to it. */
class Gap {
	readonly number: number;

	constructor(number: number) {
		this.number = number;
	}
}

/**
 * Turns bytes back into the value: checks them, unpacks them, and makes of each tagged value what it stands for. A promise if
 * LangChain has to load a part.
 *
 * The bytes need not be honest: whatever they say, the answer is a value of the closed set of types, or a
 * CheckpointError with code CORRUPT, in time and memory bounded by their length.
 */
export function decode(bytes: Uint8Array, classes: ClassRegistry): unknown {
	try {
		const { value, hasTags, hasLoadables } = unpack(bytes);
		if (!hasTags) return value;
		const restoration = new Restoration(classes, bytes[0] as number);
		if (!hasLoadables) return restoration.restoreTop(value);
		const loads = Promise.all(findLoadables(value).map(load));
		return loads.then(() => restoration.restoreTop(value)).catch(explain);
	} catch (error) {
		return explain(error);
	}
}

/** The tagged values in what msgpackr made that have JSON for LangChain to load. */
function findLoadables(value: unknown, found: unknown[][] = []): unknown[][] {
	if (typeof value !== "object" || value === null || value instanceof Uint8Array) return found;
	if (Array.isArray(value) && value[0] === undefined && value[1] === TAG.loadable) found.push(value);
	else for (const member of Object.values(value)) findLoadables(member, found);
	return found;
}

async function load(parts: unknown[]): Promise<void> {
	parts[FIELDS] = await loadInstance(parts[FIELDS]);
}

/** Makes one value of what msgpackr made, in place, as nobody else has it. */
class Restoration {
	// No private names: one is made for each value, and to give an object those takes longer than most values.
	readonly classes: ClassRegistry;
	readonly isList: boolean;
	/** Objects by number, kept only if the value has references. */
	readonly objects: unknown[] | undefined;
	hasGaps = false;

	constructor(classes: ClassRegistry, layout: number) {
		this.classes = classes;
		this.isList = (layout & ~LAYOUT.refs) === LAYOUT.array;
		this.objects = layout & LAYOUT.refs ? [] : undefined;
	}

	restoreTop(value: unknown): unknown {
		const restored = this.isList ? this.restoreElements(value as unknown[]) : this.restore(value);
		return this.hasGaps ? replaceGaps(restored, this.objects ?? [], new Set()) : restored;
	}

	restore(value: unknown): unknown {
		if (typeof value !== "object" || value === null) return value;
		if (Array.isArray(value))
			return value.length > 0 && value[0] === undefined ? this.restoreTagged(value) : this.restoreElements(value);
		this.objects?.push(value);
		if (value instanceof Uint8Array) return value;
		for (const key in value) {
			const member = (value as Fields)[key];
			if (typeof member === "object" && member !== null) (value as Fields)[key] = this.restore(member);
		}
		return value;
	}

	restoreElements(list: unknown[]): unknown[] {
		this.objects?.push(list);
		for (let i = 0; i < list.length; i++) {
			const element = list[i];
			if (typeof element === "object" && element !== null) list[i] = this.restore(element);
		}
		return list;
	}

	/** Containers exist before their members, which may refer to them; all else is made once its fields are known. */
	restoreTagged(parts: unknown[]): unknown {
		switch (parts[1]) {
			case TAG.negativeZero:
				return -0;
			case TAG.nan:
				return Number.NaN;
			case TAG.text:
				return readUtf16(parts[FIELDS]);
			case TAG.reference:
				return this.resolve(parts[FIELDS]);
			case TAG.array:
				parts.splice(0, FIELDS);
				return this.restoreElements(parts);
			case TAG.object:
				return this.restoreEntries(parts, FIELDS, this.begin({}));
			case TAG.map: {
				const map = this.begin(new Map());
				this.restorePairs(parts, FIELDS, (key, value) => map.set(key, value));
				return map;
			}
			case TAG.set: {
				const set = this.begin(new Set());
				for (let i = FIELDS; i < parts.length; i++) set.add(this.restore(parts[i]));
				return set;
			}
			case TAG.loadable:
				return this.begin(parts[FIELDS]);
			case TAG.sparse:
				return this.restoreSparse(parts, this.begin([]));
			default:
				return this.restoreConstructed(parts);
		}
	}

	/** Gives an object the next number. */
	begin<T>(object: T): T {
		this.objects?.push(object);
		return object;
	}

	resolve(number: unknown): unknown {
		if (this.objects === undefined || !isIndex(number, this.objects.length))
			throw corrupt("a reference to an object that is not there");
		const object = this.objects[number];
		this.hasGaps ||= object === undefined;
		return object ?? new Gap(number);
	}

	restorePairs(parts: unknown[], start: number, add: (key: unknown, value: unknown) => void): void {
		if ((parts.length - start) % 2 !== 0) throw corrupt("a key that has no value");
		for (let i = start; i < parts.length; i += 2) add(this.restore(parts[i]), this.restore(parts[i + 1]));
	}

	restoreEntries<T extends object>(parts: unknown[], start: number, target: T): T {
		this.restorePairs(parts, start, (key, value) => {
			if (typeof key !== "string") throw corrupt("a key that is not a string");
			define(target, key, value, true);
		});
		return target;
	}

	restoreSparse(parts: unknown[], list: unknown[]): unknown[] {
		const length = parts[FIELDS];
		if (!isIndex(length, 2 ** 32)) throw corrupt("a length that no array has");
		// Setting `length` would make room for all of it; an element far out makes no more room than it needs.
		if (length > 0) {
			list[length - 1] = undefined;
			delete list[length - 1];
		}
		this.restorePairs(parts, FIELDS + 1, (index, element) => {
			if (!isIndex(index, length)) throw corrupt("an index that its array does not have");
			list[index] = element;
		});
		return list;
	}

	restoreConstructed(parts: unknown[]): unknown {
		const number = this.objects === undefined ? -1 : this.objects.push(undefined) - 1;
		const tag = parts[1] as number;
		const value = tag === TAG.error ? this.restoreError(parts, number) : this.construct(tag, parts);
		if (value === undefined) throw corrupt(`unknown tag ${tag}, or fields that do not fit it`);
		if (this.objects !== undefined) this.objects[number] = value;
		return value;
	}

	restoreError(parts: unknown[], number: number): Error {
		const flags = parts[FIELDS];
		if (!isIndex(flags, 4) || parts.length < FIELDS + 5) throw corrupt("an error with too few fields");
		const [type, name, message, stack] = parts.slice(FIELDS + 1, FIELDS + 5).map((field) => this.restore(field));
		const error = makeError(type, message);
		if (this.objects !== undefined) this.objects[number] = error;
		// Set before anything looks at it: the engine would put it into words, with whatever name the error has then.
		error.stack = stack as string;
		let at = FIELDS + 5;
		if (flags & 1) define(error, "cause", this.restore(parts[at++]));
		if (flags & 2) define(error, "errors", this.restore(parts[at++]));
		if (at > parts.length) throw corrupt("an error with too few fields");
		this.restoreEntries(parts, at, error);
		for (const [key, hidden] of Object.entries({ name, message }))
			if (!Object.prototype.propertyIsEnumerable.call(error, key) && error[key as keyof Error] !== hidden)
				define(error, key, hidden);
		return error;
	}

	construct(tag: number, parts: unknown[]): unknown {
		if (tag >= TAG.langchain) return makeInstance(tag - TAG.langchain, this.restoreArguments(parts));
		for (let i = FIELDS; i < parts.length; i++) parts[i] = this.restore(parts[i]);
		const [, , first, second, third] = parts;
		switch (tag) {
			case TAG.date:
				return typeof first === "number" ? new Date(first) : undefined;
			// Only from text: what anything else turns into when it is made text may have no end.
			case TAG.regexp:
				if (typeof first !== "string" || typeof second !== "string" || typeof third !== "number") return undefined;
				return Object.assign(new RegExp(first, second), { lastIndex: third });
			case TAG.url:
				return typeof first === "string" ? new URL(first) : undefined;
			case TAG.arrayBuffer:
				return first instanceof Uint8Array ? first.buffer : undefined;
			case TAG.nodeBuffer:
				if (!(first instanceof Uint8Array)) return undefined;
				// Where there is no Buffer (a browser), a Uint8Array is the nearest thing.
				return typeof Buffer === "undefined" ? first : Buffer.from(first.buffer, first.byteOffset, first.length);
			case TAG.typedArray:
				return typeof first === "number" && second instanceof Uint8Array ? toTypedArray(first, second) : undefined;
			case TAG.deltaSnapshot:
				return new DeltaSnapshot(first);
			case TAG.registered:
				return this.classes.make(first, second);
			default:
				return undefined;
		}
	}

	restoreArguments(parts: unknown[]): Fields {
		const fields: Fields = {};
		if (parts.length % 2 !== 0) throw corrupt("an argument that has no value");
		for (let i = FIELDS; i < parts.length; i += 2) {
			const part = parts[i];
			const key = typeof part === "number" ? ARGUMENTS[part] : this.restore(part);
			if (typeof key !== "string") throw corrupt("an argument without a name");
			const value = this.restore(parts[i + 1]);
			if (key !== "__proto__") fields[key] = value;
		}
		return fields;
	}
}

function explain(error: unknown): never {
	if (error instanceof CheckpointError && error.code === "CORRUPT") throw error;
	const reason = error instanceof Error ? error.message : "something in it threw a value that is no error";
	throw corrupt(reason, { cause: error });
}

function isIndex(value: unknown, end: number): value is number {
	return Number.isInteger(value) && (value as number) >= 0 && (value as number) < end;
}

function readUtf16(bytes: unknown): string {
	if (!(bytes instanceof Uint8Array)) throw corrupt("a string that is not code units");
	let text = "";
	for (const unit of new Uint16Array(bytes.buffer)) text += String.fromCharCode(unit);
	return text;
}

const ERRORS = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];

function makeError(type: unknown, message: unknown): Error {
	const text = typeof message === "string" ? message : undefined;
	if (type === "AggregateError") return new AggregateError([], text);
	return new (ERRORS.find(({ name }) => name === type) ?? Error)(text);
}

function toTypedArray(kind: number, { buffer }: Uint8Array): unknown {
	const View = (globalThis as Record<string, unknown>)[String(TYPED_ARRAYS[kind])];
	return typeof View === "function" ? Reflect.construct(View, [buffer]) : undefined;
}

/**
 * Puts what belongs there in the place of every gap. Goes through everything that is reachable, instances of classes and their
 * hidden properties too.
 */
function replaceGaps(value: unknown, objects: readonly unknown[], seen: Set<unknown>): unknown {
	if (value instanceof Gap) {
		let filled: unknown = value;
		// What a class made of a gap may be a gap.
		for (let i = 0; filled instanceof Gap && i < objects.length; i++) filled = objects[filled.number];
		if (filled instanceof Gap) throw corrupt("it refers to itself in a way that no value can");
		return filled;
	}
	if (typeof value !== "object" || value === null || seen.has(value) || ArrayBuffer.isView(value)) return value;
	seen.add(value);
	const replace = (member: unknown) => replaceGaps(member, objects, seen);
	if (value instanceof Map || value instanceof Set) {
		const items = value instanceof Map ? new Map(value) : new Set(value);
		value.clear();
		for (const [key, item] of items.entries())
			value instanceof Map ? value.set(replace(key), replace(item)) : value.add(replace(item));
	}
	for (const key of Reflect.ownKeys(value)) {
		const property = Object.getOwnPropertyDescriptor(value, key);
		if (property === undefined || !("value" in property)) continue;
		const filled = replace(property.value);
		if (filled !== property.value) Object.defineProperty(value, key, { ...property, value: filled });
	}
	return value;
}
