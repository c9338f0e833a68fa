import { setImmediate } from "node:timers/promises";
import { memory, sqlite } from "../support/backends.ts";
import { makeGate } from "../support/gate.ts";
import { startServer, type TestServer } from "../support/server.ts";

interface Event {
	readonly seq: number;
	readonly event_id: string;
	readonly method: string;
	readonly params: { readonly namespace: string[]; readonly data: { readonly event?: string } };
}

const start = (server: TestServer, assistant_id: string, input: object) =>
	server.fetch("/threads/t/commands", { json: { id: 1, method: "run.start", params: { assistant_id, input } } });

/** The events of the thread until one of the root's has this name, or those that are there. */
async function read(server: TestServer, filter: object, last?: string): Promise<Event[]> {
	const json = { channels: ["values", "lifecycle", "input"], ...filter };
	const stop = new AbortController();
	const response = await server.fetch("/threads/t/stream/events", { json, signal: stop.signal });
	const timer = setTimeout(() => stop.abort(), last === undefined ? 300 : 20_000);
	const events: Event[] = [];
	let text = "";
	try {
		for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
			const parts = (text + new TextDecoder().decode(chunk)).split("\n\n");
			text = parts.pop() as string;
			for (const part of parts) events.push(JSON.parse(part.slice(part.indexOf("data: ") + 6)));
			if (events.some(({ params }) => params.namespace.length === 0 && params.data.event === last)) break;
		}
	} catch (error) {
		if (!stop.signal.aborted) throw error;
	}
	clearTimeout(timer);
	stop.abort();
	return events;
}

