import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { checkNames } from "../saver/options.ts";
import type { StudioHandler } from "./handler.ts";
import { readWebSocketKey, WebSocketConnection } from "./http/websocket.ts";
import { isHost } from "./security/origins.ts";

/** Where LangGraph Studio is, and how it is told which server to talk to. */
const STUDIO = "https://smith.langchain.com/studio/?baseUrl=";
/**
 * How long a connection may be idle, in milliseconds. Longer than clients and proxies keep theirs: one that is closed
 * while the next request is already on its way fails that request. Node's own five seconds can pass on a busy machine.
 */
const KEEP_ALIVE_MS = 75_000;
/** The port of LangGraph's own server. */
const DEFAULT_PORT = 2024;

type FetchHandler = ((request: Request) => Response | Promise<Response>) &
	Partial<Pick<StudioHandler, "close" | "connect">>;

export interface ServeOptions {
	/** Default 2024; 0 for any that is free. */
	port?: number;
}

export interface StudioServer {
	readonly port: number;
	/** What clients connect to. */
	readonly url: string;
	/** The address of LangGraph Studio that opens this server. */
	readonly studioUrl: string;
	/** Stops all runs and closes the server. Savers stay open. */
	close(): Promise<void>;
}

/**
 * Serves a handler on this machine's loopback address and prints where Studio finds it.
 *
 * @example
 * ```ts
 * const server = await serveStudio(createStudioHandler({ graphs: { agent: graph } }), { port: 2024 });
 * await server.close();
 * ```
 */
export async function serveStudio(handler: FetchHandler, options: ServeOptions = {}): Promise<StudioServer> {
	checkNames("serveStudio", options, ["port"]);
	const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, toNodeListener(handler));
	const { connect } = handler;
	if (connect !== undefined) server.on("upgrade", toUpgradeListener({ connect }));
	await new Promise<void>((resolve, reject) => {
		server.once("error", reject);
		server.listen(options.port ?? DEFAULT_PORT, "127.0.0.1", resolve);
	});
	const { port } = server.address() as AddressInfo;
	const url = `http://127.0.0.1:${port}`;
	const studioUrl = `${STUDIO}${url}`;
	console.log(`API:    ${url}\nStudio: ${studioUrl}`);
	return {
		port,
		url,
		studioUrl,
		close: async () => {
			const closed = new Promise((resolve) => server.close(resolve));
			await handler.close?.();
			server.closeAllConnections();
			await closed;
		},
	};
}

/**
 * A handler of `Request`s as Node's `http` and Express call one.
 *
 * @example
 * ```ts
 * express().use("/langgraph", toNodeListener(createStudioHandler({ graphs: { agent: graph } })));
 * ```
 */
export function toNodeListener(
	handler: FetchHandler,
): (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void> {
	return async (incoming, outgoing) => {
		const gone = new AbortController();
		outgoing.once("close", () => gone.abort());
		const request = toRequest(incoming, gone.signal);
		const response = request === undefined ? new Response("Bad Request", { status: 400 }) : handler(request);
		await send(await response, outgoing);
	};
}

/**
 * Takes WebSockets, for clients of the thread protocol that ask for one.
 *
 * @example
 * ```ts
 * const server = createServer(toNodeListener(handler)).on("upgrade", toUpgradeListener(handler));
 * ```
 */
export function toUpgradeListener({
	connect,
}: Pick<StudioHandler, "connect">): (incoming: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void> {
	return async (incoming, socket, head) => {
		socket.on("error", () => socket.destroy());
		try {
			await upgrade(connect, incoming, socket, head);
		} catch (error) {
			// The client gets to know nothing of it, so somebody else must.
			console.error(error);
			socket.destroy();
		}
	};
}

async function upgrade(
	connect: StudioHandler["connect"],
	incoming: IncomingMessage,
	socket: Duplex,
	head: Buffer,
): Promise<void> {
	// An earlier request on this socket is still being answered: two answers would mix. No honest client does that.
	if ((socket as { _httpMessage?: unknown })._httpMessage) return void socket.destroy();
	const key = readWebSocketKey(incoming);
	const request = key === undefined ? undefined : toRequest(incoming, new AbortController().signal);
	const answer = request === undefined ? new Response("Bad Request", { status: 400 }) : await connect(request);
	// The client left while it was being authorized: a session would never be told.
	if (socket.destroyed) return;
	if (answer instanceof Response) return refuseUpgrade(answer, incoming, socket);
	const connection = new WebSocketConnection(socket, key as string);
	connection.start(answer(connection), head);
}

async function refuseUpgrade(response: Response, incoming: IncomingMessage, socket: Duplex): Promise<void> {
	const outgoing = new ServerResponse(incoming);
	outgoing.shouldKeepAlive = false;
	outgoing.assignSocket(socket as import("node:net").Socket);
	await send(response, outgoing);
	socket.end();
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
	const { method = "GET", headers, url = "/" } = incoming;
	const { host = "" } = headers;
	const address = `http://${host || "localhost"}${url}`;
	if (!url.startsWith("/") || !isHost(host) || !URL.canParse(address)) return undefined;
	const hasBody = method !== "GET" && method !== "HEAD";
	try {
		return new Request(address, {
			method,
			headers: toHeaders(incoming),
			signal,
			...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: "half" }),
		});
	} catch {
		// A method or a header that the web does not know.
		return undefined;
	}
}

function toHeaders({ rawHeaders }: IncomingMessage): Headers {
	const headers = new Headers();
	for (let i = 0; i + 1 < rawHeaders.length; i += 2)
		headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
	return headers;
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
	outgoing.writeHead(response.status, Object.fromEntries(response.headers));
	if (response.body === null) return void outgoing.end();
	outgoing.flushHeaders();
	try {
		await pipeline(Readable.fromWeb(response.body as import("node:stream/web").ReadableStream), outgoing);
	} catch {
		// The client has gone, or the stream has failed: either way there is nobody left to tell.
		outgoing.destroy();
	}
}
