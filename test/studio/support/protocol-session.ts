import { v7 as uuid7 } from "@langchain/core/utils/uuid";
import { makeGate } from "./gate.ts";
import type { Transcript } from "./session.ts";

type Json = Record<string, any>;
/** Makes a request and writes the answer down, if it has a name. */
type Say = (name: string | undefined, method: string, path: string, body?: unknown) => Promise<any>;
/** Writes down the events of a thread up to the end of a run. */
type Follow = (name: string, thread: string, filter?: Json) => Promise<Json[]>;

const CHANNELS = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"];

/** How long an answer may take, or the events of a run. */
const LONGEST_MS = 5000;

/** Has a session with a server in which each request is one of the thread protocol, or new like it. */
export async function haveProtocolSession(url: string): Promise<Transcript> {
	const transcript: Transcript = {};
	const write = (name: string | undefined, status: number, body: unknown) => {
		if (name !== undefined && name in transcript) throw new Error(`Two requests are called "${name}".`);
		if (name !== undefined) transcript[name] = { status, body };
	};
	const say: Say = async (name, method, path, body) => {
		const headers = { "content-type": "application/json" };
		const init = { method, headers, signal: AbortSignal.timeout(LONGEST_MS) };
		const sent = fetch(url + path, { ...init, ...(body !== undefined && { body: JSON.stringify(body) }) });
		const response = await sent.catch(() => new Response("No answer", { status: 504 }));
		const answer = parse(await response.text());
		write(name, response.status, strip(answer));
		return answer;
	};
	const follow: Follow = async (name, thread, filter = {}) => {
		const events = await readEvents(url + thread, { channels: CHANNELS, ...filter });
		write(name, 200, events.map(strip));
		return events;
	};
	const parts = [chats, interrupts, resumes, subgraphs, runs, mistakes, assistants, others];
	await Promise.all(parts.map((part) => part(say, follow)));
	return transcript;
}

function parse(text: string): any {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

/** Events until the graph itself has come to an end. */
async function readEvents(thread: string, { until = 1, ...filter }: Json): Promise<Json[]> {
	const stop = new AbortController();
	// An end that does not come is a difference.
	const timer = setTimeout(() => stop.abort(), LONGEST_MS);
	const headers = { "content-type": "application/json" };
	const init = { method: "POST", headers, body: JSON.stringify(filter), signal: stop.signal };
	const events: Json[] = [];
	try {
		const response = await fetch(`${thread}/stream/events`, init);
		const decoder = new TextDecoder();
		let text = "";
		for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
			const blocks = (text + decoder.decode(chunk, { stream: true })).split("\n\n");
			text = blocks.pop() as string;
			for (const block of blocks) events.push(JSON.parse(/^data: (.*)$/m.exec(block)?.[1] as string));
			if (events.filter(isEnd).length >= until) break;
		}
	} catch (error) {
		if (!stop.signal.aborted) throw error;
	}
	clearTimeout(timer);
	stop.abort();
	return events;
}

function isEnd({ method, params }: Json): boolean {
	const isRoot = method === "lifecycle" && params.namespace.length === 0;
	return isRoot && ["completed", "failed", "interrupted"].includes(params.data.event);
}

/** Without numbers and times, which depend on what else a server has done. */
function strip(message: Json): Json {
	if (message?.type === "event") {
		const { timestamp: _, ...params } = message.params;
		return { method: message.method, params };
	}
	if (message?.meta === undefined) return message;
	const { applied_through_seq: _, ...meta } = message.meta;
	return { ...message, meta };
}

const command = (method: string, params: Json = {}) => ({ id: 1, method, params });
const newThread = () => `/threads/${uuid7()}`;
const human = (content: string) => ({ messages: [{ type: "human", content, id: content }] });

async function chats(say: Say, follow: Follow): Promise<void> {
	const thread = newThread();
	const commands = `${thread}/commands`;
	const start = (input: Json) => command("run.start", { assistant_id: "chat", input });
	await say("chat: start", "POST", commands, start(human("one")));
	const events = await follow("chat: events", thread);
	await say("chat: state", "POST", commands, command("state.get", { namespace: [] }));
	await say("chat: keys of state", "POST", commands, command("state.get", { namespace: [], keys: ["nothing"] }));
	await say("chat: tree", "POST", commands, command("agent.getTree"));
	await say("chat: start again", "POST", commands, start(human("two")));
	await follow("chat: events since", thread, { since: events.at(-1)?.seq });
	await say("chat: thread", "GET", thread);
	await say("chat: runs", "GET", `${thread}/runs`);
}

