import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";
import type { StudioOptions } from "../../src/studio.ts";
import { backends } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { clientFor, startServer, type TestServer } from "./support/server.ts";

/** A request with headers that `fetch` would not let us choose. */
function send(
	server: TestServer,
	path: string,
	headers: Record<string, string>,
	method = "GET",
	body = "",
): Promise<number> {
	const { port } = new URL(server.url);
	return new Promise((resolve, reject) => {
		const request = httpRequest({ host: "127.0.0.1", port, path, method, headers }, (response) => {
			response.resume();
			resolve(response.statusCode as number);
		});
		request.on("error", reject);
		request.end(body);
	});
}

/** Bytes as they are, and the first line of what comes back. */
function sendRaw(server: TestServer, text: string): Promise<string> {
	const { port } = new URL(server.url);
	return new Promise((resolve, reject) => {
		const socket = connect(Number(port), "127.0.0.1", () => socket.write(text));
		socket.once("data", (data) => {
			resolve(String(data).split("\r\n")[0] as string);
			socket.destroy();
		});
		socket.once("error", reject);
		socket.once("close", () => resolve("closed"));
	});
}

async function isUp(server: TestServer): Promise<void> {
	expect(await (await server.fetch("/ok")).json()).toEqual({ ok: true });
}

describe.each(backends)("Web pages, before a server on a $name,", (backend) => {
	it("of foreign origins are refused, whatever they ask for", async () => {
		const server = await startServer(backend);
		const foreign = [
			"https://evil.example",
			"null",
			"http://smith.langchain.com",
			"https://smith.langchain.com.evil.example",
			"https://evil-smith.langchain.com",
			"http://localhost.evil.example:3000",
			"http://127.0.0.1.evil.example",
			"not an origin",
		];
		for (const origin of foreign) {
			expect(await send(server, "/ok", { origin }), origin).toBe(403);
			// Text needs no preflight: it arrives, and must not be taken for JSON.
			const body = JSON.stringify({ thread_id: "theirs" });
			expect(await send(server, "/threads", { origin, "content-type": "text/plain" }, "POST", body), origin).toBe(403);
			expect(await send(server, "/threads", { origin }, "OPTIONS"), origin).toBe(403);
		}
		expect(await send(server, "/threads/search", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe(
			403,
		);
		expect(await server.client.threads.search()).toEqual([]);
		await isUp(server);
	});

	it("of Studio, of this machine and of allowed origins are let in", async () => {
		const server = await startServer(backend);
		for (const origin of [
			"https://smith.langchain.com",
			"http://localhost:3000",
			"http://127.0.0.1",
			"http://[::1]:8080",
		])
			expect(await send(server, "/ok", { origin }), origin).toBe(200);
		const own = await startServer(backend, { allowOrigins: ["https://app.example.com"] });
		expect(await send(own, "/ok", { origin: "https://app.example.com" })).toBe(200);
		expect(await send(own, "/ok", { origin: "https://smith.langchain.com" })).toBe(403);
		// Where the server is called by its public name, pages on somebody's own machine are foreign.
		const host = "app.example.com";
		expect(await send(own, "/ok", { host, origin: "https://app.example.com" })).toBe(200);
		expect(await send(own, "/ok", { host, origin: "http://localhost:3000" })).toBe(403);
	});

	it("are answered in a preflight, private networks included", async () => {
		const { fetch } = await startServer(backend);
		const origin = "https://smith.langchain.com";
		const response = await fetch("/threads/search", {
			method: "OPTIONS",
			headers: {
				origin,
				"access-control-request-method": "POST",
				"access-control-request-headers": "content-type,x-api-key",
				"access-control-request-private-network": "true",
			},
		});
		expect(response.status).toBe(204);
		expect(Object.fromEntries(response.headers)).toMatchObject({
			"access-control-allow-origin": origin,
			"access-control-allow-methods": expect.stringContaining("PATCH"),
			"access-control-allow-headers": "content-type,x-api-key",
			"access-control-allow-private-network": "true",
			vary: "origin",
		});
		const answer = await fetch("/threads/none", { headers: { origin } });
		expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
		expect(answer.headers.get("access-control-expose-headers")).toContain("content-location");
	});
});

describe("A server on loopback", () => {
	it("does not answer under a foreign name: a page may have made it point here", async () => {
		const server = await startServer();
		for (const host of [
			"evil.example",
			"evil.example:2024",
			"127.0.0.1.evil.example",
			"localhost.evil.example",
			"0.0.0.0",
			"[::]",
		])
			expect(await send(server, "/ok", { host }), host).toBe(403);
		expect(await sendRaw(server, "GET /ok HTTP/1.1\r\nHost:\r\n\r\n")).toContain("403");
		for (const host of ["localhost", "127.0.0.1:1", "studio.localhost:2024", "[::1]:2024"])
			expect(await send(server, "/ok", { host }), host).toBe(200);
		await isUp(server);
	});

	it("takes a Host header for nothing but a host and a port: what more it says would be part of the URL", async () => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t" });
		const hosts = [
			"a b",
			"127.0.0.1/threads/t?",
			"127.0.0.1/threads/t#",
			"127.0.0.1?",
			"127.0.0.1#",
			"127.0.0.1/",
			"127.0.0.1\\threads\\t?",
			"127.0.0.1:80/threads/t?",
			"user@127.0.0.1",
			"http://127.0.0.1",
			"127.0.0.1, 127.0.0.1",
			"127.0.0.1%2fthreads",
			"127.0.0.1:port",
			"[::1]/threads/t?",
		];
		for (const host of hosts) {
			for (const method of ["GET", "DELETE"]) expect(await send(server, "/ok", { host }, method), host).toBe(400);
			// Frameworks make the URL in ways of their own.
			const request = new Request("http://127.0.0.1/threads/t", { method: "DELETE", headers: { host } });
			expect((await server.handler(request)).status, host).toBe(400);
		}
		const twice = "DELETE /threads/t HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n";
		expect(await sendRaw(server, twice)).toContain("400");
		expect(await server.client.threads.count()).toBe(1);
		await isUp(server);
	});

	it("takes no body that is too large, said or unsaid", async () => {
		const server = await startServer(undefined, { limits: { bodyBytes: 1000 } });
		const large = JSON.stringify({ metadata: { text: "x".repeat(2000) } });
		expect(await send(server, "/threads", { "content-length": String(large.length) }, "POST", large)).toBe(413);
		expect(await send(server, "/threads", { "transfer-encoding": "chunked" }, "POST", large)).toBe(413);
		const small = JSON.stringify({ metadata: { text: "x".repeat(500) } });
		expect(await send(server, "/threads", {}, "POST", small)).toBe(200);
		expect(await server.client.threads.count()).toBe(1);
		await isUp(server);
	});

	it("takes no body that is malformed, and says what is wrong with it", async () => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t" });
		const wrong: [string, unknown][] = [
			["/threads", "{"],
			["/threads", "[]"],
			["/threads", '"text"'],
			["/threads", "[".repeat(100_000)],
			["/threads", { thread_id: 1 }],
			["/threads", { thread_id: "a\ud800" }],
			["/threads", { metadata: [] }],
			["/threads", { supersteps: [1] }],
			["/threads", { supersteps: [{ updates: [{ values: {} }] }], metadata: { graph_id: "work" } }],
			["/threads/search", { limit: -1 }],
			["/threads/search", { ids: [1] }],
			["/threads/search", { status: "asleep" }],
			["/threads/search", { sort_by: "__proto__" }],
			["/threads/t/history", { before: 1 }],
			["/threads/t/history", { limit: "x" }],
			["/threads/t/state", { checkpoint: "x" }],
			["/threads/t/state", { as_node: {} }],
			["/threads/t/runs", {}],
			["/threads/t/runs", { assistant_id: "work", stream_mode: "all" }],
			["/threads/t/runs", { assistant_id: "work", command: { goto: [1] } }],
			["/threads/t/runs", { assistant_id: "work", config: { configurable: "x" } }],
			["/threads/t/runs", { assistant_id: "work", multitask_strategy: "guess" }],
			["/threads/t/runs", { assistant_id: "work", after_seconds: 1e10 }],
			["/runs/batch", {}],
			["/store/items/search", { namespace_prefix: "x" }],
		];
		for (const [path, body] of wrong) {
			const text = typeof body === "string" ? body : JSON.stringify(body);
			const response = await server.fetch(path, { method: "POST", body: text });
			const message = await response.text();
			expect(response.status, `${path} ${text.slice(0, 80)}: ${message}`).toBe(400);
			expect(message).not.toMatch(/\bat \S+ \(|node_modules|\.ts:/);
		}
		const notUtf8 = await server.fetch("/threads", { method: "POST", body: new Uint8Array([0x22, 0xff, 0x22]) });
		expect(notUtf8.status).toBe(400);
		expect(await server.client.threads.count()).toBe(1);
		expect(await server.client.runs.list("t")).toEqual([]);
		await isUp(server);
	});

	it("is not confused by paths", async () => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t" });
		const paths: Record<string, number> = {
			"/threads/%": 400,
			"/threads/%E0%A4%A": 400,
			"/threads/%00": 404,
			"/threads//state": 404,
			"/threads/..%2f..%2fok": 404,
			"/threads/t/../../ok": 200,
			"/threads/t%2fstate": 404,
			"//evil.example/ok": 404,
			"/ok?x=%": 200,
			"/OK": 404,
			"/threads/t/state/..%2f..": 200,
			"/threads/t/runs/__proto__": 404,
			"/assistants/__proto__": 404,
			"/assistants/constructor/graph": 404,
			"/internal/truncate": 404,
		};
		for (const [path, status] of Object.entries(paths)) expect(await send(server, path, {}), path).toBe(status);
		expect(await send(server, "/ok", {}, "DELETE")).toBe(405);
		expect(await sendRaw(server, "GET http://evil.example/ok HTTP/1.1\r\nHost: localhost\r\n\r\n")).toContain("400");
		expect(await sendRaw(server, "TRACE /ok HTTP/1.1\r\nHost: localhost\r\n\r\n")).toContain("400");
		expect(await sendRaw(server, "not http at all\r\n\r\n")).toContain("400");
		await isUp(server);
	});

	it("does not let a client name what is LangGraph's or the server's own", async () => {
		const server = await startServer();
		const { client } = server;
		await client.threads.create({ threadId: "a", metadata: { secret: "of a" } });
		await client.threads.create({ threadId: "b" });
		await client.runs.wait("a", "work", { input: { name: "a" } });
		const configurable = { thread_id: "a", checkpoint_ns: "|studio", __pregel_checkpointer: {}, run_id: "x" };
		await client.runs.wait("b", "work", { input: { name: "b" }, config: { configurable } });
		const foreign = { thread_id: "a", checkpoint_ns: "", checkpoint_id: undefined, checkpoint_map: undefined };
		await client.runs.wait("b", "work", { input: { name: "c" }, checkpoint: foreign as never });
		expect((await client.threads.getState<{ log: string[] }>("a")).values.log).toHaveLength(3);
		expect((await client.threads.getState<{ log: string[] }>("b")).values.log).toHaveLength(6);
		for (const checkpoint_ns of ["|studio", "|studio|runs", "|"]) {
			const checkpoint = { checkpoint_ns };
			for (const path of ["state/checkpoint", "state", "history"])
				expect((await server.fetch(`/threads/a/${path}`, { json: { checkpoint, values: {} } })).status).toBe(400);
			const run = { assistant_id: "work", input: {}, checkpoint };
			expect((await server.fetch("/threads/a/runs/wait", { json: run })).status).toBe(400);
		}
		const polluted = JSON.parse('{"metadata":{"__proto__":{"polluted":true}}}');
		await server.fetch("/threads/a", { method: "PATCH", body: JSON.stringify(polluted) });
		expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
		await isUp(server);
	});

	it("lets no caller take the room of another", async () => {
		const server = await startServer(undefined, {
			limits: { concurrentRuns: 1, waitingRuns: 1, delayedRuns: 2, delaySeconds: 60 },
			authorize: (request) => {
				const caller = request.headers.get("x-caller") ?? "nobody";
				return { caller, mayAccess: (threadId) => threadId.startsWith(caller) };
			},
		});
		const gate = makeGate();
		const start = async (caller: string, n: number, more = {}) => {
			const client = clientFor(server.url, { "x-caller": caller });
			const threadId = `${caller}-${n}`;
			await client.threads.create({ threadId });
			return client.runs.create(threadId, "work", { input: { name: "w", until: gate.path }, ...more });
		};
		for (const caller of ["alice", "bob"]) {
			for (const n of [0, 1]) await start(caller, n);
			await expect(start(caller, 2)).rejects.toThrow("HTTP 429");
			for (const n of [3, 4]) await start(caller, n, { afterSeconds: 60 });
			await expect(start(caller, 5, { afterSeconds: 60 })).rejects.toThrow("HTTP 429");
			await expect(start(caller, 6, { afterSeconds: 61 })).rejects.toThrow("HTTP 400");
		}
		const carol = await start("carol", 0);
		gate.open();
		const client = clientFor(server.url, { "x-caller": "carol" });
		expect(await client.runs.join("carol-0", carol.run_id)).toHaveProperty("log");
	});

	it("holds only so much of runs that have ended", async () => {
		const server = await startServer(undefined, { limits: { endedRunBytes: 1_000_000 } });
		const { client } = server;
		const runs = [];
		for (let n = 0; n < 6; n++) {
			await client.threads.create({ threadId: String(n) });
			const run = await client.runs.create(String(n), "work", { input: { name: "x".repeat(20_000) } });
			while ((await client.runs.get(String(n), run.run_id)).status !== "success")
				await new Promise((resolve) => setTimeout(resolve, 5));
			runs.push(run);
		}
		const events = await Promise.all(
			runs.map(async ({ run_id }, n) => (await server.fetch(`/threads/${n}/runs/${run_id}/stream`)).text()),
		);
		expect(events[0]).not.toContain("xxx");
		expect(events[5]).toContain("xxx");
		expect(events.filter((text) => text.includes("xxx")).length).toBeLessThan(4);
		expect(await client.runs.join("0", runs[0]!.run_id)).toMatchObject({ name: "x".repeat(20_000) });
	});

	it("runs only so much at a time, and lets only so much wait", async () => {
		const server = await startServer(undefined, { limits: { concurrentRuns: 2, waitingRuns: 2 } });
		const { client } = server;
		const gate = makeGate();
		const start = async (n: number) => {
			await client.threads.create({ threadId: String(n) });
			return client.runs.create(String(n), "work", { input: { name: "w", until: gate.path } });
		};
		const runs = [];
		for (let n = 0; n < 4; n++) runs.push(await start(n));
		await expect(start(4)).rejects.toThrow("HTTP 429");
		const statuses = await Promise.all(
			runs.map(async (run, n) => (await client.runs.get(String(n), run.run_id)).status),
		);
		expect(statuses).toEqual(["running", "running", "pending", "pending"]);
		gate.open();
		for (const [n, run] of runs.entries()) expect(await client.runs.join(String(n), run.run_id)).toHaveProperty("log");
		await client.runs.wait("4", "work", { input: { name: "w" } });
	});

	it("shows the secrets of an assistant to who may change it, and gives them to its graph", async () => {
		const got: unknown[] = [];
		const echo = new StateGraph(Annotation.Root({ said: Annotation<string>() }))
			.addNode("say", (_, { configurable, context }: LangGraphRunnableConfig) => {
				got.push(configurable?.api_key, (context as { token?: string }).token);
				return { said: "done" };
			})
			.addEdge("__start__", "say")
			.compile();
		const authorize = ({ headers }: Request) => headers.get("user") === null || { mayAccess: () => true };
		const { client, url } = await startServer(undefined, { graphs: { echo }, authorize });
		const password = "hidden-3";
		const made = {
			config: { configurable: { api_key: "hidden-1", tone: "loud" } },
			context: { token: "hidden-2" },
			metadata: { password },
		};
		const { assistant_id } = await client.assistants.create({ graphId: "echo", ...made });
		expect(await client.assistants.get(assistant_id)).toMatchObject(made);
		const user = clientFor(url, { user: "ada" });
		await user.runs.wait("t", assistant_id, { input: {}, ifNotExists: "create" });
		expect(got).toEqual(["hidden-1", "hidden-2"]);
		const seen = [
			await user.assistants.get(assistant_id),
			await user.assistants.search(),
			await user.assistants.getVersions(assistant_id),
			await user.runs.list("t"),
			await user.threads.get("t"),
			await user.threads.getHistory("t"),
		];
		expect(JSON.stringify(seen)).toContain("loud");
		expect(JSON.stringify(seen)).not.toContain("hidden");
		expect(await user.assistants.count({ metadata: { password } })).toBe(0);
		expect(await client.assistants.count({ metadata: { password } })).toBe(1);
	});

	it("changes nothing where it is read-only", async () => {
		const writable = await startServer();
		const { thread_id } = await writable.client.threads.create();
		await writable.client.runs.wait(thread_id, "work", { input: { name: "w" } });
		const { client, fetch } = await startServer(undefined, { checkpointer: writable.saver, readOnly: true });
		expect(await client.threads.search()).toHaveLength(1);
		expect(await client.threads.count()).toBe(1);
		expect(await client.threads.getHistory(thread_id)).toHaveLength(5);
		expect(await client.runs.list(thread_id)).toHaveLength(1);
		expect(await client.assistants.search()).toHaveLength(4);
		expect(await client.store.listNamespaces()).toEqual({ namespaces: [] });
		const before = await writable.saver.stats();
		const changes = [
			() => client.threads.create(),
			() => client.threads.update(thread_id, { metadata: {} }),
			() => client.threads.copy(thread_id),
			() => client.threads.delete(thread_id),
			() => client.threads.prune([thread_id]),
			() => client.threads.updateState(thread_id, { values: {} }),
			() => client.runs.wait(thread_id, "work", { input: {} }),
			() => client.runs.create(null as never, "work", { input: {} }),
			() => client.store.putItem(["a"], "b", {}),
			() => client.store.deleteItem(["a"], "b"),
		];
		for (const change of changes) await expect(change()).rejects.toThrow("HTTP 403: This server is read-only.");
		expect((await fetch("/threads/x/runs/y/cancel", { method: "POST" })).status).toBe(403);
		expect(await writable.saver.stats()).toEqual(before);
	});

	it("says nothing of an error that nobody foresaw", async () => {
		const server = await startServer();
		const log = vi.spyOn(console, "error").mockImplementation(() => {});
		vi.spyOn(server.saver, "getThread").mockRejectedValueOnce(new Error("password=hunter2"));
		const response = await server.fetch("/threads/t");
		expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
		expect(log).toHaveBeenCalledOnce();
		log.mockRestore();
		await isUp(server);
	});
});

