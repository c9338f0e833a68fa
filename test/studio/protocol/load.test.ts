import { share } from "../../support/share.ts";
import { backends } from "../support/backends.ts";
import { heapUsed } from "../support/heap.ts";
import { RawSocket } from "../support/raw-socket.ts";
import { startServer, type TestServer } from "../support/server.ts";

/** So long that the events of a hundred runs, if anything held them, could not be overlooked. */
const PADDING = "x".repeat(40_000);
const MIB = 1024 * 1024;
/** The opcode of a frame that holds a message. */
const TEXT = 1;
const FILTER = { channels: ["values", "updates", "tasks", "lifecycle"] };

interface Event {
	readonly seq: number;
	readonly method: string;
	readonly params: { readonly namespace: string[]; readonly node?: string; readonly data: any };
}

const isEnd = ({ method, params }: Event) =>
	method === "lifecycle" && params.namespace.length === 0 && params.data.event === "completed";

/** The events of a thread up to the end of a run, over one transport or the other. */
async function follow(server: TestServer, thread: string, isSocket: boolean, start: () => Promise<unknown>) {
	const path = `/threads/${encodeURIComponent(thread)}/stream/events`;
	const events: Event[] = [];
	if (isSocket) {
		const socket = await RawSocket.mustOpen(server.url + path);
		await socket.ask({ id: 1, method: "subscription.subscribe", params: FILTER });
		await start();
		while (events.length === 0 || !isEnd(events.at(-1)!)) {
			const { opcode, json } = (await socket.next())!;
			// What takes longer than usual is interrupted by a ping.
			if (opcode === TEXT) events.push(json as never);
		}
		socket.destroy();
		return events;
	}
	const response = await server.fetch(path, { json: FILTER });
	await start();
	const decoder = new TextDecoder();
	let text = "";
	for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
		const parts = (text + decoder.decode(chunk, { stream: true })).split("\n\n");
		text = parts.pop() as string;
		for (const part of parts) events.push(JSON.parse(part.slice(part.indexOf("data: ") + 6)));
		if (events.some(isEnd)) break;
	}
	return events;
}

describe.each(share(backends, 3, 1))("A hundred threads followed at once on a $name", (backend) => {
	it("lose and mix no events, and leave no memory behind", async () => {
		// Runs that have ended are forgotten at once, and not after a minute.
		const server = await startServer(backend, { limits: { endedRunBytes: 1 } });
		let characters = 0;
		const run = async (name: string, n: number) => {
			const input = { name, until: "", fail: "" };
			const params = { assistant_id: "work", input, metadata: { padding: PADDING } };
			const path = `/threads/${encodeURIComponent(name)}/commands`;
			const start = async () =>
				expect((await server.fetch(path, { json: { id: 1, method: "run.start", params } })).status).toBe(200);
			const events = await follow(server, name, n % 2 === 1, start);
			characters += JSON.stringify(events).length;
			expect(events.map(({ seq }) => seq)).toEqual([...events.map(({ seq }) => seq)].sort((a, b) => a - b));
			const of = (method: string) => events.filter((event) => event.method === method).map(({ params }) => params.data);
			expect(of("updates").map(({ log }) => log[0])).toEqual([`${name} started`, `${name} worked`, `${name} done`]);
			expect(of("values").map(({ log }) => log.length)).toEqual([0, 1, 2, 3]);
			expect(new Set(of("values").map((values) => values.name))).toEqual(new Set([name]));
			expect(of("tasks")).toHaveLength(6);
			expect(of("lifecycle").at(-1)).toEqual({ event: "completed", graph_name: "work" });
		};
		const names = Array.from({ length: 100 }, (_, n) => `run ${n}`);
		await Promise.all(names.slice(0, 20).map((name, n) => run(`first ${name}`, n)));
		const before = await heapUsed();
		characters = 0;
		await Promise.all(names.map(run));
		const grown = (await heapUsed()) - before;
		expect(characters).toBeGreaterThan(11 * MIB);
		expect(grown).toBeLessThan(6 * MIB);
		expect(await server.client.threads.count({ status: "idle" })).toBe(120);
	});
});
