/**
 * Lists in ascending order. One that is short is never changed, but replaced by another without room to spare: most are,
 * and there may be a hundred thousand of them.
 */
const SHORT = 16;

/**
 * The first place in a list whose item is not before the one that is looked for.
 *
 * @param compare negative for an item that is before it
 */
export function lowerBound<T>(list: readonly T[], compare: (item: T) => number): number {
	let low = 0;
	let high = list.length;
	// It usually is the last one, or will be.
	if (high > 0) {
		const last = compare(list[high - 1] as T);
		if (last <= 0) return last < 0 ? high : high - 1;
	}
	while (low < high) {
		const middle = (low + high) >> 1;
		if (compare(list[middle] as T) < 0) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** The item for which `compare` answers zero. */
export function findIn<T>(list: readonly T[], compare: (item: T) => number): T | undefined {
	const item = list[lowerBound(list, compare)];
	return item !== undefined && compare(item) === 0 ? item : undefined;
}

/** The list to go on with. */
export function insertAt<T>(list: T[], at: number, item: T): T[] {
	if (list.length === 0) return [item];
	if (list.length < SHORT) return list.toSpliced(at, 0, item);
	list.splice(at, 0, item);
	return list;
}

/** The list to go on with. */
export function removeAt<T>(list: T[], at: number): T[] {
	if (list.length <= SHORT) return list.toSpliced(at, 1);
	list.splice(at, 1);
	return list;
}

/** A list that changes of the other one do not change. */
export function copyList<T>(list: T[]): T[] {
	return list.length < SHORT ? list : list.slice();
}
