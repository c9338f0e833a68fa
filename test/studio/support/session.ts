import { makeGate } from "./gate.ts";

/** What a server said to one request. */
export interface Answer {
	readonly status: number;
	/** JSON, text, or the events of a stream. */
	readonly body: any;
}

/** The answers of a session, by the names of its requests. */
export type Transcript = Record<string, Answer>;

type Json = Record<string, unknown>;
/** Makes a request. One without a name is not written down. */
type Say = (name: string | undefined, method: string, path: string, body?: unknown) => Promise<any>;

/** Has the session with a server, and answers all that it said. */
export async function haveSession(url: string): Promise<Transcript> {
	const transcript: Transcript = {};
	const say: Say = async (name, method, path, body) => {
		const init =
			body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
		const response = await fetch(url + path, { method, ...init });
		const answer = { status: response.status, body: parse(await response.text()) };
		if (name !== undefined && name in transcript) throw new Error(`Two requests are called "${name}".`);
		if (name !== undefined) transcript[name] = answer;
		return answer.body;
	};
	// The official server lets each request wait for half a second after its run: so all parts at once. But while it runs
	// something without a thread, its graphs have no saver, whoever else runs them.
	const parts = [assistants, threads, interrupts, times, forks, subgraphs, failures, multitasking, memory];
	await Promise.all([...parts.map((part) => part(say)), ...MODES.map((mode) => streamIn(say, mode))]);
	await stateless(say);
	return transcript;
}

/** Makes a thread and runs a graph on it. */
async function runOnNew(say: Say, name: string, assistant_id: string, input: Json): Promise<string> {
	const { thread_id } = await say(`${name}: make thread`, "POST", "/threads", {});
	await say(`${name}: run`, "POST", `/threads/${thread_id}/runs/wait`, { assistant_id, input });
	return thread_id;
}

async function assistants(say: Say): Promise<void> {
	const studio = { limit: 100, offset: 0, metadata: { created_by: "system" }, name: "chat" };
	const all = await say("search assistants", "POST", "/assistants/search", studio);
	await say("search assistants by graph", "POST", "/assistants/search", { graph_id: "work" });
	await say("search assistants of others", "POST", "/assistants/search", { metadata: { created_by: "me" } });
	await say("count assistants", "POST", "/assistants/count", { graph_id: "chat" });
	await say("get assistant", "GET", `/assistants/${all[0].assistant_id}`);
	await say("get assistant by graph", "GET", "/assistants/work");
	await say("get assistant that is not there", "GET", "/assistants/nobody");
	await say("draw graph", "GET", "/assistants/nested/graph");
	await say("draw graph with what is inside", "GET", "/assistants/nested/graph?xray=true");
	await say("get schemas", "GET", "/assistants/review/schemas");
	await say("info", "GET", "/info");
	await say("ok", "GET", "/ok");
}

async function threads(say: Say): Promise<void> {
	const { thread_id } = await say("make thread with metadata", "POST", "/threads", { metadata: { owner: "Ada" } });
	const thread = `/threads/${thread_id}`;
	await say("make thread twice", "POST", "/threads", { thread_id });
	await say("make thread twice, fine", "POST", "/threads", { thread_id, if_exists: "do_nothing" });
	await say("get new thread", "GET", thread);
	await say("state of new thread", "GET", `${thread}/state`);
	await say("history of new thread", "POST", `${thread}/history`, {});
	await say("patch thread", "PATCH", thread, { metadata: { color: "green" } });
	await say("thread: run", "POST", `${thread}/runs/wait`, {
		assistant_id: "work",
		input: { name: "w" },
		metadata: { n: 1 },
	});
	await say("get thread after run", "GET", thread);
	await say("list runs", "GET", `${thread}/runs`);
	await say("search by metadata", "POST", "/threads/search", { metadata: { owner: "Ada" } });
	await say("search by ids", "POST", "/threads/search", { ids: [thread_id], select: ["thread_id", "status"] });
	await say("search nothing", "POST", "/threads/search", { metadata: { owner: "Nobody" } });
	await say("count by metadata", "POST", "/threads/count", { metadata: { color: "green" } });
	await say("count by status", "POST", "/threads/count", { metadata: { color: "green" }, status: "busy" });
	const copy = await say("copy thread", "POST", `${thread}/copy`);
	await say("state of copy", "GET", `/threads/${copy.thread_id}/state`);
	await say("delete thread", "DELETE", thread);
	await say("delete thread twice", "DELETE", thread);
	await say("get deleted thread", "GET", thread);
	await say("state of deleted thread", "GET", `${thread}/state`);
	await say("state of copy after deletion", "GET", `/threads/${copy.thread_id}/state`);
	await say("make thread with any id", "POST", "/threads", { thread_id: "any id" });
	const supersteps = [
		{ updates: [{ values: { name: "old", log: ["one"] }, as_node: "__input__" }] },
		{ updates: [{ values: { name: "old", log: ["one"] }, as_node: "__start__" }] },
	];
	const bulk = await say("make thread with states", "POST", "/threads", { supersteps, metadata: { graph_id: "work" } });
	await say("state of thread with states", "GET", `/threads/${bulk.thread_id}/state`);
}

