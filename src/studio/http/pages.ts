import type { Fields, Json } from "./fields.ts";

/** The largest page that may be asked for. */
const MOST = 1000;

/** Where a page of results starts and how many it has. */
export function readPage(fields: Fields): { limit: number; offset: number } {
	return {
		limit: fields.integer("limit", 0, MOST) ?? 10,
		offset: fields.integer("offset", 0, Number.MAX_SAFE_INTEGER) ?? 0,
	};
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

/** Some fields of an object, or all. */
export function select(object: Json, names: readonly string[] | undefined): Json {
	return names === undefined
		? object
		: Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));
}
