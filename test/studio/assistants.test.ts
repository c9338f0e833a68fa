import { Annotation, entrypoint, type LangGraphRunnableConfig, StateGraph, task } from "@langchain/langgraph";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { z } from "zod";
import { MemorySaver } from "../../src/index.ts";
import { chat } from "./project/graphs.ts";
import { backends } from "./support/backends.ts";
import { startServer } from "./support/server.ts";

describe.each(backends)("A server on a $name", (backend) => {
	it("says that it is there and what it can do", async () => {
		const { fetch } = await startServer(backend);
		expect(await (await fetch("/ok")).json()).toEqual({ ok: true });
		expect(await (await fetch("/info")).json()).toMatchObject({
			version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
			langgraph_js_version: expect.stringMatching(/^1\./),
			context: "js",
			flags: { assistants: true, crons: false },
		});
	});

	it("has an assistant for each graph", async () => {
		const { client } = await startServer(backend);
		const all = await client.assistants.search({ metadata: { created_by: "system" }, limit: 100, offset: 0 });
		expect(all.map(({ graph_id }) => graph_id)).toEqual(["chat", "review", "nested", "work"]);
		expect(await client.assistants.count()).toBe(4);
		expect(await client.assistants.count({ metadata: { created_by: "nobody" } })).toBe(0);
		expect(await client.assistants.search({ graphId: "work" })).toEqual([all[3]]);
		expect(await client.assistants.search({ name: "VIE" })).toEqual([all[1]]);
		expect(await client.assistants.search({ sortBy: "name", sortOrder: "desc", limit: 1 })).toEqual([all[3]]);
		expect(await client.assistants.search({ select: ["name"], limit: 1 })).toEqual([{ name: "chat" }]);
		const { assistants, next } = await client.assistants.search({ limit: 2, offset: 1, includePagination: true });
		expect([assistants, next]).toEqual([all.slice(1, 3), "3"]);
		// As every LangGraph server derives it.
		expect(all[0]?.assistant_id).toBe("eb6db400-e3c8-5d06-a834-015cb89efe69");
		expect(await client.assistants.get(all[0]!.assistant_id)).toEqual(all[0]);
		expect(await client.assistants.get("chat")).toEqual(all[0]);
		await expect(client.assistants.get("nobody")).rejects.toThrow("HTTP 404: Assistant not found");
	});

	it("keeps assistants that clients make, with their versions, and runs them", async () => {
		const echo = new StateGraph(Annotation.Root({ said: Annotation<unknown>() }))
			.addNode("say", (_, { configurable, context, metadata }: LangGraphRunnableConfig) => ({
				said: [configurable?.tone, configurable?.words, (context as { who?: string })?.who, metadata?.team],
			}))
			.addEdge("__start__", "say")
			.compile();
		const { client, restart } = await startServer(backend, { graphs: { echo, chat } });
		const made = await client.assistants.create({
			graphId: "echo",
			name: "Loud",
			metadata: { team: "a" },
			config: { configurable: { tone: "loud", words: 1, checkpoint_id: "x" } },
			context: { who: "I" },
		});
		const { assistant_id } = made;
		expect(made).toMatchObject({ version: 1, name: "Loud", config: { configurable: { tone: "loud", words: 1 } } });
		const again = { graphId: "echo", assistantId: assistant_id };
		await expect(client.assistants.create(again)).rejects.toThrow("HTTP 409");
		expect(await client.assistants.create({ ...again, ifExists: "do_nothing" })).toEqual(made);
		await expect(client.assistants.create({ graphId: "nobody" })).rejects.toThrow("HTTP 404");

		const { thread_id } = await client.threads.create();
		const config = { configurable: { words: 2 } };
		expect(await client.runs.wait(thread_id, assistant_id, { input: {}, config })).toEqual({
			said: ["loud", 2, "I", "a"],
		});
		expect(await client.runs.list(thread_id)).toMatchObject([{ assistant_id }]);
		expect(await client.threads.get(thread_id)).toMatchObject({ metadata: { assistant_id, graph_id: "echo" } });

		const changed = await client.assistants.update(assistant_id, {
			name: "Quiet",
			config: { configurable: { tone: "quiet" } },
		});
		expect(changed).toMatchObject({ version: 2, name: "Quiet", metadata: { team: "a" }, context: { who: "I" } });
		const versions = await client.assistants.getVersions(assistant_id);
		expect(versions.map(({ version, name }) => [version, name])).toEqual([
			[2, "Quiet"],
			[1, "Loud"],
		]);
		expect(await client.assistants.setLatest(assistant_id, 1)).toMatchObject({ version: 1, name: "Loud" });
		await expect(client.assistants.setLatest(assistant_id, 7)).rejects.toThrow("HTTP 404");
		expect(await client.assistants.update(assistant_id, { description: "d" })).toMatchObject({
			version: 3,
			name: "Loud",
		});

		const { client: later } = await restart();
		expect(await later.assistants.search({ metadata: { team: "a" } })).toMatchObject([{ assistant_id, version: 3 }]);
		expect(await later.assistants.count()).toBe(3);
		expect(await later.assistants.getGraph(assistant_id)).toHaveProperty("nodes");
		expect((await later.threads.search()).map((thread) => thread.thread_id)).toEqual([thread_id]);
		await expect(later.threads.get("|studio|assistants")).rejects.toThrow("HTTP 404");
		await expect(later.threads.create({ threadId: "|studio|assistants" })).rejects.toThrow("HTTP 409");
		await expect(later.assistants.update("echo", { name: "x" })).rejects.toThrow("HTTP 409");
		await expect(later.assistants.delete("echo")).rejects.toThrow("HTTP 409");
		expect(await later.assistants.getVersions("echo")).toMatchObject([{ version: 1 }]);
		await later.assistants.delete(assistant_id, { deleteThreads: true });
		await expect(later.assistants.get(assistant_id)).rejects.toThrow("HTTP 404");
		expect(await later.threads.search()).toEqual([]);
		expect(await later.assistants.count()).toBe(2);
	});

	it("draws graphs, with what is inside of them if asked", async () => {
		const { client } = await startServer(backend);
		const nodes = async (xray?: boolean | number) =>
			(await client.assistants.getGraph("nested", { xray })).nodes.map(({ id }) => id);
		expect(await nodes()).toEqual(["__start__", "before", "child", "after", "__end__"]);
		const inside = ["__start__", "before", "child:greet", "child:listen", "after", "__end__"];
		expect(await nodes(true)).toEqual(inside);
		expect(await nodes(2)).toEqual(inside);
	});

	it("gives the schemas that a graph was built from, or what its channels tell", async () => {
		const State = Annotation.Root({
			count: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
			anything: Annotation(),
		});
		const configured = new StateGraph(State, { context: z.object({ model: z.string() }) } as any)
			.addNode("node", () => ({}))
			.addEdge("__start__", "node")
			.compile();
		const { client } = await startServer(backend, { graphs: { chat, configured } });
		const text = { type: "string" };
		const review = await startServer(backend);
		expect(await review.client.assistants.getSchemas("review")).toMatchObject({
			graph_id: "review",
			input_schema: { properties: { topic: text, draft: text, verdict: text } },
			output_schema: { required: ["topic"] },
		});
		const messages = { type: "array", langgraph_type: "messages" };
		expect(await client.assistants.getSchemas("chat")).toMatchObject({ input_schema: { properties: { messages } } });
		const schemas = await client.assistants.getSchemas("configured");
		const properties = { count: { type: "number" }, anything: {} };
		expect(schemas).toMatchObject({ state_schema: { type: "object", properties } });
		expect(schemas).toMatchObject({
			config_schema: { properties: { model: text } },
			context_schema: { properties: { model: text } },
		});
	});

	it("lists subgraphs with their schemas", async () => {
		const { client } = await startServer(backend);
		const subgraphs = await client.assistants.getSubgraphs("nested", { recurse: true });
		expect(subgraphs).toMatchObject({ child: { state: { properties: { log: { type: "array" } } } } });
		expect(await client.assistants.getSubgraphs("nested", { namespace: "child" })).toEqual(subgraphs);
		expect(await client.assistants.getSubgraphs("work")).toEqual({});
	});

	it("has a memory: the graph's store, or the one it was given", async () => {
		const store = new InMemoryStore();
		await store.put(["user", "1"], "name", { text: "Ada" });
		const { client } = await startServer(backend, { store });
		expect(await client.store.getItem(["user", "1"], "name")).toMatchObject({
			value: { text: "Ada" },
			createdAt: expect.any(String),
		});
		await client.store.putItem(["user", "2"], "name", { text: "Grace" });
		expect(await store.get(["user", "2"], "name")).toMatchObject({ value: { text: "Grace" } });
		const { items } = await client.store.searchItems(["user"], { filter: { text: "Grace" } });
		expect(items.map(({ namespace }) => namespace)).toEqual([["user", "2"]]);
		expect((await client.store.searchItems(["user"], { limit: 1, offset: 1 })).items).toHaveLength(1);
		expect(await client.store.listNamespaces({ prefix: ["user"], maxDepth: 1 })).toEqual({ namespaces: [["user"]] });
		await client.store.deleteItem(["user", "1"], "name");
		expect(await client.store.getItem(["user", "1"], "name")).toBeNull();
	});
});

