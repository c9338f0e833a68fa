/** What holds more than this is large itself, and what is noted of it would be several times as large. */
const MOST_HELD = 1000;

/** Up to so many objects a look at each of them beats a hash. */
const FEW = 12;

/**
 * Remembers the bytes of members of arrays and objects that were encoded before, with what must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To
 * walk through an object and compare what it holds is several times as quick as to encode it, and needs no trust: a
 * change in place, at any depth, is seen.
 *
 * To note all that a member holds takes longer than to encode it, so that this is done only when it comes the second
 * time, or was read by somebody who is about to go on with it. A member is remembered only if it stands for itself: made
 * of plain objects, arrays, messages and primitive values, none of them part of another member. Memos live as long as the
 * members do.
 */
export class ElementMemos {
	readonly #known = new WeakMap<object, Memo | ReadMembers | "met" | "never">();
	readonly #used: Memo[] = [];
	readonly #usedTwice: Memo[] = [];
	readonly #made: Memo[] = [];
	#pass = 0;
	/** Where the last one that was found is, and whether its bytes are still there. */
	#home: Home | undefined;
	#isHomeThere = false;

	/** Begins with a value. */
	begin(): void {
		this.#pass++;
		this.#clear();
	}

	/** Lets go of the members of a value, which may be all that holds them. */
	#clear(): void {
		if (this.#used.length > 0) this.#used.length = 0;
		if (this.#usedTwice.length > 0) this.#usedTwice.length = 0;
		if (this.#made.length > 0) this.#made.length = 0;
		this.#home = undefined;
	}

	/** Whether anything in the value was taken from memory. */
	get wereUsed(): boolean {
		return this.#used.length > 0;
	}

	/** What is remembered of a member, if it is still true. */
	find(member: object): Memo | undefined {
		const memo = this.#findKnown(member);
		if (!(memo instanceof Memo)) return undefined;
		if (!memo.isCurrent()) {
			// What changes in place will do so again, and is not worth the trouble.
			this.#known.set(member, "never");
			return undefined;
		}
		// Whoever kept the value did so no longer. What is found here stays until the present call is done.
		if (!this.#isThere(memo.home)) {
			this.#known.set(member, "met");
			return undefined;
		}
		(memo.usedIn === this.#pass ? this.#usedTwice : this.#used).push(memo);
		memo.usedIn = this.#pass;
		return memo;
	}

	#findKnown(member: object): Memo | "met" | "never" | undefined {
		const known = this.#known.get(member);
		if (!(known instanceof ReadMembers)) return known;
		this.#known.set(member, "met");
		for (const memo of known.memos()) this.#known.set(memo.member, memo);
		return this.#known.get(member) as Memo | "met";
	}

	#isThere(home: Home): boolean {
		if (home !== this.#home) {
			this.#home = home;
			this.#isHomeThere = home.bytes.deref() !== undefined;
		}
		return this.#isHomeThere;
	}

	/** Whether a member was there before, in any value. */
	hasMet(member: unknown): boolean {
		return typeof member === "object" && member !== null && this.#known.has(member);
	}

	/** Like {@link hasMet}; from now on it was. */
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
	keep(member: object, recorder: Recorder, start: number, length: number): void {
		if (!recorder.isWhole) return void this.#known.set(member, "never");
		const memo = new Memo(member, length, recorder.takeHeld());
		memo.next = start;
		this.#made.push(memo);
	}

	/**
	 * The same for members that were read, one after the other. Most values are read for their own sake: that they are known
	 * is found out with the first one.
	 */
	keepRead(members: ReadMembers): void {
		if (members.first !== undefined) this.#known.set(members.first, members);
	}

	/**
	 * Looks back at a value that was written. Answers false if a member that was taken from memory has an object in common
	 * with another one, so that the bytes are not what they should be.
	 *
	 * @param others the objects that were not taken from memory
	 */
	check(others: ReadonlySet<object>): boolean {
		const shared = new Set(this.#usedTwice);
		if (!this.#wereTogether()) this.#findShared(others, shared);
		else {
			const has = others.size <= FEW ? among([...others]) : (object: object) => others.has(object);
			for (const memo of this.#used) if (memo.hasAny(has)) shared.add(memo);
		}
		for (const { member } of shared) this.#known.set(member, "never");
		return shared.size === 0;
	}

	/**
	 * Ends with a value: its members are found in these bytes from now on.
	 *
	 * @param continued where those of the value are that it goes on from
	 */
	end(bytes: Uint8Array, continued: Home | undefined): void {
		if (this.#used.length === 0 && this.#made.length === 0) return;
		const home = continued ?? new Home(bytes);
		continued?.move(bytes);
		for (const memo of this.#used) if (memo.home !== home) memo.settle(home);
		for (const memo of this.#made) {
			memo.settle(home);
			this.#known.set(memo.member, memo);
		}
		this.#clear();
	}

	/** Whether all were last used for one value: then they had nothing in common, and did not change since. */
	#wereTogether(): boolean {
		const home = this.#used[0]?.home;
		return this.#used.every((memo) => memo.home === home);
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

/** Members of a value that was read, with what they hold. */
export class ReadMembers {
	readonly #home: Home;
	readonly #recorder = new Recorder();
	readonly #members: {
		readonly member: object;
		readonly at: number;
		readonly length: number;
		readonly held: number;
	}[] = [];

	/** @param bytes those that it was read from */
	constructor(bytes: Uint8Array) {
		this.#home = new Home(bytes);
	}

	get first(): object | undefined {
		return this.#members[0]?.member;
	}

	/** @param visit notes what the member holds */
	add(member: object, at: number, end: number, visit: (recorder: Recorder) => void): void {
		const held = this.#recorder.start();
		visit(this.#recorder);
		if (this.#recorder.isWhole) this.#members.push({ member, at, length: end - at, held });
		else this.#recorder.dropFrom(held);
	}

	memos(): Memo[] {
		return this.#members.map(({ member, at, length, held }, i) => {
			const memo = new Memo(member, length, this.#recorder.takeHeld(held, this.#members[i + 1]?.held));
			memo.home = this.#home;
			memo.at = at;
			return memo;
		});
	}
}

/** The value that members were last part of. One that goes on from it takes them all over. */
export class Home {
	/** As long as somebody keeps them. */
	bytes: WeakRef<Uint8Array>;

	constructor(bytes: Uint8Array) {
		this.bytes = new WeakRef(bytes);
	}

	/** @param bytes begin with those that it had */
	move(bytes: Uint8Array): void {
		this.bytes = new WeakRef(bytes);
	}
}

const NOWHERE = new Home(new Uint8Array(0));

/** Where the bytes of a member are, and what they were made from. */
export class Memo {
	readonly member: object;
	readonly length: number;
	home = NOWHERE;
	at = 0;
	/** Where it is in the value that is being written. */
	next = 0;
	/** The last value that it was found for. */
	usedIn = 0;
	readonly #held: Held;

	constructor(member: object, length: number, held: Held) {
		this.member = member;
		this.length = length;
		this.#held = held;
	}

	settle(home: Home): void {
		this.home = home;
		this.at = this.next;
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

	/** Whether one of its objects is among some others. */
	hasAny(isAmong: (object: object) => boolean): boolean {
		const held = this.#held;
		for (let i = 0; i < held.length; i = nextIn(held, i)) if (isAmong(held[i] as object)) return true;
		return false;
	}

	objects(): object[] {
		const objects: object[] = [];
		for (let i = 0; i < this.#held.length; i = nextIn(this.#held, i)) objects.push(this.#held[i] as object);
		return objects;
	}
}

function among(few: readonly object[]): (object: object) => boolean {
	return (object) => {
		for (let i = 0; i < few.length; i++) if (few[i] === object) return true;
		return false;
	};
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
	#start = 0;

	/** Begins with another member. Answers where what it holds will be. */
	start(): number {
		this.isWhole = true;
		this.#start = this.#held.length;
		return this.#start;
	}

	dropFrom(start: number): void {
		this.#held.length = start;
	}

	/** A copy, which has no room to grow: there may be thousands. */
	takeHeld(start = 0, end?: number): Held {
		return this.#held.slice(start, end);
	}

	visit(object: object): void {
		const held = this.#held;
		if (!this.isWhole || held.length - this.#start > MOST_HELD) {
			this.isWhole = false;
			return;
		}
		if (Array.isArray(object)) {
			held.push(object, object.length);
			for (let i = 0; i < object.length; i++) held.push(object[i]);
		} else {
			const keys = knownKeys(Object.keys(object));
			held.push(object, keys);
			for (let i = 0; i < keys.length; i++) held.push((object as Record<string, unknown>)[keys[i] as string]);
		}
	}
}

/** Shapes of objects that are remembered, by their number of keys: objects of one shape share what is noted of it. */
const MOST_SHAPES = 16;
const MOST_KEYS = 64;
const shapes: (readonly string[])[][] = [];

function knownKeys(keys: readonly string[]): readonly string[] {
	if (keys.length > MOST_KEYS) return keys;
	shapes[keys.length] ??= [];
	const alike = shapes[keys.length] as (readonly string[])[];
	for (const known of alike) if (hasSameKeys(known, keys)) return known;
	if (alike.length >= MOST_SHAPES) alike.length = 0;
	alike.push(keys);
	return keys;
}

function hasSameKeys(known: readonly string[], keys: readonly string[]): boolean {
	for (let i = 0; i < keys.length; i++) if (known[i] !== keys[i]) return false;
	return true;
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
