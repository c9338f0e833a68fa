import { CheckpointError, type CheckpointErrorCode, quote } from "../errors.ts";
import { checkNames } from "../saver/options.ts";
import { Call } from "./call.ts";
import { HttpError } from "./http/http-error.ts";
import { type Route, Router } from "./http/router.ts";
import { STUDIO_OPTIONS, type StudioOptions } from "./options.ts";
import { ProtocolSession, type ProtocolSocket } from "./protocol/session.ts";
import { assistantRoutes } from "./routes/assistant-routes.ts";
import { metaRoutes } from "./routes/meta-routes.ts";
import { protocolRoutes, SOCKET_ROUTE } from "./routes/protocol-routes.ts";
import { runRoutes } from "./routes/run-routes.ts";
import { stateRoutes } from "./routes/state-routes.ts";
import { storeRoutes } from "./routes/store-routes.ts";
import { threadRoutes } from "./routes/thread-routes.ts";
import { Access } from "./security/access.ts";
import { Origins } from "./security/origins.ts";
import { Studio } from "./studio.ts";

/** Answers the requests of LangGraph's clients. */
export interface StudioHandler {
	(request: Request): Promise<Response>;
	/**
	 * Lets a client speak the thread protocol over a WebSocket. `toUpgradeListener` calls it for Node's servers; others pass the
	 * request, and then the socket and what comes on it.
	 *
	 * @returns the answer to a client that is refused, or what takes the socket
	 */
	connect(request: Request): Promise<Response | ((socket: ProtocolSocket) => ProtocolSession)>;
	/** Stops all runs, waits until what they did is stored, and takes no more. Savers stay open. */
	close(): Promise<void>;
}

const router = new Router([
	...metaRoutes,
	...assistantRoutes,
	...runRoutes,
	...threadRoutes,
	...stateRoutes,
	...protocolRoutes,
	...storeRoutes,
]);

/** The status of an answer to a request that a saver refused. */
const STATUSES: Partial<Record<CheckpointErrorCode, number>> = {
	INVALID_CONFIG: 400,
	UNSERIALIZABLE: 400,
	THREAD_EXISTS: 409,
	CONFLICT: 409,
	NOT_FOUND: 404,
	READ_ONLY: 403,
	BUSY: 503,
	UNREACHABLE: 503,
	CLOSED: 503,
};

/**
 * Serves graphs to LangGraph Studio and to every other client of the LangGraph API, on the savers that they have. Takes
 * a `Request` and returns a `Response`, so it fits whatever speaks these. The graphs stay as they are.
 *
 * @example
 * ```ts
 * const handler = createStudioHandler({ graphs: { agent: graph } });
 * await serveStudio(handler, { port: 2024 });
 * ```
 */
export function createStudioHandler(options: StudioOptions): StudioHandler {
	checkNames("createStudioHandler", options, STUDIO_OPTIONS);
	if (Object.keys(options.graphs ?? {}).length === 0)
		throw new CheckpointError("INVALID_OPTION", "`graphs` is empty: pass { graphs: { agent: graph } }.");
	const { authorize } = options;
	const basePath = readBasePath(options.basePath);
	const origins = new Origins(options.allowOrigins);
	const studio = new Studio(options);
	async function find(request: Request): Promise<{ route: Route<Call>; call: Call }> {
		const { route, params } = router.match(request.method, pathIn(request, basePath));
		const call = new Call(request, studio, await Access.of(request, authorize), params);
		if (studio.readOnly && !(route.isRead ?? route.method === "GET"))
			throw new HttpError(403, "This server is read-only.");
		return { route, call };
	}

	async function answer(request: Request): Promise<Response> {
		const { route, call } = await find(request);
		return route.handle(call);
	}

	async function handle(request: Request): Promise<Response> {
		try {
			origins.check(request);
		} catch (error) {
			return refuse(error);
		}
		if (request.method === "OPTIONS") return origins.preflight(request);
		const response = await answer(request).catch(refuse);
		for (const [name, value] of Object.entries(origins.headersFor(request))) response.headers.set(name, value);
		return response;
	}

	async function connect(request: Request): ReturnType<StudioHandler["connect"]> {
		try {
			origins.check(request);
			const { route, call } = await find(request);
			if (route !== SOCKET_ROUTE) throw new HttpError(404, "404 Not Found");
			const sender = { studio, access: call.access, headers: request.headers, threadId: call.threadId };
			return (socket) => new ProtocolSession(sender, socket);
		} catch (error) {
			return refuse(error);
		}
	}

	return Object.assign(handle, { connect, close: () => studio.runs.close() });
}

function refuse(error: unknown): Response {
	if (error instanceof HttpError) return text(error.status, error.message, error.headers);
	const status = error instanceof CheckpointError ? STATUSES[error.code] : undefined;
	if (status !== undefined) return text(status, (error as Error).message);
	// The client gets to know nothing of it, so somebody else must.
	console.error(error);
	return text(500, "Internal Server Error");
}

function text(status: number, message: string, headers: Record<string, string> = {}): Response {
	return new Response(message, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}

function pathIn(request: Request, basePath: string): string {
	const { pathname } = new URL(request.url);
	if (pathname !== basePath && !pathname.startsWith(`${basePath}/`)) throw new HttpError(404, "404 Not Found");
	return pathname.slice(basePath.length);
}

function readBasePath(basePath = ""): string {
	if (basePath === "" || /^(\/[^/]+)+$/.test(basePath)) return basePath;
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`basePath\` must start with a slash and end without, got ${quote(basePath)}.`,
	);
}
