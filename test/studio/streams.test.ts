import { setTimeout } from "node:timers/promises";
import type { StreamMode } from "@langchain/langgraph-sdk";
import { backends, sqlite } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { collect, startServer } from "./support/server.ts";

const question = { messages: [{ role: "user", content: "how are you", id: "question" }] };

describe.each(backends)("Streams on a $name", (backend) => {
	/** The events of a run of the chat, without the first. */
	async function chat(streamMode: StreamMode | StreamMode[]) {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const [metadata, ...parts] = (await collect(
			client.runs.stream(thread_id, "chat", { input: question, streamMode }),
		)) as { event: string; data: any }[];
		const [run] = await client.runs.list(thread_id);
		expect(metadata).toMatchObject({ event: "metadata", data: { run_id: run?.run_id, attempt: 1 } });
		return { parts, run_id: run!.run_id, thread_id };
	}

	it("values: each state", async () => {
		const { parts } = await chat("values");
		expect(parts.map(({ event, data }) => [event, data.messages.map((m: any) => `${m.type}: ${m.content}`)])).toEqual([
			["values", ["human: how are you"]],
			["values", ["human: how are you", "ai: 1: how are you"]],
		]);
	});

	it("updates: what each node wrote", async () => {
		const { parts } = await chat("updates");
		expect(parts).toMatchObject([{ event: "updates", data: { model: { messages: [{ content: "1: how are you" }] } } }]);
	});

	it("messages-tuple: each token with its metadata", async () => {
		const { parts, run_id, thread_id } = await chat("messages-tuple");
		expect(parts.map(({ event, data }) => [event, data[0].content])).toEqual([
			["messages", "1: "],
			["messages", "how "],
			["messages", "are "],
			["messages", "you"],
		]);
		const metadata = { langgraph_node: "model", graph_id: "chat", run_id, thread_id };
		for (const { data } of parts) expect(data[1]).toMatchObject(metadata);
	});

	it("messages: each message as it grows, and once when it is whole", async () => {
		const { parts } = await chat("messages");
		const seen = parts.map(({ event, data }) =>
			event === "messages/metadata" ? [event, Object.keys(data).length] : [event, data[0].content],
		);
		expect(seen).toEqual([
			["messages/complete", "how are you"],
			["messages/metadata", 1],
			["messages/partial", "1: "],
			["messages/partial", "1: how "],
			["messages/partial", "1: how are "],
			["messages/partial", "1: how are you"],
			["messages/complete", "1: how are you"],
		]);
	});

	it("tasks: what starts and what it came to", async () => {
		const { parts } = await chat("tasks");
		expect(parts).toMatchObject([
			{
				event: "tasks",
				data: { name: "model", input: { messages: [{ content: "how are you" }] }, triggers: ["branch:to:model"] },
			},
			{
				event: "tasks",
				data: { name: "model", result: { messages: [{ content: "1: how are you" }] }, interrupts: [] },
			},
		]);
		expect(parts[0]!.data.id).toBe(parts[1]!.data.id);
	});

	it("checkpoints: each state with its config and tasks", async () => {
		const { parts, thread_id } = await chat("checkpoints");
		expect(parts.map(({ data }) => [data.metadata.step, data.next])).toEqual([
			[-1, ["__start__"]],
			[0, ["model"]],
			[1, []],
		]);
		for (const { data } of parts) {
			expect(data.config.configurable).toMatchObject({ thread_id, checkpoint_id: expect.any(String) });
			expect(JSON.stringify(data.config)).not.toMatch(/__pregel|callbacks/);
		}
		expect(parts[1]!.data.tasks).toMatchObject([{ name: "model" }]);
	});

	it("debug: checkpoints and tasks in one", async () => {
		const { parts, thread_id } = await chat("debug");
		const types = ["checkpoint", "checkpoint", "task", "task_result", "checkpoint"];
		expect(parts.map(({ data }) => data.type)).toEqual(types);
		const { payload } = parts[4]!.data;
		expect(payload.checkpoint).toMatchObject({ thread_id, checkpoint_ns: "" });
		expect(payload.parent_checkpoint).toEqual(parts[1]!.data.payload.checkpoint);
		expect(JSON.stringify(payload.config)).not.toMatch(/__pregel|callbacks/);
	});

	it("events: all that happens inside", async () => {
		const { parts, run_id } = await chat("events");
		const names = parts.map(({ event, data }) => `${event} ${data.event} ${data.name}`);
		expect(names[0]).toBe("events on_chain_start LangGraph");
		expect(parts[0]!.data.run_id).toBe(run_id);
		expect(names.filter((name) => name === "events on_chat_model_stream EchoModel")).toHaveLength(4);
		expect(names.at(-1)).toBe("events on_chain_end LangGraph");
	});

	it("several at once, in the order in which things happened", async () => {
		const { parts } = await chat(["values", "updates", "messages-tuple"]);
		const events = parts.map(({ event }) => event);
		expect(events).toEqual(["values", ...Array(4).fill("messages"), "updates", "values"]);
	});

	it("custom, and subgraphs under their own names", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const payload = { input: { ask: true }, streamMode: ["updates", "custom"] as StreamMode[], streamSubgraphs: true };
		const parts = await collect(client.runs.stream(thread_id, "nested", payload));
		const namespace = (await client.threads.getState(thread_id)).tasks[0]!.checkpoint!.checkpoint_ns;
		const interrupts = { __interrupt__: [{ id: expect.any(String), value: "Well?" }] };
		expect(parts.slice(1).map(({ event, data }) => [event, data])).toEqual([
			["updates", { before: { log: ["before"] } }],
			[`custom|${namespace}`, { said: "hello" }],
			[`updates|${namespace}`, { greet: { log: ["child greets"] } }],
			[`updates|${namespace}`, interrupts],
			["updates", interrupts],
		]);
		const withEvents = {
			...payload,
			input: null,
			command: { resume: "yes" },
			streamMode: ["events", "custom", "values"] as StreamMode[],
		};
		const rest = await collect(client.runs.stream(thread_id, "nested", withEvents));
		expect(rest.filter(({ event }) => event.startsWith("values|"))).not.toHaveLength(0);
		expect(rest.findLast(({ event }) => event === "values")?.data).toMatchObject({
			log: expect.arrayContaining(["after"]),
		});
	});
});

