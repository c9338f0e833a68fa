/** Waits only if there is something to wait for. */
export function settle<T>(items: readonly (T | Promise<T>)[]): Promise<T[]> | T[] {
	return items.some((item) => item instanceof Promise) ? Promise.all(items) : (items as T[]);
}
