import { hasToJson } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { argumentsOf, type Fields, givenTo, kindOf } from "./instances.ts";
import { Validator } from "./validator.ts";

/** A shorter list is quicker to encode than to compare. */
const SHORTEST = 16;
/** Longer lists that were read are noted only once they are encoded: most are read for their own sake, and should not wait. */
const MOST_READ = 512;
/** Objects, keys and values that are noted of one list, some 8 MB. Elements beyond are encoded each time. */
const MOST_HELD = 1_000_000;

/** The first elements of a list, their bytes, and all that the bytes depend on. */
interface Memo {
	readonly elements: unknown[];
	bytes: Uint8Array;
	/** Where each element ends in the bytes. */
	readonly ends: number[];
	/** `object, prototype, size`, then elements, or keys and values; one object after the other. */
	readonly held: unknown[];
	/** Where each element begins in `held`. */
	readonly starts: number[];
	/** Objects of these elements, and perhaps of others that followed them. */
	readonly objects: Set<object>;
}

const validator = new Validator();

/**
 * Remembers the bytes of long lists, with all that must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To compare
 * them is several times as quick as to encode them, and needs no trust: a change in place, at any depth, is seen.
 *
 * To note all that a list holds takes time too, so that it is done only when the list comes the second time, or was read to
 * be extended. Elements are remembered up to the first one that has anything but plain objects, arrays, messages and
 * primitive values. A list is found by its first element, and forgotten with it; branches of a conversation share a memo.
 */
export class ListMemos {
	readonly #memos = new WeakMap<object, Memo | "seen">();
	readonly #classes: ClassRegistry;

	constructor(classes: ClassRegistry) {
		this.#classes = classes;
	}

	/** What is remembered of a list, and how many of its first elements are still as they were. */
	find(list: unknown): { memo: Memo; count: number } | undefined {
		const memo = isLong(list) ? this.#memos.get(list[0] as object) : undefined;
		if (memo === undefined || memo === "seen") return undefined;
		const count = countSame(list as unknown[], memo);
		return count === 0 ? undefined : { memo, count };
	}

	/**
	 * The bytes of a list whose first elements were found.
	 *
	 * @param tail the list of all others, encoded
	 */
	append(list: readonly unknown[], memo: Memo, count: number, tail: Uint8Array): Uint8Array {
		const end = memo.ends[count - 1] as number;
		if (count < memo.elements.length) {
			memo.held.length = memo.starts[count] as number;
			for (const each of [memo.elements, memo.starts, memo.ends]) each.length = count;
		}
		if (end < memo.bytes.length || tail.length > 1) {
			const bytes = new Uint8Array(end + tail.length - 1);
			bytes.set(memo.bytes.subarray(0, end));
			bytes.set(tail.subarray(1), end);
			memo.bytes = bytes;
		}
		for (const tailEnd of endsIn(tail)) memo.ends.push(end + tailEnd - 1);
		this.#note(memo, list);
		return memo.bytes;
	}

	/**
	 * Takes down a list that was encoded, or read to be extended.
	 *
	 * @param ends those of its elements, if it was read
	 */
	keep(list: unknown, bytes: Uint8Array, ends?: number[]): void {
		if (!isLong(list)) return;
		const first = list[0] as object;
		const isWorthIt = ends === undefined ? this.#memos.has(first) : list.length <= MOST_READ;
		if (!isWorthIt) return void this.#memos.set(first, "seen");
		const memo = { elements: [], bytes, ends: ends ?? endsIn(bytes), held: [], starts: [], objects: new Set<object>() };
		this.#note(memo, list);
		this.#memos.set(first, memo);
	}