async function interrupts(say: Say, follow: Follow): Promise<void> {
	const thread = newThread();
	const commands = `${thread}/commands`;
	await say("ask: start", "POST", commands, command("run.start", { assistant_id: "review", input: { topic: "t" } }));
	const events = await follow("ask: events", thread);
	const { interrupt_id } = events.find(({ method }) => method === "input.requested")?.params.data ?? {};
	await say("ask: answer without id", "POST", commands, command("input.respond", { namespace: [], response: "yes" }));
	await say("ask: no answers", "POST", commands, command("input.respond", { responses: [] }));
	const update = { topic: "another" };
	const answer = { namespace: [], interrupt_id, response: "yes", update, metadata: { by: "me" } };
	await say("ask: answer", "POST", commands, command("input.respond", answer));
	await follow("ask: events after", thread, { since: events.at(-1)?.seq });
	await say("ask: answer again", "POST", commands, command("input.respond", answer));
	await say("ask: state", "POST", commands, command("state.get", { namespace: [] }));
}

async function resumes(say: Say, follow: Follow): Promise<void> {
	const thread = newThread();
	const commands = `${thread}/commands`;
	await say(undefined, "POST", commands, command("run.start", { assistant_id: "review", input: { topic: "t" } }));
	const events = await follow("resume: events", thread, { channels: ["input", "lifecycle"] });
	await say("resume: by input", "POST", commands, command("run.start", { assistant_id: "review", input: "yes" }));
	await follow("resume: events after", thread, { channels: ["values", "lifecycle"], since: events.at(-1)?.seq });

	const other = newThread();
	await say(
		undefined,
		"POST",
		`${other}/commands`,
		command("run.start", { assistant_id: "review", input: { topic: "t" } }),
	);
	const asked = await follow("batch: events", other, { channels: ["input", "lifecycle"] });
	const { interrupt_id } = asked.find(({ method }) => method === "input.requested")?.params.data ?? {};
	const responses = [{ namespace: [], interrupt_id, response: "all" }];
	await say("batch: answer", "POST", `${other}/commands`, command("input.respond", { responses, goto: "write" }));
	await follow("batch: events after", other, { channels: ["updates", "lifecycle"], since: asked.at(-1)?.seq });
}

async function subgraphs(say: Say, follow: Follow): Promise<void> {
	const run = async (name: string, filter: Json, input: Json = {}) => {
		const thread = newThread();
		await say(undefined, "POST", `${thread}/commands`, command("run.start", { assistant_id: "nested", input }));
		await follow(name, thread, filter);
		return thread;
	};
	await Promise.all([
		run("nested: all", {}),
		run("nested: root only", { namespaces: [[]], depth: 0 }),
		run("nested: one level", { namespaces: [[]], depth: 1 }),
		run("nested: child and root", { channels: ["updates", "lifecycle"], namespaces: [["child"], []] }),
		run("nested: custom", { channels: ["custom", "lifecycle"] }),
	]);
	const thread = await run("nested: ask", { channels: ["input", "lifecycle", "values"] }, { ask: true });
	await say("nested: tree", "POST", `${thread}/commands`, command("agent.getTree"));
}

