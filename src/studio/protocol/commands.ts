import { Fields, isRecord, type Json, MOST_ITEMS } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import type { Run } from "../runs/run.ts";
import { readRunRequest } from "../runs/run-request.ts";
import type { Access } from "../security/access.ts";
import type { Studio } from "../studio.ts";
import { isReserved } from "../threads/records.ts";
import type { FoundThread } from "../threads/threads.ts";
import { ProtocolError } from "./protocol-error.ts";
import { pendingInterrupts } from "./recall.ts";
import type { ThreadFeed } from "./thread-feed.ts";

/** Who sends a command, and for which thread. The thread is one that the sender may access. */
export interface Sender {
	readonly studio: Studio;
	readonly access: Access;
	readonly headers: Headers;
	readonly threadId: string;
}

export interface Command {
	readonly id: number;
	readonly method: string;
	readonly params: Fields;
}

/** A command that can be sent in a request of its own. */
interface CommandKind {
	/** Whether it leaves everything as it was. */
	readonly isRead?: boolean;
	readonly run: (sender: Sender, params: Fields) => Promise<Json>;
}

const COMMANDS: Readonly<Record<string, CommandKind>> = {
	"run.start": { run: startRun },
	"input.respond": { run: respond },
	"input.inject": { run: inject },
	"state.get": { isRead: true, run: getState },
	"state.listCheckpoints": { isRead: true, run: listCheckpoints },
	"state.fork": { run: fork },
	"agent.getTree": { isRead: true, run: getTree },
};

export function readCommand(json: unknown): Command {
	const { id, method, params } = isRecord(json) ? json : {};
	if (Number.isSafeInteger(id) && (id as number) >= 0 && typeof method === "string")
		return { id: id as number, method, params: new Fields(params ?? undefined) };
	throw new ProtocolError("invalid_argument", "A command must have a whole number as `id` and a string as `method`.");
}

/** Does what a command asks for, and returns its answer. */
export async function runCommand(sender: Sender, { id, method, params }: Command): Promise<Json> {
	const { studio, threadId } = sender;
	const kind = Object.hasOwn(COMMANDS, method) ? COMMANDS[method] : undefined;
	if (kind === undefined) throw new ProtocolError("unknown_command", `Unknown protocol command: ${method}`);
	if (studio.readOnly && !kind.isRead) throw new HttpError(403, "This server is read-only.");
	const feed = studio.feeds.hold(threadId);
	try {
		// Before the command starts something: clients take what asks for a person up to here for old.
		const meta = { thread_id: threadId, applied_through_seq: feed.lastSeq };
		return { type: "success", id, result: await kind.run(sender, params), meta };
	} finally {
		studio.feeds.release(threadId);
	}
}

/** The answer to a command that was refused. */
export function refusal(id: number | null, { code, message }: ProtocolError): Json {
	return { type: "error", id, error: code, message };
}

async function startRun(sender: Sender, params: Fields): Promise<Json> {
	const assistant_id = params.text("assistant_id");
	if (assistant_id === undefined) throw new ProtocolError("invalid_argument", "run.start requires an assistant_id.");
	const input = params.get("input");
	const { checkpoint_id } = (params.record("config")?.configurable as Json) ?? {};
	const from = typeof checkpoint_id === "string" ? checkpoint_id : undefined;
	const isAnswer = input !== undefined && from === undefined && (await findAsked(sender)).length > 0;
	const run = await launch(sender, params, {
		assistant_id,
		...(isAnswer ? { command: { resume: input } } : { input }),
		...(from !== undefined && { checkpoint_id: from }),
	});
	return { run_id: run.id };
}

/**
 * The ids of what a thread waits for a person to answer. While a run is under way, that is what this run has asked so far:
 * it may not be stored yet, and what is stored may be what the run answers.
 */
async function findAsked({ studio, threadId }: Sender): Promise<readonly unknown[]> {
	if (studio.runs.isBusy(threadId)) return studio.feeds.get(threadId)?.asked ?? [];
	const thread = await studio.threads.find(threadId);
	return thread === undefined ? [] : (await pendingInterrupts(studio.describe(thread))).map(({ id }) => id);
}

async function respond(sender: Sender, params: Fields): Promise<Json> {
	const responses = (params.list("responses") ?? [readEntry(params)]).map(readResponse);
	if (responses.length === 0)
		throw new ProtocolError("invalid_argument", "input.respond requires at least one response.");
	const assistant_id = await assistantOf(sender);
	const asked = await findAsked(sender);
	const { answers } = sender.studio.feeds.get(sender.threadId) as ThreadFeed;
	for (const [id] of responses)
		if (!asked.includes(id) || answers.get(id)?.isInFlight)
			throw new ProtocolError("no_such_interrupt", `Thread ${sender.threadId} does not wait for an answer to ${id}.`);
	const command = { resume: Object.fromEntries(responses), update: params.get("update"), goto: params.get("goto") };
	for (const [id] of responses) answers.set(id, { isInFlight: true });
	let run: Run | undefined;
	try {
		run = await launch(sender, params, { assistant_id, command });
	} finally {
		for (const [id] of responses) answers.set(id, run ?? { isInFlight: false });
	}
	return {};
}

/** The only response of a command that has no list of them. */
function readEntry(params: Fields): Json {
	return { interrupt_id: params.get("interrupt_id"), response: params.get("response") };
}

function readResponse(entry: unknown): [id: string, response: unknown] {
	if (isRecord(entry) && typeof entry.interrupt_id === "string") return [entry.interrupt_id, entry.response ?? null];
	throw new ProtocolError("invalid_argument", "input.respond requires an interrupt_id.");
}

