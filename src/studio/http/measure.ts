import { HttpError } from "./http-error.ts";

/** Twice as deep as savers store. Recursion ends at some ten thousand levels. */
const MOST_LEVELS = 1000;

/**
 * Bytes that parsed JSON takes in Node.js 20, as measured with the shapes that take the most: arrays of empty objects, and
 * objects each with a key of its own. Ordinary JSON takes less.
 */
const CONTAINER_BYTES = 64;
const KEY_BYTES = 96;
const SIMPLE_BYTES = 16;
const CHARACTER_BYTES = 2;

/** How large parsed JSON is. */
export interface Size {
	/** How many arrays, objects, strings and so on. */
	readonly values: number;
	/** About how much memory it takes: 10 MB of `[],[],[]` take 140 MB. */
	readonly bytes: number;
}

/** Works level by level, since JSON may be nested deeper than calls can be. Refuses what is. */
export function measure(json: unknown): Size {
	let values = 0;
	let bytes = 0;
	let containers: object[] = [];
	const add = (value: unknown) => {
		values++;
		if (typeof value === "object" && value !== null) containers.push(value);
		else bytes += SIMPLE_BYTES + (typeof value === "string" ? CHARACTER_BYTES * value.length : 0);
	};
	add(json);
	for (let levels = 1; containers.length > 0; levels++) {
		if (levels > MOST_LEVELS) throw new HttpError(400, `The JSON is nested deeper than ${MOST_LEVELS} levels.`);
		const level = containers;
		containers = [];
		bytes += CONTAINER_BYTES * level.length;
		for (const container of level) {
			if (Array.isArray(container)) for (const item of container) add(item);
			else
				for (const [key, value] of Object.entries(container)) {
					bytes += KEY_BYTES + CHARACTER_BYTES * key.length;
					add(value);
				}
		}
	}
	return { values, bytes };
}
