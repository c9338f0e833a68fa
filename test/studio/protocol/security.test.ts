import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createConnection } from "node:net";
import { Duplex, PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { JSDOM } from "jsdom";
import { WebSocketConnection } from "../../../src/studio/http/websocket.ts";
import { createStudioHandler, toNodeListener, toUpgradeListener } from "../../../src/studio.ts";
import { work } from "../project/graphs.ts";
import { RawSocket } from "../support/raw-socket.ts";
import { startServer } from "../support/server.ts";

const start = { assistant_id: "work", input: { name: "one" } };
const command = (method: string, params: object = {}) => ({ id: 1, method, params });
const events = { channels: ["values"] };

/** Each caller has the threads whose ids begin with its name, which it tells in a header or, for a WebSocket, in the URL. */
const authorize = (request: Request) => {
	const user = request.headers.get("x-user") ?? new URL(request.url).searchParams.get("user");
	return user === null ? false : { mayAccess: (id: string) => id.startsWith(`${user}-`), caller: user };
};

describe("The thread protocol", () => {
	it("is not for foreign pages, nor under foreign names", async () => {
		const { url, fetch } = await startServer();
		const path = "/threads/t/stream/events";
		const foreign: Record<string, string>[] = [
			{ origin: "https://evil.example" },
			{ origin: "null" },
			{ host: "evil.example" },
		];
		for (const headers of foreign) {
			expect(await RawSocket.open(url + path, headers)).toBe(403);
			if ("host" in headers) continue;
			expect((await fetch("/threads/t/commands", { json: command("run.start", start), headers })).status).toBe(403);
			expect((await fetch(path, { json: events, headers })).status).toBe(403);
		}
		const { window } = new JSDOM("", { url: "https://evil.example/" });
		const socket = new window.WebSocket(`${url.replace("http", "ws")}${path}`);
		await new Promise((resolve) => socket.addEventListener("error", resolve));
		expect((await fetch("/threads/t")).status).toBe(404);
		const own = await RawSocket.mustOpen(url + path, { origin: "http://localhost:3000" });
		expect(await own.ask(command("run.start", start))).toMatchObject({ type: "success" });
		own.destroy();
	});

	it("keeps tenants apart", async () => {
		const { url, fetch } = await startServer(undefined, { authorize });
		const as = (user: string) => ({ headers: { "x-user": user } });
		const run = (user: string) => fetch("/threads/ann-1/commands", { json: command("run.start", start), ...as(user) });
		expect((await run("bob")).status).toBe(403);
		expect((await run("ann")).status).toBe(200);
		expect((await fetch("/threads/ann-1/stream/events", { json: events, ...as("bob") })).status).toBe(403);
		expect((await fetch("/threads/ann-1/stream", as("bob"))).status).toBe(403);
		const socket = `${url}/threads/ann-1/stream/events`;
		expect(await RawSocket.open(socket)).toBe(403);
		expect(await RawSocket.open(`${socket}?user=bob`)).toBe(403);
		const ann = await RawSocket.mustOpen(`${socket}?user=ann`);
		expect(await ann.ask(command("state.get"))).toMatchObject({ type: "success" });
		ann.destroy();
		for (const [path, method] of [
			["", "POST"],
			["/a", "PATCH"],
			["/a", "DELETE"],
			["/a/latest", "POST"],
		] as const)
			expect((await fetch(`/assistants${path}`, { json: { graph_id: "work" }, method, ...as("ann") })).status).toBe(
				403,
			);
	});

	it("refuses commands that are too large, too deep or no commands", async () => {
		const { url, fetch } = await startServer(undefined, { limits: { bodyBytes: 1000 } });
		const large = command("run.start", { ...start, input: { name: "x".repeat(1000) } });
		expect((await fetch("/threads/t/commands", { json: large })).status).toBe(413);
		expect((await fetch("/threads/t/stream/events", { json: { ...events, more: "x".repeat(1000) } })).status).toBe(413);
		const path = `${url}/threads/t/stream/events`;
		const socket = await RawSocket.mustOpen(path);
		socket.send(large);
		expect(await socket.closeCode()).toBe(1009);
		const inParts = await RawSocket.mustOpen(path);
		for (let part = 0; part < 20; part++) inParts.sendFrame(part === 0 ? 1 : 0, "x".repeat(100));
		expect(await inParts.closeCode()).toBe(1009);

		const wrong: [status: number, error: string, json: object][] = [
			[400, "invalid_argument", {}],
			[400, "invalid_argument", { id: -1, method: "run.start" }],
			[400, "invalid_argument", { id: "1", method: "run.start" }],
			[400, "invalid_argument", { id: 1, method: "run.start", params: [] }],
			[200, "invalid_argument", command("run.start")],
			[404, "invalid_argument", command("run.start", { ...start, assistant_id: "nobody" })],
			[200, "invalid_argument", command("run.start", { ...start, multitask_strategy: "guess" })],
			[200, "invalid_argument", command("input.respond")],
			[200, "invalid_argument", command("input.respond", { responses: [] })],
			[200, "no_such_run", command("input.respond", { interrupt_id: "i", response: 1 })],
			[404, "invalid_argument", command("state.get")],
			[200, "no_such_namespace", command("state.get", { namespace: ["", "studio"] })],
			[404, "invalid_argument", command("state.fork", { checkpoint_id: "x" })],
			[200, "no_such_run", command("agent.getTree")],
			[200, "unknown_command", command("__proto__")],
			[200, "unknown_command", command("subscription.reconnect")],
		];
		const fine = await RawSocket.mustOpen(path);
		for (const [status, code, json] of wrong) {
			const response = await fetch("/threads/t/commands", { json });
			expect(response.status, JSON.stringify(json)).toBe(status);
			if (status !== 404) expect(await response.json()).toMatchObject({ type: "error", error: code });
			expect(await fine.ask(json as never)).toMatchObject({ type: "error", error: code });
		}
		for (const text of ["", "no JSON", '"text"', "[".repeat(400)])
			expect(await fine.ask(text as never), text).toMatchObject({ type: "error", id: null, error: "invalid_argument" });
		for (const params of [
			{},
			{ channels: ["all"] },
			{ channels: [] },
			{ ...events, namespaces: ["a"] },
			{ ...events, depth: -1 },
		]) {
			expect(await fine.ask(command("subscription.subscribe", params))).toMatchObject({ error: "invalid_argument" });
			expect((await fetch("/threads/t/stream/events", { json: params })).status).toBe(400);
		}
		expect(await fine.ask(command("subscription.unsubscribe", { subscription_id: "x" }))).toMatchObject({
			error: "no_such_subscription",
		});
		expect(await fine.ask(command("run.start", start))).toMatchObject({ type: "success" });
		for (const checkpoint_id of ["", "x"])
			expect(await fine.ask(command("state.fork", { checkpoint_id }))).toMatchObject({ error: "no_such_checkpoint" });
		fine.destroy();
	});

	it("refuses filters that take much memory", async () => {
		const { url, fetch } = await startServer();
		const socket = await RawSocket.mustOpen(`${url}/threads/t/stream/events`);
		for (const params of [
			{ ...events, namespaces: [Array(1000).fill("a")] },
			{ ...events, namespaces: [["x".repeat(40_000)]] },
			{ channels: [`custom:${"x".repeat(40_000)}`] },
		]) {
			expect(await socket.ask(command("subscription.subscribe", params))).toMatchObject({ error: "invalid_argument" });
			expect((await fetch("/threads/t/stream/events", { json: params })).status).toBe(400);
		}
		const parts = Array.from({ length: 300 }, (_, i) => ["tools:0193e8d2-7c1f-7d4e-8a6b-0123456789ab", `part:${i}`]);
		const params = { ...events, namespaces: parts };
		expect(await socket.ask(command("subscription.subscribe", params))).toMatchObject({ type: "success" });
		socket.destroy();
	});

	it("changes nothing on a server that is read-only", async () => {
		const { url, fetch, saver } = await startServer(undefined, { readOnly: true });
		const socket = await RawSocket.mustOpen(`${url}/threads/t/stream/events`);
		for (const method of ["run.start", "input.respond", "input.inject", "state.fork"]) {
			expect((await fetch("/threads/t/commands", { json: command(method, start) })).status).toBe(403);
			expect(await socket.ask(command(method, start))).toMatchObject({ error: "permission_denied" });
		}
		expect(await socket.ask(command("subscription.subscribe", events))).toMatchObject({ type: "success" });
		const stream = await fetch("/threads/t/stream/events", { json: events });
		expect(stream.status).toBe(200);
		await stream.body?.cancel();
		expect((await fetch("/assistants", { json: { graph_id: "work" } })).status).toBe(403);
		expect((await fetch("/threads/t/state", { method: "PATCH", json: {} })).status).toBe(403);
		expect((await saver.listThreads()).threads).toEqual([]);
		socket.destroy();
	});

	it("counts runs as the other routes do", async () => {
		const { fetch } = await startServer(undefined, { limits: { concurrentRuns: 1, waitingRuns: 1 } });
		const stuck = { ...start, input: { name: "stuck", until: "/never" } };
		const run = (n: number) => fetch(`/threads/t${n}/commands`, { json: command("run.start", stuck) });
		expect((await run(1)).status).toBe(200);
		expect((await run(2)).status).toBe(200);
		expect((await run(3)).status).toBe(429);
	});
});

describe("A WebSocket", () => {
	it("is closed for what is no proper frame", async () => {
		const { url } = await startServer();
		const broken: [code: number, send: (socket: RawSocket) => void][] = [
			[1002, (socket) => socket.sendFrame(0x81, "{}", false)],
			[1002, (socket) => socket.sendFrame(0xc1, "{}")],
			[1002, (socket) => socket.sendFrame(0x80, "{}")],
			[1002, (socket) => [socket.sendFrame(0x01, "{"), socket.sendFrame(0x81, "}")]],
			[1002, (socket) => socket.sendFrame(0x89, "x".repeat(126))],
			[1002, (socket) => socket.sendFrame(0x09, "")],
			[1002, (socket) => socket.sendFrame(0x8b, "")],
			[1003, (socket) => socket.sendFrame(0x82, "{}")],
			[1007, (socket) => socket.sendFrame(0x81, Buffer.from([0xff, 0xfe]))],
			[1009, (socket) => socket.sendBytes(Buffer.from("81ffffffffffffffffff00000000", "hex"))],
			// One part too many, though all are empty.
			[
				1009,
				(socket) => [socket.sendFrame(1, ""), socket.sendBytes(Buffer.from("008000000000".repeat(10_000), "hex"))],
			],
			[1002, (socket) => socket.sendFrame(0x88, "x")],
			[1000, (socket) => socket.sendFrame(0x88, Buffer.from([0x03, 0xe8]))],
		];
		for (const [code, send] of broken) {
			const socket = await RawSocket.mustOpen(`${url}/threads/t/stream/events`);
			send(socket);
			expect(await socket.closeCode(), String(send)).toBe(code);
			expect(await socket.next()).toBeUndefined();
		}
	});

	it("takes messages in parts, byte by byte and many at once, and answers pings between", async () => {
		const { url } = await startServer();
		const socket = await RawSocket.mustOpen(`${url}/threads/t/stream/events`);
		const text = JSON.stringify(command("agent.getTree"));
		socket.sendFrame(0x01, text.slice(0, 5));
		socket.sendFrame(0x89, "ping");
		socket.sendFrame(0x00, "");
		socket.sendFrame(0x80, text.slice(5));
		expect(await socket.next()).toMatchObject({ opcode: 10, payload: Buffer.from("ping") });
		expect((await socket.next())?.json).toMatchObject({ id: 1, error: "no_such_run" });
		const all: Buffer[] = [];
		const recorder = Object.create(RawSocket.prototype, { sendBytes: { value: (bytes: Buffer) => all.push(bytes) } });
		for (let id = 2; id < 12; id++) RawSocket.prototype.send.call(recorder, { ...command("agent.getTree"), id });
		for (const byte of Buffer.concat(all.slice(0, 3))) {
			socket.sendBytes(Buffer.from([byte]));
			await setImmediate();
		}
		socket.sendBytes(Buffer.concat(all.slice(3)));
		for (let id = 2; id < 12; id++) expect((await socket.next())?.json.id).toBe(id);
		socket.destroy();
	});

	it("is only for its route, and only for those who ask for one", async () => {
		const { url, fetch } = await startServer();
		expect(await RawSocket.open(`${url}/threads/t`)).toBe(404);
		expect(await RawSocket.open(`${url}/nothing`)).toBe(404);
		expect(await RawSocket.open(`${url}/threads/t/stream/events`, { "sec-websocket-version": "8" })).toBe(400);
		expect(await RawSocket.open(`${url}/threads/t/stream/events`, { upgrade: "h2c" })).toBe(400);
		expect((await fetch("/threads/t/stream/events")).status).toBe(426);
	});

	it("is refused behind a request that is not answered yet", async () => {
		const { url, fetch } = await startServer();
		const { port } = new URL(url);
		const upgrade = "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
		for (const key of ["", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"]) {
			const socket = createConnection(Number(port), "127.0.0.1");
			const closed = once(socket, "close");
			let answer = "";
			socket.on("data", (data) => {
				answer += data;
			});
			socket.on("error", () => {});
			const path = "/threads/t/stream/events";
			socket.write(`GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\nGET ${path} HTTP/1.1\r\n${upgrade}${key}\r\n`);
			await closed;
			expect(answer).not.toContain("101 Switching");
		}
		expect((await fetch("/ok")).status).toBe(200);
	});

	it("opens no session for a client that left while it was authorized", async () => {
		const opened = vi.fn();
		let authorized = () => {};
		const connect = async () => {
			await new Promise<void>((resolve) => {
				authorized = resolve;
			});
			return opened;
		};
		const socket = new PassThrough();
		const headers = { upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": `${"A".repeat(22)}==` };
		const incoming = { method: "GET", headers, rawHeaders: [], url: "/" } as unknown as IncomingMessage;
		const upgraded = toUpgradeListener({ connect })(incoming, socket, Buffer.alloc(0));
		socket.destroy();
		authorized();
		await upgraded;
		expect(opened).not.toHaveBeenCalled();
	});

	it("answers no more pings than a client takes answers, and leaves one that takes none", async () => {
		vi.useFakeTimers({ toFake: ["setInterval"] });
		onTestFinished(() => void vi.useRealTimers());
		const untaken: (() => void)[] = [];
		const socket = new Duplex({ read() {}, write: (_, __, taken) => void untaken.push(taken) });
		const close = vi.fn();
		const connection = new WebSocketConnection(socket, "");
		connection.start({ mostBytes: 1000, receive: async () => {}, close }, Buffer.alloc(0));
		socket.push(Buffer.from(`89fd00000000${"00".repeat(125)}`.repeat(1000), "hex"));
		await setImmediate();
		expect(socket.writableLength).toBeLessThan(2 * socket.writableHighWaterMark);
		vi.advanceTimersByTime(15_000);
		// The answer to the upgrade, and the first of the pongs.
		untaken.shift()?.();
		await setImmediate();
		untaken.shift()?.();
		await setImmediate();
		vi.advanceTimersByTime(15_000);
		expect(socket.destroyed).toBe(false);
		vi.advanceTimersByTime(15_000);
		expect(socket.destroyed).toBe(true);
		await setImmediate();
		expect(close).toHaveBeenCalledOnce();
	});

	it("is refused by a host that takes none, and ends with the server", async () => {
		const handler = createStudioHandler({ graphs: { work } });
		const server = createServer(toNodeListener(handler)).listen(0, "127.0.0.1");
		await once(server, "listening");
		const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/threads/t/stream/events`;
		expect(await RawSocket.open(url)).toBe(426);
		server.on("upgrade", toUpgradeListener(handler));
		const socket = await RawSocket.mustOpen(url);
		expect(await socket.ask(command("subscription.subscribe", events))).toMatchObject({ type: "success" });
		await handler.close();
		expect(await socket.closeCode()).toBe(1001);
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	});
});
