/** Whether metadata has every key of the filter with the same value, as JSON sees values. */
export function matchesFilter(metadata: unknown, filter: Record<string, unknown>): boolean {
	return Object.entries(filter).every(
		([key, wanted]) =>
			wanted === undefined || (isObject(metadata) && Object.hasOwn(metadata, key) && sameJson(metadata[key], wanted)),
	);
}

function sameJson(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
	if (a instanceof Date || b instanceof Date) return toText(a) === toText(b);
	if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b)) return a === b || Object.is(a, b);
	const keys = Object.keys(a);
	return (
		keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
	);
}

function toText(value: unknown): unknown {
	return value instanceof Date ? value.toJSON() : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}
