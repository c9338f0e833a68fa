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
import { TAG } from "./wire.ts";

type Fields = Record<string, unknown>;
type Constructor = abstract new (...args: never[]) => object;

interface InstanceKind {
	readonly name: string;
	readonly type: Constructor;
	describe(value: Fields): Fields;
	make(fields: Fields): object;
}

function messageKind(name: string, type: new (fields: never) => object): InstanceKind {
	return { name, type, describe: describeMessage, make: (fields) => new type(fields as never) };
}

/** The closed set of classes that stored bytes can name. */
const KINDS: readonly InstanceKind[] = [
	...Object.entries({
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
	}).map(([name, type]) => messageKind(name, type as new (fields: never) => object)),
	{
		name: "Document",
		type: Document,
		describe: ({ pageContent, metadata, id }) =>
			id === undefined ? { pageContent, metadata } : { pageContent, metadata, id },
		make: (fields) => new Document(fields as never),
	},
	{
		name: "StringPromptValue",
		type: StringPromptValue,
		describe: ({ value }) => ({ value }),
		make: ({ value }) => new StringPromptValue(value as string),
	},
	{
		name: "ChatPromptValue",
		type: ChatPromptValue,
		describe: ({ messages }) => ({ messages }),
		make: ({ messages }) => new ChatPromptValue({ messages } as never),
	},
	{
		name: "ImagePromptValue",
		type: ImagePromptValue,
		describe: ({ imageUrl }) => ({ imageUrl }),
		make: ({ imageUrl }) => new ImagePromptValue({ imageUrl } as never),
	},
];

const kindByName: ReadonlyMap<string, InstanceKind> = new Map(KINDS.map((kind) => [kind.name, kind]));
const kindByType = new WeakMap<object, InstanceKind | null>();

/** What a message was built from, as it is now: constructor arguments, and fields set since. */
function describeMessage(message: Fields): Fields {
	const fields: Fields = {};
	const given = message.lc_kwargs as Fields;
	for (const key of Object.keys(given)) fields[key] = key in message ? message[key] : given[key];
	for (const key of Object.keys(message))
		if (message[key] !== undefined && !(key in fields) && key !== "type" && !key.startsWith("lc_"))
			fields[key] = message[key];
	return fields;
}

/** How an instance of a known class is written. */
interface Description {
	readonly tag: number;
	readonly fields: readonly unknown[];
	/** The objects whose own properties say it all, if that can be said. */
	readonly madeFrom?: readonly object[] | undefined;
}

/** The description of an instance of a known class, `undefined` for any other object. */
export function describeInstance(value: object): Description | undefined {
	if (isDeltaSnapshot(value)) return { tag: TAG.deltaSnapshot, fields: [value.value] };
	const type = value.constructor as object | undefined;
	if (typeof type !== "function") return undefined;
	let kind = kindByType.get(type);
	if (kind === undefined) {
		kind = findKind(value);
		kindByType.set(type, kind);
	}
	if (kind === null) return isLoadable(value) ? { tag: TAG.loadable, fields: [JSON.stringify(value)] } : undefined;
	const madeFrom = kind.describe === describeMessage ? [value, (value as Fields).lc_kwargs as object] : undefined;
	return { tag: TAG.langchain, fields: [kind.name, kind.describe(value as Fields)], madeFrom };
}

/**
 * Modules of @langchain/core whose serializable classes are rebuilt by its own loader: building blocks of chains. Models,
 * tracers, tools and whatever else could act on the world when it is built are not among them.
 */
const LOADABLE: ReadonlySet<unknown> = new Set(["prompts", "output_parsers", "runnables", "example_selectors"]);

function isLoadable(value: object): boolean {
	const { lc_serializable, lc_namespace } = value as Fields;
	return (
		lc_serializable === true &&
		Array.isArray(lc_namespace) &&
		lc_namespace[0] === "langchain_core" &&
		LOADABLE.has(lc_namespace[1])
	);
}

/** Builds a LangChain object from its JSON, if every class it names is in the closed set. */
export async function loadInstance(json: unknown): Promise<unknown> {
	if (typeof json !== "string" || !namesOnlyLoadable(JSON.parse(json)))
		throw new CheckpointError("CORRUPT", "A stored LangChain object names a class that is not in the closed set.");
	const { load } = await import("@langchain/core/load");
	return load(json);
}

function namesOnlyLoadable(value: unknown): boolean {
	if (typeof value !== "object" || value === null) return true;
	const { lc, id } = value as Fields;
	if (lc !== undefined) {
		const [root, module, ...rest] = Array.isArray(id) ? id : [];
		const isMessage = module === "messages" && kindByName.has(rest.at(-1));
		if (root !== "langchain_core" || !(LOADABLE.has(module) || isMessage)) return false;
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
		if ((value as Fields).lc_serializable === true && Object.hasOwn(type, "lc_name")) {
			const named = kindByName.get(type.lc_name?.() ?? "");
			if (named !== undefined) return named;
		}
		prototype = Object.getPrototypeOf(prototype);
	}
	return null;
}

/** Builds an instance of a known class; `undefined` if the name is not one of them. */
export function makeInstance(name: unknown, fields: unknown): object | undefined {
	if (typeof name !== "string" || typeof fields !== "object" || fields === null) return undefined;
	return kindByName.get(name)?.make(fields as Fields);
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
