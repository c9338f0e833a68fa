import type { Interrupt } from "@langchain/langgraph";
import type { Json } from "../http/fields.ts";
import type { LoggedEvent } from "../runs/event-log.ts";
import type { Studio } from "../studio.ts";
import type { ThreadDescription } from "../threads/describe.ts";
import { listRuns, type StoredRun } from "../threads/records.ts";
import type { FoundThread } from "../threads/threads.ts";
import { askedId, type EventFilter, endId, endOfRun, matches, type ThreadFeed } from "./thread-feed.ts";

/** What a thread waits for a person to answer. */
export async function pendingInterrupts(thread: ThreadDescription): Promise<Interrupt[]> {
	const { interrupts } = await thread.fields(["interrupts"]);
	return Object.values(interrupts as Record<string, Interrupt[]>).flat();
}

/**
 * How the last run of a thread ended, if the feed does not know of it: it may have been before the server was started. A
 * client that was away waits for this, and answers only what it was asked here. The events have the ids that they had when
 * they happened: who has them does not count them twice.
 */
export async function recallEnd(
	studio: Studio,
	threadId: string,
	feed: ThreadFeed,
	filter: EventFilter,
): Promise<LoggedEvent[]> {
	const thread = feed.isEmpty && !studio.runs.isBusy(threadId) ? await studio.threads.find(threadId) : undefined;
	if (thread === undefined) return [];
	const description = studio.describe(thread);
	const interrupts = await pendingInterrupts(description);
	const run = await readLastRun(thread);
	if (!feed.isEmpty || (run === undefined && interrupts.length === 0)) return [];
	const state = await description.state();
	const runId = run?.record.run_id ?? "";
	const end = run?.end ?? { status: "interrupted", updated_at: "" };
	const { graph_id } = (await description.record()).metadata;
	const values = state && feed.recall(`state:${state.config.configurable?.checkpoint_id}`, "values", state.values);
	const asked = interrupts.map(({ id, value }) =>
		feed.recall(askedId(runId, id), "input.requested", { interrupt_id: id, payload: value }),
	);
	const data: Json = { ...endOfRun(end, interrupts.length > 0), graph_name: graph_id };
	const events = [...(values === undefined ? [] : [values]), ...asked, feed.recall(endId(runId), "lifecycle", data)];
	return events.filter((event) => matches(event, filter));
}

async function readLastRun({ saver, threadId }: FoundThread): Promise<StoredRun | undefined> {
	for await (const run of listRuns(saver, threadId, 1)) return run;
	return undefined;
}
