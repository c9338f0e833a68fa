import { type Fields, isRecord, type Json, MOST_ITEMS, readInteger } from "./fields.ts";

/** Where a page of results starts and how many it has at most. */
export interface Page {
	readonly limit: number;
	readonly offset: number;
}

/** The page that a request asks for. One that is too large is cut: those who want everything ask for a million. */
export function readPage(fields: Fields, usual = 10): Page {
	const read = (name: string) => fields.integer(name, 0, Number.MAX_SAFE_INTEGER);
	return { limit: Math.min(read("limit") ?? usual, MOST_ITEMS), offset: read("offset") ?? 0 };
}

/** The same in a query string. */
export function readPageOf(query: URLSearchParams): Page {
	return { limit: Math.min(readInteger(query, "limit", 10), MOST_ITEMS), offset: readInteger(query, "offset", 0) };
}

/** One page of a list, and the headers that tell of the rest. */
export function paginate<T>(all: readonly T[], fields: Fields): { page: T[]; headers: Record<string, string> } {
	const { limit, offset } = readPage(fields);
	const page = all.slice(offset, offset + limit);
	const next = offset + page.length;
	const headers: Record<string, string> = { "x-pagination-total": String(all.length) };
	if (next < all.length && page.length > 0) headers["x-pagination-next"] = String(next);
	return { page, headers };
}

/**
 * Some fields of an object, or all. One that is an object itself may be given in part, as `values.messages`. Only fields that
 * are named are looked at: a state may have many.
 */
export function select(object: Json, names: readonly string[] | undefined): Json {
	if (names === undefined) return object;
	const chosen: Json = {};
	const parts = new Map<string, string[]>();
	for (const name of names) {
		if (Object.hasOwn(object, name)) chosen[name] = object[name];
		const dot = name.indexOf(".");
		const whole = name.slice(0, Math.max(0, dot));
		if (dot < 0 || !Object.hasOwn(object, whole)) continue;
		const rests = parts.get(whole);
		if (rests === undefined) parts.set(whole, [name.slice(dot + 1)]);
		else rests.push(name.slice(dot + 1));
	}
	for (const [name, rests] of parts) {
		const value = object[name];
		if (isRecord(value) && !Object.hasOwn(chosen, name)) chosen[name] = select(value, rests);
	}
	return chosen;
}

/** The names that a query string selects. */
export function readSelect(query: URLSearchParams): string[] | undefined {
	return query.has("select") ? query.getAll("select") : undefined;
}
