import { isRecord } from "./fields.ts";
import { HttpError } from "./http-error.ts";

/** How many values may be looked at in one comparison: some tens of milliseconds. */
const MOST_STEPS = 1_000_000;

/**
 * Whether JSON holds all of some other JSON, as PostgreSQL's `@>` has it: a search names part of what it looks for.
 *
 * Objects in arrays have to be compared each with each. What would take too long is refused: any caller can store a long
 * array and look for another one.
 */
export function contains(whole: unknown, part: unknown): boolean {
	return new Containment().holds(whole, part);
}

class Containment {
	#left = MOST_STEPS;

	holds(whole: unknown, part: unknown): boolean {
		this.#count(1);
		if (Array.isArray(part)) return Array.isArray(whole) && this.#holdsAll(whole, part);
		if (!isRecord(part)) return Object.is(whole, part);
		return (
			isRecord(whole) &&
			Object.entries(part).every(([key, wanted]) => Object.hasOwn(whole, key) && this.holds(whole[key], wanted))
		);
	}

	#holdsAll(whole: readonly unknown[], part: readonly unknown[]): boolean {
		this.#count(whole.length);
		const simple = new Set(whole.filter(isSimple));
		const others = whole.filter((item) => !isSimple(item));
		return part.every((wanted) =>
			isSimple(wanted) ? simple.has(wanted) : others.some((item) => this.holds(item, wanted)),
		);
	}

	#count(steps: number): void {
		this.#left -= steps;
		if (this.#left < 0) throw new HttpError(400, "There are too many values in arrays to look through.");
	}
}

function isSimple(value: unknown): boolean {
	return typeof value !== "object" || value === null;
}