describe("The events of a thread", () => {
	it("have numbers that grow, also across restarts", async () => {
		const server = await startServer(sqlite);
		await start(server, "work", { name: "one" });
		const before = await read(server, {}, "completed");
		const after = await server.restart();
		await start(after, "work", { name: "two" });
		const since = before.at(-1)!.seq;
		const events = await read(after, { since }, "completed");
		expect(events.filter(({ method }) => method === "values")).toHaveLength(4);
		expect(events[0]!.seq).toBeGreaterThan(since);
	});

	it("are those of the newest run, or all since a number", async () => {
		const server = await startServer(memory);
		await start(server, "work", { name: "one" });
		const first = await read(server, {}, "completed");
		await start(server, "work", { name: "two" });
		const second = await read(server, { since: first.at(-1)!.seq }, "completed");
		expect(await read(server, {}, "completed")).toEqual(second);
		expect(await read(server, { since: first[0]!.seq })).toEqual([...first.slice(1), ...second]);
	});

	it("are the same over a WebSocket, each sent when the one before was taken", async () => {
		const server = await startServer(memory);
		await start(server, "work", { name: "one" });
		const first = await read(server, {}, "completed");
		await start(server, "work", { name: "two" });
		const second = await read(server, { since: first.at(-1)!.seq }, "completed");
		const answers: object[] = [];
		let events: Event[] = [];
		let waiting = 0;
		let mostWaiting = 0;
		const send = async (text: string) => {
			const message = JSON.parse(text);
			if (message.type !== "event") return void answers.push(message);
			events.push(message);
			mostWaiting = Math.max(mostWaiting, ++waiting);
			await setImmediate();
			waiting--;
		};
		const connect = await server.handler.connect(new Request(`${server.url}/threads/t/stream/events`));
		if (connect instanceof Response) throw new Error(await connect.text());
		const session = connect({ send, close: () => {} });
		const subscribe = async (filter: object) => {
			const params = { channels: ["values", "lifecycle", "input"], ...filter };
			await session.receive(JSON.stringify({ id: 1, method: "subscription.subscribe", params }));
		};
		await subscribe({});
		await vi.waitFor(() => expect(events).toEqual(second));
		events = [];
		await subscribe({ since: first[0]!.seq });
		await vi.waitFor(() => expect(events).toEqual([...first.slice(1), ...second]));
		expect(answers[1]).toMatchObject({ result: { replayed_events: first.length + second.length - 1 } });
		expect(mostWaiting).toBe(1);
		session.close();
	});

	it("are forgotten when there is no room for them, but not before those who read them have", async () => {
		const server = await startServer(memory, { limits: { endedRunBytes: 1 } });
		const gate = makeGate();
		await start(server, "work", { name: "one", until: gate.path });
		const reading = read(server, {}, "completed");
		await vi.waitFor(async () => expect((await read(server, {}, "running")).length).toBeGreaterThan(0));
		gate.open();
		const events = await reading;
		expect(events.filter(({ method }) => method === "values")).toHaveLength(4);
		const recalled = await read(server, {});
		expect(recalled.map(({ method }) => method)).toEqual(["values", "lifecycle"]);
		expect(recalled.at(-1)!.event_id).toBe(events.at(-1)!.event_id);
		const since = await read(server, { since: events[0]!.seq }, "completed");
		expect(since.map(({ event_id }) => event_id)).toEqual(recalled.map(({ event_id }) => event_id));
		await start(server, "work", { name: "two", until: "" });
		expect((await server.client.threads.get("t")).thread_id).toBe("t");
	});

	it("are not skipped: who asks for some that are gone is refused", async () => {
		const server = await startServer(memory, { limits: { endedRunBytes: 1 } });
		const gates = [makeGate(), makeGate()];
		// The feed is there for as long as somebody reads it.
		const stop = new AbortController();
		const json = { channels: ["lifecycle"] };
		await server.fetch("/threads/t/stream/events", { json, signal: stop.signal });
		await start(server, "work", { name: "one", until: gates[0]!.path });
		const [first] = await read(server, {}, "running");
		const reading = read(server, {}, "completed");
		await start(server, "work", { name: "two", until: gates[1]!.path });
		gates[0]!.open();
		const last = (await reading).at(-1);
		const ask = async (since: number) =>
			(await server.fetch("/threads/t/stream/events", { json: { ...json, since }, signal: stop.signal })).status;
		await vi.waitFor(async () => expect(await ask(first!.seq)).toBe(410), 10_000);
		expect(await ask(last!.seq)).toBe(200);
		expect(await ask(0)).toBe(200);
		stop.abort();
		gates[1]!.open();
	});

	it("go with their thread, and those of a run that is rolled back but its end with the run", async () => {
		const server = await startServer(memory);
		const { client } = server;
		await start(server, "work", { name: "one" });
		const events = await read(server, {}, "completed");
		await client.threads.delete("t");
		expect(await read(server, { since: events[0]!.seq })).toEqual([]);
		const gate = makeGate();
		await start(server, "work", { name: "two", until: gate.path });
		const [{ run_id } = { run_id: "" }] = await client.runs.list("t");
		await vi.waitFor(async () => expect((await client.runs.get("t", run_id)).status).toBe("running"));
		await client.runs.cancel("t", run_id, true, "rollback");
		expect((await read(server, {}, "interrupted")).map(({ event_id }) => event_id)).toEqual([`synth:${run_id}:end`]);
	});

	it("begin with how the last run ended and what the thread waits for, under the ids that this had", async () => {
		const server = await startServer(sqlite);
		await start(server, "review", { topic: "t" });
		const asked = await read(server, {}, "interrupted");
		expect(asked.map(({ method }) => method)).toContain("input.requested");
		const after = await server.restart();
		const recalled = await read(after, {}, "interrupted");
		expect(recalled.map(({ method }) => method)).toEqual(["values", "input.requested", "lifecycle"]);
		const idsOf = (events: Event[]) =>
			events.filter(({ method }) => method !== "values").map(({ event_id }) => event_id);
		expect(idsOf(asked)).toEqual(expect.arrayContaining(idsOf(recalled)));
		expect((await read(after, {}, "interrupted")).map(({ event_id }) => event_id)).toEqual(
			recalled.map(({ event_id }) => event_id),
		);
		const since = await read(after, { since: asked.at(-1)!.seq }, "interrupted");
		expect(since.map(({ event_id }) => event_id)).toEqual(recalled.map(({ event_id }) => event_id));
		expect(since[0]!.seq).toBeGreaterThan(asked.at(-1)!.seq);
	});

	it("do not tell again how the last run ended to who knows", async () => {
		const server = await startServer(memory);
		await start(server, "work", { name: "one" });
		const events = await read(server, {}, "completed");
		expect(await read(server, { since: events.at(-1)!.seq })).toEqual([]);
	});
});
