/** What holds more than this is large itself, and what is noted of it would be several times as large. */
const MOST_HELD = 1000;

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
