import type { Call } from "../call.ts";
import { Fields, readFlag, readInteger } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { toJson } from "../http/json.ts";
import { select } from "../http/pages.ts";
import { json, noContent } from "../http/responses.ts";
import { encodeSegment, type Route } from "../http/router.ts";
import { slowJsonResponse, sseResponse } from "../http/sse.ts";
import { type CancelAction, describeStoredRun, type Run } from "../runs/run.ts";
import { readRunRequest, readRunRequests } from "../runs/run-request.ts";
import type { Interest } from "../runs/runs.ts";
import type { Studio } from "../studio.ts";
import { listRuns, readRun } from "../threads/records.ts";

/** Runs: started, watched, waited for, stopped. */
export function runRoutes(studio: Studio): Route<Call>[] {
	const { runs, threads } = studio;

	const start = async (call: Call, interest: Interest = "events") =>
		runs.create(call.threadId, readRunRequest(await call.body(), call.request.headers), interest);
	const startStateless = async (call: Call, interest: Interest = "events") =>
		runs.createStateless(call.access, readRunRequest(await call.body(), call.request.headers), interest);

	/** A run in memory that the caller may see. */
	function findLive({ access }: Call, runId: string, threadId?: string): Run | undefined {
		const run = runs.get(runId);
		if (run === undefined || !access.mayAccess(run.place.threadId)) return undefined;
		return threadId === undefined || threadId === run.place.threadId ? run : undefined;
	}

	/** The run that the path names, if it is in memory. */
	const findNamed = (call: Call) => findLive(call, call.params.run_id as string, call.params.thread_id);

	async function findStored(call: Call) {
		const { saver, threadId } = await threads.mustFind(call.threadId);
		const stored = await readRun(saver, threadId, call.params.run_id as string);
		if (stored === undefined) throw new HttpError(404, "Run not found");
		return { saver, threadId, stored };
	}

	/** What a run came to: its last values, or its error. */
	async function resultOf(run: Run): Promise<string> {
		await run.done;
		if (run.end?.error !== undefined) return toJson({ __error__: run.end.error });
		return run.values === undefined ? stateOf(run.place.threadId) : toJson(run.values);
	}

	async function stateOf(threadId: string): Promise<string> {
		const thread = await threads.find(threadId);
		return toJson(thread && (await studio.describe(thread).state())?.values);
	}

	return [
		{ method: "POST", path: "/runs/stream", handle: async (call) => stream(await startStateless(call), call) },
		{
			method: "POST",
			path: "/runs/wait",
			handle: async (call) => {
				const run = await startStateless(call, "result");
				return slowJsonResponse(resultOf(run), following(run, run.request.cancelOnDisconnect));
			},
		},
		{
			method: "POST",
			path: "/runs/batch",
			handle: async (call) => {
				const requests = readRunRequests(await call.body(), call.request.headers);
				const started = await Promise.all(
					requests.map((request) => runs.createStateless(call.access, request, "events")),
				);
				return json(started.map((run) => run.describe("pending")));
			},
		},
		{
			method: "POST",
			path: "/runs/cancel",
			handle: async (call) => {
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
			},
		},
		{
			method: "POST",
			path: "/runs",
			handle: async (call) => {
				const run = await startStateless(call);
				return json(run.describe("pending"), following(run, false).headers);
			},
		},
		{
			method: "GET",
			path: "/runs/:run_id/stream",
			handle: (call) => {
				const run = findNamed(call);
				if (run === undefined) throw new HttpError(404, "Run not found");
				return stream(run, call, readFlag(call.query, "cancel_on_disconnect"));
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/runs/stream",
			handle: async (call) => stream(await start(call), call),
		},
		{
			method: "POST",
			path: "/threads/:thread_id/runs/wait",
			handle: async (call) => {
				const run = await start(call, "result");
				return slowJsonResponse(resultOf(run), following(run, run.request.cancelOnDisconnect));
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/runs",
			handle: async (call) => {
				const run = await start(call);
				return json(run.describe("pending"), following(run, false).headers);
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/runs",
			handle: async (call) => {
				const { saver, threadId } = await threads.mustFind(call.threadId);
				const limit = readInteger(call.query, "limit", 10);
				const offset = readInteger(call.query, "offset", 0);
				const status = call.query.get("status");
				const names = call.query.has("select") ? call.query.getAll("select") : undefined;
				const found: object[] = [];
				let skipped = 0;
				for await (const stored of listRuns(saver, threadId)) {
					if (found.length === limit) break;
					const run = runs.get(stored.record.run_id)?.describe() ?? describeStoredRun(threadId, stored);
					if (status !== null && run.status !== status) continue;
					if (skipped++ < offset) continue;
					found.push(select(run, names));
				}
				return json(found);
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/runs/:run_id",
			handle: async (call) => {
				const { threadId, stored } = await findStored(call);
				return json(findNamed(call)?.describe() ?? describeStoredRun(threadId, stored));
			},
		},
		{
			method: "DELETE",
			path: "/threads/:thread_id/runs/:run_id",
			handle: async (call) => {
				const { saver, threadId, stored } = await findStored(call);
				const run = findNamed(call);
				run?.stop("interrupt");
				await run?.done;
				await saver.deleteForRuns([stored.record.run_id], { threadIds: [threadId] });
				return noContent();
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/runs/:run_id/join",
			handle: async (call) => {
				const run = findNamed(call);
				if (run !== undefined)
					return slowJsonResponse(resultOf(run), following(run, readFlag(call.query, "cancel_on_disconnect")));
				const { threadId } = await findStored(call);
				return slowJsonResponse(stateOf(threadId), { headers: {}, onLeave: () => {} });
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/runs/:run_id/stream",
			handle: async (call) => {
				const run = findNamed(call);
				if (run !== undefined) return stream(run, call, readFlag(call.query, "cancel_on_disconnect"));
				await findStored(call);
				return sseResponse(nothing(), { headers: {}, onLeave: () => {} });
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/runs/:run_id/cancel",
			handle: async (call) => {
				const action = readAction(call.query);
				const run = findNamed(call);
				if (run === undefined) {
					await findStored(call);
					return noContent(202);
				}
				run.stop(action);
				if (!readFlag(call.query, "wait")) return noContent(202);
				await run.done;
				return noContent();
			},
		},
	];
}

/** The events of a run, from where the reader left off. */
function stream(run: Run, call: Call, cancelOnDisconnect = run.request.cancelOnDisconnect): Response {
	const lastId = call.request.headers.get("last-event-id");
	const position = lastId === null || !/^-?\d+$/.test(lastId) ? undefined : Number(lastId);
	return sseResponse(run.log.read(position), following(run, cancelOnDisconnect));
}

/** Tells a client where its run is, and the run when its client is gone. */
function following(run: Run, cancelOnDisconnect: boolean): { headers: Record<string, string>; onLeave: () => void } {
	const { threadId, saver } = run.place;
	const path = saver === undefined ? `/runs/${run.id}` : `/threads/${encodeSegment(threadId)}/runs/${run.id}`;
	const headers: Record<string, string> = { "content-location": path };
	// A client that is told so comes back here when its connection breaks.
	if (run.request.isResumable) headers.location = `${path}/stream`;
	return { headers, onLeave: () => cancelOnDisconnect && run.stop("interrupt") };
}

function readAction(query: URLSearchParams): CancelAction {
	return new Fields(Object.fromEntries(query)).choice("action", ["interrupt", "rollback"]) ?? "interrupt";
}

async function* nothing(): AsyncGenerator<never> {}
