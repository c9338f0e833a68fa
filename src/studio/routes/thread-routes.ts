import type { Call } from "../call.ts";
import { HttpError } from "../http/http-error.ts";
import { readPage } from "../http/pages.ts";
import { json, noContent } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import type { Studio } from "../studio.ts";
import type { ThreadDescription } from "../threads/describe.ts";
import { matches, readThreadQuery, sortThreads, THREAD_ORDERS, type ThreadQuery } from "../threads/search.ts";
import { readSupersteps } from "../threads/supersteps.ts";
import type { FoundThread } from "../threads/threads.ts";

/** Threads: made, found, shown, copied, pruned, deleted. */
export function threadRoutes(studio: Studio): Route<Call>[] {
	const { threads, runs, states } = studio;
	const show = async (thread: FoundThread) => json(await studio.describe(thread).fields());

	/** The threads that a caller may see and that can be what a search looks for. */
	async function candidates({ access }: Call, { ids }: ThreadQuery): Promise<ThreadDescription[]> {
		const found: ThreadDescription[] = [];
		if (ids === undefined) {
			for await (const thread of threads.all())
				if (access.mayAccess(thread.threadId)) found.push(studio.describe(thread));
			return found;
		}
		for (const id of ids) {
			const thread = access.mayAccess(id) ? await threads.find(id) : undefined;
			if (thread !== undefined) found.push(studio.describe(thread));
		}
		return found;
	}

	return [
		{
			method: "POST",
			path: "/threads",
			handle: async (call) => {
				const fields = await call.fields();
				const threadId = fields.text("thread_id") ?? call.access.newThreadId();
				call.access.check(threadId);
				const ifExists = fields.choice("if_exists", ["raise", "do_nothing"]);
				const supersteps = readSupersteps(fields.list("supersteps") ?? []);
				const metadata = fields.record("metadata") ?? {};
				if (supersteps.length > 0 && studio.graphs.ids.length > 1 && typeof metadata.graph_id !== "string")
					throw new HttpError(400, `Thread ${threadId} has no graph ID`);
				return runs.whileIdle(threadId, async () => {
					const known = await threads.find(threadId);
					if (known !== undefined && ifExists !== "do_nothing") throw new HttpError(409, "Thread already exists");
					const thread = known ?? (await threads.create(threadId, metadata));
					if (supersteps.length === 0) return show(thread);
					await states.bulkUpdate(thread, supersteps);
					return show(await threads.mustFind(threadId));
				});
			},
		},
		{
			method: "POST",
			path: "/threads/search",
			isRead: true,
			handle: async (call) => {
				const fields = await call.fields();
				const query = readThreadQuery(fields);
				const { limit, offset } = readPage(fields);
				const order = fields.choice("sort_by", THREAD_ORDERS) ?? "created_at";
				const isDescending = fields.choice("sort_order", ["asc", "desc"]) !== "asc";
				const names = fields.texts("select");
				const sorted = await sortThreads(await candidates(call, query), order, isDescending);
				const page: object[] = [];
				let matching = 0;
				for (const thread of sorted) {
					if (!(await matches(thread, query))) continue;
					matching++;
					if (matching > offset + limit) break;
					if (matching > offset) page.push(await thread.fields(names));
				}
				// Whether there are more is known; how many would take a look at every thread.
				const headers: Record<string, string> = { "x-pagination-total": String(matching) };
				if (matching > offset + limit) headers["x-pagination-next"] = String(offset + limit);
				return json(page, headers);
			},
		},
		{
			method: "POST",
			path: "/threads/count",
			isRead: true,
			handle: async (call) => {
				const query = readThreadQuery(await call.fields());
				let count = 0;
				for (const thread of await candidates(call, query)) if (await matches(thread, query)) count++;
				return json(count);
			},
		},
		{
			method: "POST",
			path: "/threads/prune",
			handle: async (call) => {
				const fields = await call.fields();
				const ids = fields.texts("thread_ids") ?? [];
				const strategy = fields.choice("strategy", ["delete", "keep_latest"]) ?? "delete";
				for (const id of ids) call.access.check(id);
				let pruned = 0;
				for (const id of new Set(ids)) {
					const thread = await threads.find(id);
					if (thread === undefined) continue;
					if (strategy === "delete") await runs.afterStopping(id, () => thread.saver.deleteThread(id));
					else await thread.saver.prune([id], { strategy });
					pruned++;
				}
				return json({ pruned_count: pruned });
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id",
			handle: async (call) => show(await threads.mustFind(call.threadId)),
		},
		{
			method: "PATCH",
			path: "/threads/:thread_id",
			handle: async (call) => {
				const { threadId } = call;
				const patch = (await call.fields()).record("metadata") ?? {};
				const thread = await threads.mustFind(threadId);
				await threads.update(thread, ({ metadata, config }) => ({ metadata: { ...metadata, ...patch }, config }));
				const isMinimal = call.request.headers.get("prefer") === "return=minimal";
				return isMinimal ? noContent() : show(await threads.mustFind(threadId));
			},
		},
		{
			method: "DELETE",
			path: "/threads/:thread_id",
			handle: async (call) => {
				const { threadId, saver } = await threads.mustFind(call.threadId);
				await runs.afterStopping(threadId, () => saver.deleteThread(threadId));
				return noContent();
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/copy",
			handle: async (call) => {
				const { threadId, saver } = await threads.mustFind(call.threadId);
				const copyId = call.access.newThreadId();
				await saver.copyThread(threadId, copyId);
				const copy = await threads.mustFind(copyId);
				await threads.update(copy, ({ metadata, config }) => ({
					metadata: { ...metadata, thread_id: copyId },
					config,
				}));
				return show(copy);
			},
		},
	];
}
