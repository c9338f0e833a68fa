import { CheckpointError, quote } from "../../errors.ts";
import { HttpError } from "../http/http-error.ts";

/** Where LangGraph Studio is served from. */
const STUDIO_ORIGINS = ["https://smith.langchain.com", "https://eu.smith.langchain.com"];

/** What a page of another origin may read of an answer, beside the body. */
const EXPOSED = "content-location, location, x-pagination-total, x-pagination-next";
/** How long a browser may remember a preflight, in seconds. Browsers cap it at two hours or less. */
const PREFLIGHT_SECONDS = "7200";

/**
 * Decides which web pages may call the server, and under which names it may be called.
 *
 * A server on loopback is reached by every page that its user visits. So a page must come from an origin that is
 * allowed, and the server must be addressed by a name of its own: a page whose name was made to resolve to 127.0.0.1
 * has neither. Programs that are no browser send no `Origin` and are not asked for one.
 */
export class Origins {
	readonly #allowed: ReadonlySet<string>;
	readonly #hosts: ReadonlySet<string>;

	/** @param allowed origins such as `"https://app.example.com"`; the server may also be called by their hosts' names */
	constructor(allowed: readonly string[] = STUDIO_ORIGINS) {
		this.#allowed = new Set(allowed.map(readOrigin));
		this.#hosts = new Set(allowed.map((origin) => new URL(origin).hostname));
	}

	/** Refuses a request that is not meant for this server, or comes from a page that has no business with it. */
	check(request: Request): void {
		const header = request.headers.get("host");
		if (header !== null && !isHost(header)) throw new HttpError(400, "The `Host` header must be a host and a port.");
		// The name in the URL may be the framework's; that in the header is what the browser asked for.
		const host = parse(header === null ? request.url : `http://${header}`)?.hostname;
		if (host === undefined || !(isLoopback(host) || this.#hosts.has(host)))
			throw new HttpError(
				403,
				`The server does not answer under the name ${quote(host)}: call it by its loopback address, or add the name's origin to \`allowOrigins\`.`,
			);
		const origin = request.headers.get("origin");
		if (origin !== null && !this.#isAllowed(origin, host))
			throw new HttpError(403, `Requests from ${quote(origin)} are refused: add it to \`allowOrigins\`.`);
		// Images, frames and forms come without an origin. Whoever follows a link to look at something is a person.
		if (origin === null && request.headers.get("sec-fetch-site") === "cross-site" && !isLink(request))
			throw new HttpError(403, "Requests from other sites are refused.");
	}

	/** The headers that let an allowed page read the answer. */
	headersFor(request: Request): Record<string, string> {
		const origin = request.headers.get("origin");
		if (origin === null) return { vary: "origin" };
		return { vary: "origin", "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED };
	}

	/** The answer to the question whether a page may send a request. */
	preflight(request: Request): Response {
		const headers = new Headers(this.headersFor(request));
		headers.set("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE");
		const asked = request.headers.get("access-control-request-headers");
		if (asked !== null) headers.set("access-control-allow-headers", asked);
		if (request.headers.get("access-control-request-private-network") === "true")
			headers.set("access-control-allow-private-network", "true");
		headers.set("access-control-max-age", PREFLIGHT_SECONDS);
		return new Response(null, { status: 204, headers });
	}

	/** Pages on this machine are its user's own, as long as the server is on this machine too. */
	#isAllowed(origin: string, host: string): boolean {
		if (this.#allowed.has(origin)) return true;
		const name = parse(origin)?.hostname;
		return name !== undefined && isLoopback(name) && isLoopback(host);
	}
}

/** Whether it opens a page of its own, and leaves everything as it was, also when that page is closed. */
function isLink({ method, url, headers }: Request): boolean {
	const isPage =
		headers.get("sec-fetch-mode") === "navigate" && (headers.get("sec-fetch-dest") ?? "document") === "document";
	return isPage && method === "GET" && !new URL(url).searchParams.has("cancel_on_disconnect");
}

/**
 * Whether a `Host` header is a host, with or without a port, or empty. Whatever makes a URL of the header would take more
 * than that for the path, or for the query that hides the path.
 */
export function isHost(header: string): boolean {
	return /^([\w.-]+|\[[\da-f:.]+\])?(:\d*)?$/i.test(header);
}

function isLoopback(hostname: string): boolean {
	return (
		hostname === "localhost" ||
		hostname.endsWith(".localhost") ||
		hostname === "[::1]" ||
		/^127\.\d+\.\d+\.\d+$/.test(hostname)
	);
}

function parse(url: string): URL | undefined {
	return URL.canParse(url) ? new URL(url) : undefined;
}

function readOrigin(origin: string): string {
	if (typeof origin === "string" && parse(origin)?.origin === origin) return origin;
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`allowOrigins\` takes origins such as "https://app.example.com", got ${quote(origin)}.`,
	);
}
