import type { Interrupt } from "@langchain/langgraph";
import type { LoggedEvent } from "../runs/event-log.ts";
import type { Studio } from "../studio.ts";
import type { FoundThread } from "../threads/threads.ts";
import { type EventFilter, matches, type ThreadFeed } from "./thread-feed.ts";

/** What a thread waits for a person to answer. */
export async function pendingInterrupts(studio: Studio, thread: FoundThread): Promise<Interrupt[]> {
	const { interrupts } = await studio.describe(thread).fields(["interrupts"]);
	return Object.values(interrupts as Record<string, Interrupt[]>).flat();
}

/** What a thread waits for, if the feed does not tell: clients answer only what they were asked there. */
export async function recallInterrupts(
	studio: Studio,
	threadId: string,
	feed: ThreadFeed,
	filter: EventFilter,
): Promise<LoggedEvent[]> {
	const thread = feed.isEmpty && !studio.runs.isBusy(threadId) ? await studio.threads.find(threadId) : undefined;
	const interrupts = thread === undefined ? [] : await pendingInterrupts(studio, thread);
	if (thread === undefined || interrupts.length === 0 || !feed.isEmpty) return [];
	const { graph_id } = (await studio.describe(thread).record()).metadata;
	return feed.recall(String(graph_id), interrupts).filter((event) => matches(event, filter));
}
