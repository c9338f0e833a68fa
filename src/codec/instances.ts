import { Document } from "@langchain/core/documents";
import {
	AIMessage,
	AIMessageChunk,
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
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from "@langchain/core/prompt_values";
import { DeltaSnapshot, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { CheckpointError } from "../errors.ts";
import { isRecord } from "./built-ins.ts";
import { LANGCHAIN_CLASSES, TAG } from "./wire.ts";

/** The properties of an instance. */
export type Fields = Record<string, unknown>;
type Constructor = abstract new (...args: never[]) => object;

/** A class, what its instances are made from, and how. */
interface InstanceClass {
	readonly type: Constructor;
	/** Not for messages, see {@link messageTypeOf}. */
	describe?(value: Fields): Fields;
	make(fields: Fields): object;
}

interface InstanceKind extends InstanceClass {
	readonly name: string;
	readonly number: number;
}

function message(type: new (fields: never) => object): InstanceClass {
	return { type, make: (fields) => new type(fields as never) };
}

const CLASSES: Record<(typeof LANGCHAIN_CLASSES)[number], InstanceClass> = {
	AIMessage: message(AIMessage),
	AIMessageChunk: message(AIMessageChunk),
	ChatMessage: message(ChatMessage),
	ChatMessageChunk: message(ChatMessageChunk),
	FunctionMessage: message(FunctionMessage),
	FunctionMessageChunk: message(FunctionMessageChunk),
	HumanMessage: message(HumanMessage),
	HumanMessageChunk: message(HumanMessageChunk),
	RemoveMessage: message(RemoveMessage),
	SystemMessage: message(SystemMessage),
	SystemMessageChunk: message(SystemMessageChunk),
	ToolMessage: message(ToolMessage),
	ToolMessageChunk: message(ToolMessageChunk),
	Document: {
		type: Document,
		describe: ({ pageContent, metadata, id }) =>
			id === undefined ? { pageContent, metadata } : { pageContent, metadata, id },
		make: (fields) => new Document(fields as never),
	},
	StringPromptValue: {
		type: StringPromptValue,
		describe: ({ value }) => ({ value }),
		make: ({ value }) => new StringPromptValue(value as string),
	},
	ChatPromptValue: {
		type: ChatPromptValue,
		describe: ({ messages }) => ({ messages }),
		make: ({ messages }) => new ChatPromptValue({ messages } as never),
	},
	ImagePromptValue: {
		type: ImagePromptValue,
		describe: ({ imageUrl }) => ({ imageUrl }),
		make: ({ imageUrl }) => new ImagePromptValue({ imageUrl } as never),
	},
};

/** The closed set of classes that stored bytes can name, by number. */
const KINDS: readonly InstanceKind[] = LANGCHAIN_CLASSES.map((name, number) => ({ ...CLASSES[name], name, number }));

const kindByName: ReadonlyMap<string, InstanceKind> = new Map(KINDS.map((kind) => [kind.name, kind]));
const kindByType = new WeakMap<object, InstanceKind | null>();

/** What a message was built from. */
export function givenTo({ lc_kwargs }: Fields): Fields {
	return (lc_kwargs ?? {}) as Fields;
}

/** Whether a property of a message is none of its arguments, and yet belongs to them when it is built again. */
export function isSetLater(key: string, message: Fields, given: Fields): boolean {
	if (key === "type" || key.startsWith("lc_") || key in Object.prototype || Object.hasOwn(given, key)) return false;
	return message[key] !== undefined && Object.hasOwn(message, key);
}

/** The number of the class that a message comes back as, `undefined` for any other object. */
export function messageTypeOf(value: object): number | undefined {
	const kind = kindOf(value);
	return kind === null || kind.describe !== undefined ? undefined : kind.number;
}

/** The kind of the nearest class that is known, `null` if none is. */
function kindOf(value: object): InstanceKind | null {
	const type = Object.getPrototypeOf(value)?.constructor as object | undefined;
	if (typeof type !== "function") return null;
	let kind = kindByType.get(type);
	if (kind === undefined) {
		kind = findKind(value);
		kindByType.set(type, kind);
	}
	return kind;
}

/** How an instance of a known class is written. */
export interface Description {
	readonly tag: number;
	readonly fields: readonly unknown[];
}

/** The description of an instance of a known class that is no message, `undefined` for any other object. */
export function describeInstance(value: object): Description | undefined {
	if (isDeltaSnapshot(value)) return { tag: TAG.deltaSnapshot, fields: [value.value] };
	const kind = kindOf(value);
	if (kind?.describe !== undefined)
		return { tag: TAG.langchain, fields: [kind.number, kind.describe(value as Fields)] };
	const json = toLoadableJson(value);
	return json === undefined ? undefined : { tag: TAG.loadable, fields: [json] };
}

/**
 * Serializable classes of @langchain/core that are rebuilt by its own loader: building blocks of chains, by the modules
 * they are in and the names that they go by there. Models, tracers, tools and whatever else could act on the world when it is built are not among them.
 */
const LOADABLE: ReadonlyMap<unknown, ReadonlySet<unknown>> = new Map([
	[
		"prompts",
		new Set([
			"AIMessagePromptTemplate",
			"ChatMessagePromptTemplate",
			"ChatPromptTemplate",
			"DictPromptTemplate",
			"FewShotChatMessagePromptTemplate",
			"FewShotPromptTemplate",
			"HumanMessagePromptTemplate",
			"ImagePromptTemplate",
			"MessagesPlaceholder",
			"PipelinePromptTemplate",
			"PromptTemplate",
			"StructuredPrompt",
			"SystemMessagePromptTemplate",
		]),
	],
	[
		"output_parsers",
		new Set([
			"BytesOutputParser",
			"CommaSeparatedListOutputParser",
			"CustomListOutputParser",
			"JsonOutputParser",
			"MarkdownListOutputParser",
			"NumberedListOutputParser",
			"StrOutputParser",
			"XMLOutputParser",
		]),
	],
	[
		"runnables",
		new Set([
			"RouterRunnable",
			"RunnableAssign",
			"RunnableBinding",
			"RunnableBranch",
			"RunnableEach",
			"RunnableMap",
			"RunnableParallel",
			"RunnablePassthrough",
			"RunnablePick",
			"RunnableRetry",
			"RunnableSequence",
			"RunnableWithFallbacks",
		]),
	],
	["messages", new Set(KINDS.filter(({ describe }) => describe === undefined).map(({ name }) => name))],
]);

/** JSON from which LangChain makes the object again; `undefined` if there is none. */
function toLoadableJson(value: object): string | undefined {
	const { lc_serializable, lc_namespace } = value as Fields;
	if (lc_serializable !== true || !Array.isArray(lc_namespace) || lc_namespace[0] !== "langchain_core")
		return undefined;
	try {
		const json = JSON.stringify(value);
		return isLoadable(JSON.parse(json)) ? json : undefined;
	} catch {
		// What it holds has no JSON.
		return undefined;
	}
}

/**
 * Builds a LangChain object from its JSON, if every class it names is in the closed set. Some objects, such as prompts
 * with values filled in, have JSON that LangChain itself refuses: they come back as the data that it is.
 */
export async function loadInstance(json: unknown): Promise<unknown> {
	if (typeof json !== "string" || !isLoadable(JSON.parse(json)))
		throw new CheckpointError("CORRUPT", "A stored LangChain object names a class that is not in the closed set.");
	const { load } = await import("@langchain/core/load");
	return load(json).catch(() => JSON.parse(json));
}

/** A record of a class in the closed set, with nothing in it that LangChain would take for a record of another kind. */
function isLoadable(value: unknown): boolean {
	return typeof value === "object" && value !== null && "lc" in value && namesOnlyLoadable(value);
}

function namesOnlyLoadable(value: unknown): boolean {
	if (typeof value !== "object" || value === null) return true;
	const { lc, type, id } = value as Fields;
	if (Object.hasOwn(value, "__lc_escaped__")) return Object.keys(value).length === 1;
	if (lc !== undefined) {
		if (lc !== 1 || type !== "constructor" || !Array.isArray(id)) return false;
		if (id[0] !== "langchain_core" || !LOADABLE.get(id[1])?.has(id.at(-1))) return false;
	}
	return Object.values(value).every(namesOnlyLoadable);
}

/** The kind of the nearest class that is known: a subclass comes back as the class it extends. */
function findKind(value: object): InstanceKind | null {
	let prototype = Object.getPrototypeOf(value);
	while (prototype !== null && prototype !== Object.prototype) {
		const type = prototype.constructor as Constructor & { lc_name?: () => string };
		const exact = KINDS.find((kind) => kind.type === type);
		if (exact !== undefined) return exact;
		// A second copy of @langchain/core in the process has classes of its own with the same names.
		const { lc_serializable, lc_namespace } = value as Fields;
		if (lc_serializable === true && Array.isArray(lc_namespace) && lc_namespace[0] === "langchain_core") {
			const named = kindByName.get(Object.hasOwn(type, "lc_name") ? (type.lc_name?.() ?? "") : type.name);
			if (named !== undefined) return named;
		}
		prototype = Object.getPrototypeOf(prototype);
	}
	return null;
}

/** Builds an instance of a known class; `undefined` if none has this number. */
export function makeInstance(number: unknown, fields: unknown): object | undefined {
	if (typeof number !== "number" || !isRecord(fields) || !hasBoundedTexts(fields)) return undefined;
	return KINDS[number]?.make(fields);
}

/** Whether there is an end to what LangChain makes text of when it builds an instance, whatever it is. */
function hasBoundedTexts({ pageContent, tool_call_chunks, additional_kwargs }: Fields): boolean {
	if (!isBounded(pageContent)) return false;
	if (Array.isArray(tool_call_chunks) && !tool_call_chunks.every((chunk) => isBounded(chunk?.args))) return false;
	const calls = (additional_kwargs as Fields | undefined)?.tool_calls;
	return !Array.isArray(calls) || calls.every((call) => isBounded(call?.function?.arguments));
}

/** Far more than anything that should be text has, and little enough to be gone through. */
const MOST_PARTS = 10_000;

/** An array of arrays that hold each other many times over has text without end, though its bytes are few. */
function isBounded(value: unknown): boolean {
	if (typeof value !== "object") return true;
	const parts = [value];
	for (const part of parts) {
		if (typeof part !== "object" || part === null || isRecord(part)) continue;
		if (!Array.isArray(part) || parts.length + part.length > MOST_PARTS) return false;
		parts.push(...part);
	}
	return true;
}

export function makeDeltaSnapshot(value: unknown): DeltaSnapshot {
	return new DeltaSnapshot(value);
}

/** Whether LangGraph itself made it and takes it back as a plain object: Send, Command, Overwrite. */
export function isLangGraphs(value: object): boolean {
	return typeof (value as Fields).lg_name === "string" || Object.hasOwn(value, "__overwrite__");
}

/** What JSON would store in the place of an instance of an unknown class; the value itself if it has no say. */
export function standInFor(value: object): unknown {
	const { lg_name, node, args, timeout } = value as Fields;
	// LangGraph takes `Send` back as a plain object, and its toJSON would add a name that it does not expect.
	if (lg_name === "Send") return timeout === undefined ? { node, args } : { node, args, timeout };
	const toJSON = (value as Fields).toJSON;
	return typeof toJSON === "function" ? toJSON.call(value, "") : value;
}
