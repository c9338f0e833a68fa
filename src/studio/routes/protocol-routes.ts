import type { Call } from "../call.ts";
import { HttpError } from "../http/http-error.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import { sseResponse } from "../http/sse.ts";
import { readCommand, refusal, runCommand } from "../protocol/commands.ts";
import { readFilter } from "../protocol/filter.ts";
import { ProtocolError, toProtocolError } from "../protocol/protocol-error.ts";
import { recallEnd } from "../protocol/recall.ts";

/** Errors that clients see by the status of the answer, as with all other routes: not allowed, not there, too much. */
const KEEPS_STATUS = [403, 404, 413, 429];

/** Where a WebSocket is. Whoever comes without one, or by a host that takes none, learns what is missing. */
export const SOCKET_ROUTE: Route<Call> = {
	method: "GET",
	path: "/threads/:thread_id/stream/events",
	handle: () => {
		throw new HttpError(426, "This is for WebSockets: others POST their filter here.", { upgrade: "websocket" });
	},
};

/** The thread protocol: commands, and the events of a thread. */
export const protocolRoutes: Route<Call>[] = [
	// What a command changes is known when it is read.
	{ method: "POST", path: "/threads/:thread_id/commands", isRead: true, handle: handleCommand },
	{ method: "POST", path: "/threads/:thread_id/stream/events", isRead: true, handle: streamEvents },
	SOCKET_ROUTE,
];

async function handleCommand(call: Call): Promise<Response> {
	const { threadId, studio, access, request } = call;
	const body = await call.body();
	let id: number | null = null;
	try {
		const command = readCommand(body);
		id = command.id;
		return json(await runCommand({ studio, access, headers: request.headers, threadId }, command));
	} catch (error) {
		const isRefusal = error instanceof HttpError && error.status < 500 && !KEEPS_STATUS.includes(error.status);
		if (!isRefusal && !(error instanceof ProtocolError)) throw error;
		const response = json(refusal(id, toProtocolError(error)));
		return id === null ? new Response(response.body, { status: 400, headers: response.headers }) : response;
	}
}

async function streamEvents(call: Call): Promise<Response> {
	const { threadId, studio } = call;
	const fields = await call.fields();
	const filter = readFilter(fields);
	const since = fields.integer("since", 0, Number.MAX_SAFE_INTEGER);
	if (since !== undefined && studio.feeds.get(threadId)?.hasLostAfter(since))
		throw new HttpError(410, `Events after ${since} are gone. Without \`since\`, events start with the newest run.`);
	const gone = new AbortController();
	const feed = studio.feeds.hold(threadId);
	const events = (async function* () {
		try {
			// Who has the newest event knows the end. A number from before a restart is that of an older feed.
			if (since === undefined || since < feed.lastSeq) yield* await recallEnd(studio, threadId, feed, filter);
			yield* feed.read(filter, since, gone.signal);
		} finally {
			studio.feeds.release(threadId);
		}
	})();
	return sseResponse(events, { onLeave: () => gone.abort() });
}
