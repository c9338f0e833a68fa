/**
 * JSON as LangGraph's clients read it. Messages become the flat objects that the API knows; what a saver can store and
 * JSON can't say becomes what comes closest, so that one odd value does not hide a whole state.
 */
export function toJson(value: unknown): string {
	try {
		return JSON.stringify(value, flatten) ?? "null";
	} catch (error) {
		// A value that contains itself. Looking for one costs time, so only those who have one pay for it.
		if (!(error instanceof TypeError)) throw error;
		return JSON.stringify(value, breakCircles()) ?? "null";
	}
}

/** A replacer for `JSON.stringify`, which sees a value before its `toJSON` was called. */
function flatten(this: unknown, key: string, value: unknown): unknown {
	const raw = (this as Record<string, unknown>)[key];
	if (typeof raw === "bigint") return String(raw);
	if (typeof raw !== "object" || raw === null) return value;
	if ("toDict" in raw && typeof raw.toDict === "function") {
		const { type, data } = raw.toDict() as { type: string; data: object };
		return { ...data, type };
	}
	if (raw instanceof Map) return Object.fromEntries(raw);
	if (raw instanceof Set) return [...raw];
	if (raw instanceof Error) return { name: raw.name, message: raw.message };
	return value;
}

function breakCircles(): (this: unknown, key: string, value: unknown) => unknown {
	const ancestors: { holder: unknown; value: unknown }[] = [];
	return function (key, value) {
		const flat = flatten.call(this, key, value);
		if (typeof flat !== "object" || flat === null) return flat;
		while (ancestors.length > 0 && ancestors.at(-1)?.value !== this) ancestors.pop();
		if (ancestors.some((ancestor) => ancestor.holder === value || ancestor.value === flat)) return "[Circular]";
		ancestors.push({ holder: value, value: flat });
		return flat;
	};
}
