import { backends } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { startServer, type TestServer } from "./support/server.ts";

/** A thread of the graph `work` that has run to its end, and its states, the newest first. */
async function finished({ client }: TestServer) {
	const { thread_id } = await client.threads.create();
	await client.runs.wait(thread_id, "work", { input: { name: "w" }, metadata: { purpose: "test" } });
	return { thread_id, history: await client.threads.getHistory(thread_id) };
}

describe.each(backends)("States on a $name", (backend) => {
	it("are read by checkpoint: the newest, by id, by checkpoint", async () => {
		const server = await startServer(backend);
		const { client } = server;
		const { thread_id, history } = await finished(server);
		expect(history.map(({ next }) => next)).toEqual([[], ["third"], ["second"], ["first"], ["__start__"]]);
		expect(await client.threads.getState(thread_id)).toEqual(history[0]);
		for (const state of history) {
			expect(await client.threads.getState(thread_id, state.checkpoint.checkpoint_id!)).toEqual(state);
			expect(await client.threads.getState(thread_id, state.checkpoint)).toEqual(state);
		}
		expect(history[1]?.parent_checkpoint).toEqual(history[2]?.checkpoint);
		expect(history.at(-1)?.parent_checkpoint).toBeNull();
		expect(history[1]?.tasks).toMatchObject([{ name: "third", result: { log: ["w done"] }, error: null }]);
		await expect(client.threads.getState("nobody")).rejects.toThrow("HTTP 404");
		const empty = await client.threads.create();
		const nothing = { values: {}, next: [], tasks: [], checkpoint: null, parent_checkpoint: null };
		expect(await client.threads.getState(empty.thread_id)).toMatchObject(nothing);
		expect(await client.threads.getHistory(empty.thread_id)).toEqual([]);
	});

	it("are listed with limit, before (an id or a config) and metadata, also of the run", async () => {
		const server = await startServer(backend);
		const { client } = server;
		const { thread_id, history } = await finished(server);
		const [run] = await client.runs.list(thread_id);
		const steps = async (options: object) =>
			(await client.threads.getHistory(thread_id, options)).map(({ metadata }) => (metadata as { step: number }).step);
		expect(await steps({})).toEqual([3, 2, 1, 0, -1]);
		expect(await steps({ limit: 2 })).toEqual([3, 2]);
		const { checkpoint_id } = history[1]!.checkpoint;
		expect(await steps({ before: checkpoint_id, limit: 2 })).toEqual([1, 0]);
		expect(await steps({ before: { configurable: { checkpoint_id } } })).toEqual([1, 0, -1]);
		expect(await steps({ metadata: { source: "input" } })).toEqual([-1]);
		expect(await steps({ metadata: { step: 2 } })).toEqual([2]);
		expect(await steps({ metadata: { purpose: "test", source: "loop" }, limit: 3 })).toEqual([3, 2, 1]);
		expect(await steps({ metadata: { purpose: "other" } })).toEqual([]);
		expect(await steps({ metadata: { run_id: run?.run_id }, limit: 1 })).toEqual([3]);
		expect(await steps({ checkpoint: { checkpoint_id } })).toEqual([2]);
		const byGet = await server.fetch(`/threads/${thread_id}/history?limit=2&before=${checkpoint_id}`);
		expect(await byGet.json()).toEqual(history.slice(2, 4));
	});

	it("tell which run made them", async () => {
		const server = await startServer(backend);
		const { client } = server;
		const { thread_id } = await finished(server);
		await client.threads.updateState(thread_id, { values: { log: ["edited"] }, asNode: "third" });
		await client.runs.wait(thread_id, "work", { input: { name: "again" } });
		const [second, first] = await client.runs.list(thread_id);
		const history = await client.threads.getHistory(thread_id, { limit: 20 });
		const made = history.map(({ metadata }) => (metadata as { run_id?: string }).run_id);
		expect(made).toEqual([...Array(5).fill(second?.run_id), undefined, ...Array(5).fill(first?.run_id)]);
		expect(history[0]?.metadata).toMatchObject({ graph_id: "work", thread_id, source: "loop", step: 9 });
	});

	it("of subgraphs are read, listed and changed", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		await client.runs.wait(thread_id, "nested", { input: { ask: true } });
		const plain = await client.threads.getState(thread_id);
		const namespace = plain.tasks[0]!.checkpoint!.checkpoint_ns;
		expect(namespace).toMatch(/^child:/);
		expect(plain.tasks[0]).toMatchObject({ name: "child", state: null, interrupts: [{ value: "Well?" }] });

		const deep = await client.threads.getState(thread_id, undefined, { subgraphs: true });
		const inner = deep.tasks[0]!.state!;
		expect(inner).toMatchObject({ values: { log: ["before", "child greets"] }, next: ["listen"] });
		expect(inner.checkpoint.checkpoint_ns).toBe(namespace);
		const viaId = await client.threads.getState(thread_id, deep.checkpoint.checkpoint_id!, { subgraphs: true });
		expect(viaId.tasks[0]!.state).toEqual(inner);
		const viaCheckpoint = await client.threads.getState(thread_id, plain.tasks[0]!.checkpoint!);
		expect(viaCheckpoint.values).toEqual(inner.values);

		const history = await client.threads.getHistory(thread_id, { checkpoint: plain.tasks[0]!.checkpoint! });
		expect(history.map(({ next }) => next)).toEqual([["listen"], ["greet"], ["__start__"]]);
		await client.threads.updateState(thread_id, { checkpoint: inner.checkpoint, values: { log: ["told the child"] } });
		const values = await client.runs.wait(thread_id, "nested", { command: { resume: "yes" } });
		const expected = ["before", "before", "child greets", "told the child", "child heard yes", "after"];
		expect(values).toMatchObject({ log: expected });
	});

	it("are changed at the head, and forked from the past", async () => {
		const server = await startServer(backend);
		const { client } = server;
		const { thread_id, history } = await finished(server);
		const past = history.find(({ next }) => next[0] === "third")!;
		const { checkpoint } = (await client.threads.updateState(thread_id, {
			values: { name: "forked" },
			checkpointId: past.checkpoint.checkpoint_id!,
		})) as unknown as { checkpoint: { checkpoint_id: string } };
		const head = await client.threads.getState(thread_id);
		expect(head.checkpoint.checkpoint_id).toBe(checkpoint.checkpoint_id);
		expect(head.parent_checkpoint).toEqual(past.checkpoint);
		expect(head).toMatchObject({ values: { name: "forked" }, next: ["third"], metadata: { source: "update" } });
		const values = await client.runs.wait(thread_id, "work", { input: null });
		expect(values).toMatchObject({ log: ["w started", "w worked", "forked done"] });
		expect(await client.threads.getState(thread_id, history[0]!.checkpoint)).toEqual(history[0]);
	});

	it("are run again from here, as Studio does it: a copy, then a run", async () => {
		const server = await startServer(backend);
		const { client } = server;
		const { thread_id, history } = await finished(server);
		const past = history.find(({ next }) => next[0] === "second")!;
		const { configurable } = await client.threads.updateState(thread_id, {
			values: null,
			asNode: "__copy__",
			checkpointId: past.checkpoint.checkpoint_id!,
		});
		const copy = await client.threads.getState(thread_id);
		expect(copy.checkpoint.checkpoint_id).toBe(configurable?.checkpoint_id);
		expect(copy.parent_checkpoint).toEqual(past.parent_checkpoint);
		expect(copy).toMatchObject({ values: past.values, next: ["second"], metadata: { source: "fork" } });
		const values = await client.runs.wait(thread_id, "work", { input: null });
		expect(values).toMatchObject({ log: ["w started", "w worked", "w done"] });
		expect(await client.threads.getHistory(thread_id, { limit: 20 })).toHaveLength(8);
	});

	it("can't be changed while the thread is busy, nor in ways that the graph refuses", async () => {
		const { client } = await startServer(backend);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "w", until: gate.path } });
		await expect(client.threads.updateState(thread_id, { values: {} })).rejects.toThrow("HTTP 409: Thread is busy");
		gate.open();
		await client.runs.join(thread_id, run_id);
		await expect(client.threads.updateState(thread_id, { values: {}, asNode: "nobody" })).rejects.toThrow(
			'HTTP 422: InvalidUpdateError: Node "nobody" does not exist',
		);
		await client.threads.updateState(thread_id, { values: { name: "fine" } });
	});
});
