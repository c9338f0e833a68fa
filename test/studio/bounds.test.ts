import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { InMemoryStore } from "@langchain/langgraph";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { Client } from "@langchain/langgraph-sdk";
import { SqliteSaver } from "../../src/sqlite.ts";
import { copyGraph } from "../../src/studio/graphs/graph.ts";
import { measure } from "../../src/studio/http/measure.ts";
import { States } from "../../src/studio/states/states.ts";
import { writeRunRecord } from "../../src/studio/threads/records.ts";
import { inTemporaryFolder } from "../support/run-node.ts";
import { work } from "./project/graphs.ts";
import { backends, postgres } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { serveFile } from "./support/serve-file-process.ts";
import { clientFor, startServer, type TestServer } from "./support/server.ts";

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** JSON as text: what is very deep can't be made by `JSON.stringify`. */
async function post(server: TestServer, path: string, text: string): Promise<[number, string]> {
	const response = await server.fetch(path, { method: "POST", body: text });
	return [response.status, await response.text()];
}

describe("A request", () => {
	const deep: Record<string, (levels: number) => string> = {
		arrays: (levels) => "[".repeat(levels) + "]".repeat(levels),
		objects: (levels) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`,
		both: (levels) => `${'[{"a":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`,
	};
	const paths: Record<string, (json: string) => string> = {
		"/threads": (json) => `{"metadata":{"a":${json}}}`,
		"/threads/search": (json) => `{"metadata":{"a":${json}}}`,
		"/threads/count": (json) => `{"values":{"a":${json}}}`,
		"/threads/t/history": (json) => `{"metadata":{"source":${json},"a":${json}}}`,
		"/threads/t/state": (json) => `{"values":{"name":${json}}}`,
		"/threads/t/runs/wait": (json) => `{"assistant_id":"work","input":{"name":${json}}}`,
		"/threads/t/runs": (json) => `{"assistant_id":"work","config":{"configurable":{"a":${json}}}}`,
		"/runs/wait": (json) => `{"assistant_id":"work","context":{"a":${json}},"metadata":{"a":${json}}}`,
		"/assistants/search": (json) => `{"metadata":{"a":${json}}}`,
		"/store/items/search": (json) => `{"filter":{"a":${json}}}`,
	};

	it.each(Object.keys(paths))("to %s may not be nested very deep, whatever its shape", async (path) => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t", metadata: { a: [[1]] } });
		await server.client.runs.wait("t", "work", { input: { name: "w" } });
		// One function parses all that is posted: what the deepest does to it is seen on one path.
		for (const [shape, make] of Object.entries(deep))
			for (const levels of path === "/threads" ? [1100, 20_000, 500_000] : [1100, 20_000])
				expect(await post(server, path, paths[path]!(make(levels))), `${shape} ${levels}`).toEqual([
					400,
					"The JSON is nested deeper than 1000 levels.",
				]);
		const [status] = await post(server, path, paths[path]!(deep.both!(100)));
		expect(status).toBe(200);
		expect((await server.fetch("/ok")).status).toBe(200);
	});

	it("may not list more than a thousand things, nor look for more", async () => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t", metadata: { a: [1] } });
		const names = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`);
		const step = (count: number) => ({ updates: Array(count).fill({ values: null, as_node: "__start__" }) });
		const graph = { metadata: { graph_id: "work" } };
		const lists: [string, (count: number) => unknown][] = [
			["/threads/search", (count) => ({ ids: names(count) })],
			["/threads/count", (count) => ({ ids: names(count) })],
			["/threads/search", (count) => ({ select: names(count) })],
			["/threads/prune", (count) => ({ thread_ids: names(count) })],
			["/threads/search", (count) => ({ metadata: { a: names(count - 2) } })],
			["/threads/search", (count) => ({ values: Object.fromEntries(names(count - 1).map((name) => [name, 1])) })],
			["/threads/count", (count) => ({ metadata: { a: [names(count / 2), names(count / 2 - 4)] } })],
			["/threads/t/history", (count) => ({ metadata: { a: names(count - 2) } })],
			["/assistants/search", (count) => ({ metadata: { a: names(count - 2) } })],
			["/store/items/search", (count) => ({ filter: { a: names(count - 2) } })],
		];
		for (const [path, make] of lists) {
			const [fine] = await post(server, path, JSON.stringify(make(1000)));
			expect(fine, path).toBe(200);
			for (const count of [1002, 100_000]) {
				const [status, message] = await post(server, path, JSON.stringify(make(count)));
				expect([status, message], path).toEqual([400, expect.stringMatching(/at most 1000 /)]);
			}
		}
		for (const supersteps of [Array(1001).fill(step(1)), [step(1001)], [step(500), step(501)]]) {
			const [status, message] = await post(server, "/threads", JSON.stringify({ supersteps, ...graph }));
			expect([status, message]).toEqual([400, expect.stringContaining("at most 1000")]);
		}
		const runs = Array(1001).fill({ assistant_id: "work" });
		const [batch] = await post(server, "/runs/batch", JSON.stringify(runs));
		const [cancel] = await post(server, "/runs/cancel", JSON.stringify({ run_ids: names(1001) }));
		expect([batch, cancel]).toEqual([400, 400]);
		expect(await server.client.threads.count()).toBe(1);
	});
});

describe("A list", () => {
	const thread = { configurable: { thread_id: "t", checkpoint_ns: "" } };
	const checkpoint = (n: number) => ({ ...emptyCheckpoint(), id: uuid6(n) });
	const metadata = { source: "loop", step: 0, parents: {} } as const;
	const record = { assistant_id: "a", metadata: {}, kwargs: {}, multitask_strategy: "reject", created_at: "" };

	it("has a thousand items at most, however many are asked for", async () => {
		const store = new InMemoryStore();
		const { saver, fetch } = await startServer(undefined, { store });
		for (let n = 0; n < 1002; n++) {
			await saver.put(thread, checkpoint(n), metadata, {});
			await saver.put({ configurable: { thread_id: `t${n}`, checkpoint_ns: "" } }, checkpoint(n), metadata, {});
			await writeRunRecord(saver, "t", { ...record, run_id: uuid6(n) });
			await store.put(["space", `s${n}`], "key", { n });
		}
		for (const limit of ["1001", "1000000", "9007199254740991"]) {
			const count = async (path: string, json?: object) => {
				const list = await (await fetch(path, json && { json })).json();
				return (list.items ?? list.namespaces ?? list).length;
			};
			const page = { limit: Number(limit) };
			expect(await count(`/threads/t/history?limit=${limit}`), limit).toBe(1000);
			expect(await count("/threads/t/history", page), limit).toBe(1000);
			expect(await count(`/threads/t/runs?limit=${limit}`), limit).toBe(1000);
			expect(await count("/threads/search", page), limit).toBe(1000);
			expect(await count("/store/items/search", page), limit).toBe(1000);
			expect(await count("/store/namespaces", page), limit).toBe(1000);
			expect(await count("/assistants/search", page), limit).toBe(4);
			const rest = await fetch("/threads/search", { json: { ...page, offset: 1000 } });
			expect(await rest.json(), limit).toHaveLength(3);
		}
	});

	it("of states has each of them once, in order, however many are read at a time", async () => {
		const { saver, client } = await startServer();
		const ids: string[] = [];
		for (let n = 0; n < 45; n++) {
			const made = checkpoint(n);
			await saver.put(thread, made, { ...metadata, source: n % 3 === 0 ? "update" : "loop" }, {});
			ids.unshift(made.id);
		}
		const history = async (query: object) =>
			(await client.threads.getHistory("t", query)).map((state) => state.checkpoint.checkpoint_id);
		for (const limit of [1, 9, 10, 11, 20, 44, 45, 46]) {
			expect(await history({ limit })).toEqual(ids.slice(0, limit));
			expect(await history({ limit, metadata: { thread_id: "t" } })).toEqual(ids.slice(0, limit));
			const before = { configurable: { checkpoint_id: ids[3] } };
			expect(await history({ limit, before })).toEqual(ids.slice(4, 4 + limit));
			const updates = ids.filter((_, n) => (44 - n) % 3 === 0).slice(0, limit);
			expect(await history({ limit, metadata: { source: "update" } })).toEqual(updates);
			expect(await history({ limit, checkpoint: { checkpoint_id: ids[20] } })).toEqual([ids[20]]);
		}
		expect(await history({ limit: 0 })).toEqual([]);
	});

	it("is refused if it is too large, and the client says so at once", async () => {
		const store = new InMemoryStore();
		const server = await startServer(undefined, { store, limits: { answerBytes: 200_000 } });
		const text = "x".repeat(30_000);
		for (let n = 0; n < 8; n++) {
			await server.client.runs.wait("t", "work", { input: { name: "w" }, context: { text }, ifNotExists: "create" });
			await server.client.threads.updateState("t", { values: { name: text }, asNode: "third" });
			await server.client.threads.create({ threadId: String(n), metadata: { text } });
			await store.put(["space"], String(n), { text });
			await store.put([text, String(n)], "key", {});
		}
		const client = new Client({ apiUrl: server.url, apiKey: null });
		const requests: Record<string, (limit: number) => Promise<unknown>> = {
			history: (limit) => client.threads.getHistory("t", { limit }),
			filtered: (limit) => client.threads.getHistory("t", { limit, metadata: { graph_id: "work" } }),
			get: async (limit) => {
				const response = await server.fetch(`/threads/t/history?limit=${limit}`);
				if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
				return response.json();
			},
			runs: (limit) => client.runs.list("t", { limit }),
			threads: (limit) => client.threads.search({ limit }),
			items: async (limit) => (await client.store.searchItems(["space"], { limit })).items,
			namespaces: async (limit) => (await client.store.listNamespaces({ limit })).namespaces,
		};
		for (const [name, request] of Object.entries(requests)) {
			const began = Date.now();
			await expect(request(20), name).rejects.toThrow(/HTTP 422: The answer is larger than 200000 bytes.*limit/s);
			expect(Date.now() - began, name).toBeLessThan(1000);
			expect(await request(3), name).toHaveLength(3);
		}
		expect(await client.threads.search({ select: ["thread_id"] })).toHaveLength(9);
		expect((await server.fetch("/ok")).status).toBe(200);
	});

	it("lets others have their turn while it is made", async () => {
		const { saver, handler } = await startServer();
		for (let n = 0; n < 320; n++) {
			await saver.put(thread, checkpoint(n), metadata, {});
			await saver.put({ configurable: { thread_id: `t${n}`, checkpoint_ns: "" } }, checkpoint(n), metadata, {});
		}
		for (const path of ["/threads/t/history", "/threads/search", "/threads/count"]) {
			let turns = 0;
			let isOver = false;
			const take = () => {
				turns++;
				if (!isOver) setImmediate(take);
			};
			setImmediate(take);
			const body = JSON.stringify({ limit: 1000, metadata: { nothing: "has this" } });
			const response = await handler(new Request(`http://127.0.0.1${path}`, { method: "POST", body }));
			isOver = true;
			expect([path, response.status]).toEqual([path, 200]);
			expect(turns, path).toBeGreaterThan(15);
		}
	});

	it("of a hundred megabytes takes a server of little memory not down", async () => {
		await inTemporaryFolder(async (folder) => {
			const file = `${folder}/checkpoints.db`;
			const saver = new SqliteSaver(file);
			const graph = copyGraph(work, saver, undefined);
			const large = (n: number) => ({ name: `${n} ${"x".repeat(4_000_000)}` });
			const config = (thread_id: string) => ({ configurable: { thread_id } });
			for (let n = 0; n < 30; n++) await graph.updateState(config(`large ${n}`), large(n), "third");
			await graph.updateState(config("long"), large(0), "third");
			for (let n = 0; n < 30; n++) await graph.updateState(config("long"), { log: [] }, "third");
			await saver.close();
			const { url, kill } = await serveFile(file, ["--max-old-space-size=110"]);
			const answer = async (path: string, json?: object) => {
				const body = json && { method: "POST", body: JSON.stringify(json) };
				const response = await fetch(url + path, body);
				await response.arrayBuffer();
				return response.status;
			};
			try {
				expect(await answer("/threads/long/history?limit=1000000")).toBe(422);
				expect(await answer("/threads/long/history", { limit: 1000, metadata: { graph_id: "work" } })).toBe(422);
				expect(await answer("/threads/long/history", { limit: 1000, metadata: { graph_id: "none" } })).toBe(200);
				expect(await answer("/threads/search", { limit: 1000 })).toBe(422);
				expect(await answer("/threads/search", { limit: 1000, values: { log: [] }, sort_by: "status" })).toBe(422);
				expect(await answer("/threads/search", { values: { name: "none" }, sort_by: "state_updated_at" })).toBe(200);
				expect(await answer("/threads/count", { values: { log: [] }, status: "idle" })).toBe(200);
				expect(await answer("/threads/search", { limit: 1000, select: ["thread_id", "status"] })).toBe(200);
			} finally {
				await kill();
			}
		});
	}, 120_000);
});

