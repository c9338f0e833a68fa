import { Client } from "@langchain/langgraph-sdk";
import type { DeltaSaver } from "../../../src/index.ts";
import { createStudioHandler, type StudioHandler, type StudioOptions, serveStudio } from "../../../src/studio.ts";
import { chat, nested, review, work } from "../project/graphs.ts";
import { type Backend, memory } from "./backends.ts";

export interface TestServer {
	readonly url: string;
	readonly saver: DeltaSaver;
	readonly handler: StudioHandler;
	/** The official client. It gives up at once, so that a test sees what went wrong. */
	readonly client: Client;
	/** The same storage behind a new server, as after a restart. The old one is left as it is. */
	restart(): Promise<TestServer>;
	/** A request as it is, for what the client would not send. */
	fetch(path: string, init?: RequestInit & { json?: unknown }): Promise<Response>;
}

/** Servers and storage of this file's tests. */
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
	for (const one of open.splice(0).reverse()) await one.close();
});

/** Serves the test graphs until the test ends. */
export async function startServer(
	backend: Backend = memory,
	options: Partial<StudioOptions> = {},
): Promise<TestServer> {
	const storage = await backend.open();
	open.push(storage);
	const start = async (saver: DeltaSaver): Promise<TestServer> => {
		const handler = createStudioHandler({ graphs: { chat, review, nested, work }, checkpointer: saver, ...options });
		const print = vi.spyOn(console, "log").mockImplementation(() => {});
		const server = await serveStudio(handler, { port: 0 });
		print.mockRestore();
		open.push(server);
		return {
			url: server.url,
			saver,
			handler,
			client: clientFor(server.url),
			restart: async () => start(await storage.reopen()),
			fetch: (path, { json, ...init } = {}) =>
				fetch(server.url + path, json === undefined ? init : { method: "POST", ...init, body: JSON.stringify(json) }),
		};
	};
	return start(storage.saver);
}

export function clientFor(apiUrl: string, defaultHeaders: Record<string, string> = {}): Client {
	return new Client({ apiUrl, apiKey: null, defaultHeaders, callerOptions: { maxRetries: 0, maxConcurrency: 200 } });
}

/** All parts of a stream. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
	const parts: T[] = [];
	for await (const part of stream) parts.push(part);
	return parts;
}
