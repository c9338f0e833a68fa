/**
 * Remembers the bytes of members of arrays and objects that were encoded before, with what must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To
 * walk through an object and compare what it holds is several times as quick as to encode it, and needs no trust: a
 * change in place, at any depth, is seen.
 *
 * To note all that a member holds takes longer than to encode it, so that this is done only when it comes the second
 * time. A member is remembered only if it stands for itself: made of plain objects, arrays, messages and primitive
 * values, none of them part of another member. Memos live as long as the members do.
 */
export class ElementMemos {
	readonly #known = new WeakMap<object, Memo | "met" | "never">();
	readonly #used = new Set<Memo>();
	readonly #usedTwice = new Set<Memo>();
	readonly #made = new Set<Memo>();
	#pass = 0;

	/** Begins with a value. */
	begin(): void {
		this.#pass++;
		this.#clear();
	}

	/** Lets go of the members of a value, which may be all that holds them. */
	#clear(): void {
		if (this.#used.size > 0) this.#used.clear();
		if (this.#usedTwice.size > 0) this.#usedTwice.clear();
		if (this.#made.size > 0) this.#made.clear();
	}

	/** What is remembered of a member, if it is still true. */
	find(member: object): Memo | undefined {
		const memo = this.#known.get(member);
		if (!(memo instanceof Memo)) return undefined;
		if (!memo.isCurrent()) {
			// What changes in place will do so again, and is not worth the trouble.
			this.#known.set(member, "never");
			return undefined;
		}
		(this.#used.has(memo) ? this.#usedTwice : this.#used).add(memo);
		return memo;
	}

	/** Whether a member was there before, in any value. */
	meet(member: unknown): boolean {
		if (typeof member !== "object" || member === null) return false;
		if (this.#known.has(member)) return true;
		this.#known.set(member, "met");
		return false;
	}

	/** Whether a member can be remembered, as far as is known. */
	canRecord(member: object): boolean {
		return this.#known.get(member) !== "never";
	}

	/** Keeps what was recorded while a member was encoded. */
	keep(member: object, recorder: Recorder, bytes: Uint8Array, objects: number): void {
		if (!recorder.isWhole) return void this.#known.set(member, "never");
		const memo = new Memo(member, copyBytes(bytes), objects, recorder.held);
		this.#known.set(member, memo);
		this.#made.add(memo);
	}

	/**
	 * Ends with a value. Answers false if a member that was taken from memory has an object in common with another one,
	 * so that the bytes are not what they should be.
	 *
	 * @param written the objects that were not taken from memory
	 */
	end(written: () => ReadonlySet<object>): boolean {
		if (this.#used.size === 0 && this.#made.size === 0) return true;
		const shared = this.#usedTwice;
		if (!this.#wereTogether()) this.#findShared(written(), shared);
		else {
			const others = written();
			for (const memo of this.#used) if (memo.hasAny(others)) shared.add(memo);
		}
		for (const { member } of shared) this.#known.set(member, "never");
		for (const memos of [this.#used, this.#made]) for (const memo of memos) memo.pass = this.#pass;
		const isRight = shared.size === 0;
		this.#clear();
		return isRight;
	}

	/** Whether all were last used for one value: then they had nothing in common, and did not change since. */
	#wereTogether(): boolean {
		let pass: number | undefined;
		for (const memo of this.#used) {
			if (memo.pass !== (pass ?? memo.pass)) return false;
			pass = memo.pass;
		}
		return true;
	}

	#findShared(written: ReadonlySet<object>, shared: Set<Memo>): void {
		const holders = new Map<object, Memo | undefined>();
		for (const object of written) holders.set(object, undefined);
		for (const memo of this.#used)
			for (const object of memo.objects()) {
				if (!holders.has(object)) holders.set(object, memo);
				else for (const one of [memo, holders.get(object)]) if (one !== undefined) shared.add(one);
			}
	}
}

/** The bytes of a member, how many numbered objects are in them, and what they were made from. */
export class Memo {
	readonly member: object;
	readonly bytes: Uint8Array;
	readonly count: number;
	/** The last value that it was part of. */
	pass = 0;
	readonly #held: Held;

	constructor(member: object, bytes: Uint8Array, count: number, held: Held) {
		this.member = member;
		this.bytes = bytes;
		this.count = count;
		this.#held = held;
	}

	isCurrent(): boolean {
		const held = this.#held;
		for (let i = 0; i < held.length; i = nextIn(held, i)) {
			const [object, keys] = [held[i] as object, held[i + 1] as Keys];
			const isSame =
				typeof keys === "number"
					? isSameArray(object as unknown[], held, i + 2, keys)
					: isSameObject(object, keys, held, i + 2);
			if (!isSame) return false;
		}
		return true;
	}

	hasAny(objects: ReadonlySet<object>): boolean {
		const held = this.#held;
		for (let i = 0; i < held.length; i = nextIn(held, i)) if (objects.has(held[i] as object)) return true;
		return false;
	}

	objects(): object[] {
		const objects: object[] = [];
		for (let i = 0; i < this.#held.length; i = nextIn(this.#held, i)) objects.push(this.#held[i] as object);
		return objects;
	}
}

/** Objects and what they held: `object, keys, values...`, or `array, length, elements...`, one after the other. */
type Held = readonly unknown[];
type Keys = readonly string[] | number;

/** Where the object after the one at `i` is. */
function nextIn(held: Held, i: number): number {
	const keys = held[i + 1] as Keys;
	return i + 2 + (typeof keys === "number" ? keys : keys.length);
}

/** Notes what is looked at while a member is encoded. */
export class Recorder {
	/** Whether the bytes depend on nothing but what was noted. */
	isWhole = true;
	readonly #held: unknown[] = [];

	get held(): Held {
		return this.#held;
	}

	visit(object: object): void {
		const held = this.#held;
		if (Array.isArray(object)) {
			held.push(object, object.length);
			for (let i = 0; i < object.length; i++) held.push(object[i]);
		} else {
			const keys = Object.keys(object);
			held.push(object, keys);
			for (let i = 0; i < keys.length; i++) held.push((object as Record<string, unknown>)[keys[i] as string]);
		}
	}
}

/** Copies of small arrays share the memory of larger ones, where there is a pool. */
function copyBytes(bytes: Uint8Array): Uint8Array {
	return typeof Buffer === "undefined" ? bytes.slice() : Buffer.from(bytes);
}

function isSameObject(object: object, keys: readonly string[], held: Held, start: number): boolean {
	let i = 0;
	for (const key in object) {
		if (key !== keys[i] || !Object.is((object as Record<string, unknown>)[key], held[start + i])) return false;
		i++;
	}
	return i === keys.length;
}

function isSameArray(array: readonly unknown[], held: Held, start: number, length: number): boolean {
	if (array.length !== length) return false;
	for (let i = 0; i < array.length; i++)
		if (!Object.is(array[i], held[start + i]) || (array[i] === undefined && !(i in array))) return false;
	return true;
}