describe("Runs that have not ended", () => {
	const text = "x".repeat(50_000);
	const authorize = (request: Request) => {
		const caller = request.headers.get("x-caller") ?? "nobody";
		let n = 0;
		return {
			caller,
			mayAccess: (threadId: string) => threadId.startsWith(caller),
			newThreadId: () => `${caller} ${n++} ${Math.random()}`,
		};
	};
	/** Room for four requests. */
	const limits = { activeRunBytes: 500_000 };

	/** Asks for so many runs at the same time, and tells how many were taken. */
	async function start(server: TestServer, caller: string, count: number, path: string, more: object) {
		const run = { assistant_id: "work", if_not_exists: "create", multitask_strategy: "enqueue", ...more };
		const statuses = await Promise.all(
			Array.from({ length: count }, async () => {
				const headers = { "x-caller": caller };
				const response = await server.fetch(path, { headers, json: run });
				if (response.status === 429) expect(await response.text()).toMatch(/memory|waiting/);
				return response.status;
			}),
		);
		expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
		return statuses.filter((status) => status === 200).length;
	}

	it.each([
		["wait for their turn", "/threads/alice/runs", {}],
		["wait for their time", "/threads/alice/runs", { after_seconds: 60 }],
		["belong to no thread", "/runs", {}],
		["keep a thread of their own", "/runs", { on_completion: "keep" }],
	])("hold only so much for each caller, if they %s", async (_, path, more) => {
		const server = await startServer(undefined, { authorize, limits });
		const gate = makeGate();
		const input = { name: "w", until: gate.path, fail: text };
		const taken = await start(server, "alice", 12, path, { input, ...more });
		expect(taken).toBe(4);
		expect(await start(server, "alice", 1, path, { input, ...more })).toBe(0);
		expect(await start(server, "bob", 1, path.replace("alice", "bob"), { input, ...more })).toBe(1);
		// Small ones still find room.
		expect(await start(server, "alice", 1, path, { input: { name: "w" } })).toBe(1);
	});

	it("make room when they end, however they do, and when they are refused", async () => {
		const server = await startServer(undefined, { authorize, limits });
		const client = clientFor(server.url, { "x-caller": "alice" });
		const path = "/threads/alice/runs";
		for (let n = 0; n < 3; n++) {
			const gate = makeGate();
			const input = { name: text, until: gate.path };
			const none = await server.fetch("/threads/alice-none/runs", {
				headers: { "x-caller": "alice" },
				json: { assistant_id: "work", input },
			});
			expect(none.status).toBe(404);
			expect(await start(server, "alice", 12, path, { input })).toBe(4);
			const runs = (await client.runs.list("alice")).filter(({ status }) => ["pending", "running"].includes(status));
			await client.runs.cancel("alice", runs[0]!.run_id, true, n === 0 ? "rollback" : "interrupt");
			gate.open();
			for (const run of runs) await client.runs.join("alice", run.run_id).catch(() => {});
		}
	});

	it("count as soon as they are asked for, so that many at once are not more than many", async () => {
		const server = await startServer(postgres, { authorize, limits: { concurrentRuns: 1, waitingRuns: 3 } });
		const input = { name: "w", until: makeGate().path };
		expect(await start(server, "alice", 1, "/threads/alice/runs", { input })).toBe(1);
		expect(await start(server, "alice", 20, "/threads/alice/runs", { input })).toBe(3);
	});

	it("are let in alone, however large one is", async () => {
		const server = await startServer(undefined, { limits: { activeRunBytes: 1000 } });
		const { thread_id } = await server.client.threads.create();
		expect(await server.client.runs.wait(thread_id, "work", { input: { name: text } })).toMatchObject({ name: text });
	});
});

