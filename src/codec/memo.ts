import { type Held, hasAnyOf, isMadeOf, objectsOf, type Shape, takeApart } from "./shape.ts";

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
	readonly #shape: Shape;
	readonly #values: readonly unknown[];

	/** @param held what it holds, between these places */
	constructor(member: object, length: number, held: Held, start = 0, end = held.length) {
		this.member = member;
		this.length = length;
		[this.#shape, this.#values] = takeApart(member, held, start, end);
	}

	settle(home: Home): void {
		this.home = home;
		this.at = this.next;
	}

	isCurrent(): boolean {
		return isMadeOf(this.member, this.#shape, this.#values);
	}

	/** Whether one of its objects is among some others. */
	hasAny(isAmong: (object: object) => boolean): boolean {
		return hasAnyOf(isAmong, this.member, this.#shape, this.#values);
	}

	objects(): object[] {
		return objectsOf(this.member, this.#shape, this.#values);
	}
}

/** Notes what is looked at while a member is encoded. */
export class Recorder {
	/** Whether the bytes depend on nothing but what was noted. */
	isWhole = true;
	/** Of all members, one after the other. */
	readonly held: unknown[] = [];
	#start = 0;

	/** Begins with another member. Answers where what it holds will be. */
	start(): number {
		this.isWhole = true;
		this.#start = this.held.length;
		return this.#start;
	}

	dropFrom(start: number): void {
		this.held.length = start;
	}

	visit(object: object): void {
		const { held } = this;
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
