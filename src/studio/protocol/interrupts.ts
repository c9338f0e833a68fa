import type { Interrupt } from "@langchain/langgraph";
import type { Studio } from "../studio.ts";
import type { FoundThread } from "../threads/threads.ts";
import type { ThreadFeed } from "./thread-feed.ts";

/** What a thread waits for a person to answer. */
export async function pendingInterrupts(studio: Studio, thread: FoundThread): Promise<Interrupt[]> {
	const { interrupts } = await studio.describe(thread).fields(["interrupts"]);
	return Object.values(interrupts as Record<string, Interrupt[]>).flat();
}

/** Tells a feed what its thread waits for, if that was before the feed was made: clients answer only what they were asked here. */
export async function recallInterrupts(studio: Studio, threadId: string, feed: ThreadFeed): Promise<void> {
	if (!feed.isEmpty || studio.runs.isBusy(threadId)) return;
	const thread = await studio.threads.find(threadId);
	if (thread === undefined) return;
	const interrupts = await pendingInterrupts(studio, thread);
	const { graph_id } = (await studio.describe(thread).record()).metadata;
	if (interrupts.length > 0 && feed.isEmpty) feed.recall(String(graph_id), interrupts);
}
