import type { Labels } from "../storage/storage.ts";
import { setOwn } from "./head.ts";

/** Longer text is not worth a place in a column of its own. */
const LONGEST = 256;

/** Most have none. */
const NO_LABELS: Record<string, Labels[string]> = {};

/** What a checkpoint can be found by, besides its key. */
export interface SplitLabels {
	readonly source: string | undefined;
	readonly step: number | undefined;
	readonly labels: Labels;
}

/**
 * The part of metadata, or of a filter for it, that a backend can compare: plain values at the top level. Whatever
 * matches a filter has all labels of the filter; what else the filter asks for is checked on the values themselves.
 */
export function splitLabels(metadata: unknown): SplitLabels {
	let labels = NO_LABELS;
	let source: string | undefined;
	let step: number | undefined;
	if (typeof metadata !== "object" || metadata === null) return { source, step, labels };
	for (const key of Object.keys(metadata)) {
		const value = (metadata as Record<string, unknown>)[key];
		const plain = value instanceof Date ? value.toJSON() : value;
		if (key === "source" && typeof plain === "string" && isText(plain)) source = plain;
		else if (key === "step" && Number.isSafeInteger(plain)) step = (plain as number) + 0;
		else if (isText(key) && isLabel(plain)) {
			if (labels === NO_LABELS) labels = {};
			setOwn(labels, key, plain);
		}
	}
	return { source, step, labels };
}

function isLabel(value: unknown): value is Labels[string] {
	if (typeof value === "string") return isText(value);
	return value === null || typeof value === "boolean" || Number.isFinite(value);
}

/** Half of a surrogate pair is no text for a database. */
function isText(value: string): boolean {
	return value.length <= LONGEST && value.isWellFormed();
}
