import type { Labels } from "../storage/storage.ts";
import { setOwn } from "./head.ts";

/** Longer text is not worth a place in a column of its own. */
const LONGEST = 256;

/**
 * The part of metadata, or of a filter for it, that a backend can compare: plain values at the top level. Whatever
 * matches a filter has all labels of the filter; what else the filter asks for is checked on the values themselves.
 */
export function labelsOf(metadata: unknown): Labels {
	if (typeof metadata !== "object" || metadata === null) return {};
	const labels: Record<string, Labels[string]> = {};
	for (const key of Object.keys(metadata)) {
		const value = (metadata as Record<string, unknown>)[key];
		const plain = value instanceof Date ? value.toJSON() : value;
		if (isText(key) && isLabel(plain)) setOwn(labels, key, plain);
	}
	return labels;
}

function isLabel(value: unknown): value is Labels[string] {
	if (typeof value === "string") return isText(value);
	return value === null || typeof value === "boolean" || Number.isFinite(value);
}

/** Half of a surrogate pair is no text for a database. */
function isText(value: string): boolean {
	return value.length <= LONGEST && value.isWellFormed();
}