describe.each(backends)("A graph with a $name of its own", (backend) => {
	it("is served on it", async () => {
		const { saver, close } = await backend.open();
		const store = new InMemoryStore();
		const builder = new StateGraph(Annotation.Root({ seen: Annotation<string>() }))
			.addNode("look", async (_, config) => {
				await config.store?.put(["seen"], "key", { by: "graph" });
				return { seen: config.configurable?.["x-color"] as string };
			})
			.addEdge("__start__", "look");
		const graph = builder.compile({ checkpointer: saver, store });
		const { client, fetch } = await startServer(undefined, {
			graphs: { graph, spare: builder.compile() },
			checkpointer: undefined,
		});
		const headers = { "x-color": "green", "x-api-key": "secret" };
		const json = { assistant_id: "graph", input: {}, if_not_exists: "create" };
		expect(await (await fetch("/threads/t/runs/wait", { json, headers })).json()).toEqual({ seen: "green" });
		expect(await graph.getState({ configurable: { thread_id: "t" } })).toMatchObject({ values: { seen: "green" } });
		expect(await client.store.getItem(["seen"], "key")).toMatchObject({ value: { by: "graph" } });
		expect(graph.checkpointer).toBe(saver);

		// A graph that was compiled without one is served from memory.
		await client.runs.wait("spare", "spare", { input: {}, ifNotExists: "create" });
		expect(await saver.getThread("spare")).toBeUndefined();
		expect((await client.threads.search()).map(({ thread_id }) => thread_id).sort()).toEqual(["spare", "t"]);
		await expect(client.runs.wait("t", "spare", { input: {} })).rejects.toThrow("HTTP 409");
		const { thread_id } = await client.threads.create({ metadata: { kept: true } });
		await client.runs.wait(thread_id, "spare", { input: {} });
		expect(await client.threads.get(thread_id)).toMatchObject({ metadata: { kept: true, graph_id: "spare" } });
		await close();
	});
});