describe("Streams", () => {
	it("are joined while they run, from the event that was seen last", async () => {
		const { client } = await startServer(sqlite);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		const stream = client.runs.stream(thread_id, "work", {
			input: { name: "w", until: gate.path },
			streamMode: "updates",
			streamResumable: true,
		});
		const first = [await stream.next(), await stream.next()].map(({ value }) => value);
		expect(first).toMatchObject([
			{ id: "0", event: "metadata" },
			{ id: "1", data: { first: { log: ["w started"] } } },
		]);
		const { run_id } = first[0].data as { run_id: string };
		const again = collect(client.runs.joinStream(thread_id, run_id, { lastEventId: "0" }));
		const all = collect(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
		gate.open();
		const rest = await collect(stream);
		expect(rest.map(({ id }) => id)).toEqual(["2", "3"]);
		expect(await again).toEqual([first[1], ...rest]);
		expect(await all).toEqual([...first, ...rest]);
		// For a while after the end, too.
		expect(await collect(client.runs.joinStream(thread_id, run_id, { lastEventId: "2" }))).toEqual([rest[1]]);
	});

	it("of a run in the background wait for who joins", async () => {
		const { client } = await startServer();
		const { thread_id } = await client.threads.create();
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "w" }, streamMode: "updates" });
		await client.runs.join(thread_id, run_id);
		const parts = await collect(client.runs.joinStream(thread_id, run_id));
		expect(parts.map(({ event }) => event)).toEqual(["metadata", "updates", "updates", "updates"]);
		expect(await collect(client.runs.joinStream(thread_id, run_id))).toEqual([]);
		await expect(collect(client.runs.joinStream(thread_id, "none"))).rejects.toThrow("HTTP 404: Run not found");
	});

	it("end their run when the client leaves, if it asked for that", async () => {
		const { client } = await startServer();
		const gate = makeGate();
		for (const [onDisconnect, status] of [
			["cancel", "interrupted"],
			["continue", "running"],
		] as const) {
			const { thread_id } = await client.threads.create();
			const left = new AbortController();
			const { signal } = left;
			const stream = client.runs.stream(thread_id, "work", {
				input: { name: "w", until: gate.path },
				onDisconnect,
				signal,
			});
			for (let n = 0; n < 3; n++) await stream.next();
			left.abort();
			await stream.next().catch(() => {});
			while ((await client.runs.list(thread_id))[0]?.status !== status) await setTimeout(5);
			if (onDisconnect === "continue") expect(await client.threads.get(thread_id)).toMatchObject({ status: "busy" });
		}
		gate.open();
	});

	it("end for a run that waits when the client leaves", async () => {
		const { client } = await startServer();
		const { thread_id } = await client.threads.create();
		const left = new AbortController();
		const payload = { input: { name: "w", until: makeGate().path }, onDisconnect: "cancel" as const };
		const waiting = client.runs.wait(thread_id, "work", { ...payload, signal: left.signal });
		while ((await client.runs.list(thread_id))[0]?.status !== "running") await setTimeout(5);
		left.abort();
		await expect(waiting).rejects.toThrow();
		while ((await client.runs.list(thread_id))[0]?.status !== "interrupted") await setTimeout(5);
	});
});
