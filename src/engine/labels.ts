import type { Labels } from "../storage/storage.ts";

/** Longer text is not worth a place in a column of its own. */
const LONGEST = 256;

/** Most have none. */
const NO_LABELS: Labels = {};

/**
 * The part of metadata, or of a filter for it, that a backend can compare: plain values at the top level. Whatever
 * matches a filter has all labels of the filter; what else the filter asks for is checked on the values themselves.
 */
export function splitLabels(metadata: unknown) {
	const labels: [string, Labels[string]][] = [];
	let source: string | undefined;
	let step: number | undefined;
	const entries = typeof metadata === "object" && metadata !== null ? Object.entries(metadata) : [];
	for (const [key, value] of entries) {
		const plain = value instanceof Date ? value.toJSON() : value;
		if (key === "source" && typeof plain === "string" && isText(plain)) source = plain;
		else if (key === "step" && Number.isSafeInteger(plain)) step = (plain as number) + 0;
		else if (isText(key) && isLabel(plain)) labels.push([key, plain]);
	}
	return { source, step, labels: labels.length === 0 ? NO_LABELS : Object.fromEntries(labels) };
}

function isLabel(value: unknown): value is Labels[string] {
	if (typeof value === "string") return isText(value);
	return value === null || typeof value === "boolean" || Number.isFinite(value);
}

/** Half of a surrogate pair is no text for a database. */
function isText(value: string): boolean {
	return value.length <= LONGEST && value.isWellFormed();
}
