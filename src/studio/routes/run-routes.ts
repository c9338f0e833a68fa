import type { DeltaSaver } from "../../saver/delta-saver.ts";
import type { Call } from "../call.ts";
import { Fields, readFlag } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { readPageOf, readSelect, select } from "../http/pages.ts";
import { json, noContent } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import { type CancelAction, describeStoredRun, type Run } from "../runs/run.ts";
import { readRunRequest, readRunRequests } from "../runs/run-request.ts";
import type { Interest } from "../runs/runs.ts";
import { listRuns, readRun, type StoredRun } from "../threads/records.ts";
import { addressOf, sendEvents, sendNoEvents, sendResult, sendState } from "./follow-run.ts";

/** Runs: started, watched, waited for, stopped. */
export const runRoutes: Route<Call>[] = [
	...["/runs/crons", "/runs/crons/:cron_id", "/threads/:thread_id/runs/crons"].flatMap((path) =>
		(["GET", "POST", "PATCH", "DELETE"] as const).map((method) => ({ method, path, handle: refuseCrons })),
	),
	{ method: "POST", path: "/runs", handle: async (call) => showNew(await startStateless(call)) },
	{ method: "POST", path: "/runs/stream", handle: async (call) => sendEvents(call, await startStateless(call)) },
	{
		method: "POST",
		path: "/runs/wait",
		handle: async (call) => sendResult(call, await startStateless(call, "result")),
	},
	{ method: "POST", path: "/runs/batch", handle: startBatch },
	{ method: "POST", path: "/runs/cancel", handle: cancelRuns },
	{ method: "GET", path: "/runs/:run_id/stream", handle: joinStatelessStream },
	{ method: "GET", path: "/threads/:thread_id/runs", handle: showRuns },
	{ method: "POST", path: "/threads/:thread_id/runs", handle: async (call) => showNew(await start(call)) },
	{
		method: "POST",
		path: "/threads/:thread_id/runs/stream",
		handle: async (call) => sendEvents(call, await start(call)),
	},
	{
		method: "POST",
		path: "/threads/:thread_id/runs/wait",
		handle: async (call) => sendResult(call, await start(call, "result")),
	},
	{ method: "GET", path: "/threads/:thread_id/runs/:run_id", handle: showRun },
	{ method: "DELETE", path: "/threads/:thread_id/runs/:run_id", handle: deleteRun },
	{ method: "GET", path: "/threads/:thread_id/runs/:run_id/join", handle: joinRun },
	{ method: "GET", path: "/threads/:thread_id/runs/:run_id/stream", handle: joinStream },
	{ method: "POST", path: "/threads/:thread_id/runs/:run_id/cancel", handle: cancelRun },
];

function refuseCrons(): never {
	throw new HttpError(422, "This server has no crons: let a scheduler of your own start runs.");
}

async function start(call: Call, interest: Interest = "events"): Promise<Run> {
	const { threadId } = call;
	return call.studio.runs.create(
		call.access,
		threadId,
		readRunRequest(await call.body(), call.request.headers),
		interest,
	);
}

async function startStateless(call: Call, interest: Interest = "events"): Promise<Run> {
	const request = readRunRequest(await call.body(), call.request.headers);
	return call.studio.runs.createStateless(call.access, request, interest);
}

async function startBatch(call: Call): Promise<Response> {
	const { studio, access } = call;
	const requests = readRunRequests(await call.body(), call.request.headers);
	const runs = await Promise.all(requests.map((request) => studio.runs.createStateless(access, request, "events")));
	return json(runs.map((run) => run.describe("pending")));
}

function showNew(run: Run): Response {
	return json(run.describe("pending"), addressOf(run));
}

