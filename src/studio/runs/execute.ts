import type { Graph } from "../graphs/graph.ts";
import { feedRun } from "../protocol/feed-run.ts";
import type { Run } from "./run.ts";
import { streamChunks, streamWithEvents } from "./stream-modes.ts";

/** Runs a graph to its end, and logs what its client asked to see. */
export async function execute(run: Run, graph: Graph): Promise<void> {
	const { request, log, feed } = run;
	log.push("metadata", { run_id: run.id, attempt: 1 });
	const input = request.command ?? request.input ?? null;
	if (feed !== undefined)
		return feedRun(feed, graph, input, optionsOf(run), (values) => {
			run.values = values;
			log.push("values", values);
		});
	const needsEvents = request.streamModes.includes("events") || request.streamModes.includes("messages");
	const stream = needsEvents ? streamWithEvents : streamChunks;
	for await (const { event, data } of stream(graph, input, optionsOf(run), request)) {
		if (event === "values") run.values = data;
		if (request.streamModes.includes(modeOf(event))) log.push(event, data);
	}
}

/** The mode that an event is of: `messages` in tuples has a name of its own, and the path of a subgraph follows a bar. */
function modeOf(event: string) {
	const [name = ""] = event.split("|");
	if (name === "messages") return "messages-tuple";
	return (name.startsWith("messages/") ? "messages" : name) as Run["request"]["streamModes"][number];
}

function optionsOf({ id, request, place, signal }: Run): Record<string, unknown> {
	const { config, checkpoint, isStrict } = request;
	const strictness = isStrict && { __pregel_strict_resume: true };
	const options = {
		configurable: { ...place.configurable, ...checkpoint, ...strictness, run_id: id },
		// A saver finds the run here first: what clients call so must not stand in its place.
		metadata: { ...place.metadata, thread_id: place.threadId, run_id: id, run_attempt: 1 },
		runId: id,
		signal,
		tags: config.tags,
		recursionLimit: config.recursion_limit,
		context: request.context,
		interruptBefore: request.interruptBefore,
		interruptAfter: request.interruptAfter,
		durability: request.durability,
	};
	// LangGraph lets an option that is there and undefined take the place of the graph's own default.
	return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
