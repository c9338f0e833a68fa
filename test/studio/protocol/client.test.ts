import { Client } from "langgraph-sdk-next";
import { share } from "../../support/share.ts";
import { backends } from "../support/backends.ts";
import { makeGate } from "../support/gate.ts";
import { collect, startServer } from "../support/server.ts";
import { type Transport, transports, webSocketFactory } from "../support/web-socket.ts";

type Chat = { messages: { text: string }[] };

/** A thread, as the newest client follows it. */
function open(apiUrl: string, assistantId: string, transport: Transport, threadId?: string) {
	const client = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });
	return threadId === undefined
		? client.threads.stream({ assistantId, transport, webSocketFactory })
		: client.threads.stream(threadId, { assistantId, transport, webSocketFactory });
}

const say = (content: string) => ({ messages: [{ type: "human", content }] });
const cases = backends.flatMap((backend) =>
	transports.map((transport) => ({ backend, name: backend.name, transport })),
);

describe.each(share(cases, 2))("The client of SDK 1.15 over $transport on a $name", ({ backend, transport }) => {
	it("runs a chat and streams its messages and values", async () => {
		const { url, client } = await startServer(backend);
		const thread = open(url, "chat", transport);
		const messages = collect(thread.messages);
		const { run_id } = await thread.run.start({ input: say("hello you") });
		const values = (await thread.values) as Chat;
		expect(values.messages.map(({ text }) => text)).toEqual(["hello you", "1: hello you"]);
		const [message] = await messages;
		expect(await collect(message!.text)).toEqual(["1: ", "hello ", "you"]);
		expect(await client.runs.get(thread.threadId, run_id!)).toMatchObject({ status: "success" });
		expect(await client.threads.get(thread.threadId)).toMatchObject({ status: "idle" });
		await thread.close();
	});

	it("is asked, answers and goes on", async () => {
		const { url } = await startServer(backend);
		const thread = open(url, "review", transport);
		await thread.run.start({ input: { topic: "threads" } });
		await thread.output;
		expect(thread.interrupted).toBe(true);
		const [asked] = thread.interrupts;
		expect(asked?.payload).toEqual({ question: 'Publish "On threads."?' });
		const answer = (id: string) => thread.input.respond({ namespace: [], interrupt_id: id, response: "yes" });
		await expect(answer("another")).rejects.toMatchObject({ code: "no_such_interrupt" });

		const updates = await thread.subscribe({ channels: ["updates"] });
		await answer(asked!.interruptId);
		const nodes: string[] = [];
		for await (const { params } of updates) {
			nodes.push((params as { node: string }).node);
			if (nodes.at(-1) === "publish") break;
		}
		expect(nodes).toEqual(["write", "review", "publish"]);
		const values = { topic: "threads", verdict: "yes", draft: "On threads. (yes)" };
		await vi.waitFor(async () => expect(await thread.state.get({ namespace: [] })).toMatchObject({ values }));
		await thread.close();
	});

	it("answers at once, and only once", async () => {
		const { url, client } = await startServer(backend);
		const thread = open(url, "review", transport);
		const asked = new Promise<string>((resolve) => {
			thread.onEvent(({ method, params }) => {
				if (method === "input.requested") resolve((params.data as { interrupt_id: string }).interrupt_id);
			});
		});
		await thread.run.start({ input: { topic: "t" } });
		const answer = { namespace: [], interrupt_id: await asked, response: "yes" };
		// The run that asked may still be about to end.
		const answers = await Promise.allSettled([thread.input.respond(answer), thread.input.respond(answer)]);
		expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
		const values = { topic: "t", verdict: "yes", draft: "On t. (yes)" };
		await vi.waitFor(async () => expect(await thread.state.get({ namespace: [] })).toMatchObject({ values }));
		await vi.waitFor(async () => expect((await client.threads.get(thread.threadId)).status).not.toBe("busy"));
		await expect(thread.input.respond(answer)).rejects.toMatchObject({ code: "no_such_interrupt" });
		await thread.close();
	});

	it("lists checkpoints, reads states and forks", async () => {
		const { url } = await startServer(backend);
		const thread = open(url, "work", transport);
		await thread.run.start({ input: { name: "one" } });
		expect(await thread.output).toMatchObject({ log: ["one started", "one worked", "one done"] });
		const { checkpoints } = await thread.state.listCheckpoints({ limit: 3 });
		expect(checkpoints.map(({ step }) => step)).toEqual([3, 2, 1]);
		const [, , first] = checkpoints;
		const older = await thread.state.listCheckpoints({ before: first!.id });
		expect(older.checkpoints.map(({ step }) => step)).toEqual([0, -1]);

		const branch = open(url, "work", transport, thread.threadId);
		expect(await branch.state.fork({ checkpoint_id: first!.id, input: { name: "two" } })).toMatchObject({
			thread_id: thread.threadId,
		});
		const log = ["one started", "two started", "two worked", "two done"];
		await vi.waitFor(async () =>
			expect(await branch.state.get({ namespace: [], keys: ["log"] })).toMatchObject({ values: { log } }),
		);
		// And back to the other branch.
		const [newest] = checkpoints;
		const further = open(url, "work", transport, thread.threadId);
		await further.run.start({ input: { name: "three" }, forkFrom: newest!.id });
		const all = ["one started", "one worked", "one done", "three started", "three worked", "three done"];
		expect(await further.output).toMatchObject({ log: all });
		await further.close();
		await expect(branch.state.fork({ checkpoint_id: "nothing" })).rejects.toMatchObject({ code: "no_such_checkpoint" });
		await Promise.all([thread.close(), branch.close()]);
	});

	it("sees the graphs in a graph", async () => {
		const { url } = await startServer(backend);
		const thread = open(url, "nested", transport);
		const said = thread.subscribe({ channels: ["custom"] });
		const names = (async () => {
			const found: string[] = [];
			for await (const subgraph of thread.subgraphs) found.push(subgraph.name);
			return found;
		})();
		await thread.run.start({ input: { ask: true } });
		await thread.output;
		expect(thread.interrupts).toMatchObject([{ payload: "Well?" }]);
		for await (const event of await said) {
			expect(event.params).toMatchObject({
				namespace: [expect.stringMatching(/^child:/)],
				data: { payload: { said: "hello" } },
			});
			break;
		}
		expect(await names).toEqual(["child"]);
		expect(await thread.agent.getTree()).toMatchObject({
			tree: { status: "interrupted", graph_name: "nested", children: [{ graph_name: "child" }] },
		});
		const namespace = (await thread.agent.getTree()).tree.children![0]!.namespace;
		expect(await thread.state.get({ namespace })).toMatchObject({ values: { log: ["before", "child greets"] } });
		await expect(thread.state.get({ namespace: ["nobody:1"] })).rejects.toMatchObject({ code: "no_such_namespace" });
		await thread.close();
	});

	it("sees runs that were started by the runs API while it looks", async () => {
		const { url, client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const thread = open(url, "work", transport, thread_id);
		const updates = await thread.subscribe({ channels: ["updates", "lifecycle"] });
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "one" } });
		const seen: unknown[] = [];
		for await (const { event_id, method, params } of updates) {
			seen.push(method === "lifecycle" ? [(params.data as { event: string }).event, event_id?.split(":")[1]] : method);
			if (method === "lifecycle" && seen.length > 1) break;
		}
		expect(seen).toEqual([["running", run_id], "updates", "updates", "updates", ["completed", run_id]]);
		const joined = await collect(client.runs.joinStream(thread_id, run_id));
		expect(joined.map(({ event }) => event)).toEqual(["metadata", "values", "values", "values", "values"]);
		await thread.close();
	});

	it("stops runs, and lets a new one interrupt another", async () => {
		const { url, client } = await startServer(backend);
		const thread = open(url, "work", transport);
		const ends: (string | undefined)[][] = [];
		thread.onEvent(({ method, event_id, params }) => {
			const { event } = params.data as { event?: string };
			if (method === "lifecycle" && params.namespace.length === 0) ends.push([event, event_id?.split(":")[1]]);
		});
		const stuck = { input: { name: "one", until: "/never" } };
		const { run_id: one } = await thread.run.start(stuck);
		await vi.waitFor(() => expect(ends).toEqual([["running", one]]));
		const interrupting = { ...stuck, multitaskStrategy: "interrupt" } as Parameters<typeof thread.run.start>[0];
		const { run_id: two } = await thread.run.start(interrupting);
		await vi.waitFor(() =>
			expect(ends.slice(1)).toEqual([
				["interrupted", one],
				["running", two],
			]),
		);
		await client.runs.cancel(thread.threadId, two!, true);
		await vi.waitFor(() => expect(ends.slice(3)).toEqual([["interrupted", two]]));
		expect((await client.threads.get(thread.threadId)).status).not.toBe("busy");
		const { run_id: three } = await thread.run.start({ input: { name: "three", until: "" } });
		await vi.waitFor(() =>
			expect(ends.slice(4)).toEqual([
				["running", three],
				["completed", three],
			]),
		);
		await thread.close();
	});

	it("learns of failures", async () => {
		const { url } = await startServer(backend);
		const thread = open(url, "work", transport);
		const lifecycle = thread.subscribe({ channels: ["lifecycle"] });
		await thread.run.start({ input: { name: "one", fail: "broken" } });
		await thread.output;
		const events = await collect(await lifecycle);
		expect(events.map(({ params }) => params.data)).toMatchObject([
			{ event: "running", graph_name: "work" },
			{ event: "failed", graph_name: "work", error: "broken" },
		]);
		await thread.close();
	});

	it("starts several runs, which wait for each other, and injects a message", async () => {
		const { url, client } = await startServer(backend);
		const gate = makeGate();
		const thread = open(url, "work", transport);
		const watcher = open(url, "work", transport, thread.threadId);
		await thread.run.start({ input: { name: "one", until: gate.path } });
		await watcher.run.start({ input: { name: "two" } });
		await expect(
			watcher.run.start({ input: {}, multitaskStrategy: "reject" } as Parameters<typeof watcher.run.start>[0]),
		).rejects.toMatchObject({ code: "invalid_argument" });
		await expect(
			watcher.input.inject({ namespace: [], message: { role: "user", content: "hi" } }),
		).rejects.toMatchObject({ code: "not_supported" });
		gate.open();
		const done = (name: string) => [`${name} started`, `${name} worked`, `${name} done`];
		await vi.waitFor(async () =>
			expect((await client.threads.getState(thread.threadId)).values).toMatchObject({
				log: [...done("one"), ...done("two")],
			}),
		);

		const chat = open(url, "chat", transport);
		await chat.run.start({ input: say("one") });
		await chat.output;
		await chat.input.inject({ namespace: [], message: { role: "user", content: "two" } });
		await vi.waitFor(async () => {
			const { values } = await chat.state.get({ namespace: [] });
			expect((values.messages as unknown[]).length).toBe(4);
		});
		await Promise.all([thread.close(), watcher.close(), chat.close()]);
	});
});
