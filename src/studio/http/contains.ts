import { isRecord } from "./fields.ts";
import { HttpError } from "./http-error.ts";

/** How many comparisons a search may take for each value on either side. */
const COMPARISONS = 16;

/**
 * Whether JSON holds all of some other JSON, as PostgreSQL's `@>` has it: a search names part of what it looks for.
 *
 * Objects in arrays have to be compared each with each. What would take too long is refused: any caller can store a long
 * array and look for another one.
 */
export function contains(whole: unknown, part: unknown): boolean {
	return new Containment(COMPARISONS * (countValues(whole) + countValues(part))).holds(whole, part);
}

class Containment {
	#left: number;

	constructor(comparisons: number) {
		this.#left = comparisons;
	}

	holds(whole: unknown, part: unknown): boolean {
		if (this.#left-- <= 0) throw new HttpError(400, "The metadata to look for has too many objects in arrays.");
		if (Array.isArray(part)) return Array.isArray(whole) && this.#holdsAll(whole, part);
		if (!isRecord(part)) return Object.is(whole, part);
		return (
			isRecord(whole) &&
			Object.entries(part).every(([key, wanted]) => Object.hasOwn(whole, key) && this.holds(whole[key], wanted))
		);
	}

	#holdsAll(whole: readonly unknown[], part: readonly unknown[]): boolean {
		const simple = new Set(whole.filter(isSimple));
		const others = whole.filter((item) => !isSimple(item));
		return part.every((wanted) =>
			isSimple(wanted) ? simple.has(wanted) : others.some((item) => this.holds(item, wanted)),
		);
	}
}

function isSimple(value: unknown): boolean {
	return typeof value !== "object" || value === null;
}

function countValues(value: unknown): number {
	if (isSimple(value)) return 1;
	return Object.values(value as object).reduce<number>((sum, item) => sum + countValues(item), 1);
}
