import type { CheckpointKey } from "./storage.ts";

/** Both orders agree where one side has no unit from the surrogates on. */
const HAS_HIGH_UNIT = /[\ud800-\uffff]/;

/**
 * The order of ids by their bytes in UTF-8, as databases compare text. `<` compares UTF-16 units, where half of a pair
 * comes before U+E000.
 */
export function compareIds(a: string, b: string): number {
	if (a === b) return 0;
	const order = a < b ? -1 : 1;
	if (!HAS_HIGH_UNIT.test(a) || !HAS_HIGH_UNIT.test(b)) return order;
	let i = 0;
	while (a[i] === b[i]) i++;
	const isPair = (id: string) => Number(/[\ud800-\udfff]/.test(id.charAt(i)));
	return isPair(a) - isPair(b) || order;
}

/** The order of a scan. */
export function compareRows(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}