/** A message for a graph that runs: its next run gets it, which begins when this one ends. */
async function inject(sender: Sender, params: Fields): Promise<Json> {
	const message = new Fields(params.record("message"));
	const { role, content, name } = {
		role: message.choice("role", ["user", "system"]) ?? "user",
		content: message.mustText("content"),
		name: message.text("name"),
	};
	if (readNamespace(params) !== "")
		throw new ProtocolError("not_supported", "Messages can be injected into the root graph only.");
	const assistant_id = await assistantOf(sender);
	const { graphs, assistants } = sender.studio;
	const { graph_id } = await assistants.mustFind(assistant_id);
	if (!("messages" in (await graphs.get(graph_id)).channels))
		throw new ProtocolError("not_supported", "The state of this graph has no `messages`.");
	await launch(sender, new Fields({}), { assistant_id, input: { messages: [{ role, content, name }] } });
	return {};
}

async function fork(sender: Sender, params: Fields): Promise<Json> {
	const { threadId } = sender;
	const checkpoint_id = params.mustText("checkpoint_id");
	const thread = await findThread(sender);
	// A saver takes an empty id for none.
	if (checkpoint_id === "" || !(await hasCheckpoint(thread, checkpoint_id)))
		throw new ProtocolError("no_such_checkpoint", `Thread ${threadId} has no checkpoint ${checkpoint_id}.`);
	const assistant_id = await assistantOf(sender);
	const run = await launch(sender, params, { assistant_id, input: params.get("input"), checkpoint_id });
	return { run_id: run.id, thread_id: threadId };
}

async function hasCheckpoint({ saver, threadId }: FoundThread, checkpoint_id: string): Promise<boolean> {
	const configurable = { thread_id: threadId, checkpoint_ns: "", checkpoint_id };
	for await (const _ of saver.listCheckpoints({ configurable }, { limit: 1 })) return true;
	return false;
}

/** Starts a run, as the other routes do, which waits for its turn unless the client wants it otherwise. */
async function launch({ studio, access, headers, threadId }: Sender, params: Fields, what: Json): Promise<Run> {
	const given = ["config", "metadata", "context", "interrupt_before", "interrupt_after", "durability", "strict_resume"];
	const body = {
		...Object.fromEntries(given.map((name) => [name, params.get(name)])),
		...what,
		multitask_strategy: params.get("multitask_strategy") ?? params.get("multitaskStrategy") ?? "enqueue",
		if_not_exists: "create",
	};
	return studio.runs.create(access, threadId, readRunRequest(body, headers), "feed");
}

async function getState(sender: Sender, params: Fields): Promise<Json> {
	const ns = readNamespace(params);
	const keys = params.texts("keys");
	const { values, checkpoint } = await readState(sender, ns);
	const chosen = Object.entries((values as Json) ?? {}).filter(([key]) => keys?.includes(key) ?? true);
	const { checkpoint_id, checkpoint_ns } = (checkpoint as Json | null) ?? {};
	return {
		values: Object.fromEntries(chosen),
		...(checkpoint !== null && { checkpoint: { id: checkpoint_id, ns: checkpoint_ns } }),
	};
}

async function readState(sender: Sender, ns: string): Promise<Json> {
	const state = await sender.studio.states.get(await findThread(sender), { checkpoint_ns: ns }, false);
	if (state.checkpoint === null && ns !== "")
		throw new ProtocolError("no_such_namespace", `Thread ${sender.threadId} has no state of ${ns}.`);
	return state;
}

async function listCheckpoints(sender: Sender, params: Fields): Promise<Json> {
	const { studio } = sender;
	const query = {
		limit: params.integer("limit", 0, MOST_ITEMS) ?? 10,
		before: params.text("before"),
		metadata: undefined,
	};
	const checkpoints: Json[] = [];
	const history = studio.states.history(await findThread(sender), { checkpoint_ns: readNamespace(params) }, query);
	for await (const { checkpoint, parent_checkpoint, created_at, metadata } of history)
		checkpoints.push({
			id: (checkpoint as Json).checkpoint_id,
			parent_id: (parent_checkpoint as Json | null)?.checkpoint_id,
			timestamp: created_at,
			step: (metadata as Json).step,
			metadata,
		});
	return { checkpoints };
}

async function getTree({ studio, threadId }: Sender): Promise<Json> {
	const tree = studio.feeds.get(threadId)?.tree;
	if (tree === undefined) throw new ProtocolError("no_such_run", "No active run is bound to this thread.");
	return { tree: tree.describe() };
}

function findThread({ studio, threadId }: Sender): Promise<FoundThread> {
	return studio.threads.mustFind(threadId);
}

/** The assistant that a thread was run with. */
async function assistantOf(sender: Sender): Promise<string> {
	const { studio, threadId } = sender;
	const thread = await studio.threads.find(threadId);
	const { assistant_id, graph_id } = thread ? (await studio.describe(thread).record()).metadata : {};
	const assistant = assistant_id ?? graph_id;
	if (typeof assistant === "string") return assistant;
	throw new ProtocolError("no_such_run", "Thread has no active assistant; call run.start first.");
}

/** A namespace as checkpoints have it. */
function readNamespace(params: Fields): string {
	const ns = (params.texts("namespace") ?? []).join("|");
	if (isReserved(ns)) throw new ProtocolError("no_such_namespace", "`namespace` names no part of a graph.");
	return ns;
}
