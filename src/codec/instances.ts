import { Document } from "@langchain/core/documents";
import * as messages from "@langchain/core/messages";
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from "@langchain/core/prompt_values";
import { CheckpointError } from "../errors.ts";
import { isRecord } from "./built-ins.ts";

/** The properties of an instance. */
export type Fields = Record<string, unknown>;

/** Messages that stored bytes can name, by their number from 0. Prompt values and documents follow. */
const MESSAGES = [
	...(["AIMessage", "AIMessageChunk", "ChatMessage", "ChatMessageChunk", "FunctionMessage"] as const),
	...(["FunctionMessageChunk", "HumanMessage", "HumanMessageChunk", "RemoveMessage", "SystemMessage"] as const),
	...(["SystemMessageChunk", "ToolMessage", "ToolMessageChunk"] as const),
];

interface InstanceKind {
	readonly number: number;
	readonly name: string;
	readonly type: new (fields: never) => object;
	/** What it is made from; `undefined` for messages. */
	readonly args?: readonly string[];
}

/** The closed set. Only ever added to at the end: a number is for good. */
const KINDS: readonly InstanceKind[] = [
	// biome-ignore lint/performance/noDynamicNamespaceImportAccess: nearly all of it is used
	...MESSAGES.map((name) => ({ name, type: messages[name] })),
	{ name: "Document", type: Document, args: ["pageContent", "metadata", "id"] },
	{ name: "StringPromptValue", type: StringPromptValue, args: ["value"] },
	{ name: "ChatPromptValue", type: ChatPromptValue, args: ["messages"] },
	{ name: "ImagePromptValue", type: ImagePromptValue, args: ["imageUrl"] },
].map((kind, number) => ({ ...kind, number }) as InstanceKind);

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

/** The kind of the nearest class that is known, `null` if none is: a subclass comes back as the class it extends. */
export function kindOf(value: object): InstanceKind | null {
	const type = Object.getPrototypeOf(value)?.constructor as object | undefined;
	if (typeof type !== "function") return null;
	let kind = kindByType.get(type);
	if (kind === undefined) {
		kind = findKind(value);
		kindByType.set(type, kind);
	}
	return kind;
}

function findKind(value: object): InstanceKind | null {
	let prototype = Object.getPrototypeOf(value);
	while (prototype !== null && prototype !== Object.prototype) {
		const type = prototype.constructor as { name: string; lc_name?: () => string };
		const exact = KINDS.find((kind) => kind.type === (type as unknown));
		if (exact !== undefined) return exact;
		// A second copy of @langchain/core in the process has classes of its own with the same names.
		if (isOfLangChain(value as Fields)) {
			const name = Object.hasOwn(type, "lc_name") ? type.lc_name?.() : type.name;
			const named = KINDS.find((kind) => kind.name === name);
			if (named !== undefined) return named;
		}
		prototype = Object.getPrototypeOf(prototype);
	}
	return null;
}

function isOfLangChain({ lc_serializable, lc_namespace }: Fields): boolean {
	return lc_serializable === true && Array.isArray(lc_namespace) && lc_namespace[0] === "langchain_core";
}

/** Argument, value, argument, value... from which a constructor makes the same instance again, as it is now. */
export function argumentsOf({ args }: InstanceKind, instance: Fields): unknown[] {
	const list: unknown[] = [];
	if (args !== undefined) {
		for (const key of args) if (instance[key] !== undefined) list.push(key, instance[key]);
		return list;
	}
	const given = givenTo(instance);
	// An argument called `__proto__` is of no use to a message, and would not be an argument when it is read.
	for (const key in given)
		if (Object.hasOwn(given, key) && key !== "__proto__") list.push(key, key in instance ? instance[key] : given[key]);
	for (const key in instance) if (isSetLater(key, instance, given)) list.push(key, instance[key]);
	return list;
}

/** Builds an instance of a known class; `undefined` if none has this number. */
export function makeInstance(number: number, fields: Fields): object | undefined {
	const kind = KINDS[number];
	if (kind === undefined || !hasBoundedTexts(fields)) return undefined;
	return new kind.type((kind.type === (StringPromptValue as unknown) ? fields.value : fields) as never);
}

/** The same by the name that LangChain's own JSON has for the class. */
export function makeNamed(name: unknown, fields: Fields): object | undefined {
	const number = KINDS.findIndex((kind) => kind.name === name);
	return makeInstance(number, fields);
}

/**
 * Serializable classes of @langchain/core that are rebuilt by its own loader: building blocks of chains, by the modules
 * they are in and the names that they go by there. Models, tracers, tools and whatever else could act on the world when it is built are not among them.
 */
const LOADABLE: Readonly<Record<string, readonly unknown[]>> = {
	prompts: [
		...["AIMessagePromptTemplate", "ChatMessagePromptTemplate", "ChatPromptTemplate", "DictPromptTemplate"],
		...["FewShotChatMessagePromptTemplate", "FewShotPromptTemplate", "HumanMessagePromptTemplate"],
		...["ImagePromptTemplate", "MessagesPlaceholder", "PipelinePromptTemplate", "PromptTemplate", "StructuredPrompt"],
		"SystemMessagePromptTemplate",
	],
	output_parsers: [
		...["BytesOutputParser", "CommaSeparatedListOutputParser", "CustomListOutputParser", "JsonOutputParser"],
		...["MarkdownListOutputParser", "NumberedListOutputParser", "StrOutputParser", "XMLOutputParser"],
	],
	runnables: [
		...["RouterRunnable", "RunnableAssign", "RunnableBinding", "RunnableBranch", "RunnableEach", "RunnableMap"],
		...["RunnableParallel", "RunnablePassthrough", "RunnablePick", "RunnableRetry", "RunnableSequence"],
		"RunnableWithFallbacks",
	],
	messages: MESSAGES,
};

/** JSON from which LangChain makes the object again; `undefined` if there is none. */
export function toLoadableJson(value: object): string | undefined {
	if (!isOfLangChain(value as Fields)) return undefined;
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
		if (id[0] !== "langchain_core" || !Object.hasOwn(LOADABLE, id[1]) || !LOADABLE[id[1]]?.includes(id.at(-1)))
			return false;
	}
	return Object.values(value).every(namesOnlyLoadable);
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
