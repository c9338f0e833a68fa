import { isRecord } from "./fields.ts";

/** Whether JSON holds all of some other JSON, as PostgreSQL's `@>` has it: a search names part of what it looks for. */
export function contains(whole: unknown, part: unknown): boolean {
	if (Array.isArray(part))
		return Array.isArray(whole) && part.every((wanted) => whole.some((item) => contains(item, wanted)));
	if (!isRecord(part)) return Object.is(whole, part);
	return (
		isRecord(whole) &&
		Object.entries(part).every(([key, wanted]) => Object.hasOwn(whole, key) && contains(whole[key], wanted))
	);
}
