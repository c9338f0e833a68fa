import { messagesStateReducer } from "@langchain/langgraph";
import {
	getConfigTypeSchema,
	getInputTypeSchema,
	getOutputTypeSchema,
	getUpdateTypeSchema,
} from "@langchain/langgraph/zod/schema";
import { isRecord, type Json } from "../http/fields.ts";

/** What a graph takes and gives, as JSON schemas. */
export interface GraphSchemas {
	state: Json;
	input: Json;
	output: Json;
	config: Json | undefined;
}

/**
 * The schemas of a graph. Where it was built from a schema they are that; where it was built from annotations, which
 * have no types at run time, they name the channels and say what their reducers and defaults tell of them.
 */
export function schemasOf(graph: unknown): GraphSchemas {
	const { builder } = graph as { builder?: Builder };
	return {
		state: declared(getUpdateTypeSchema, graph) ?? describeChannels(builder?._schemaDefinition ?? channelsOf(graph)),
		input: declared(getInputTypeSchema, graph) ?? describeChannels(builder?._inputDefinition ?? channelsOf(graph)),
		output: declared(getOutputTypeSchema, graph) ?? describeChannels(builder?._outputDefinition ?? channelsOf(graph)),
		config: declared(getConfigTypeSchema, graph),
	};
}

/** The definitions that a StateGraph keeps: channels, or what makes them. */
interface Builder {
	_schemaDefinition?: Json;
	_inputDefinition?: Json;
	_outputDefinition?: Json;
}

function declared(read: (graph: unknown) => unknown, graph: unknown): Json | undefined {
	try {
		const schema = read(graph);
		return isRecord(schema) ? schema : undefined;
	} catch {
		// A schema that has no JSON form, such as one with a transformation.
		return undefined;
	}
}

/** The channels of a graph that was not built by a StateGraph, without those of LangGraph itself. */
function channelsOf(graph: unknown): Json {
	const { channels } = graph as { channels?: Json };
	return Object.fromEntries(Object.entries(channels ?? {}).filter(([name]) => !/^__|:/.test(name)));
}

function describeChannels(channels: Json): Json {
	const properties = Object.entries(channels).map(([name, channel]) => [
		name,
		describeChannel(typeof channel === "function" ? channel() : channel),
	]);
	return { type: "object", properties: Object.fromEntries(properties) };
}

function describeChannel(channel: unknown): Json {
	const { operator, initialValueFactory } = (channel ?? {}) as {
		operator?: unknown;
		initialValueFactory?: () => unknown;
	};
	// Studio shows a chat for what has this mark.
	if (operator === messagesStateReducer)
		return { type: "array", items: { type: "object" }, langgraph_type: "messages" };
	const initial = typeof initialValueFactory === "function" ? initialValueFactory() : undefined;
	if (Array.isArray(initial)) return { type: "array" };
	if (isRecord(initial)) return { type: "object" };
	return ["string", "number", "boolean"].includes(typeof initial) ? { type: typeof initial } : {};
}
