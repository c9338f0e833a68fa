import { backends } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { startServer } from "./support/server.ts";

describe.each(backends)("Threads on a $name", (backend) => {
	it("are made with metadata, found, changed and deleted", async () => {
		const { client, saver } = await startServer(backend);
		const { thread_id } = await client.threads.create({ metadata: { owner: "Ada", tags: ["a", "b"] } });
		const made = await client.threads.get(thread_id);
		expect(made).toMatchObject({ thread_id, metadata: { owner: "Ada" }, status: "idle", interrupts: {} });
		expect(Date.parse(made.created_at)).toBeLessThanOrEqual(Date.parse(made.updated_at));

		const changed = await client.threads.update(thread_id, { metadata: { owner: "Grace", more: { deep: 1 } } });
		expect(changed.metadata).toEqual({ owner: "Grace", tags: ["a", "b"], more: { deep: 1 } });
		expect(changed.created_at).toBe(made.created_at);
		expect(await client.threads.get(thread_id)).toEqual(changed);

		await client.threads.delete(thread_id);
		await expect(client.threads.get(thread_id)).rejects.toThrow(/HTTP 404: Thread with ID .* not found/);
		await expect(client.threads.delete(thread_id)).rejects.toThrow("HTTP 404");
		expect(await saver.getThread(thread_id)).toBeUndefined();
	});

	it("have any id, and are made only once", async () => {
		const { client } = await startServer(backend);
		for (const threadId of ["a", "ab", "user:1@x", "Ünïcode 🧵", "100%", "a/b", "?a=b#c", "__proto__", "search"]) {
			const thread = await client.threads.create({ threadId });
			expect(thread.thread_id).toBe(threadId);
			expect((await client.threads.get(encodeURIComponent(threadId))).thread_id).toBe(threadId);
			await expect(client.threads.create({ threadId })).rejects.toThrow("HTTP 409: Thread already exists");
			const again = await client.threads.create({ threadId, ifExists: "do_nothing", metadata: { new: true } });
			expect(again.metadata).toEqual({});
			await client.runs.wait(encodeURIComponent(threadId), "work", { input: { name: "w" } });
			const { values } = await client.threads.getState(encodeURIComponent(threadId));
			expect(values).toMatchObject({ log: ["w started", "w worked", "w done"] });
		}
	});

	it("are found by status, metadata, values and ids, sorted, and page by page", async () => {
		const { client } = await startServer(backend);
		const ids = { idle: "1", interrupted: "2", error: "3", busy: "4" };
		const gate = makeGate();
		await client.threads.create({ threadId: ids.idle, metadata: { owner: "Ada", deep: { a: 1, b: 2 } } });
		await client.threads.create({ threadId: ids.interrupted, metadata: { owner: "Ada" } });
		await client.threads.create({ threadId: ids.error, metadata: { owner: "Grace" } });
		await client.threads.create({ threadId: ids.busy });
		await client.runs.wait(ids.idle, "work", { input: { name: "one" } });
		await client.runs.wait(ids.interrupted, "review", { input: { topic: "two" } });
		await client.runs.wait(ids.error, "work", { input: { name: "three", fail: "no" }, raiseError: false });
		const busy = await client.runs.create(ids.busy, "work", { input: { name: "four", until: gate.path } });
		const search = async (query: Parameters<typeof client.threads.search>[0]) =>
			(await client.threads.search({ sortBy: "thread_id", sortOrder: "asc", ...query })).map((t) => t.thread_id);

		for (const [status, id] of Object.entries(ids)) {
			expect(await search({ status: status as keyof typeof ids }), status).toEqual([id]);
			expect(await client.threads.count({ status: status as keyof typeof ids }), status).toBe(1);
		}
		expect(await search({ metadata: { owner: "Ada" } })).toEqual(["1", "2"]);
		expect(await search({ metadata: { deep: { a: 1 } } })).toEqual(["1"]);
		expect(await search({ metadata: { graph_id: "work" } })).toEqual(["1", "3", "4"]);
		expect(await search({ values: { name: "one" } })).toEqual(["1"]);
		expect(await search({ values: { log: ["three started"] } })).toEqual(["3"]);
		expect(await search({ ids: ["4", "2", "none"] })).toEqual(["2", "4"]);
		expect(await search({ ids: ["2", "3"], metadata: { owner: "Grace" } })).toEqual(["3"]);
		expect(await search({ limit: 2, offset: 1 })).toEqual(["2", "3"]);
		expect(await search({ sortOrder: "desc", limit: 1 })).toEqual(["4"]);
		expect(await search({ sortBy: "created_at" })).toEqual(["1", "2", "3", "4"]);
		expect(await search({ sortBy: "updated_at", sortOrder: "desc", limit: 1 })).toEqual(["4"]);
		expect(await search({ sortBy: "status" })).toEqual(["4", "3", "1", "2"]);
		expect(await client.threads.count()).toBe(4);
		expect(await client.threads.count({ metadata: { owner: "Nobody" } })).toBe(0);
		const [selected] = await client.threads.search({ ids: ["2"], select: ["thread_id", "status"] });
		expect(selected).toEqual({ thread_id: "2", status: "interrupted" });

		gate.open();
		await client.runs.join(ids.busy, busy.run_id);
		expect(await search({ status: "idle" })).toEqual(["1", "4"]);
	});

	it("tell how many pages there are", async () => {
		const { client, fetch } = await startServer(backend);
		for (let n = 0; n < 3; n++) await client.threads.create();
		const page = async (json: object) => {
			const { headers } = await fetch("/threads/search", { json });
			return [headers.get("x-pagination-total"), headers.get("x-pagination-next")];
		};
		expect(await page({ limit: 2 })).toEqual(["3", "2"]);
		expect(await page({ limit: 2, offset: 2 })).toEqual(["3", null]);
	});

	it("are copied whole, with status, interrupts and metadata, and independent of each other", async () => {
		const { client } = await startServer(backend);
		const source = await client.threads.create({ metadata: { owner: "Ada" } });
		await client.runs.wait(source.thread_id, "review", { input: { topic: "copies" } });
		const copy = await client.threads.copy(source.thread_id);
		expect(copy.thread_id).not.toBe(source.thread_id);
		expect(copy).toMatchObject({ status: "interrupted", metadata: { owner: "Ada", graph_id: "review" } });
		const before = await client.threads.getHistory(copy.thread_id);
		expect(before.map(({ checkpoint }) => checkpoint.checkpoint_id)).toEqual(
			(await client.threads.getHistory(source.thread_id)).map(({ checkpoint }) => checkpoint.checkpoint_id),
		);
		await client.threads.delete(source.thread_id);
		expect(await client.threads.getHistory(copy.thread_id)).toEqual(before);
		const values = await client.runs.wait(copy.thread_id, "review", { command: { resume: "yes" } });
		expect(values).toMatchObject({ draft: "On copies. (yes)" });
		await expect(client.threads.copy("nobody")).rejects.toThrow("HTTP 404");
	});

	it("are pruned to their newest state, or away", async () => {
		const { client, saver } = await startServer(backend);
		for (const threadId of ["a", "b", "c"]) {
			await client.threads.create({ threadId, metadata: { name: threadId } });
			await client.runs.wait(threadId, "review", { input: { topic: threadId } });
		}
		expect(await client.threads.prune(["a", "nobody"], { strategy: "keep_latest" })).toEqual({ pruned_count: 1 });
		expect(await client.threads.getHistory("a")).toHaveLength(1);
		expect(await client.threads.get("a")).toMatchObject({ status: "interrupted", metadata: { name: "a" } });
		expect(await client.runs.wait("a", "review", { command: { resume: "ok" } })).toMatchObject({ draft: "On a. (ok)" });
		expect(await client.threads.prune(["b"])).toEqual({ pruned_count: 1 });
		expect(await saver.getThread("b")).toBeUndefined();
		expect(await client.threads.getHistory("c")).toHaveLength(3);
	});

	it("start with states that a client has brought", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create({
			graphId: "work",
			supersteps: [
				{ updates: [{ values: { name: "old", log: ["from elsewhere"] }, asNode: "__input__" }] },
				{ updates: [{ values: { name: "old", log: ["from elsewhere"] }, asNode: "__start__" }] },
				{ updates: [{ values: null, command: { update: { log: ["first"] } }, asNode: "first" }] },
			],
		});
		const state = await client.threads.getState(thread_id);
		expect(state).toMatchObject({ values: { name: "old", log: ["from elsewhere", "first"] }, next: ["second"] });
		const values = await client.runs.wait(thread_id, "work", { input: null });
		expect(values).toMatchObject({ log: ["from elsewhere", "first", "old worked", "old done"] });
	});

	it("that only a program has made are listed, opened and run on", async () => {
		const { client, saver } = await startServer(backend);
		const { work } = await import("./project/graphs.ts");
		const { copyGraph } = await import("../../src/studio/graphs/graph.ts");
		const graph = copyGraph(work, saver, undefined);
		const config = { configurable: { thread_id: "made elsewhere" }, interruptBefore: ["third"] };
		for await (const _ of await graph.stream({ name: "program" }, config)) {
		}
		const [thread] = await client.threads.search();
		expect(thread).toMatchObject({ thread_id: "made elsewhere", status: "interrupted", metadata: {} });
		expect(thread?.values).toMatchObject({ log: ["program started", "program worked"] });
		const state = await client.threads.getState("made elsewhere");
		expect(state.next).toEqual(["third"]);
		const values = await client.runs.wait("made elsewhere", "work", { input: null });
		expect(values).toMatchObject({ log: ["program started", "program worked", "program done"] });
	});

	it("show nothing of the server's records to LangGraph, and take them along", async () => {
		const { client, saver } = await startServer(backend);
		await client.threads.create({ threadId: "t", metadata: { secret: "record" } });
		expect(await saver.getTuple({ configurable: { thread_id: "t" } })).toBeUndefined();
		await client.runs.wait("t", "work", { input: { name: "w" } });
		const seen: unknown[] = [];
		for await (const { metadata } of saver.list({ configurable: { thread_id: "t", checkpoint_ns: "" } }))
			seen.push(metadata);
		expect(seen).toHaveLength(5);
		expect(JSON.stringify(seen)).not.toMatch(/secret|run_id|studio/);
		await client.threads.delete("t");
		expect((await saver.stats()).checkpoints).toBe(0);
	});

	it("lose no metadata when changed by many at once", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const keys = Array.from({ length: 10 }, (_, n) => `key ${n}`);
		await Promise.all(keys.map((key) => client.threads.update(thread_id, { metadata: { [key]: true } })));
		expect(Object.keys((await client.threads.get(thread_id)).metadata ?? {}).sort()).toEqual(keys);
	});
});
