import { CheckpointError } from "../errors.ts";
import { loadInstance } from "./instances.ts";

/** Stands for a part of a value that could not be made when its place was reached. */
export class Gap {
	/** An object that was not finished when something inside referred to it, or JSON that LangChain has to load. */
	readonly from: { readonly number: number } | { readonly json: unknown };

	constructor(from: Gap["from"]) {
		this.from = from;
	}
}

/** Puts what belongs there in the place of every gap. A promise if LangChain has to load something. */
export function fillGaps(root: unknown, gaps: readonly Gap[], objects: readonly unknown[]): unknown {
	const known = new Map<Gap, unknown>();
	const loads: Promise<void>[] = [];
	for (const gap of gaps) {
		if ("json" in gap.from) loads.push(loadInstance(gap.from.json).then((value) => void known.set(gap, value)));
		else known.set(gap, objects[gap.from.number]);
	}
	const finish = () => replace(root, known, new Set());
	return loads.length === 0 ? finish() : Promise.all(loads).then(finish);
}

/** Goes through everything that is reachable, instances of classes and their hidden properties too. */
function replace(value: unknown, known: ReadonlyMap<Gap, unknown>, seen: Set<unknown>): unknown {
	if (value instanceof Gap) {
		const filled = known.get(value);
		// A gap that another gap stands for is filled in turn, unless the two only stand for each other.
		if (filled === undefined || filled === value)
			throw new CheckpointError("CORRUPT", "A stored value refers to itself in a way that no value can.");
		return filled instanceof Gap ? known.get(filled) : filled;
	}
	if (typeof value !== "object" || value === null || seen.has(value) || ArrayBuffer.isView(value)) return value;
	seen.add(value);
	if (value instanceof Map) {
		const entries = [...value];
		value.clear();
		for (const [key, item] of entries) value.set(replace(key, known, seen), replace(item, known, seen));
	} else if (value instanceof Set) {
		const items = [...value];
		value.clear();
		for (const item of items) value.add(replace(item, known, seen));
	}
	for (const key of Reflect.ownKeys(value)) {
		const property = Object.getOwnPropertyDescriptor(value, key);
		if (property === undefined || !("value" in property)) continue;
		const filled = replace(property.value, known, seen);
		if (filled !== property.value) Object.defineProperty(value, key, { ...property, value: filled });
	}
	return value;
}