async function interrupts(say: Say): Promise<void> {
	const thread_id = await runOnNew(say, "interrupt", "review", { topic: "ships" });
	const thread = `/threads/${thread_id}`;
	await say("interrupt: thread", "GET", thread);
	await say("interrupt: state", "GET", `${thread}/state`);
	const resume = { assistant_id: "review", command: { resume: "yes" }, stream_mode: ["values", "updates"] };
	await say("interrupt: resume", "POST", `${thread}/runs/stream`, resume);
	await say("interrupt: thread after resume", "GET", thread);
	const stop = { assistant_id: "work", input: { name: "w" }, interrupt_before: ["second"], if_not_exists: "create" };
	const other = "01234567-89ab-7cde-8f01-23456789abcd";
	await say("interrupt before a node", "POST", `/threads/${other}/runs/wait`, stop);
	await say("interrupt before a node: thread", "GET", `/threads/${other}`);
	const on = { assistant_id: "work", input: null, interrupt_after: "*" };
	await say("interrupt after every node", "POST", `/threads/${other}/runs/wait`, on);
	const go = { assistant_id: "work", command: { goto: "third", update: { name: "sent" } } };
	await say("go to a node", "POST", `/threads/${other}/runs/wait`, go);
}

async function times(say: Say): Promise<void> {
	const thread_id = await runOnNew(say, "time", "work", { name: "one" });
	const thread = `/threads/${thread_id}`;
	const history = await say("time: history", "POST", `${thread}/history`, {});
	const { checkpoint } = history[2];
	await say("time: limit", "POST", `${thread}/history`, { limit: 2 });
	await say("time: before", "POST", `${thread}/history`, { before: checkpoint.checkpoint_id });
	await say("time: before, as a config", "POST", `${thread}/history`, { before: { configurable: checkpoint } });
	await say("time: by metadata", "POST", `${thread}/history`, { metadata: { source: "input" } });
	await say("time: by GET", "GET", `${thread}/history?limit=1`);
	await say("time: past state", "GET", `${thread}/state/${checkpoint.checkpoint_id}`);
	await say("time: past state by checkpoint", "POST", `${thread}/state/checkpoint`, { checkpoint });
	const missing = "1f000000-0000-6000-8000-000000000000";
	await say("time: state that is not there", "GET", `${thread}/state/${missing}`);
	await say("time: run from the past", "POST", `${thread}/runs/wait`, {
		assistant_id: "work",
		input: null,
		checkpoint,
	});
	await say("time: run from the head", "POST", `${thread}/runs/wait`, { assistant_id: "work", input: { name: "two" } });
}

async function forks(say: Say): Promise<void> {
	const thread_id = await runOnNew(say, "fork", "work", { name: "one" });
	const thread = `/threads/${thread_id}`;
	const history = await say("fork: history", "POST", `${thread}/history`, {});
	const { checkpoint_id } = history[1].checkpoint;
	await say("fork: update the head", "POST", `${thread}/state`, { values: { log: ["edited"] } });
	await say("fork: update the past", "POST", `${thread}/state`, { values: { name: "fork" }, checkpoint_id });
	await say("fork: state", "GET", `${thread}/state`);
	await say("fork: run on", "POST", `${thread}/runs/wait`, { assistant_id: "work", input: null });
	const again = { values: null, as_node: "__copy__", checkpoint_id };
	await say("fork: run again from here", "POST", `${thread}/state`, again);
	await say("fork: state to run again", "GET", `${thread}/state`);
	await say("fork: run again", "POST", `${thread}/runs/wait`, { assistant_id: "work", input: null });
	await say("fork: as a node that is not there", "POST", `${thread}/state`, { values: {}, as_node: "nobody" });
}

