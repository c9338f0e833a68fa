/** Freezes a value and all it holds, so that a change to it throws. */
export function deepFreeze<T>(value: T): T {
	if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
	for (const part of Object.values(value)) deepFreeze(part);
	return Object.freeze(value);
}
