import { hasToJson, isPlain } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { LAYOUT } from "./format.ts";
import { argumentsOf, type Fields, givenTo, kindOf } from "./instances.ts";
import { endsIn } from "./messagepack.ts";

/** A shorter list is quicker to encode than to compare. */
const SHORTEST = 16;
/** Longer lists that were read are noted only once they are encoded: most are read for their own sake, and should not wait. */
const MOST_READ = 512;
/** Objects, keys and values that are noted of one list, some 8 MB. Elements beyond are encoded each time. */
const MOST_HELD = 1_000_000;

/** The bytes of the first elements of a list, and all that the bytes depend on. */
interface Memo {
	bytes: Uint8Array;
	/** Where each element ends in the bytes. */
	ends: number[];
	/** Of each element: `object, prototype, size`, then members, or keys and values; first itself, then each object inside. */
	readonly held: (readonly unknown[])[];
}

/** The bytes of a list's elements from `start` on, and their objects; nothing if the bytes depend on the elements before. */
type EncodeTail = (list: readonly unknown[], start: number) => { bytes: Uint8Array; objects: Set<unknown> } | undefined;

/**
 * Remembers the bytes of long lists, with all that must not have changed since. A conversation is encoded at every step, and
 * all but its last messages are the same objects as the step before. To compare them is several times as quick as to encode
 * them, and needs no trust: a change in place, at any depth, is seen.
 *
 * To note all that a list holds takes time too, so that it is done only when the list comes the second time, or was read to
 * be extended; until then its memo is empty. Elements are remembered up to the first one that is no object, or has anything but
 * plain objects, arrays, messages and primitive values. A list is found by its first element, and forgotten with it; branches
 * of a conversation share a memo.
 */
export class ListMemos {
	readonly #memos = new WeakMap<object, Memo>();
	readonly #classes: ClassRegistry;

	constructor(classes: ClassRegistry) {
		this.#classes = classes;
	}

	/** The bytes of a long list, if it came before, from those of its elements that are new. */
	extend(list: unknown, encodeTail: EncodeTail): Uint8Array | undefined {
		if (!isLong(list)) return undefined;
		const memo = this.#memos.get(list[0] as object);
		if (memo === undefined) {
			this.#begin(list);
			return undefined;
		}
		const count = countSame(list, memo);
		const tail = encodeTail(list, count);
		if (tail === undefined || holdsAny(memo, count, tail.objects)) {
			this.#memos.delete(list[0] as object);
			return undefined;
		}
		this.#append(list, memo, count, tail.bytes);
		return memo.bytes;
	}

	#begin(list: readonly unknown[]): Memo {
		const memo = { bytes: Uint8Array.of(LAYOUT.array), ends: [], held: [] };
		this.#memos.set(list[0] as object, memo);
		return memo;
	}

	/** Replaces what a memo has of a list from `count` elements on. */
	#append(list: readonly unknown[], memo: Memo, count: number, tail: Uint8Array): void {
		const end = memo.ends[count - 1] ?? 1;
		memo.held.length = count;
		memo.ends.length = count;
		if (end < memo.bytes.length || tail.length > 1) {
			const bytes = new Uint8Array(end + tail.length - 1);
			bytes.set(memo.bytes.subarray(0, end));
			bytes.set(tail.subarray(1), end);
			memo.bytes = bytes;
		}
		for (const tailEnd of endsIn(tail)) memo.ends.push(end + tailEnd - 1);
		this.#note(memo, list);
	}

	/** Takes down a list that was read and will be extended. */
	keepRead(list: unknown, bytes: Uint8Array): void {
		if (!isLong(list) || bytes[0] !== LAYOUT.array) return;
		const memo = this.#begin(list);
		if (list.length > MOST_READ) return;
		memo.bytes = bytes;
		memo.ends = endsIn(bytes);
		this.#note(memo, list);
	}

	/** Notes the elements that a memo does not have yet, as far as that can be done. */
	#note({ held, ends }: Memo, list: readonly unknown[]): void {
		let size = held.reduce((sum, noted) => sum + noted.length, 0);
		for (let i = held.length; i < list.length && size <= MOST_HELD; i++) {
			const noted: unknown[] = [];
			if (!this.#hold(list[i], noted) || noted.length === 0) break;
			// Without the room that is left for more.
			held.push(noted.slice());
			size += noted.length;
		}
		ends.length = held.length;
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

/** A list that is worth remembering, and can be found by its first element. */
function isLong(list: unknown): list is readonly unknown[] {
	if (!Array.isArray(list) || list.length < SHORTEST) return false;
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
function countSame(list: readonly unknown[], { held }: Memo): number {
	for (const [i, noted] of held.entries()) {
		if (list[i] !== noted[0]) return i;
		for (let at = 0; at < noted.length; at = nextIn(noted, at)) if (!isAsHeld(noted, at)) return i;
	}
	return held.length;
}

/** Whether one of the first elements has one of these objects. */
function holdsAny({ held }: Memo, count: number, objects: ReadonlySet<unknown>): boolean {
	for (let i = 0; i < count && objects.size > 0; i++) {
		const noted = held[i] as readonly unknown[];
		for (let at = 0; at < noted.length; at = nextIn(noted, at)) if (objects.has(noted[at])) return true;
	}
	return false;
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