	/** Notes the elements that a memo does not have yet, as far as that can be done. */
	#note(memo: Memo, list: readonly unknown[]): void {
		const { elements, held, starts, ends, objects } = memo;
		for (let i = elements.length; i < list.length; i++) {
			const start = held.length;
			if (start > MOST_HELD || !this.#hold(list[i], held)) {
				held.length = start;
				break;
			}
			for (let at = start; at < held.length; at = nextIn(held, at)) objects.add(held[at] as object);
			elements.push(list[i]);
			starts.push(start);
		}
		ends.length = elements.length;
	}

	/** Notes all that the bytes of a value depend on; false if that can't be compared. */
	#hold(value: unknown, held: unknown[]): boolean {
		if (typeof value !== "object" || value === null) return true;
		const prototype = Object.getPrototypeOf(value);
		if (Array.isArray(value)) {
			if (prototype !== Array.prototype || value.includes(undefined)) return false;
			held.push(value, prototype, value.length);
			for (const element of value) held.push(element);
			return value.every((element) => this.#hold(element, held));
		}
		const isPlain = prototype === Object.prototype || prototype === null;
		if (isPlain ? hasToJson(value) : !this.#isMessage(value)) return false;
		holdProperties(value as Fields, prototype, held);
		if (!isPlain) return this.#holdArguments(value as Fields, held);
		for (const key in value) if (!this.#hold((value as Fields)[key], held)) return false;
		return true;
	}

	#isMessage(value: object): boolean {
		const kind = kindOf(value);
		return kind !== null && kind.args === undefined && !this.#classes.has(value);
	}

	#holdArguments(message: Fields, held: unknown[]): boolean {
		const given = givenTo(message);
		holdProperties(given, Object.getPrototypeOf(given), held);
		const list = argumentsOf(kindOf(message) as never, message);
		for (let i = 1; i < list.length; i += 2) if (!this.#hold(list[i], held)) return false;
		return true;
	}
}

/** A list that is found by its first element. */
function isLong(list: unknown): list is readonly unknown[] {
	if (!Array.isArray(list) || list.length < SHORTEST || Object.getPrototypeOf(list) !== Array.prototype) return false;
	return typeof list[0] === "object" && list[0] !== null;
}

function endsIn(bytes: Uint8Array): number[] {
	const ends: number[] = [];
	validator.check(bytes, ends);
	return ends;
}

function holdProperties(object: Fields, prototype: unknown, held: unknown[]): void {
	const at = held.push(object, prototype, 0) - 1;
	for (const key in object) held.push(key, object[key]);
	held[at] = held.length - at - 1;
}

/** Where the object after the one at `at` is noted. */
function nextIn(held: readonly unknown[], at: number): number {
	return at + 3 + (held[at + 2] as number);
}

/** How many elements at the beginning of a list are the same and as they were. */
function countSame(list: readonly unknown[], { elements, starts, held }: Memo): number {
	const most = Math.min(list.length, elements.length);
	for (let i = 0; i < most; i++) {
		const element = list[i];
		if (!Object.is(element, elements[i]) || (element === undefined && !(i in list))) return i;
		const end = starts[i + 1] ?? held.length;
		for (let at = starts[i] as number; at < end; at = nextIn(held, at)) if (!isAsHeld(held, at)) return i;
	}
	return most;
}

/** Whether the object that is noted here is as it was. */
function isAsHeld(held: readonly unknown[], at: number): boolean {
	const object = held[at] as object;
	const prototype = held[at + 1];
	const size = held[at + 2] as number;
	if (Object.getPrototypeOf(object) !== prototype) return false;
	let next = at + 3;
	if (Array.isArray(object)) {
		if (object.length !== size) return false;
		for (let i = 0; i < size; i++) if (!Object.is(object[i], held[next++])) return false;
		return true;
	}
	for (const key in object) {
		if (key !== held[next] || !Object.is((object as Fields)[key], held[next + 1])) return false;
		next += 2;
	}
	// The class of a message has a toJSON, and is known.
	const isPlain = prototype === Object.prototype || prototype === null;
	return next === at + 3 + size && !(isPlain && hasToJson(object));
}