describe.each(backends)("States that a client brings, on a $name,", (backend) => {
	const body = (threadId: string, count: number) => ({
		thread_id: threadId,
		metadata: { graph_id: "work" },
		supersteps: Array(count).fill({ updates: [{ values: { log: ["x"] }, as_node: "first" }] }),
	});

	it("are replayed for as long as the client waits, while others have their turn", async () => {
		const server = await startServer(backend);
		const update = vi.spyOn(States.prototype, "bulkUpdate");
		const leave = new AbortController();
		const response = server.fetch("/threads", { json: body("t", 1000), signal: leave.signal });
		// The thread is there before its first state is.
		while (update.mock.results.length === 0) await setTimeout(1);
		expect((await server.fetch("/ok")).status).toBe(200);
		expect((await server.saver.getThread("t"))?.checkpoints).toBeLessThan(500);
		leave.abort();
		await expect(response).rejects.toThrow("abort");
		await expect(update.mock.results[0]?.value).rejects.toThrow("gone");
		while ((await server.saver.getThread("t")) !== undefined) await setTimeout(1);
		const again = await server.fetch("/threads", { json: body("t", 2) });
		expect(await again.json()).toMatchObject({ values: { log: ["x", "x"] } });
		update.mockRestore();
	});

	it("make no thread if one of them is refused", async () => {
		const server = await startServer(backend);
		const wrong = body("t", 3);
		wrong.supersteps[2] = { updates: [{ values: {}, as_node: "nobody" }] };
		expect((await server.fetch("/threads", { json: wrong })).status).toBe(422);
		expect(await server.saver.getThread("t")).toBeUndefined();
		expect((await server.saver.stats()).checkpoints).toBe(0);
	});

	it("count as a run of the caller", async () => {
		const server = await startServer(backend, { limits: { waitingRuns: 2 } });
		const statuses = await Promise.all(
			["a", "b", "c", "d"].map(async (id) => (await server.fetch("/threads", { json: body(id, 200) })).status),
		);
		expect(statuses.sort()).toEqual([200, 200, 429, 429]);
		expect((await server.fetch("/threads", { json: body("e", 1) })).status).toBe(200);
	});
});

