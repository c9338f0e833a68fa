import { hasToJson } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { argumentsOf, type Fields, givenTo, kindOf } from "./instances.ts";
import { Validator } from "./validator.ts";

/** A shorter list is quicker to encode than to compare. */
const SHORTEST = 16;
/** Longer lists that were read are not compared with at once: most are read for their own sake, and should not wait for it. */
const MOST_READ = 512;
/** Objects, keys and values that are noted of one list, some 8 MB. Elements beyond are encoded each time. */
const MOST_HELD = 1_000_000;

/** The elements of a list, their bytes, and all that the bytes depend on. */
interface Memo {
	readonly elements: unknown[];
	/** The list's bytes, and where each element ends in them. */
	bytes: Uint8Array;
	readonly ends: number[];
	/** `object, prototype, size`, then elements, or keys and values; one object after the other. */
	readonly held: unknown[];
	/** Where in `held` each element begins. */
	readonly starts: number[];
	readonly objects: Set<object>;
}

/** A list whose first `count` elements are as they were. */
export interface FoundList {
	readonly memo: Memo;
	readonly count: number;
	/** Objects of these elements, and perhaps of others that followed them. */
	readonly objects: ReadonlySet<object>;
}

const validator = new Validator();

/**
 * Remembers the bytes of long lists, with all that must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To compare
 * what they hold is several times as quick as to encode it, and needs no trust: a change in place, at any depth, is seen.
 *
 * To note all that a list holds takes time too, so that it is done only when the list comes the second time, or was read by
 * somebody who will append to it. The first elements of a list are remembered up to the first one that has anything but plain
 * objects, arrays, messages and primitive values. A list is found by its first element, and forgotten with it; branches of
 * one conversation share a memo.
 */
export class ListMemos {
	readonly #memos = new WeakMap<object, Memo | "seen">();
	readonly #classes: ClassRegistry;
	/** Objects of the element that is being noted. */
	#visited: object[] = [];

	constructor(classes: ClassRegistry) {
		this.#classes = classes;
	}

	/** What is remembered of a list, if its first elements are still as they were. */
	find(list: unknown): FoundList | undefined {
		const memo = isLong(list) ? this.#memos.get(list[0] as object) : undefined;
		if (memo === undefined || memo === "seen") return undefined;
		const count = countSame(list as unknown[], memo);
		return count === 0 ? undefined : { memo, count, objects: memo.objects };
	}

	/**
	 * The bytes of a list that was found.
	 *
	 * @param tail the list of its other elements, encoded
	 */
	append(list: readonly unknown[], { memo, count }: FoundList, tail: Uint8Array): Uint8Array {
		const end = memo.ends[count - 1] as number;
		if (count < memo.elements.length) shorten(memo, count);
		if (end < memo.bytes.length || tail.length > 1) {
			const bytes = new Uint8Array(end + tail.length - 1);
			bytes.set(memo.bytes.subarray(0, end));
			bytes.set(tail.subarray(1), end);
			memo.bytes = bytes;
		}
		const ends: number[] = [];
		validator.check(tail, ends);
		this.#note(memo, list, (i) => end - 1 + (ends[i - count] as number));
		return memo.bytes;
	}

	/** Takes down a list that was encoded. */
	keep(list: unknown, bytes: Uint8Array): void {
		if (!isLong(list)) return;
		const first = list[0] as object;
		if (!this.#memos.has(first)) return void this.#memos.set(first, "seen");
		const ends: number[] = [];
		validator.check(bytes, ends);
		this.#begin(list, bytes, ends);
	}

	/** The same for a list that was read, and will be encoded with something added. */
	keepRead(list: readonly unknown[], bytes: Uint8Array, ends: readonly number[]): void {
		if (!isLong(list)) return;
		if (list.length > MOST_READ) this.#memos.set(list[0] as object, "seen");
		else this.#begin(list, bytes, ends);
	}

	#begin(list: readonly unknown[], bytes: Uint8Array, ends: readonly number[]): void {
		const memo: Memo = { elements: [], bytes, ends: [], held: [], starts: [], objects: new Set() };
		this.#note(memo, list, (i) => ends[i] as number);
		this.#memos.set(list[0] as object, memo.elements.length > 0 ? memo : "seen");
	}

	/** Notes the elements that a memo does not have yet, as far as that can be done. */
	#note(memo: Memo, list: readonly unknown[], endOf: (i: number) => number): void {
		for (let i = memo.elements.length; i < list.length; i++) {
			const start = memo.held.length;
			this.#visited = [];
			if (start > MOST_HELD || !this.#hold(list[i], memo.held)) {
				memo.held.length = start;
				break;
			}
			for (const object of this.#visited) memo.objects.add(object);
			memo.elements.push(list[i]);
			memo.starts.push(start);
			memo.ends.push(endOf(i));
		}
		this.#visited = [];
	}

	/** Notes all that the bytes of a value depend on; false if that can't be compared. */
	#hold(value: unknown, held: unknown[]): boolean {
		if (typeof value !== "object" || value === null) return true;
		this.#visited.push(value);
		const prototype = Object.getPrototypeOf(value);
		if (Array.isArray(value)) {
			if (prototype !== Array.prototype) return false;
			held.push(value, prototype, value.length);
			for (let i = 0; i < value.length; i++) {
				if (value[i] === undefined && !(i in value)) return false;
				held.push(value[i]);
			}
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

function holdProperties(object: Fields, prototype: unknown, held: unknown[]): void {
	const at = held.push(object, prototype, 0) - 1;
	for (const key in object) held.push(key, object[key]);
	held[at] = (held.length - at - 1) / 2;
}

function shorten({ elements, starts, ends, held }: Memo, count: number): void {
	held.length = starts[count] as number;
	elements.length = count;
	starts.length = count;
	ends.length = count;
}

/** How many elements at the beginning of a list are the same and as they were. */
function countSame(list: readonly unknown[], { elements, starts, held }: Memo): number {
	const most = Math.min(list.length, elements.length);
	for (let i = 0; i < most; i++) {
		const element = list[i];
		if (!Object.is(element, elements[i]) || (element === undefined && !(i in list))) return i;
		if (!isAsHeld(held, starts[i] as number, starts[i + 1] ?? held.length)) return i;
	}
	return most;
}

function isAsHeld(held: readonly unknown[], start: number, end: number): boolean {
	for (let at = start; at < end; ) {
		const object = held[at] as object;
		const prototype = held[at + 1];
		const size = held[at + 2] as number;
		at += 3;
		if (Object.getPrototypeOf(object) !== prototype) return false;
		if (Array.isArray(object)) {
			if (!hasElements(object, size, held, at)) return false;
			at += size;
		} else {
			if (!hasProperties(object as Fields, size, held, at)) return false;
			// The class of a message has one, and is known.
			if ((prototype === Object.prototype || prototype === null) && hasToJson(object)) return false;
			at += size * 2;
		}
	}
	return true;
}

function hasElements(array: readonly unknown[], size: number, held: readonly unknown[], at: number): boolean {
	if (array.length !== size) return false;
	for (let i = 0; i < size; i++)
		if (!Object.is(array[i], held[at + i]) || (array[i] === undefined && !(i in array))) return false;
	return true;
}

function hasProperties(object: Fields, size: number, held: readonly unknown[], start: number): boolean {
	let at = start;
	for (const key in object) {
		if (key !== held[at] || !Object.is(object[key], held[at + 1])) return false;
		at += 2;
	}
	return at === start + size * 2;
}
