import { isPrefixMatch } from "@langchain/langgraph/stream";
import type { Call } from "../call.ts";
import { toJson } from "../http/json.ts";
import { encodeSegment } from "../http/router.ts";
import { slowJsonResponse, sseResponse } from "../http/sse.ts";
import type { LoggedEvent } from "../runs/event-log.ts";
import type { Run } from "../runs/run.ts";
import type { Studio } from "../studio.ts";

/** The events of a run, from where the reader left off. */
export function sendEvents(call: Call, run: Run, cancelOnLeave = run.request.cancelOnDisconnect): Response {
	const lastId = call.request.headers.get("last-event-id");
	const position = lastId === null || !/^-?\d+$/.test(lastId) ? undefined : Number(lastId);
	const isWanted = readNamespaces(call.query);
	return sseResponse(run.log.read(position, { isWanted }), {
		headers: addressOf(run),
		onLeave: leave(run, cancelOnLeave),
	});
}

/** Whether an event is of one of the namespaces that a query names, if it names any. What is of none is wanted anyway. */
function readNamespaces(query: URLSearchParams): (event: LoggedEvent) => boolean {
	const wanted = query.getAll("namespace").map((namespace) => (namespace === "" ? [] : namespace.split("|")));
	if (wanted.length === 0) return () => true;
	return ({ event }) => {
		const [name, ...namespace] = event.split("|");
		if (name === "metadata" || name === "error") return true;
		return wanted.some((path) => path.length === namespace.length && isPrefixMatch(namespace, path));
	};
}

/** What a run comes to: its last values, or its error. */
export function sendResult(call: Call, run: Run, cancelOnLeave = run.request.cancelOnDisconnect): Response {
	return slowJsonResponse(resultOf(call.studio, run), { headers: addressOf(run), onLeave: leave(run, cancelOnLeave) });
}

/** What is there to send of a run that ended long ago: no events, and the state of its thread. */
export function sendNoEvents(): Response {
	return sseResponse(nothing(), { headers: {}, onLeave: () => {} });
}

export function sendState({ studio }: Call, threadId: string): Response {
	return slowJsonResponse(stateOf(studio, threadId), { headers: {}, onLeave: () => {} });
}

/** Tells a client where its run is. */
export function addressOf(run: Run): Record<string, string> {
	const { threadId, saver } = run.place;
	const path = saver === undefined ? `/runs/${run.id}` : `/threads/${encodeSegment(threadId)}/runs/${run.id}`;
	// A client that knows where to comes back there when its connection breaks.
	return { "content-location": path, ...(run.request.isResumable && { location: `${path}/stream` }) };
}

function leave(run: Run, cancelOnLeave: boolean): () => void {
	return () => {
		if (cancelOnLeave) run.stop("interrupt");
	};
}

async function resultOf(studio: Studio, run: Run): Promise<string> {
	await run.done;
	if (run.end?.error !== undefined) return toJson({ __error__: run.end.error });
	return run.values === undefined ? stateOf(studio, run.place.threadId) : toJson(run.values);
}

async function stateOf({ threads, states }: Studio, threadId: string): Promise<string> {
	const thread = await threads.find(threadId);
	return toJson(thread?.info.head === undefined ? null : (await states.get(thread, {}, false)).values);
}

async function* nothing(): AsyncGenerator<LoggedEvent> {}