describe.each(backends)("Tenants of a server on a $name", (backend) => {
	const authorize: StudioOptions["authorize"] = (request) => {
		const tenant = request.headers.get("x-tenant");
		if (tenant === null) return false;
		if (tenant === "admin") return true;
		let n = 0;
		const prefix = `${tenant}:`;
		return {
			mayAccess: (id) => id.startsWith(prefix),
			newThreadId: () => `${prefix}${Date.now()}-${n++}-${Math.random()}`,
		};
	};

	it("see and change no threads but their own", async () => {
		const { url } = await startServer(backend, { authorize });
		const [ada, grace, admin] = ["ada", "grace", "admin"].map((tenant) => clientFor(url, { "x-tenant": tenant }));
		const nobody = clientFor(url);
		await expect(nobody.threads.search()).rejects.toThrow("HTTP 403: Not authorized");
		await expect(nobody.assistants.search()).rejects.toThrow("HTTP 403");

		const mine = await ada!.threads.create({ metadata: { kind: "mine" } });
		expect(mine.thread_id).toMatch(/^ada:/);
		await ada!.threads.create({ threadId: "ada:2" });
		const theirs = await grace!.threads.create({ threadId: "grace:1" });
		const run = await grace!.runs.create(theirs.thread_id, "work", { input: { name: "grace" } });
		await grace!.runs.join(theirs.thread_id, run.run_id);

		expect((await ada!.threads.search()).map(({ thread_id }) => thread_id).sort()).toEqual(
			["ada:2", mine.thread_id].sort(),
		);
		expect(await ada!.threads.search({ ids: ["grace:1", "ada:2"] })).toMatchObject([{ thread_id: "ada:2" }]);
		expect([await ada!.threads.count(), await grace!.threads.count(), await admin!.threads.count()]).toEqual([2, 1, 3]);
		const attempts: Record<string, (id: string) => Promise<unknown>> = {
			get: (id) => ada!.threads.get(id),
			update: (id) => ada!.threads.update(id, { metadata: {} }),
			delete: (id) => ada!.threads.delete(id),
			copy: (id) => ada!.threads.copy(id),
			prune: (id) => ada!.threads.prune(["ada:2", id]),
			create: (id) => ada!.threads.create({ threadId: id, ifExists: "do_nothing" }),
			state: (id) => ada!.threads.getState(id),
			history: (id) => ada!.threads.getHistory(id),
			updateState: (id) => ada!.threads.updateState(id, { values: {} }),
			run: (id) => ada!.runs.wait(id, "work", { input: {} }),
			create_run: (id) => ada!.runs.create(id, "work", { input: {}, ifNotExists: "create" }),
			runs: (id) => ada!.runs.list(id),
			get_run: (id) => ada!.runs.get(id, run.run_id),
			join: (id) => ada!.runs.join(id, run.run_id),
			cancel: (id) => ada!.runs.cancel(id, run.run_id),
			delete_run: (id) => ada!.runs.delete(id, run.run_id),
			cancel_many: (id) => ada!.runs.cancelMany({ threadId: id, runIds: [run.run_id] }),
		};
		for (const [name, attempt] of Object.entries(attempts))
			for (const id of ["grace:1", "nobody", "ada", "Ada:2"])
				await expect(attempt(id), `${name} ${id}`).rejects.toThrow("HTTP 403");
		// Nor by the id of a run alone, nor through a thread of one's own.
		await expect(ada!.runs.cancelMany({ runIds: [run.run_id] })).rejects.toThrow("HTTP 404");
		await expect(ada!.runs.join("ada:2", run.run_id)).rejects.toThrow("HTTP 404");
		await expect(ada!.runs.joinStream(null, run.run_id).next()).rejects.toThrow("HTTP 404");
		const foreign = { thread_id: "grace:1", checkpoint_ns: "" } as never;
		expect((await ada!.threads.getState("ada:2", foreign)).values).toEqual({});
		await expect(ada!.store.searchItems([])).rejects.toThrow("HTTP 403");

		expect(await grace!.threads.getState("grace:1")).toMatchObject({ values: { name: "grace" } });
		expect((await grace!.runs.list("grace:1")).length).toBe(1);
		const copy = await ada!.threads.copy("ada:2");
		expect(copy.thread_id).toMatch(/^ada:/);
		expect(await ada!.runs.wait(null, "work", { input: { name: "ada" } })).toMatchObject({ name: "ada" });
		expect(await admin!.store.searchItems([])).toEqual({ items: [] });
	});

	it("make no thread if what names it returns no string", async () => {
		const log = vi.spyOn(console, "error").mockImplementation(() => {});
		for (const id of [undefined, null, 7, {}, [], Promise.resolve("ada:1"), new String("ada:1")]) {
			const newThreadId = () => id as never;
			const server = await startServer(backend, { authorize: () => ({ mayAccess: () => true, newThreadId }) });
			await server.client.threads.create({ threadId: "t" });
			log.mockClear();
			const run = { assistant_id: "work", input: { name: "w" } };
			const requests: [string, object][] = [
				["/threads", {}],
				["/threads/t/copy", {}],
				["/runs/wait", run],
				["/runs", { ...run, on_completion: "keep" }],
			];
			for (const [path, json] of requests) {
				const response = await server.fetch(path, { json });
				expect([response.status, await response.text()], path).toEqual([500, "Internal Server Error"]);
				expect(String(log.mock.lastCall)).toContain("`newThreadId`, which `authorize` gave, must return a string");
			}
			expect(log).toHaveBeenCalledTimes(requests.length);
			expect(await server.client.threads.count()).toBe(1);
			await isUp(server);
		}
		log.mockRestore();
	});

	it("are refused if what decides about them fails", async () => {
		const log = vi.spyOn(console, "error").mockImplementation(() => {});
		for (const answer of [undefined, null, {}, "yes", 1]) {
			const { fetch } = await startServer(backend, { authorize: () => answer as never });
			expect((await fetch("/threads/search", { json: {} })).status).toBe(403);
		}
		const { fetch } = await startServer(backend, {
			authorize: () => {
				throw new Error("down");
			},
		});
		expect((await fetch("/threads/search", { json: {} })).status).toBe(500);
		log.mockRestore();
	});
});