async function subgraphs(say: Say): Promise<void> {
	const { thread_id } = await say("nested: make thread", "POST", "/threads", {});
	const thread = `/threads/${thread_id}`;
	const run = {
		assistant_id: "nested",
		input: { ask: true },
		stream_mode: ["values", "updates", "custom"],
		stream_subgraphs: true,
	};
	await say("nested: run", "POST", `${thread}/runs/stream`, run);
	const state = await say("nested: state", "GET", `${thread}/state`);
	await say("nested: state with subgraphs", "GET", `${thread}/state?subgraphs=true`);
	const { checkpoint } = state.tasks[0];
	await say("nested: state of subgraph", "POST", `${thread}/state/checkpoint`, { checkpoint });
	await say("nested: history of subgraph", "POST", `${thread}/history`, {
		checkpoint: { checkpoint_ns: checkpoint.checkpoint_ns },
	});
	await say("nested: thread", "GET", thread);
	await say("nested: resume", "POST", `${thread}/runs/wait`, { assistant_id: "nested", command: { resume: "yes" } });
}

const MODES = [
	...["values", "updates", "messages", "messages-tuple", "tasks", "checkpoints", "debug", "custom", "events"],
	["values", "messages-tuple", "updates"],
];

async function streamIn(say: Say, stream_mode: string | string[]): Promise<void> {
	const input = { messages: [{ role: "user", content: "how are you", id: "question" }] };
	const { thread_id } = await say(`mode ${stream_mode}: make thread`, "POST", "/threads", {});
	const run = { assistant_id: "chat", input, stream_mode };
	await say(`mode ${stream_mode}`, "POST", `/threads/${thread_id}/runs/stream`, run);
}

async function failures(say: Say): Promise<void> {
	const { thread_id } = await say("failure: make thread", "POST", "/threads", {});
	const thread = `/threads/${thread_id}`;
	const fail = { assistant_id: "work", input: { name: "w", fail: "broken" } };
	await say("failure: stream", "POST", `${thread}/runs/stream`, fail);
	await say("failure: thread", "GET", thread);
	await say("failure: state", "GET", `${thread}/state`);
	await say("failure: wait", "POST", `${thread}/runs/wait`, fail);
	await say("failure: unknown assistant", "POST", `${thread}/runs/wait`, { assistant_id: "nobody", input: {} });
	const nowhere = "/threads/00000000-0000-7000-8000-000000000000";
	await say("failure: unknown thread", "POST", `${nowhere}/runs/wait`, fail);
	await say("failure: unknown run", "GET", `${thread}/runs/00000000-0000-7000-8000-000000000000`);
	await say("failure: history of unknown thread", "POST", `${nowhere}/history`, {});
	await say("failure: wrong field", "POST", `${thread}/runs/wait`, { assistant_id: "work", stream_mode: "nothing" });
	await say("failure: no such route", "GET", "/nowhere");
}

async function multitasking(say: Say): Promise<void> {
	const gate = makeGate();
	const { thread_id } = await say("busy: make thread", "POST", "/threads", {});
	const thread = `/threads/${thread_id}`;
	const slow = { assistant_id: "work", input: { name: "first", until: gate.path } };
	const first = await say("busy: first", "POST", `${thread}/runs`, slow);
	await say("busy: thread", "GET", thread);
	await say("busy: reject", "POST", `${thread}/runs`, slow);
	await say("busy: update", "POST", `${thread}/state`, { values: {} });
	const enqueue = { assistant_id: "work", input: { name: "second" }, multitask_strategy: "enqueue" };
	const second = await say("busy: enqueue", "POST", `${thread}/runs`, enqueue);
	gate.open();
	await say("busy: join first", "GET", `${thread}/runs/${first.run_id}/join`);
	await say("busy: join second", "GET", `${thread}/runs/${second.run_id}/join`);
	await say("busy: state", "GET", `${thread}/state`);

	const closed = makeGate();
	const cancelled = await say("cancel: make thread", "POST", "/threads", {});
	const stuck = { assistant_id: "work", input: { name: "stuck", until: closed.path } };
	const path = `/threads/${cancelled.thread_id}`;
	const run = await say("cancel: run", "POST", `${path}/runs`, stuck);
	for (let state: any; state?.next[0] !== "second"; ) state = await say(undefined, "GET", `${path}/state`);
	await say("cancel: cancel", "POST", `${path}/runs/${run.run_id}/cancel?wait=1`);
	await say("cancel: run after", "GET", `${path}/runs/${run.run_id}`);
	await say("cancel: thread after", "GET", path);
	await say("cancel: unknown run", "POST", `${path}/runs/00000000-0000-7000-8000-000000000000/cancel`);
}

