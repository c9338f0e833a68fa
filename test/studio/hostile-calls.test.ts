import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { contains } from "../../src/studio/http/contains.ts";
import { share } from "../support/share.ts";
import { backends, memory } from "./support/backends.ts";
import { startServer } from "./support/server.ts";

const State = Annotation.Root({ value: Annotation<unknown> });

/** What nodes may throw, and what nobody can make a string of. */
const thrown: Record<string, () => unknown> = {
	"an object without a prototype": () => Object.create(null),
	"an object whose toString is a number": () => ({ toString: 1, valueOf: 1 }),
	"an error whose message throws": () =>
		Object.defineProperty(new Error("x"), "message", {
			get: () => {
				throw new Error("no message");
			},
		}),
	"an error whose name is an object": () => Object.assign(new Error("x"), { name: Object.create(null) }),
	"a revoked proxy": () => {
		const { proxy, revoke } = Proxy.revocable({}, {});
		revoke();
		return proxy;
	},
	nothing: () => undefined,
	null: () => null,
	"a symbol": () => Symbol("thrown"),
	"a function": () => () => {},
};

/** What nodes may return, and what can't be written as JSON. */
const returned: Record<string, () => unknown> = {
	"a value whose toJSON throws": () => ({
		toJSON: () => {
			throw new Error("no JSON");
		},
	}),
	"a getter that throws": () => ({
		get x(): never {
			throw new Error("no value");
		},
	}),
	"a symbol": () => Symbol("returned"),
	"a circle": () => {
		const circle: Record<string, unknown> = {};
		circle.self = circle;
		return circle;
	},
	"a bigint": () => 1n,
};

function failing(node: () => unknown) {
	return new StateGraph(State)
		.addNode("node", node as never)
		.addEdge(START, "node")
		.compile();
}

describe.each(backends)("A server on a $name", (backend) => {
	it.each(Object.entries(thrown))("answers, and lives on, when a node throws %s", async (_, make) => {
		const graph = failing(() => {
			throw make();
		});
		const server = await startServer(backend, { graphs: { graph } });
		const { thread_id } = await server.client.threads.create();
		const response = await server.fetch(`/threads/${thread_id}/runs/wait`, {
			json: { assistant_id: "graph", input: {} },
		});
		expect(await response.text()).toContain("rror");
		const stateless = await server.fetch("/runs/wait", { json: { assistant_id: "graph", input: {} } });
		await stateless.text();
		const [run] = await server.client.runs.list(thread_id);
		expect(run?.status).toBe("error");
		expect((await server.fetch("/ok")).status).toBe(200);
	});

	it("keeps no secret of a run, at any depth", async () => {
		const server = await startServer(backend);
		const { thread_id } = await server.client.threads.create();
		const secret = "s3cr3t-value";
		await server.client.runs.wait(thread_id, "chat", {
			input: { messages: [] },
			config: {
				configurable: { user: { password: secret, name: "me" }, list: [{ api_key: secret, open: 1 }] },
				secret_top: secret,
				metadata: { auth: secret },
			} as never,
			context: { api_key: secret, deep: { token: secret, open: 2 } },
			metadata: { my_token: secret, deep: [{ password: secret }], open: 3 },
		});
		const told = [
			await (await server.fetch(`/threads/${thread_id}/runs`)).text(),
			await (await server.fetch(`/threads/${thread_id}`)).text(),
			await (await server.fetch(`/threads/${thread_id}/state`)).text(),
		].join();
		expect(told).not.toContain(secret);
		expect(told).toContain('"name":"me"');
		for await (const tuple of server.saver.list({ configurable: { thread_id } }))
			expect(JSON.stringify(tuple)).not.toContain(secret);
	});

	const hidden = [
		...["key", "apiKey", "token", "secret", "password", "passwd", "db_passwd", "passphrase", "pwd", "DB_PWD"],
		...["credential", "awsCredentials", "auth", "Authorization", "bearer", "jwt", "id-jwt", "cookie", "set-cookies"],
		...["session", "sessionId"],
	];
	it.each(backend === memory ? hidden : share(hidden, 8))(
		"keeps nothing that is called %s with a run",
		async (name) => {
			const server = await startServer(backend);
			const { thread_id } = await server.client.threads.create();
			const hidden = { [name]: "s3cr3t-value", deep: [{ [name]: { inner: "s3cr3t-value" } }], open: "open-value" };
			const response = await server.fetch(`/threads/${thread_id}/runs/wait`, {
				headers: { [`x-${name}`]: "s3cr3t-value", "x-open": "open-header" },
				json: {
					assistant_id: "work",
					input: { name: "w" },
					config: { ...hidden, configurable: hidden, metadata: hidden },
					context: hidden,
					metadata: hidden,
				},
			});
			expect(await response.json()).toMatchObject({ name: "w" });
			const stored: unknown[] = [await server.saver.getThread(thread_id)];
			for await (const tuple of server.saver.list({ configurable: { thread_id } })) stored.push(tuple);
			expect(JSON.stringify(stored)).not.toContain("s3cr3t-value");
			for (const value of ["open-value", "open-header"]) expect(JSON.stringify(stored)).toContain(value);
		},
	);

	it("answers 400 to metadata that is too deep to be stored", async () => {
		const server = await startServer(backend);
		const metadata = JSON.parse(`${'{"a":'.repeat(2000)}1${"}".repeat(2000)}`);
		const response = await server.fetch("/threads", { json: { metadata } });
		expect(response.status).toBe(400);
		expect((await server.fetch("/ok")).status).toBe(200);
	});
});

