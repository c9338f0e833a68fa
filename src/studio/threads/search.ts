import { contains } from "../http/contains.ts";
import type { Fields, Json } from "../http/fields.ts";
import type { ThreadDescription, ThreadStatus } from "./describe.ts";

const STATUSES: readonly ThreadStatus[] = ["idle", "busy", "interrupted", "error"];

/** How many threads are looked at at a time: a database across the network answers them together. */
const AT_ONCE = 16;

/** What a search for threads asks for. */
export interface ThreadQuery {
	readonly ids: ReadonlySet<string> | undefined;
	readonly status: ThreadStatus | undefined;
	readonly metadata: Json | undefined;
	readonly values: Json | undefined;
}

/** What threads can be sorted by. */
export const THREAD_ORDERS = ["thread_id", "status", "created_at", "updated_at", "state_updated_at"] as const;
export type ThreadOrder = (typeof THREAD_ORDERS)[number];

export function readThreadQuery(fields: Fields): ThreadQuery {
	const ids = fields.texts("ids");
	return {
		// An empty list is how some clients say that they have none in mind.
		ids: ids === undefined || ids.length === 0 ? undefined : new Set(ids),
		status: fields.choice("status", STATUSES),
		metadata: fields.filter("metadata"),
		values: fields.filter("values"),
	};
}

/** Whether there may be threads that a search does not find, of those that it looks at. */
export function isFiltered({ status, metadata, values }: ThreadQuery): boolean {
	return status !== undefined || metadata !== undefined || values !== undefined;
}

/** The threads of a list that a search finds, in order. */
export async function* findThreads(
	threads: readonly ThreadDescription[],
	query: ThreadQuery,
): AsyncGenerator<ThreadDescription> {
	for (let start = 0; start < threads.length; start += AT_ONCE) {
		const some = threads.slice(start, start + AT_ONCE);
		const found = await Promise.all(some.map((thread) => matches(thread, query)));
		yield* some.filter((_, i) => found[i]);
	}
}

/** What is cheap to know is looked at first. */
async function matches(thread: ThreadDescription, query: ThreadQuery): Promise<boolean> {
	const { status, metadata, values } = query;
	if (metadata !== undefined && !contains((await thread.record()).metadata, metadata)) return false;
	if (status !== undefined && (await thread.status()) !== status) return false;
	return values === undefined || contains((await thread.state())?.values, values);
}

/** Sorts threads by one of their fields. Those with the same value keep the order of their ids. */
export async function sortThreads(
	threads: ThreadDescription[],
	order: ThreadOrder,
	isDescending: boolean,
): Promise<ThreadDescription[]> {
	const keyed = await Promise.all(
		threads.map(async (thread) => ({ thread, key: await keyOf(thread, order), id: thread.thread.threadId })),
	);
	const sign = isDescending ? -1 : 1;
	keyed.sort((a, b) => sign * (compare(a.key, b.key) || compare(a.id, b.id)));
	return keyed.map(({ thread }) => thread);
}

async function keyOf(thread: ThreadDescription, order: ThreadOrder): Promise<string | number> {
	if (order === "created_at") return thread.thread.info.createdAt.getTime();
	if (order === "updated_at") return thread.thread.info.updatedAt.getTime();
	if (order === "status") return thread.status();
	if (order === "state_updated_at") return (await thread.state())?.createdAt ?? "";
	return thread.thread.threadId;
}

function compare(a: string | number, b: string | number): number {
	return a < b ? -1 : a > b ? 1 : 0;
}
