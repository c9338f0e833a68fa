import { Document } from "@langchain/core/documents";
import {
	AIMessage,
	AIMessageChunk,
	type BaseMessage,
	ChatMessage,
	FunctionMessage,
	HumanMessage,
	RemoveMessage,
	SystemMessage,
	ToolMessage,
} from "@langchain/core/messages";
import {
	Annotation,
	END,
	MessagesAnnotation,
	MessagesZodState,
	REMOVE_ALL_MESSAGES,
	START,
	StateGraph,
} from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

/** A graph whose node answers with the next of the given updates. */
function replying(bench: Bench, updates: (BaseMessage | BaseMessage[])[]) {
	let turn = 0;
	return new StateGraph(MessagesAnnotation)
		.addNode("reply", () => ({ messages: updates[turn++] }))
		.addEdge(START, "reply")
		.compile({ checkpointer: bench.saver });
}

const toolCall = { name: "weather", args: { city: "Köln", days: [1, 2] }, id: "call-1", type: "tool_call" as const };

const RICH: BaseMessage[] = [
	new AIMessage({
		id: "ai-1",
		content: [
			{ type: "text", text: "Let me see." },
			{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
		],
		tool_calls: [toolCall],
		invalid_tool_calls: [{ name: "broken", args: "{", id: "call-2", error: "bad json", type: "invalid_tool_call" }],
		usage_metadata: { input_tokens: 10, output_tokens: 2, total_tokens: 12, input_token_details: { cache_read: 4 } },
		response_metadata: { model: "fake", finish_reason: "tool_calls", logprobs: null },
		additional_kwargs: { refusal: null, nested: { list: [1, [2]] } },
	}),
	new ToolMessage({
		id: "tool-1",
		content: "sunny",
		tool_call_id: "call-1",
		name: "weather",
		status: "success",
		artifact: { raw: [1, 2, { deep: true }] },
	}),
	new ToolMessage({ id: "tool-2", content: "no such tool", tool_call_id: "call-2", status: "error" }),
	new SystemMessage({ id: "system-1", content: "be brief" }),
	new ChatMessage({ id: "chat-1", content: "hello", role: "critic" }),
	new FunctionMessage({ id: "function-1", content: "42", name: "answer" }),
	new HumanMessage({ id: "human-1", content: "thanks", name: "Ada", additional_kwargs: { at: "noon" } }),
];

export default [
	scenario("a chat grows turn by turn, ids given by the reducer", async (bench) => {
		const graph = replying(
			bench,
			["Hello!", "Fine.", "Bye."].map((text) => new AIMessage(text)),
		);
		for (const text of ["Hi", "How are you?", "Bye"]) {
			await bench.run(graph, { messages: [new HumanMessage(text)] }, thread("chat"));
		}
		await bench.survey(graph, thread("chat"));
	}),

	scenario("a chat on MessagesZodState takes plain objects and tuples as messages", async (bench) => {
		const graph = new StateGraph(MessagesZodState)
			.addNode("reply", ({ messages }) => ({ messages: [{ role: "assistant", content: `${messages.length} so far` }] }))
			.addEdge(START, "reply")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { messages: [{ role: "user", content: "one" }] }, thread("chat"));
		await bench.run(graph, { messages: [["human", "two"]] }, thread("chat"));
		await bench.survey(graph, thread("chat"));
	}),

	scenario("messages of every class keep all their fields", async (bench) => {
		const graph = replying(bench, [RICH, new AIMessage({ id: "ai-2", content: "done" })]);
		await bench.run(graph, { messages: [new HumanMessage({ id: "h", content: "weather?" })] }, thread("chat"));
		await bench.run(
			graph,
			{ messages: [new HumanMessage({ id: "h2", content: [{ type: "text", text: "and now?" }] })] },
			thread("chat"),
		);
		await bench.survey(graph, thread("chat"));
	}),

	scenario("messages are edited by id, removed one by one, and all removed at once", async (bench) => {
		const graph = replying(bench, [
			[new AIMessage({ id: "a", content: "first" }), new AIMessage({ id: "b", content: "second" })],
			[new AIMessage({ id: "a", content: "first, edited" }), new RemoveMessage({ id: "b" })],
			[new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), new AIMessage({ id: "c", content: "a summary" })],
			new AIMessage({ id: "c", content: "a better summary" }),
		]);
		for (const id of ["1", "2", "3", "4"]) {
			await bench.run(graph, { messages: [new HumanMessage({ id, content: `turn ${id}` })] }, thread("chat"));
		}
		await bench.survey(graph, thread("chat"));
	}),

	scenario("message chunks stay chunks", async (bench) => {
		const chunk = new AIMessageChunk({
			id: "chunk",
			content: "partial",
			tool_call_chunks: [{ name: "weather", args: '{"city":', id: "call-1", index: 0, type: "tool_call_chunk" }],
			response_metadata: { finish_reason: "length" },
		});
		const graph = replying(bench, [chunk, new AIMessageChunk({ id: "chunk", content: "whole" })]);
		for (const id of ["h1", "h2"]) {
			await bench.run(graph, { messages: [new HumanMessage({ id, content: "go on" })] }, thread("chat"));
		}
		await bench.survey(graph, thread("chat"));
	}),

	scenario(
		"documents are found beside a chat",
		async (bench) => {
			const State = Annotation.Root({
				...MessagesAnnotation.spec,
				found: Annotation<Document[]>({ reducer: (found, more) => found.concat(more), default: () => [] }),
			});
			const document = () => new Document({ id: "d1", pageContent: "text", metadata: { page: 1 } });
			const graph = new StateGraph(State)
				.addNode("retrieve", () => ({ found: [document()] }))
				.addEdge(START, "retrieve")
				.addEdge("retrieve", END)
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { messages: [new HumanMessage({ id: "h", content: "find" })] }, thread("chat"));
			await bench.run(graph, { messages: [new HumanMessage({ id: "h2", content: "more" })] }, thread("chat"));
			bench.fact(
				"still documents",
				(await bench.state(graph, thread("chat"))).values.found.map((one: unknown) => one instanceof Document),
			);
			await bench.survey(graph, thread("chat"));
		},
		{
			differences: [
				{
					where: /(found\[\d+\]|pendingWrites\[\d+\]\[2\]\[\d+\]|result\.found\[\d+\])\.\$class$/,
					reason: "the official serializer turns a Document into a plain object",
				},
				{ where: /fact: still documents/, only: "runs", reason: "and here it comes back as it was" },
			],
		},
	),

	scenario(
		"a long chat is trimmed to its last messages now and then",
		async (bench) => {
			let turn = 0;
			const graph = new StateGraph(MessagesAnnotation)
				.addNode("reply", () => ({
					messages: [new AIMessage({ id: `ai-${turn++}`, content: "word ".repeat(turn * 5) })],
				}))
				.addNode("trim", ({ messages }) => ({
					messages: messages.length > 5 ? messages.slice(0, 3).map(({ id = "" }) => new RemoveMessage({ id })) : [],
				}))
				.addEdge(START, "reply")
				.addEdge("reply", "trim")
				.compile({ checkpointer: bench.saver });
			for (let at = 0; at < 6; at++) {
				await bench.run(
					graph,
					{ messages: [new HumanMessage({ id: `h-${at}`, content: `question ${at}` })] },
					thread("chat"),
				);
			}
			await bench.survey(graph, thread("chat"));
		},
		{ durabilities: ["async", "exit"] },
	),
];