async function runs(say: Say, follow: Follow): Promise<void> {
	const fail = newThread();
	const params = { assistant_id: "work", input: { name: "w", fail: "broken" } };
	await say("fail: start", "POST", `${fail}/commands`, command("run.start", params));
	await follow("fail: events", fail);

	const thread = newThread();
	const commands = `${thread}/commands`;
	const start = (name: string, more: Json = {}) =>
		command("run.start", { assistant_id: "work", input: { name }, ...more });
	await say("time: start", "POST", commands, start("one", { metadata: { n: 1 } }));
	const events = await follow("time: events", thread, { channels: ["checkpoints", "lifecycle"] });
	const { id } = events.find(({ params }) => params.data.step === 1)?.params.data ?? {};
	await say("time: fork", "POST", commands, start("two", { config: { configurable: { checkpoint_id: id } } }));
	const forked = await follow("time: events of fork", thread, {
		channels: ["values", "lifecycle"],
		since: events.at(-1)?.seq,
	});
	await say("time: from the head", "POST", commands, start("three"));
	await follow("time: events from the head", thread, { channels: ["values", "lifecycle"], since: forked.at(-1)?.seq });

	const busy = newThread();
	const gate = makeGate();
	const stuck = { assistant_id: "work", input: { name: "one", until: gate.path } };
	await say("busy: start", "POST", `${busy}/commands`, command("run.start", stuck));
	await say("busy: reject", "POST", `${busy}/commands`, start("two", { multitaskStrategy: "reject" }));
	await say("busy: enqueue", "POST", `${busy}/commands`, start("two"));
	gate.open();
	await follow("busy: events", busy, { channels: ["values", "lifecycle"], until: 2 });
}

async function mistakes(say: Say): Promise<void> {
	const commands = `${newThread()}/commands`;
	await say("wrong: unknown command", "POST", commands, command("nothing"));
	await say("wrong: no assistant", "POST", commands, command("run.start", { input: {} }));
	await say("wrong: no run to answer", "POST", commands, command("input.respond", { interrupt_id: "x", response: 1 }));
	await say("wrong: no run for a tree", "POST", commands, command("agent.getTree"));
	await say("wrong: no id", "POST", commands, { method: "run.start" });
	await say("wrong: negative id", "POST", commands, { id: -1, method: "run.start" });
	await say("wrong: no method", "POST", commands, { id: 1 });
	await say("wrong: state of nothing", "POST", commands, command("state.get", { namespace: [] }));
	await say("wrong: list", "POST", commands, command("state.listCheckpoints"));
	await say("wrong: inject", "POST", commands, command("input.inject", { namespace: [], message: {} }));
	await say("wrong: fork", "POST", commands, command("state.fork", { checkpoint_id: "x" }));
	const stream = `${newThread()}/stream/events`;
	await say("wrong: no channels", "POST", stream, {});
	await say("wrong: channels are text", "POST", stream, { channels: "values" });
	await say("wrong: depth", "POST", stream, { channels: ["values"], depth: -1 });
	await say("wrong: since", "POST", stream, { channels: ["values"], since: "now" });
}

async function assistants(say: Say): Promise<void> {
	const config = { configurable: { tone: "loud" } };
	const made = await say("assistant: make", "POST", "/assistants", {
		graph_id: "work",
		name: "Ours",
		metadata: { owner: "us" },
		config,
	});
	const path = `/assistants/${made.assistant_id}`;
	await say("assistant: make again", "POST", "/assistants", { graph_id: "work", assistant_id: made.assistant_id });
	await say("assistant: get", "GET", path);
	await say("assistant: patch", "PATCH", path, { name: "Theirs", metadata: { more: 1 } });
	await say("assistant: versions", "POST", `${path}/versions`, {});
	await say("assistant: latest", "POST", `${path}/latest`, { version: 1 });
	await say("assistant: latest of none", "POST", `${path}/latest`, { version: 9 });
	await say("assistant: search", "POST", "/assistants/search", { metadata: { owner: "us" } });
	const { thread_id } = await say(undefined, "POST", "/threads", {});
	const run = { assistant_id: made.assistant_id, input: { name: "w" } };
	await say("assistant: run", "POST", `/threads/${thread_id}/runs/wait`, run);
	await say("assistant: runs", "GET", `/threads/${thread_id}/runs`);
	await say("assistant: delete", "DELETE", path);
	await say("assistant: delete again", "DELETE", path);
	await say("assistant: get deleted", "GET", path);
}

async function others(say: Say): Promise<void> {
	const { thread_id } = await say(undefined, "POST", "/threads", {});
	const thread = `/threads/${thread_id}`;
	await say(undefined, "POST", `${thread}/runs/wait`, { assistant_id: "work", input: { name: "w" } });
	await say("select of state", "GET", `${thread}/state?select=values.log&select=next`);
	await say("crons", "POST", "/runs/crons/search", {});
	await say("patch state", "PATCH", `${thread}/state`, { metadata: { a: 1 } });
}
