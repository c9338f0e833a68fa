import type { Graph } from "../graphs/graph.ts";
import { MessageAssembler } from "./messages-mode.ts";
import type { RunRequest } from "./run-request.ts";
import { translateChunk } from "./translate.ts";

/** Something that happened in a run, under the name that clients know it by. */
export interface RunEvent {
	readonly event: string;
	readonly data: unknown;
}

type Options = Record<string, unknown>;

/** What a graph streams by itself. */
export async function* streamChunks(
	graph: Graph,
	input: unknown,
	options: Options,
	request: RunRequest,
): AsyncGenerator<RunEvent> {
	const streamMode = graphModes(request);
	for await (const chunk of await graph.stream(input, { ...options, streamMode, subgraphs: request.withSubgraphs }))
		yield* translate(chunk, request);
}

/**
 * The same with the events of everything that runs inside the graph, which the modes `events` and `messages` are made
 * from. It costs more, so only those who ask for these pay for it.
 */
export async function* streamWithEvents(
	graph: Graph,
	input: unknown,
	options: Options,
	request: RunRequest,
): AsyncGenerator<RunEvent> {
	const assembler = new MessageAssembler();
	const streamMode = graphModes(request);
	const streamOptions = { ...options, version: "v2" as const, streamMode, subgraphs: request.withSubgraphs };
	for await (const item of graph.streamEvents(input, streamOptions)) {
		const event = item as TracedEvent;
		if (event.tags?.includes("langsmith:hidden")) continue;
		if (event.event === "on_chain_stream" && event.run_id === options.runId) {
			for (const part of translate(event.data.chunk, request)) {
				yield part;
				yield* assembler.completed(part);
			}
		} else {
			yield { event: "events", data: event };
			yield* assembler.streamed(event);
		}
	}
}

/** An event of LangChain's `streamEvents`. */
export interface TracedEvent {
	readonly event: string;
	readonly run_id: string;
	readonly tags?: string[];
	readonly metadata?: unknown;
	readonly data: { readonly chunk?: unknown };
}

/** The modes that the graph itself must stream in. */
function graphModes({ streamModes }: RunRequest): string[] {
	const modes = new Set<string>();
	for (const mode of streamModes) {
		if (mode === "messages-tuple") modes.add("messages");
		// Whole messages are found in the values.
		else if (mode === "messages") modes.add("values");
		else if (mode !== "events") modes.add(mode);
	}
	return [...modes];
}

function* translate(chunk: unknown, { withSubgraphs }: RunRequest): Generator<RunEvent> {
	const [path, mode, data] = (withSubgraphs ? chunk : [[], ...(chunk as unknown[])]) as [string[], string, unknown];
	// Beside values LangGraph may stream a note on the checkpoint that they are from. Nobody has asked for it.
	if (mode === "checkpoints" && !("values" in (data as object))) return;
	yield { event: [mode, ...path].join("|"), data: translateChunk(mode, data) };
}
