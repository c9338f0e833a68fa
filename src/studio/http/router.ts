import { HttpError } from "./http-error.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a route does with a request. `Context` is whatever the handler made of it. */
export interface Route<Context> {
	readonly method: Method;
	/** Segments separated by `/`; one that starts with `:` takes any text, and one that also ends with `?` may be missing. */
	readonly path: string;
	/** Whether it leaves everything as it was. Default: it does if its method is GET. */
	readonly isRead?: boolean;
	readonly handle: (context: Context) => Promise<Response> | Response;
}

/** A route and what its segments stand for. */
export interface Match<Context> {
	readonly route: Route<Context>;
	readonly params: Record<string, string>;
}

/** Finds the route of a request. Of several that fit, the first. */
export class Router<Context> {
	readonly #routes: { route: Route<Context>; segments: string[] }[];

	constructor(routes: readonly Route<Context>[]) {
		this.#routes = routes.map((route) => ({ route, segments: split(route.path) }));
	}

	/** @param path as in the URL, still encoded: an id may contain any character, also a slash */
	match(method: string, path: string): Match<Context> {
		const given = split(path);
		const allowed = new Set<string>();
		for (const { route, segments } of this.#routes) {
			const params = readParams(segments, given);
			if (params === undefined) continue;
			if (route.method === method) return { route, params };
			allowed.add(route.method);
		}
		if (allowed.size === 0) throw new HttpError(404, "404 Not Found");
		throw new HttpError(405, "405 Method Not Allowed", { allow: [...allowed].join(", ") });
	}
}

function split(path: string): string[] {
	return path.replace(/^\//, "").replace(/\/$/, "").split("/");
}

function readParams(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
	if (given.length > segments.length) return undefined;
	const params: Record<string, string> = {};
	for (const [i, segment] of segments.entries()) {
		const text = given[i];
		if (text === undefined && segment.endsWith("?")) continue;
		if (text === undefined || text === "") return undefined;
		if (segment.startsWith(":")) params[segment.slice(1).replace("?", "")] = decode(text);
		else if (segment !== text) return undefined;
	}
	return params;
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		throw new HttpError(400, "The URL has a broken percent encoding.");
	}
}

/** A path segment that stands for an id, with no more escapes than needed: clients compare it with the id they sent. */
export function encodeSegment(id: string): string {
	return encodeURIComponent(id).replace(/%(?:3A|40|24|26|2B|2C|3B|3D)/g, decodeURIComponent);
}
