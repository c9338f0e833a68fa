import { nextTurn } from "../../engine/pause.ts";
import { contains } from "../http/contains.ts";
import type { Fields, Json } from "../http/fields.ts";
import type { ThreadDescription, ThreadStatus } from "./describe.ts";
import type { FoundThread } from "./threads.ts";

const STATUSES: readonly ThreadStatus[] = ["idle", "busy", "interrupted", "error"];

/** How many threads are looked at at a time: a database across the network answers them together. All are in memory then. */
const AT_ONCE = 16;

type Describe = (thread: FoundThread) => ThreadDescription;

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
	threads: readonly FoundThread[],
	describe: Describe,
	query: ThreadQuery,
): AsyncGenerator<ThreadDescription> {
	for await (const some of inBatches(threads, describe)) {
		const found = await Promise.all(some.map((thread) => matches(thread, query)));
		yield* some.filter((_, i) => found[i]);
	}
}

/** Some threads at a time. A description holds what was read of its thread, so none outlives its batch. */
async function* inBatches(threads: readonly FoundThread[], describe: Describe): AsyncGenerator<ThreadDescription[]> {
	for (let start = 0; start < threads.length; start += AT_ONCE) {
		// A storage may answer without ever waiting, and others want their turn.
		await nextTurn();
		yield threads.slice(start, start + AT_ONCE).map(describe);
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
	threads: readonly FoundThread[],
	describe: Describe,
	order: ThreadOrder,
	isDescending: boolean,
): Promise<FoundThread[]> {
	const keyed: { thread: FoundThread; key: string | number }[] = [];
	for await (const some of inBatches(threads, describe))
		keyed.push(...(await Promise.all(some.map(async (one) => ({ thread: one.thread, key: await keyOf(one, order) })))));
	const sign = isDescending ? -1 : 1;
	keyed.sort((a, b) => sign * (compare(a.key, b.key) || compare(a.thread.threadId, b.thread.threadId)));
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
