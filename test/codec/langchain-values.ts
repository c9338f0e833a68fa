import { Document } from "@langchain/core/documents";
import {
	AIMessage,
	AIMessageChunk,
	type BaseMessage,
	ChatMessage,
	ChatMessageChunk,
	FunctionMessage,
	FunctionMessageChunk,
	HumanMessage,
	HumanMessageChunk,
	RemoveMessage,
	SystemMessage,
	SystemMessageChunk,
	ToolMessage,
	ToolMessageChunk,
} from "@langchain/core/messages";
import {
	BytesOutputParser,
	CommaSeparatedListOutputParser,
	CustomListOutputParser,
	JsonOutputParser,
	MarkdownListOutputParser,
	NumberedListOutputParser,
	StringOutputParser,
	XMLOutputParser,
} from "@langchain/core/output_parsers";
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from "@langchain/core/prompt_values";
import {
	AIMessagePromptTemplate,
	ChatMessagePromptTemplate,
	ChatPromptTemplate,
	DictPromptTemplate,
	FewShotChatMessagePromptTemplate,
	FewShotPromptTemplate,
	HumanMessagePromptTemplate,
	ImagePromptTemplate,
	MessagesPlaceholder,
	PipelinePromptTemplate,
	PromptTemplate,
	StructuredPrompt,
	SystemMessagePromptTemplate,
} from "@langchain/core/prompts";
import {
	RouterRunnable,
	RunnableBranch,
	RunnableEach,
	RunnableMap,
	RunnableParallel,
	RunnablePassthrough,
	RunnablePick,
	RunnableSequence,
} from "@langchain/core/runnables";