describe("createStudioHandler", () => {
	it("changes no part of a graph, however it was made", async () => {
		const step = task("step", async (n: number) => n + 1);
		const graphs = { chat, counted: entrypoint("counted", async (n: number) => ({ n: await step(n) })) };
		const parts = (graph: any) => ({
			channels: Object.entries(graph.channels),
			nodes: Object.entries(graph.nodes),
			triggers: structuredClone(graph.triggerToNodes),
			own: Object.entries(graph),
		});
		const before = { chat: parts(chat), counted: parts(graphs.counted) };
		const { client } = await startServer(undefined, { graphs });
		const { thread_id } = await client.threads.create();
		expect(await client.runs.wait(thread_id, "counted", { input: 1 as never })).toEqual({ n: 2 });
		expect(await client.threads.getState(thread_id)).toMatchObject({ values: { n: 2 }, next: [] });
		await client.runs.wait(null, "chat", { input: { messages: [{ role: "user", content: "hi" }] } });
		for (const [name, parted] of Object.entries(before)) {
			const after = parts(graphs[name as keyof typeof graphs]);
			expect(after.triggers).toEqual(parted.triggers);
			for (const part of ["channels", "nodes", "own"] as const)
				for (const [i, [key, value]] of parted[part].entries()) {
					expect(after[part][i]?.[0]).toBe(key);
					expect(after[part][i]?.[1], `${name}: ${part} ${key}`).toBe(value);
				}
		}
	});

	it("serves what createAgent makes: a graph with the real one inside", async () => {
		const agent = { graph: chat, getStateHistory: chat.getStateHistory.bind(chat) };
		const { client } = await startServer(undefined, { graphs: { agent: agent as never } });
		const input = { messages: [{ role: "user", content: "hi" }] };
		expect(await client.runs.wait(null, "agent", { input })).toMatchObject({ messages: [{}, { content: "1: hi" }] });
	});

	it("serves graphs that are made for each request", async () => {
		const made: unknown[] = [];
		const saver = new MemorySaver();
		const { client } = await startServer(undefined, {
			checkpointer: undefined,
			graphs: {
				made: async (config) => {
					made.push(config.configurable?.model);
					return new StateGraph(Annotation.Root({ said: Annotation<string>() }))
						.addNode("say", () => ({ said: `by ${config.configurable?.model}` }))
						.addEdge("__start__", "say")
						.compile({ checkpointer: saver });
				},
			},
		});
		const { thread_id } = await client.threads.create();
		const values = await client.runs.wait(thread_id, "made", { input: {}, config: { configurable: { model: "m1" } } });
		expect(values).toEqual({ said: "by m1" });
		expect(await client.threads.getState(thread_id)).toMatchObject({ values });
		expect(made).toContain("m1");
	});

	it("knows which graph a thread is of that has no record", async () => {
		const { client, saver } = await startServer();
		const { review } = await import("./project/graphs.ts");
		const { copyGraph } = await import("../../src/studio/graphs/graph.ts");
		await copyGraph(review, saver, undefined).updateState(
			{ configurable: { thread_id: "t" } },
			{ topic: "x" },
			"write",
		);
		expect((await client.threads.getState("t")).next).toEqual(["review"]);
	});

	it("refuses what it can't serve, with what to do about it", async () => {
		const { createStudioHandler } = await import("../../src/studio.ts");
		const { MemorySaver: Official } = await import("@langchain/langgraph-checkpoint");
		const builder = new StateGraph(Annotation.Root({})).addNode("n", () => ({})).addEdge("__start__", "n");
		const invalid = (options: any) => {
			try {
				createStudioHandler(options);
			} catch (error) {
				return error as Error & { code: string };
			}
		};
		const cases = {
			"`graphs` is empty": { graphs: {} },
			"compile()": { graphs: { builder } },
			"pass a saver of this package": { graphs: { g: builder.compile({ checkpointer: new Official() }) } },
			"`checkpointer` is a MemorySaver": { graphs: { g: builder.compile() }, checkpointer: new Official() },
			"takes origins": { graphs: { chat }, allowOrigins: ["*"] },
			"start with a slash": { graphs: { chat }, basePath: "api/" },
			"no option": { graphs: { chat }, checkpoint: true },
			"`limits.bodyBytes`": { graphs: { chat }, limits: { bodyBytes: 0 } },
		};
		for (const [message, options] of Object.entries(cases)) {
			expect(invalid(options)?.code, message).toBe("INVALID_OPTION");
			expect(invalid(options)?.message).toContain(message);
		}
	});
});
