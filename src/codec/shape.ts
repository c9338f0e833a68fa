/** Objects and what they held: `object, keys, values...`, or `array, length, elements...`, one after the other. */
export type Held = readonly unknown[];
type Keys = readonly string[] | number;

/**
 * The same without the objects and values themselves: in their place stands where each is in a list of all that differ.
 * There may be thousands of members, of a few shapes.
 */
export type Shape = readonly (number | Keys)[];

/** The place of the member itself, which is in no list. */
const MEMBER = -1;

/** Shapes that are remembered, the one made last at the end. */
const recent: Shape[] = [];
const MOST_RECENT = 16;
/** A larger one is a member's own, as a rule. */
const MOST_SHARED = 256;
/** Among how many values one is looked for that is there already. */
const LOOKED_AT = 64;

/** Where values are put together. */
const list: unknown[] = [];

/** The shape of a member, and its values, none of which is there twice as a rule. */
export function takeApart(member: object, held: Held, start: number, end: number): [Shape, readonly unknown[]] {
	let shape: Shape | undefined;
	for (let i = recent.length - 1; i >= 0 && shape === undefined; i--)
		if (listAs(recent[i] as Shape, member, held, start, end)) shape = recent[i];
	shape ??= makeShape(member, held, start, end);
	// A copy, which has no room to grow.
	const values = list.slice();
	list.length = 0;
	return [shape, values];
}

/** Lists the values of a member, if it is of this shape. */
function listAs(shape: Shape, member: object, held: Held, start: number, end: number): boolean {
	list.length = 0;
	if (shape.length !== end - start) return false;
	for (let i = 0; i < shape.length; ) {
		const keys = shape[i + 1] as Keys;
		if (held[start + i + 1] !== keys || !isObjectAt(shape[i] as number, held[start + i], member)) return false;
		const next = nextIn(shape, i);
		for (i += 2; i < next; i++) if (!isAt(shape[i] as number, held[start + i])) return false;
	}
	return true;
}

function isObjectAt(place: number, object: unknown, member: object): boolean {
	return place === MEMBER ? object === member : isAt(place, object);
}

/** Whether a value is at a place of the list. If that is where the list ends, it is from now on. */
function isAt(place: number, value: unknown): boolean {
	if (place === list.length) list.push(value);
	return Object.is(list[place], value);
}

function makeShape(member: object, held: Held, start: number, end: number): Shape {
	list.length = 0;
	const shape: (number | Keys)[] = held.slice(start, end) as Keys[];
	for (let i = 0; i < shape.length; ) {
		const next = nextIn(shape, i);
		shape[i] = held[start + i] === member ? MEMBER : placeOf(held[start + i]);
		for (i += 2; i < next; i++) shape[i] = placeOf(held[start + i]);
	}
	if (shape.length <= MOST_SHARED && recent.push(shape) > MOST_RECENT) recent.shift();
	return shape;
}

function placeOf(value: unknown): number {
	for (let i = Math.max(0, list.length - LOOKED_AT); i < list.length; i++) if (Object.is(list[i], value)) return i;
	return list.push(value) - 1;
}

/** Where the object after the one at `i` is. */
function nextIn(shape: Shape, i: number): number {
	const keys = shape[i + 1] as Keys;
	return i + 2 + (typeof keys === "number" ? keys : keys.length);
}

/** Whether a member is still made of the same values. */
export function isMadeOf(member: object, shape: Shape, values: readonly unknown[]): boolean {
	for (let i = 0; i < shape.length; i = nextIn(shape, i)) {
		const object = objectAt(shape, i, member, values);
		const keys = shape[i + 1] as Keys;
		const isSame =
			typeof keys === "number"
				? isSameArray(object as unknown[], keys, shape, i + 2, values)
				: isSameObject(object, keys, shape, i + 2, values);
		if (!isSame) return false;
	}
	return true;
}

/** Whether one of the objects that a member is made of is among some others. */
export function hasAnyOf(
	isAmong: (object: object) => boolean,
	member: object,
	shape: Shape,
	values: readonly unknown[],
): boolean {
	for (let i = 0; i < shape.length; i = nextIn(shape, i)) if (isAmong(objectAt(shape, i, member, values))) return true;
	return false;
}

/** The objects that a member is made of, itself the first. */
export function objectsOf(member: object, shape: Shape, values: readonly unknown[]): object[] {
	const objects: object[] = [];
	for (let i = 0; i < shape.length; i = nextIn(shape, i)) objects.push(objectAt(shape, i, member, values));
	return objects;
}

function objectAt(shape: Shape, i: number, member: object, values: readonly unknown[]): object {
	const place = shape[i] as number;
	return place === MEMBER ? member : (values[place] as object);
}

function isSameObject(
	object: object,
	keys: readonly string[],
	shape: Shape,
	start: number,
	values: readonly unknown[],
): boolean {
	let i = 0;
	for (const key in object) {
		const value = values[shape[start + i] as number];
		if (key !== keys[i] || !Object.is((object as Record<string, unknown>)[key], value)) return false;
		i++;
	}
	return i === keys.length;
}

function isSameArray(
	array: readonly unknown[],
	length: number,
	shape: Shape,
	start: number,
	values: readonly unknown[],
): boolean {
	if (array.length !== length) return false;
	for (let i = 0; i < array.length; i++) {
		const value = values[shape[start + i] as number];
		if (!Object.is(array[i], value) || (array[i] === undefined && !(i in array))) return false;
	}
	return true;
}