describe("A server", () => {
	it.each(Object.entries(returned))("lives on when a node returns %s", async (_, make) => {
		const server = await startServer(memory, { graphs: { graph: failing(() => ({ value: make() })) } });
		const { thread_id } = await server.client.threads.create();
		for (const path of [`/threads/${thread_id}/runs/wait`, `/threads/${thread_id}/runs/stream`, "/runs/wait"]) {
			const response = await server.fetch(path, { json: { assistant_id: "graph", input: {} } });
			await response.text();
		}
		expect((await server.fetch("/ok")).status).toBe(200);
	});

	it("answers under its base path alone", async () => {
		const server = await startServer(memory, { basePath: "/api" });
		expect((await server.fetch("/api/ok")).status).toBe(200);
		for (const path of ["/apiok", "/api2/ok", "/ok", "/"]) expect((await server.fetch(path)).status, path).toBe(404);
	});

	it("takes no request of other sites that changes something, whatever its method", async () => {
		const { handler } = await startServer();
		const crossSite = (path: string, method: string, dest: string) =>
			handler(
				new Request(`http://127.0.0.1${path}`, {
					method,
					headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": dest },
				}),
			).then(({ status }) => status);
		expect(await crossSite("/ok", "GET", "document")).toBe(200);
		expect(await crossSite("/ok", "GET", "iframe")).toBe(403);
		expect(await crossSite("/threads", "POST", "document")).toBe(403);
		for (const path of ["/threads/t/runs/r/join", "/threads/t/runs/r/stream"])
			for (const dest of ["document", "iframe"])
				expect(await crossSite(`${path}?cancel_on_disconnect=true`, "GET", dest)).toBe(403);
	});
});

describe("A search of metadata", () => {
	const numbers = Array.from({ length: 40_000 }, (_, n) => n);

	it("takes no longer for long arrays than their lengths ask for", () => {
		expect(contains({ a: numbers }, { a: numbers.toReversed() })).toBe(true);
		expect(contains({ a: numbers }, { a: [-1] })).toBe(false);
		expect(contains([1, "1", null, true], ["1", null])).toBe(true);
		expect(contains([1], ["1"])).toBe(false);
	});

	it("finds objects in arrays, and refuses to compare very many with each other", () => {
		const objects = numbers.map((n) => ({ n, more: "x" }));
		expect(contains({ a: objects }, { a: [{ n: 7 }, { n: 39_999 }] })).toBe(true);
		expect(contains({ a: objects }, { a: [{ n: -1 }] })).toBe(false);
		expect(contains([[1, 2], [3]], [[2]])).toBe(true);
		expect(() => contains(objects, objects.toReversed())).toThrow("too many");
	});

	it("counts every item of an array that it looks through, as often as it does", () => {
		expect(contains([numbers], [[7], [39_999]])).toBe(true);
		expect(() =>
			contains(
				[numbers],
				numbers.slice(0, 900).map((n) => [n]),
			),
		).toThrow("too many");
	});

	it("takes values that contain themselves", () => {
		const circle: Record<string, unknown> = { name: "circle" };
		circle.self = circle;
		expect(contains(circle, { self: { self: { name: "circle" } } })).toBe(true);
		expect(contains(circle, { self: { self: { name: "square" } } })).toBe(false);
	});

	it("over HTTP, answers at once or refuses", async () => {
		const server = await startServer();
		const metadata = { list: numbers, objects: numbers.map((n) => ({ n })) };
		await server.client.threads.create({ metadata });
		const search = (part: unknown) => server.fetch("/threads/search", { json: { metadata: part } });
		expect(await (await search({ list: numbers.slice(-900).toReversed() })).json()).toHaveLength(1);
		expect((await search({ objects: metadata.objects.slice(-400) })).status).toBe(400);
		expect((await server.fetch("/ok")).status).toBe(200);
	});
});