async function stateless(say: Say): Promise<void> {
	await say("stateless: wait", "POST", "/runs/wait", { assistant_id: "work", input: { name: "w" } });
	await say("stateless: interrupt", "POST", "/runs/wait", { assistant_id: "review", input: { topic: "t" } });
	const stream = { assistant_id: "work", input: { name: "w" }, stream_mode: "updates" };
	await say("stateless: stream", "POST", "/runs/stream", stream);
}

async function memory(say: Say): Promise<void> {
	const item = { namespace: ["user", "1"], key: "name", value: { text: "Ada" } };
	await say("memory: put", "PUT", "/store/items", item);
	await say("memory: get", "GET", "/store/items?namespace=user.1&key=name");
	await say("memory: search", "POST", "/store/items/search", { namespace_prefix: ["user"] });
	await say("memory: search with filter", "POST", "/store/items/search", {
		namespace_prefix: ["user"],
		filter: { text: "x" },
	});
	await say("memory: namespaces", "POST", "/store/namespaces", { max_depth: 1 });
	await say("memory: wrong namespace", "PUT", "/store/items", { ...item, namespace: ["a.b"] });
	await say("memory: delete", "DELETE", "/store/items", { namespace: ["user", "1"], key: "name" });
	await say("memory: get what is gone", "GET", "/store/items?namespace=user.1&key=name");
}

function parse(text: string): unknown {
	if (/^(?:id|event|data):/m.test(text) && text.includes("\ndata:")) return parseEvents(text);
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

function parseEvents(text: string): { event: string; data: unknown }[] {
	const blocks = text.split("\n\n").filter((block) => block.includes("data:"));
	return blocks.map((block) => {
		const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
		return { event: field("event"), data: JSON.parse(field("data")) };
	});
}

/** What the official server writes about itself into configs and metadata. None of it answers a question. */
const ABOUT_ITSELF = /^(?:user-agent|run_attempt|ls_integration|langgraph_.*)$/;
/** How a chat model came to its message: by tokens or at once. A server may ask it either way. */
const ABOUT_TOKENS = /^(?:tool_call_chunks|response_metadata)$/;
/** What the client's types have, and the official server leaves out where there is nothing to say, or always. */
const IN_THE_TYPES = /^(?:state_updated_at|interrupts|error|configurable)$/;

const ID = /(?:run-)?\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\b/g;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const GATE = /^\/.*test-.*$/;

/** An answer without what is different each time: ids are numbered as they appear, times are left out. */
export function normalize({ status, body }: Answer): Answer {
	const ids = new Map<string, string>();
	const number = (id: string) => {
		if (!ids.has(id)) ids.set(id, `id ${ids.size + 1}`);
		return ids.get(id) as string;
	};
	const walk = (value: any, isMetadata: boolean): unknown => {
		if (typeof value === "string") {
			if (TIME.test(value)) return "time";
			return GATE.test(value) ? "gate" : value.replaceAll(ID, number);
		}
		if (Array.isArray(value)) return value.map((item) => walk(item, false));
		if (typeof value !== "object" || value === null) return value;
		const walked: Record<string, unknown> = {};
		for (const key of Object.keys(value).sort()) {
			if (ABOUT_ITSELF.test(key) || ABOUT_TOKENS.test(key)) continue;
			if (isMetadata && /^checkpoint_(?:ns|map)$/.test(key)) continue;
			walked[key.replaceAll(ID, number)] = walk(value[key], key === "metadata");
		}
		return walked;
	};
	return { status, body: walk(body, false) };
}

/** Our answer without those fields that only the client's types ask for. */
export function withoutExtras(ours: any, theirs: any): any {
	if (Array.isArray(ours))
		return ours.map((item, i) => withoutExtras(item, Array.isArray(theirs) ? theirs[i] : undefined));
	if (typeof ours !== "object" || ours === null) return ours;
	const keys = Object.keys(ours).filter((key) => !IN_THE_TYPES.test(key) || Object.hasOwn(theirs ?? {}, key));
	return Object.fromEntries(keys.map((key) => [key, withoutExtras(ours[key], theirs?.[key])]));
}
