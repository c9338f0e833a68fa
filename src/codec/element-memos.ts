/**
 * Remembers the bytes of elements that were encoded before, with what must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To
 * walk through an object and compare what it holds is several times as quick as to encode it, and needs no trust: a
 * change in place, at any depth, is seen.
 *
 * An element is remembered only if it stands for itself: made of plain objects, arrays, messages and primitive values,
 * none of them part of another element. Memos live as long as the elements do.
 */
export class ElementMemos {
	readonly #memos = new WeakMap<object, Memo>();
	/** The element that an object was found in. */
	readonly #owners = new WeakMap<object, object>();
	#pass = 0;

	/** Begins with a value. An element that occurs twice in it is an object that it shares with itself. */
	begin(): void {
		this.#pass++;
	}

	/** What is known of an element, if it is still true; `"twice"` if it was asked for in this value before. */
	find(element: object): Memo | "twice" | undefined {
		const memo = this.#memos.get(element);
		if (memo === undefined) return undefined;
		if (memo.pass === this.#pass) return "twice";
		if (!memo.isCurrent()) {
			this.#memos.delete(element);
			return undefined;
		}
		memo.pass = this.#pass;
		return memo;
	}

	/** Keeps what was recorded while the element was encoded. Answers false if it shares an object with another one. */
	keep(element: object, recorder: Recorder, bytes: () => Uint8Array, objects: number): boolean {
		const holders = recorder.holders;
		for (const { object } of holders) {
			const owner = this.#owners.get(object);
			if (owner === undefined || owner === element) continue;
			if (this.#memos.get(owner)?.pass === this.#pass) return false;
			// It was in another element of an older value. Should that occur in this one too, it is to be looked at again.
			this.#memos.delete(owner);
		}
		if (!recorder.isWhole) return true;
		for (const { object } of holders) this.#owners.set(object, element);
		const memo = new Memo(bytes(), objects, holders);
		memo.pass = this.#pass;
		this.#memos.set(element, memo);
		return true;
	}
}

/** The bytes of an element, how many numbered objects are in them, and what they were made from. */
class Memo {
	readonly bytes: Uint8Array;
	readonly objects: number;
	readonly #holders: readonly Holder[];
	pass = 0;

	constructor(bytes: Uint8Array, objects: number, holders: readonly Holder[]) {
		this.bytes = bytes;
		this.objects = objects;
		this.#holders = holders;
	}

	isCurrent(): boolean {
		for (const holder of this.#holders) if (!isUnchanged(holder)) return false;
		return true;
	}
}

/** An object and what it held. `keys` is undefined for arrays. */
interface Holder {
	readonly object: object;
	readonly keys: readonly string[] | undefined;
	readonly values: readonly unknown[];
}

/** Notes what is looked at while an element is encoded. */
export class Recorder {
	readonly holders: Holder[] = [];
	/** Whether all that the bytes depend on was noted. */
	isWhole = true;

	visit(object: object): void {
		if (Array.isArray(object)) this.holders.push({ object, keys: undefined, values: object.slice() });
		else {
			const keys = Object.keys(object);
			this.holders.push({ object, keys, values: keys.map((key) => (object as Record<string, unknown>)[key]) });
		}
	}
}

function isUnchanged({ object, keys, values }: Holder): boolean {
	if (keys === undefined) return isSameArray(object as unknown[], values);
	let i = 0;
	for (const key in object) {
		if (key !== keys[i] || !Object.is((object as Record<string, unknown>)[key], values[i])) return false;
		i++;
	}
	return i === keys.length;
}

function isSameArray(array: readonly unknown[], values: readonly unknown[]): boolean {
	if (array.length !== values.length) return false;
	for (let i = 0; i < values.length; i++)
		if (!Object.is(array[i], values[i]) || (array[i] === undefined && !(i in array))) return false;
	return true;
}
