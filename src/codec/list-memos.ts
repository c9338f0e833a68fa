import { hasToJson, isPlain } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { LAYOUT } from "./format.ts";
import { argumentsOf, type Fields, givenTo, kindOf } from "./instances.ts";
import { endsIn } from "./messagepack.ts";

/** A shorter list is quicker to encode than to compare. */
const SHORTEST = 16;
/** A longer list has small elements: to note a million of them takes longer than to encode them three times. */
const LONGEST = 100_000;
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

/**
 * Remembers the bytes of long lists, with all that must not have changed since. A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To compare
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

	/** What is remembered of a long list, and how many of its first elements are still as they were. */
	find(list: unknown): { list: readonly unknown[]; memo: Memo; count: number } | undefined {
		if (!isLong(list)) return undefined;
		const known = this.#memos.get(list[0] as object);
		if (known === undefined) this.#memos.set(list[0] as object, "seen");
		if (known === undefined || known === "seen") return known && { list, memo: this.#begin(list), count: 0 };
		const count = countSame(list, known);
		return { list, memo: count === 0 ? this.#begin(list) : known, count };
	}

	#begin(list: readonly unknown[], bytes: Uint8Array = Uint8Array.of(LAYOUT.array), ends: number[] = []): Memo {
		const memo = { elements: [], bytes, ends, held: [], starts: [], objects: new Set<object>() };
		this.#memos.set(list[0] as object, memo);
		return memo;
	}

	forget(list: readonly unknown[]): void {
		this.#memos.delete(list[0] as object);
	}

	/** The bytes of a list that was found, from those of the list of its other elements. */
	append(list: readonly unknown[], memo: Memo, count: number, tail: Uint8Array): Uint8Array {
		const end = memo.ends[count - 1] ?? 1;
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

	/** Takes down a list that was read and will be extended, and where its elements end. */
	keepRead(list: unknown, bytes: Uint8Array, ends: number[]): void {
		if (!isLong(list)) return;
		if (list.length > MOST_READ) this.#memos.set(list[0] as object, "seen");
		else this.#note(this.#begin(list, bytes, ends), list);
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
		const kind = kindOf(value);
		// An instance that is no message may have more than its properties.
		if (kind === null ? !isPlain(prototype) || hasToJson(value) : kind.args !== undefined || this.#classes.has(value))
			return false;
		holdProperties(value as Fields, prototype, held);
		const members = kind === null ? Object.values(value) : argumentsOf(kind, value as Fields);
		if (kind !== null) holdProperties(givenTo(value as Fields), Object.prototype, held);
		return members.every((member) => this.#hold(member, held));
	}
}

/** A list that is worth to be remembered, and can be found by its first element. */
function isLong(list: unknown): list is readonly unknown[] {
	if (!Array.isArray(list) || list.length < SHORTEST || list.length > LONGEST) return false;
	if (Object.getPrototypeOf(list) !== Array.prototype) return false;
	return typeof list[0] === "object" && list[0] !== null;
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
	return next === at + 3 + size && !(isPlain(prototype) && hasToJson(object));
}
