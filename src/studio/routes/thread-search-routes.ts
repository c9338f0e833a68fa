import type { Call } from "../call.ts";
import { readPage } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import {
	findThreads,
	isFiltered,
	readThreadQuery,
	sortThreads,
	THREAD_ORDERS,
	type ThreadQuery,
} from "../threads/search.ts";
import type { FoundThread } from "../threads/threads.ts";

export async function searchThreads(call: Call): Promise<Response> {
	const fields = await call.fields();
	const query = readThreadQuery(fields);
	const { limit, offset } = readPage(fields);
	const order = fields.choice("sort_by", THREAD_ORDERS) ?? "created_at";
	const isDescending = fields.choice("sort_order", ["asc", "desc"]) !== "asc";
	const names = fields.texts("select");
	const describe = (thread: FoundThread) => call.studio.describe(thread);
	const sorted = await sortThreads(await findCandidates(call, query), describe, order, isDescending);
	const page = call.newList();
	let found = 0;
	for await (const thread of findThreads(sorted, describe, query)) {
		found++;
		// One more than the page has tells that there is another. To know how many, every thread would have to be read.
		if (found > offset + limit) break;
		if (found > offset) page.push(await thread.fields(names));
	}
	const total = isFiltered(query) ? found : sorted.length;
	const headers: Record<string, string> = { "x-pagination-total": String(total) };
	if (found > offset + limit) headers["x-pagination-next"] = String(offset + limit);
	return page.respond(headers);
}

export async function countThreads(call: Call): Promise<Response> {
	const query = readThreadQuery(await call.fields());
	const describe = (thread: FoundThread) => call.studio.describe(thread);
	let count = 0;
	for await (const _ of findThreads(await findCandidates(call, query), describe, query)) count++;
	return json(count);
}

/** The threads that a caller may see and that can be what a search looks for. */
async function findCandidates({ access, studio }: Call, { ids }: ThreadQuery): Promise<FoundThread[]> {
	const found: FoundThread[] = [];
	if (ids === undefined) {
		for await (const thread of studio.threads.all()) if (access.mayAccess(thread.threadId)) found.push(thread);
		return found;
	}
	for (const id of ids) {
		const thread = access.mayAccess(id) ? await studio.threads.find(id) : undefined;
		if (thread !== undefined) found.push(thread);
	}
	return found;
}
