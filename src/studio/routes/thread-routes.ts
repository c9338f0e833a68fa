import type { Call } from "../call.ts";
import type { Superstep } from "../graphs/graph.ts";
import { HttpError } from "../http/http-error.ts";
import { measure } from "../http/measure.ts";
import { json, noContent } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import type { Studio } from "../studio.ts";
import { readSupersteps } from "../threads/supersteps.ts";
import type { FoundThread } from "../threads/threads.ts";
import { countThreads, searchThreads } from "./thread-search-routes.ts";
import { joinThread } from "./thread-stream.ts";

/** Threads: made, found, shown, copied, pruned, deleted. */
export const threadRoutes: Route<Call>[] = [
	{ method: "POST", path: "/threads", handle: createThread },
	{ method: "POST", path: "/threads/search", isRead: true, handle: searchThreads },
	{ method: "POST", path: "/threads/count", isRead: true, handle: countThreads },
	{ method: "POST", path: "/threads/prune", handle: pruneThreads },
	{ method: "GET", path: "/threads/:thread_id", handle: showThread },
	{ method: "PATCH", path: "/threads/:thread_id", handle: patchThread },
	{ method: "DELETE", path: "/threads/:thread_id", handle: deleteThread },
	{ method: "POST", path: "/threads/:thread_id/copy", handle: copyThread },
	{ method: "GET", path: "/threads/:thread_id/stream", handle: joinThread },
];

async function createThread(call: Call): Promise<Response> {
	const { studio, access } = call;
	const { threads, runs, graphs } = studio;
	const fields = await call.fields();
	const threadId = fields.text("thread_id") ?? access.newThreadId();
	access.check(threadId);
	const isFineIfKnown = fields.choice("if_exists", ["raise", "do_nothing"]) === "do_nothing";
	const supersteps = readSupersteps(fields.list("supersteps") ?? []);
	const metadata = fields.record("metadata") ?? {};
	if (supersteps.length > 0 && graphs.ids.length > 1 && typeof metadata.graph_id !== "string")
		throw new HttpError(400, `Thread ${threadId} has no graph ID`);
	const make = () =>
		runs.inTurn(threadId, async () => {
			const known = await threads.find(threadId);
			if (known !== undefined && !isFineIfKnown) throw new HttpError(409, "Thread already exists");
			if (known !== undefined) return show(studio, known);
			const thread = await threads.create(threadId, metadata);
			if (supersteps.length === 0) return show(studio, thread);
			await replay(call, thread, supersteps);
			return show(studio, await threads.mustFind(threadId));
		});
	return supersteps.length === 0 ? make() : runs.countAsRun(access, measure(supersteps).bytes, make);
}

/** A new thread gets all states that its client brings, or is not made. */
async function replay({ studio, request }: Call, thread: FoundThread, supersteps: Superstep[]): Promise<void> {
	try {
		await studio.states.bulkUpdate(thread, supersteps, request.signal);
	} catch (error) {
		await thread.saver.deleteThread(thread.threadId);
		throw error;
	}
}

async function showThread(call: Call): Promise<Response> {
	return show(call.studio, await call.studio.threads.mustFind(call.threadId));
}

export async function patchThread(call: Call): Promise<Response> {
	const { threadId, studio } = call;
	const patch = (await call.fields()).record("metadata") ?? {};
	const thread = await studio.threads.mustFind(threadId);
	await studio.threads.update(thread, ({ metadata, config }) => ({ metadata: { ...metadata, ...patch }, config }));
	const isMinimal = call.request.headers.get("prefer") === "return=minimal";
	return isMinimal ? noContent() : show(studio, await studio.threads.mustFind(threadId));
}

async function deleteThread({ threadId, studio }: Call): Promise<Response> {
	await studio.runs.deleteThread(await studio.threads.mustFind(threadId));
	return noContent();
}

async function copyThread({ threadId, studio, access }: Call): Promise<Response> {
	const { threads } = studio;
	const { saver } = await threads.mustFind(threadId);
	const copyId = access.newThreadId();
	await saver.copyThread(threadId, copyId);
	const copy = await threads.mustFind(copyId);
	await threads.update(copy, ({ metadata, config }) => ({ metadata: { ...metadata, thread_id: copyId }, config }));
	return show(studio, copy);
}

async function pruneThreads(call: Call): Promise<Response> {
	const { threads, runs } = call.studio;
	const fields = await call.fields();
	const ids = new Set(fields.texts("thread_ids"));
	const strategy = fields.choice("strategy", ["delete", "keep_latest"]) ?? "delete";
	for (const id of ids) call.access.check(id);
	let pruned = 0;
	for (const id of ids) {
		const thread = await threads.find(id);
		if (thread === undefined) continue;
		if (strategy === "delete") await runs.deleteThread(thread);
		else await thread.saver.prune([id], { strategy });
		pruned++;
	}
	return json({ pruned_count: pruned });
}

async function show(studio: Studio, thread: FoundThread): Promise<Response> {
	return json(await studio.describe(thread).fields());
}
