import type { Call } from "../call.ts";
import { Fields, isRecord, type Json, readFlag } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { readPage, readPageOf, readSelect, select } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import { readCheckpoint } from "../states/read-checkpoint.ts";
import type { HistoryQuery } from "../states/states.ts";
import type { FoundThread } from "../threads/threads.ts";
import { patchThread } from "./thread-routes.ts";

/** The states of threads: the newest, a past one, all of them; changed and forked. */
export const stateRoutes: Route<Call>[] = [
	{ method: "GET", path: "/threads/:thread_id/state", handle: showNewest },
	{ method: "POST", path: "/threads/:thread_id/state/checkpoint", isRead: true, handle: showAtCheckpoint },
	{ method: "GET", path: "/threads/:thread_id/state/:checkpoint_id", handle: showById },
	{ method: "POST", path: "/threads/:thread_id/state", handle: updateState },
	{ method: "PATCH", path: "/threads/:thread_id/state", handle: patchThread },
	{ method: "GET", path: "/threads/:thread_id/history", handle: showHistory },
	{ method: "POST", path: "/threads/:thread_id/history", isRead: true, handle: searchHistory },
];

async function showNewest(call: Call): Promise<Response> {
	const thread = await call.studio.threads.mustFind(call.threadId);
	const state = await call.studio.states.get(thread, {}, readFlag(call.query, "subgraphs"));
	return json(select(state, readSelect(call.query)));
}

async function showById(call: Call): Promise<Response> {
	const thread = await call.studio.threads.mustFind(call.threadId);
	const checkpoint = { checkpoint_id: call.param("checkpoint_id") };
	const state = await call.studio.states.get(thread, checkpoint, readFlag(call.query, "subgraphs"));
	return json(select(state, readSelect(call.query)));
}

async function showAtCheckpoint(call: Call): Promise<Response> {
	const thread = await call.studio.threads.mustFind(call.threadId);
	const fields = await call.fields();
	const withSubgraphs = [true, "true", "1"].includes(fields.get("subgraphs") as string | boolean);
	const state = await call.studio.states.get(thread, readCheckpoint(fields), withSubgraphs);
	return json(select(state, fields.texts("select")));
}

async function updateState(call: Call): Promise<Response> {
	const { threadId } = call;
	const { threads, runs, states } = call.studio;
	const fields = await call.fields();
	const values = fields.get("values") ?? null;
	const asNode = fields.text("as_node");
	const from = readCheckpoint(fields);
	const checkpoint = await runs.whileIdle(threadId, async () =>
		states.update(await threads.mustFind(threadId), from, values, asNode),
	);
	return json({ checkpoint, configurable: checkpoint });
}

async function showHistory(call: Call): Promise<Response> {
	const thread = await call.studio.threads.mustFind(call.threadId);
	const { limit } = readPageOf(call.query);
	const before = call.query.get("before") ?? undefined;
	return sendHistory(call, thread, {}, { limit, before, metadata: undefined }, readSelect(call.query));
}

async function searchHistory(call: Call): Promise<Response> {
	const thread = await call.studio.threads.mustFind(call.threadId);
	const fields = await call.fields();
	const { limit } = readPage(fields);
	const query = { limit, before: readBefore(fields.get("before")), metadata: fields.filter("metadata") };
	return sendHistory(call, thread, readCheckpoint(fields), query, fields.texts("select"));
}

async function sendHistory(
	call: Call,
	thread: FoundThread,
	checkpoint: Json,
	query: HistoryQuery,
	names: string[] | undefined,
): Promise<Response> {
	const list = call.newList();
	for await (const state of call.studio.states.history(thread, checkpoint, query)) list.push(select(state, names));
	return list.respond();
}

/** A checkpoint's id, as text or in a config. */
function readBefore(before: unknown): string | undefined {
	if (before === undefined || typeof before === "string") return before;
	if (isRecord(before)) {
		const { configurable = before } = before;
		const id = isRecord(configurable) ? new Fields(configurable).text("checkpoint_id") : undefined;
		if (id !== undefined) return id;
	}
	throw new HttpError(400, "`before` must be a checkpoint id, or a config that has one.");
}