describe("The size of JSON", () => {
	const list = (count: number, make: (n: number) => string) => `[${Array.from({ length: count }, (_, n) => make(n))}]`;
	const shapes: Record<string, string> = {
		"empty arrays": list(100_000, () => "[]"),
		"empty objects": list(100_000, () => "{}"),
		"arrays in arrays": list(50_000, () => "[[[1]]]"),
		"objects with keys of their own": list(50_000, (n) => `{"${n}k":0}`),
		"one object with many keys": `{${Array.from({ length: 100_000 }, (_, n) => `"k${n}":0`)}}`,
		"objects with the same keys": list(50_000, (n) => `{"id":${n},"name":"n${n}"}`),
		numbers: list(200_000, (n) => String(n / 7)),
		text: JSON.stringify("é€".repeat(500_000)),
	};

	it.each(Object.entries(shapes))("is at least about what it takes in memory: %s", (_, text) => {
		collectGarbage();
		const before = process.memoryUsage().heapUsed;
		const json = JSON.parse(text);
		collectGarbage();
		const taken = process.memoryUsage().heapUsed - before;
		const { bytes } = measure(json);
		// Something else may use some memory meanwhile.
		expect(taken).toBeLessThan(1.2 * bytes + 1_000_000);
		expect(bytes).toBeLessThan(8 * Math.max(taken, text.length));
	});
});