const call = { id: "call_1", name: "search", args: { q: "x", deep: { list: [1, null] } }, type: "tool_call" as const };
const usage = {
	input_tokens: 10,
	output_tokens: 5,
	total_tokens: 15,
	input_token_details: { cache_read: 3 },
	output_token_details: { reasoning: 1 },
};
const blocks = [
	{ type: "text", text: "look" },
	{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
	{ type: "tool_use", id: "call_1", name: "search", input: { q: "x" } },
];

/** Every message class, with what its fields can hold. */
export const MESSAGES: Record<string, () => BaseMessage> = {
	"a HumanMessage from text": () => new HumanMessage("hi"),
	"a HumanMessage with everything": () =>
		new HumanMessage({
			id: "h1",
			name: "ada",
			content: blocks as never,
			additional_kwargs: { lang: "en", nested: { n: null } },
			response_metadata: { any: ["thing"] },
		}),
	"a message whose fields are undefined": () =>
		new HumanMessage({ content: "x", id: undefined, name: undefined, additional_kwargs: { key: undefined } }),
	"a message with an empty list of blocks": () => new AIMessage({ content: [] }),
	"an AIMessage from text": () => new AIMessage("hello"),
	"an AIMessage from blocks": () => new AIMessage([{ type: "text", text: "hello" }] as never),
	"an AIMessage with tool calls": () =>
		new AIMessage({
			id: "a1",
			content: "",
			tool_calls: [call, { id: "call_2", name: "sum", args: {}, type: "tool_call" }],
			invalid_tool_calls: [{ id: "bad", name: "x", args: "{", error: "cut", type: "invalid_tool_call" }],
			usage_metadata: usage,
			response_metadata: { model_name: "m", finish_reason: "tool_calls", logprobs: null },
		}),
	"an AIMessage with tool calls in the form of its provider": () =>
		new AIMessage({
			content: "",
			tool_calls: [call],
			additional_kwargs: {
				tool_calls: [{ id: "call_1", type: "function", function: { name: "search", arguments: '{"q":"x"}' } }],
			},
		}),
	"an AIMessage of the new kind of blocks": () =>
		new AIMessage({
			contentBlocks: [
				{ type: "reasoning", reasoning: "hm" },
				{ type: "text", text: "hello" },
				{ type: "tool_call", id: "call_1", name: "search", args: { q: 1 } },
			],
		}),
	"an AIMessage of the new kind of output": () =>
		new AIMessage({ content: [{ type: "text", text: "hello" }], response_metadata: { output_version: "v1" } }),
	"an AIMessage whose fields were set later": () => {
		const message = new AIMessage("first");
		message.id = "later";
		message.content = "second";
		message.tool_calls = [call];
		message.usage_metadata = usage;
		message.additional_kwargs.more = 1;
		message.response_metadata = { late: true };
		message.lc_kwargs.tool_calls = message.tool_calls;
		message.lc_kwargs.usage_metadata = message.usage_metadata;
		message.lc_kwargs.id = message.id;
		return message;
	},
	"an AIMessageChunk": () => new AIMessageChunk({ id: "c1", content: "par", usage_metadata: usage }),
	"an AIMessageChunk with parts of tool calls": () =>
		new AIMessageChunk({
			content: "",
			tool_call_chunks: [
				{ id: "call_1", name: "search", args: '{"q":', index: 0, type: "tool_call_chunk" },
				{ args: '"x"}', index: 0, type: "tool_call_chunk" },
				{ id: "call_2", name: "broken", args: "]", index: 1, type: "tool_call_chunk" },
			],
		}),
	"an AIMessageChunk made of two": () =>
		new AIMessageChunk({ content: "a", response_metadata: { model_provider: "x" } }).concat(
			new AIMessageChunk({ content: "b", id: "c2", usage_metadata: usage }),
		),
	"a SystemMessage": () => new SystemMessage({ id: "s", content: "be kind" }),
	"a ToolMessage": () =>
		new ToolMessage({
			id: "t",
			content: [{ type: "text", text: "42" }] as never,
			tool_call_id: "call_1",
			name: "sum",
			status: "error",
			artifact: { table: [[1, 2]], none: null },
			metadata: { took: 5 },
		}),
	"a ToolMessage from text": () => new ToolMessage("42", "call_1", "sum"),
	"a ChatMessage": () => new ChatMessage({ content: "x", role: "moderator" }),
	"a FunctionMessage": () => new FunctionMessage({ content: "x", name: "f" }),
	"a RemoveMessage": () => new RemoveMessage({ id: "gone" }),
	"a HumanMessageChunk": () => new HumanMessageChunk({ content: "x", id: "1" }),
	"a SystemMessageChunk": () => new SystemMessageChunk({ content: "x" }),
	"a ToolMessageChunk": () => new ToolMessageChunk({ content: "x", tool_call_id: "call_1", status: "success" }),
	"a ChatMessageChunk": () => new ChatMessageChunk({ content: "x", role: "r" }),
	"a FunctionMessageChunk": () => new FunctionMessageChunk({ content: "x", name: "f" }),
};

/** Other data classes. */
export const DATA: Record<string, () => object> = {
	"a Document": () => new Document({ pageContent: "text", metadata: { source: "x", loc: { page: 1 } }, id: "d1" }),
	"a Document without an id": () => new Document({ pageContent: "" }),
	"a StringPromptValue": () => new StringPromptValue("text"),
	"a ChatPromptValue": () => new ChatPromptValue([new SystemMessage("s"), new HumanMessage("h")]),
	"an ImagePromptValue": () => new ImagePromptValue({ url: "https://example.com/a.png", detail: "high" }),
};

const prompt = () => PromptTemplate.fromTemplate("Say {word} to {name}");
const chatPrompt = () =>
	ChatPromptTemplate.fromMessages([
		["system", "You are {role}"],
		new MessagesPlaceholder("history"),
		new HumanMessage("literal"),
		["human", "{question}"],
	]);

/** Building blocks of chains, which LangChain's own loader makes again. */
export const CHAINS: Record<string, () => object> = {
	"a PromptTemplate": prompt,
	"a PromptTemplate with values filled in": () =>
		new PromptTemplate({
			template: "{{a}} {{b}}",
			templateFormat: "mustache",
			inputVariables: ["a"],
			partialVariables: { b: "filled" },
		}),
	"a ChatPromptTemplate": chatPrompt,
	"a MessagesPlaceholder": () => new MessagesPlaceholder({ variableName: "history", optional: true }),
	"a HumanMessagePromptTemplate": () => HumanMessagePromptTemplate.fromTemplate("{x}"),
	"an AIMessagePromptTemplate": () => AIMessagePromptTemplate.fromTemplate("{x}"),
	"a SystemMessagePromptTemplate": () => SystemMessagePromptTemplate.fromTemplate("{x}"),
	"a ChatMessagePromptTemplate": () => ChatMessagePromptTemplate.fromTemplate("{x}", "moderator"),
	"an ImagePromptTemplate": () =>
		new ImagePromptTemplate({ template: { url: "https://{host}/a.png" }, inputVariables: ["host"] }),
	"a DictPromptTemplate": () => new DictPromptTemplate({ template: { a: "{x}", b: ["{y}"] } }),
	"a FewShotPromptTemplate": () =>
		new FewShotPromptTemplate({
			examples: [{ in: "1", out: "2" }],
			examplePrompt: PromptTemplate.fromTemplate("{in} {out}"),
			suffix: "{q}",
			inputVariables: ["q"],
		}),
	"a FewShotChatMessagePromptTemplate": () =>
		new FewShotChatMessagePromptTemplate({ examplePrompt: chatPrompt(), examples: [{ in: "1" }], inputVariables: [] }),
	"a PipelinePromptTemplate": () =>
		new PipelinePromptTemplate({
			pipelinePrompts: [{ name: "a", prompt: prompt() }],
			finalPrompt: PromptTemplate.fromTemplate("{a}"),
		}),
	"a StructuredPrompt": () =>
		new StructuredPrompt({
			promptMessages: [HumanMessagePromptTemplate.fromTemplate("{aThing}")],
			inputVariables: ["aThing"],
			schema: { type: "object", properties: { a: { type: "string" } } },
		} as never),
	"a StringOutputParser": () => new StringOutputParser(),
	"a BytesOutputParser": () => new BytesOutputParser(),
	"a JsonOutputParser": () => new JsonOutputParser(),
	"an XMLOutputParser": () => new XMLOutputParser({ tags: ["a", "b"] }),
	"a CommaSeparatedListOutputParser": () => new CommaSeparatedListOutputParser(),
	"a NumberedListOutputParser": () => new NumberedListOutputParser(),
	"a MarkdownListOutputParser": () => new MarkdownListOutputParser(),
	"a CustomListOutputParser": () => new CustomListOutputParser({ length: 3, separator: ";" }),
	"a RunnableSequence": () => RunnableSequence.from([chatPrompt(), new StringOutputParser()] as never),
	"a RunnableMap": () => RunnableMap.from({ a: prompt(), b: new RunnablePassthrough() } as never),
	"a RunnableParallel": () => RunnableParallel.from({ a: prompt() } as never),
	"a RunnableAssign": () => RunnablePassthrough.assign({ a: new RunnablePassthrough() } as never),
	"a RunnableBranch": () =>
		RunnableBranch.from([[new RunnablePassthrough(), prompt()], new RunnablePassthrough()] as never),
	"a RunnableEach": () => new RunnableEach({ bound: new RunnablePassthrough() }),
	"a RouterRunnable": () => new RouterRunnable({ runnables: { a: new RunnablePassthrough() } }),
	"a RunnablePassthrough": () => new RunnablePassthrough(),
	"a RunnablePick": () => new RunnablePick(["a", "b"]),
	"a RunnableBinding": () => new RunnablePassthrough().withConfig({ tags: ["t"] }),
	"a RunnableWithFallbacks": () => prompt().withFallbacks([prompt()]),
	"a RunnableRetry": () => prompt().withRetry({ stopAfterAttempt: 2 }),
};
