import type { Graph } from "../graphs/graph.ts";
import { isRecord, type Json } from "../http/fields.ts";
import { translateChunk } from "../runs/translate.ts";
import type { Method, ThreadFeed } from "./thread-feed.ts";

/** An event as LangGraph makes it for the protocol. */
interface CoreEvent {
	readonly method: string;
	readonly params: { readonly namespace: string[]; readonly node?: string; readonly data: unknown };
}

/**
 * Runs a graph to its end and tells its thread's feed of it.
 *
 * @param onValues called with each state of the graph itself
 */
export async function feedRun(
	feed: ThreadFeed,
	graph: Graph,
	input: unknown,
	options: object,
	onValues: (values: unknown) => void,
): Promise<void> {
	const events = (await graph.streamEvents(input, { ...options, version: "v3" })) as AsyncIterable<CoreEvent>;
	for await (const event of events) {
		const { namespace, data } = event.params;
		if (event.method === "values" && namespace.length === 0) onValues(data);
		feedEvent(feed, event);
	}
}

function feedEvent(feed: ThreadFeed, { method, params }: CoreEvent): void {
	const { namespace, node, data } = params;
	if (method === "values") feedValues(feed, namespace, data);
	else if (method === "updates") feedUpdate(feed, namespace, data as { node?: string; values: unknown });
	else if (method === "tasks") feed.push("tasks", namespace, translateChunk("tasks", data));
	else if (method.startsWith("custom:")) feed.push("custom", namespace, { name: method.slice(7), payload: data });
	// What becomes of the run itself is known when it is stored.
	else if (method !== "lifecycle" || namespace.length > 0) feed.push(method as Method, namespace, data, { node });
}

/** What a person is asked for comes before the values, and is not among them. */
function feedValues(feed: ThreadFeed, namespace: string[], data: unknown): void {
	if (!isRecord(data) || !("__interrupt__" in data)) return feed.push("values", namespace, data);
	const { __interrupt__, ...values } = data as Json;
	feed.ask(namespace, __interrupt__);
	if (Object.keys(values).length > 0) feed.push("values", namespace, values);
}

function feedUpdate(feed: ThreadFeed, namespace: string[], { node, values }: { node?: string; values: unknown }): void {
	if (node === "__interrupt__") feed.ask(namespace, values);
	else feed.push("updates", namespace, values, { node });
}
