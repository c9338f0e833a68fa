import type { Call } from "../call.ts";
import { readPage } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import type { ThreadDescription } from "../threads/describe.ts";
import {
	findThreads,
	isFiltered,
	readThreadQuery,
	sortThreads,
	THREAD_ORDERS,
	type ThreadQuery,
} from "../threads/search.ts";

export async function searchThreads(call: Call): Promise<Response> {
	const fields = await call.fields();
	const query = readThreadQuery(fields);
	const { limit, offset } = readPage(fields);
	const order = fields.choice("sort_by", THREAD_ORDERS) ?? "created_at";
	const isDescending = fields.choice("sort_order", ["asc", "desc"]) !== "asc";
	const names = fields.texts("select");
	const sorted = await sortThreads(await findCandidates(call, query), order, isDescending);
	const page: object[] = [];
	let found = 0;
	for await (const thread of findThreads(sorted, query)) {
		found++;
		// One more than the page has tells that there is another. To know how many, every thread would have to be read.
		if (found > offset + limit) break;
		if (found > offset) page.push(await thread.fields(names));
	}
	const total = isFiltered(query) ? found : sorted.length;
	const headers: Record<string, string> = { "x-pagination-total": String(total) };
	if (found > offset + limit) headers["x-pagination-next"] = String(offset + limit);
	return json(page, headers);
}

export async function countThreads(call: Call): Promise<Response> {
	const query = readThreadQuery(await call.fields());
	let count = 0;
	for await (const _ of findThreads(await findCandidates(call, query), query)) count++;
	return json(count);
}

/** The threads that a caller may see and that can be what a search looks for. */
async function findCandidates({ access, studio }: Call, { ids }: ThreadQuery): Promise<ThreadDescription[]> {
	const found: ThreadDescription[] = [];
	if (ids === undefined) {
		for await (const thread of studio.threads.all())
			if (access.mayAccess(thread.threadId)) found.push(studio.describe(thread));
		return found;
	}
	for (const id of ids) {
		const thread = access.mayAccess(id) ? await studio.threads.find(id) : undefined;
		if (thread !== undefined) found.push(studio.describe(thread));
	}
	return found;
}
