import { CheckpointError } from "../errors.ts";

type Filter = Record<string, unknown>;

/** A filter as it is now, with dates as JSON has them. */
export function readFilter(filter: Filter | undefined): Filter | undefined {
	try {
		return filter && (copyJson(filter) as Filter);
	} catch (cause) {
		const reason = cause instanceof Error ? cause.message : String(cause);
		throw new CheckpointError("INVALID_OPTION", `\`filter\` can't be read: ${reason}.`, { cause });
	}
}

function copyJson(value: unknown): unknown {
	if (!isObject(value)) return value;
	if (Array.isArray(value)) return value.map(copyJson);
	if (value instanceof Date) return value.toJSON();
	return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyJson(member)]));
}

/** Whether metadata has every key of a filter that was read with the same value, as JSON sees values. */
export function matchesFilter(metadata: unknown, filter: Filter): boolean {
	return Object.entries(filter).every(
		([key, wanted]) =>
			wanted === undefined || (isObject(metadata) && Object.hasOwn(metadata, key) && sameJson(metadata[key], wanted)),
	);
}

function sameJson(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
	if (a instanceof Date) return a.toJSON() === b;
	if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b)) return a === b || Object.is(a, b);
	const keys = Object.keys(a);
	return (
		keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
	);
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}
