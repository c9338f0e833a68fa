import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { Annotation, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import type { DeltaSaver } from "../../../src/index.ts";
import { createStudioHandler, toNodeListener, toUpgradeListener } from "../../../src/studio.ts";
import type { Random } from "../../bench/random.ts";
import { RawSocket } from "./raw-socket.ts";

const STEPS = 4;
const EVENTS_PER_STEP = 25;

interface Event {
	readonly seq: number;
	readonly event_id: string;
	readonly method: string;
	readonly params: { readonly namespace: string[]; readonly data: any };
}

/** Counts, and says each number. */
const count = new StateGraph(Annotation.Root({ step: Annotation<number>() }))
	.addNode("count", async ({ step }, { writer }: LangGraphRunnableConfig) => {
		for (let n = 0; n < EVENTS_PER_STEP; n++) {
			writer?.({ number: step * EVENTS_PER_STEP + n, padding: "x".repeat((n * 37) % 500) });
			await setTimeout(1);
		}
		return { step: step + 1 };
	})
	.addEdge(START, "count")
	.addConditionalEdges("count", ({ step }) => (step < STEPS ? "count" : "__end__"))
	.compile();

const FILTER = { channels: ["values", "updates", "custom", "lifecycle", "checkpoints", "tasks"] };

export type Connect = "since" | "websocket";

/**
 * Follows runs over connections that are cut again and again, after any number of bytes, until there were so many cuts.
 *
 * @returns how many cuts and how many events there were; throws if an event is missing, out of order or there twice
 */
export async function cutConnections(
	saver: DeltaSaver,
	random: Random,
	connect: Connect,
	cuts: number,
): Promise<{ cuts: number; events: number }> {
	const handler = createStudioHandler({ graphs: { count }, checkpointer: saver });
	const server = createServer(toNodeListener(handler)).on("upgrade", toUpgradeListener(handler));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const done = { cuts: 0, events: 0 };
	try {
		for (let run = 0; done.cuts < cuts; run++) {
			const thread = `${url}/threads/${run}`;
			const follow = connect === "since" ? cutStream : cutSocket;
			const params = { assistant_id: "count", input: { step: 0 } };
			const body = JSON.stringify({ id: 1, method: "run.start", params });
			await fetch(`${thread}/commands`, { method: "POST", body });
			const seen: Event[] = [];
			while (!isOver(seen)) {
				await follow(thread, seen, random);
				done.cuts++;
			}
			const whole = await readWhole(thread, seen.at(-1)!.seq);
			check(seen, whole);
			done.events += seen.length;
		}
	} finally {
		await handler.close();
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	}
	return done;
}

/** One connection: events after the last one that was seen, until it is cut. */
async function cutStream(thread: string, seen: Event[], random: Random): Promise<void> {
	const since = seen.at(-1)?.seq;
	await readStream(thread, { ...FILTER, since }, 1 + random.below(20_000), seen);
}

async function readStream(thread: string, filter: object, mostBytes: number, seen: Event[]): Promise<void> {
	const cut = new AbortController();
	const body = JSON.stringify(filter);
	const response = await fetch(`${thread}/stream/events`, { method: "POST", body, signal: cut.signal });
	const decoder = new TextDecoder();
	let text = "";
	let bytes = 0;
	for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
		const part = chunk.subarray(0, mostBytes - bytes);
		bytes += part.length;
		text += decoder.decode(part, { stream: true });
		const events = text.split("\n\n");
		// What is not whole is lost with the connection.
		text = events.pop() as string;
		for (const event of events) seen.push(JSON.parse(event.slice(event.indexOf("data: ") + 6)));
		if (bytes >= mostBytes || isOver(seen)) break;
	}
	cut.abort();
}

/** The same over a WebSocket, whose client is sent what it has and tells it by its number. */
async function cutSocket(thread: string, seen: Event[], random: Random): Promise<void> {
	const socket = await RawSocket.mustOpen(`${thread}/stream/events`);
	socket.send({ id: 1, method: "subscription.subscribe", params: FILTER });
	const before = seen.at(-1)?.seq ?? 0;
	for (let left = 1 + random.below(seen.length + 60); left > 0 && !isOver(seen); left--) {
		const frame = await socket.next();
		if (frame === undefined) break;
		const event = frame.json as unknown as Event;
		if (frame.json.type === "event" && event.seq > before) seen.push(event);
	}
	socket.destroy();
}

/** All events, in one go. */
async function readWhole(thread: string, lastSeq: number): Promise<Event[]> {
	const whole: Event[] = [];
	await readStream(thread, { ...FILTER, since: lastSeq - 1_000_000 }, Number.POSITIVE_INFINITY, whole);
	return whole;
}

function isOver(seen: Event[]): boolean {
	const last = seen.at(-1);
	return last?.method === "lifecycle" && last.params.namespace.length === 0 && last.params.data.event === "completed";
}

function check(seen: Event[], whole: Event[]): void {
	if (JSON.stringify(seen) !== JSON.stringify(whole)) throw new Error("Cuts have changed what came.");
	if (new Set(seen.map(({ event_id }) => event_id)).size !== seen.length) throw new Error("An event came twice.");
	if (seen.some(({ seq }, i) => i > 0 && seq <= seen[i - 1]!.seq)) throw new Error("Events are out of order.");
	const numbers = seen.filter(({ method }) => method === "custom").map(({ params }) => params.data.payload.number);
	const all = Array.from({ length: STEPS * EVENTS_PER_STEP }, (_, n) => n);
	if (JSON.stringify(numbers) !== JSON.stringify(all)) throw new Error(`Not all was said: ${numbers}`);
}
