import { Document } from "@langchain/core/documents";
import * as messages from "@langchain/core/messages";
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from "@langchain/core/prompt_values";
import { isRecord } from "./built-ins.ts";
import { corrupt } from "./messagepack.ts";

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
	const isLangChains = isOfLangChain(value as Fields);
	for (let prototype = Object.getPrototypeOf(value); prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
		const type = prototype.constructor;
		// A second copy of @langchain/core in the process has classes of its own with the same names.
		const name = isLangChains && (Object.hasOwn(type, "lc_name") ? type.lc_name() : type.name);
		const kind = KINDS.find((kind) => kind.type === type || kind.name === name);
		if (kind !== undefined) return kind;
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
	// Properties that were set since belong to the arguments when it is built again.
	for (const key in instance) {
		if (Object.hasOwn(given, key) || !Object.hasOwn(instance, key) || instance[key] === undefined) continue;
		if (key !== "type" && !key.startsWith("lc_") && !(key in Object.prototype)) list.push(key, instance[key]);
	}
	return list;
}

/** Builds an instance of a class by its number; `undefined` if it is not known. */
export function makeInstance(number: number, fields: Fields): object | undefined {
	const kind = KINDS[number];
	if (kind === undefined || !hasBoundedTexts(fields)) return undefined;
	return new kind.type((kind.name === "StringPromptValue" ? fields.value : fields) as never);
}

/**
 * Serializable classes of @langchain/core that are rebuilt by its own loader: prompts, output parsers and runnables, which are
 * building blocks of chains. Models, tracers, tools and whatever else could act on the world when it is built are not among
 * them.
 */
const LOADABLE: readonly unknown[] = [
	...["AIMessagePromptTemplate", "ChatMessagePromptTemplate", "ChatPromptTemplate", "DictPromptTemplate"],
	...["FewShotChatMessagePromptTemplate", "FewShotPromptTemplate", "HumanMessagePromptTemplate"],
	...["ImagePromptTemplate", "MessagesPlaceholder", "PipelinePromptTemplate", "PromptTemplate", "StructuredPrompt"],
	...["SystemMessagePromptTemplate", "BytesOutputParser", "CommaSeparatedListOutputParser", "CustomListOutputParser"],
	...["JsonOutputParser", "MarkdownListOutputParser", "NumberedListOutputParser", "StrOutputParser", "XMLOutputParser"],
	...["RouterRunnable", "RunnableAssign", "RunnableBinding", "RunnableBranch", "RunnableEach", "RunnableMap"],
	...["RunnableParallel", "RunnablePassthrough", "RunnablePick", "RunnableRetry", "RunnableSequence"],
	...["RunnableWithFallbacks", ...MESSAGES],
];

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
		throw corrupt("a LangChain object names a class that is not in the closed set");
	const { load } = await import("@langchain/core/load");
	return load(json).catch(() => JSON.parse(json));
}

/** A record of a class in the closed set, with nothing in it that LangChain would take for a record of another kind. */
function isLoadable(value: unknown): boolean {
	return Object.hasOwn(Object(value), "lc") && namesOnlyLoadable(value);
}

function namesOnlyLoadable(value: unknown): boolean {
	if (typeof value !== "object" || value === null) return true;
	const { lc, type, id } = value as Fields;
	if (Object.hasOwn(value, "__lc_escaped__")) return Object.keys(value).length === 1;
	if (lc !== undefined) {
		if (lc !== 1 || type !== "constructor" || !Array.isArray(id)) return false;
		if (id[0] !== "langchain_core" || !LOADABLE.includes(id.at(-1))) return false;
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
	const stand = typeof toJSON === "function" ? toJSON.call(value, "") : value;
	return [Number, String, Boolean, BigInt].some((type) => stand instanceof type) ? stand.valueOf() : stand;
}
