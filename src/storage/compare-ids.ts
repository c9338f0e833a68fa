import type { CheckpointKey } from "./storage.ts";

/**
 * The order of ids by their bytes in UTF-8, as databases compare text. `<` compares UTF-16 units, where half of a pair
 * comes before U+E000.
 */
export function compareIds(a: string, b: string): number {
	if (a === b) return 0;
	if (!HAS_HIGH_UNIT.test(a) || !HAS_HIGH_UNIT.test(b)) return a < b ? -1 : 1;
	const length = Math.min(a.length, b.length);
	for (let i = 0; i < length; i++) {
		const difference = rank(a.charCodeAt(i)) - rank(b.charCodeAt(i));
		if (difference !== 0) return difference;
	}
	return a.length - b.length;
}

/** Both orders agree where one side has no unit from the surrogates on. */
const HAS_HIGH_UNIT = /[\ud800-\uffff]/;

/** The order of a scan. */
export function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}

/** Moves surrogates behind all other units. */
function rank(unit: number): number {
	return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
