/** Waits only if there is something to wait for: most often there is not. */
export function settle<T>(items: readonly (T | Promise<T>)[]): Promise<T[]> | T[] {
	for (const item of items) if (item instanceof Promise) return Promise.all(items);
	return items as T[];
}