/** The runs of a thread, the newest first. */
async function showRuns(call: Call): Promise<Response> {
	const { saver, threadId } = await call.studio.threads.mustFind(call.threadId);
	const { limit, offset } = readPageOf(call.query);
	const status = call.query.get("status");
	const names = readSelect(call.query);
	const shown = call.newList();
	let found = 0;
	for await (const stored of listRuns(saver, threadId)) {
		if (shown.length === limit) break;
		const live = call.studio.runs.get(stored.record.run_id);
		const run = live?.describe() ?? describeStoredRun(threadId, stored);
		if (status !== null && run.status !== status) continue;
		if (found++ >= offset) shown.push(select(run, names));
	}
	return shown.respond();
}

async function showRun(call: Call): Promise<Response> {
	const { threadId, stored } = await mustFindStored(call);
	return json(findNamed(call)?.describe() ?? describeStoredRun(threadId, stored));
}

/** Takes what the run did along. */
async function deleteRun(call: Call): Promise<Response> {
	const { saver, threadId, stored } = await mustFindStored(call);
	const run = findNamed(call);
	run?.stop("interrupt");
	await run?.done;
	await saver.deleteForRuns([stored.record.run_id], { threadIds: [threadId] });
	return noContent();
}

async function joinRun(call: Call): Promise<Response> {
	const run = findNamed(call);
	if (run !== undefined) return sendResult(call, run, readFlag(call.query, "cancel_on_disconnect"));
	const { threadId } = await mustFindStored(call);
	return sendState(call, threadId);
}

async function joinStream(call: Call): Promise<Response> {
	const run = findNamed(call);
	if (run !== undefined) return sendEvents(call, run, readFlag(call.query, "cancel_on_disconnect"));
	await mustFindStored(call);
	return sendNoEvents();
}

function joinStatelessStream(call: Call): Response {
	const run = findNamed(call);
	if (run === undefined) throw new HttpError(404, "Run not found");
	return sendEvents(call, run, readFlag(call.query, "cancel_on_disconnect"));
}

async function cancelRun(call: Call): Promise<Response> {
	const action = readAction(call.query);
	const reason = new Fields(Object.fromEntries(call.query)).choice("reason", ["taken"]);
	if (reason !== undefined && action !== "interrupt")
		throw new HttpError(400, "A `reason` goes with the action interrupt only.");
	const run = findNamed(call);
	// One that has ended stays as it is.
	if (run === undefined) await mustFindStored(call);
	run?.stop(action, reason);
	if (!readFlag(call.query, "wait")) return noContent(202);
	await run?.done;
	return noContent();
}

async function cancelRuns(call: Call): Promise<Response> {
	const fields = await call.fields();
	const action = readAction(call.query);
	const threadId = fields.text("thread_id");
	if (threadId !== undefined) call.access.check(threadId);
	for (const runId of fields.texts("run_ids") ?? []) {
		const run = findLive(call, runId, threadId);
		if (run === undefined) throw new HttpError(404, "Run not found");
		run.stop(action);
	}
	return noContent();
}

/** The run that the path names, if it is in memory. */
function findNamed(call: Call): Run | undefined {
	return findLive(call, call.param("run_id"), call.params.thread_id);
}

/** A run in memory that the caller may see. */
function findLive({ studio, access }: Call, runId: string, threadId: string | undefined): Run | undefined {
	const run = studio.runs.get(runId);
	if (run === undefined || !access.mayAccess(run.place.threadId)) return undefined;
	return threadId === undefined || threadId === run.place.threadId ? run : undefined;
}

async function mustFindStored(call: Call): Promise<{ saver: DeltaSaver; threadId: string; stored: StoredRun }> {
	const { saver, threadId } = await call.studio.threads.mustFind(call.threadId);
	const stored = await readRun(saver, threadId, call.param("run_id"));
	if (stored === undefined) throw new HttpError(404, "Run not found");
	return { saver, threadId, stored };
}

function readAction(query: URLSearchParams): CancelAction {
	return new Fields(Object.fromEntries(query)).choice("action", ["interrupt", "rollback"]) ?? "interrupt";
}
