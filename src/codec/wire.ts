/**
 * The numbers of the stored value format.
 *
 * A value is one layout byte, then MessagePack. Three extension types carry what MessagePack has no word for; a
 * fourth marks a *tagged* value: an array whose first element is `EXT_TAG` with the tag as its one byte of data.
 * Applications can't store an extension of their own, so data never looks like a tagged value. A key of an object is text,
 * or the number of a name that is so common that it has one.
 */

/** First byte of a value. `array` and `object` have no header: elements, or keys and values, follow to the end. */
export const LAYOUT = { value: 0, array: 1, object: 2, refs: 0x10 } as const;

/** One-byte values: see {@link SINGLE}. */
export const EXT_SINGLE = 0;
/** Milliseconds since 1970 as a float64, NaN for an invalid date. */
export const EXT_DATE = 1;
/** A sign byte (1 = negative), then the magnitude, big-endian. */
export const EXT_BIGINT = 2;
/** The number of an object that occurred before in the same value, as a uint32. Objects are numbered as they begin. */
export const EXT_REF = 3;
/** Marks the array it is the first element of as a tagged value. */
export const EXT_TAG = 4;

export const SINGLE = { undefined: 0, negativeZero: 1 } as const;

/** What follows the tag in the array is named beside it. */
export const TAG = {
	/** key, value, key, value... */
	map: 1,
	/** values... */
	set: 2,
	/** class, name, message, stack, own properties, [cause, [errors]] */
	error: 3,
	/** source, flags, lastIndex */
	regexp: 4,
	/** href */
	url: 5,
	/** index in TYPED_ARRAYS, bytes */
	typedArray: 6,
	/** bytes of an ArrayBuffer */
	buffer: 7,
	/** bytes of a Node.js Buffer; a Uint8Array is plain MessagePack bin */
	nodeBuffer: 8,
	/** length, index, value, index, value... */
	sparse: 9,
	/** UTF-16LE code units of a string that has lone surrogates */
	utf16: 10,
	/** index in LANGCHAIN_CLASSES, constructor arguments */
	langchain: 16,
	/** value of a LangGraph DeltaSnapshot */
	deltaSnapshot: 17,
	/** name in the application's registry, what the class made of the instance */
	registered: 18,
	/** JSON of another LangChain object, for LangChain to load */
	loadable: 19,
} as const;

/** Only ever added to, like all lists here: a number is for good. */
export const LANGCHAIN_CLASSES = [
	"AIMessage",
	"AIMessageChunk",
	"ChatMessage",
	"ChatMessageChunk",
	"FunctionMessage",
	"FunctionMessageChunk",
	"HumanMessage",
	"HumanMessageChunk",
	"RemoveMessage",
	"SystemMessage",
	"SystemMessageChunk",
	"ToolMessage",
	"ToolMessageChunk",
	"Document",
	"StringPromptValue",
	"ChatPromptValue",
	"ImagePromptValue",
] as const;

/**
 * Keys that have numbers, up to 128: those of messages, and of what models say about their answers. A message of a model
 * has some twenty of them, which would take more bytes than what it says.
 */
export const NAMES = [
	"id",
	"content",
	"additional_kwargs",
	"response_metadata",
	"tool_calls",
	"invalid_tool_calls",
	"name",
	"type",
	"args",
	"tool_call_id",
	"status",
	"artifact",
	"text",
	"usage_metadata",
	"input_tokens",
	"output_tokens",
	"total_tokens",
	"input_token_details",
	"output_token_details",
	"cache_read",
	"cache_creation",
	"audio",
	"reasoning",
	"usage",
	"prompt_tokens",
	"completion_tokens",
	"prompt_tokens_details",
	"completion_tokens_details",
	"cached_tokens",
	"audio_tokens",
	"reasoning_tokens",
	"accepted_prediction_tokens",
	"rejected_prediction_tokens",
	"cache_read_input_tokens",
	"cache_creation_input_tokens",
	"tokenUsage",
	"estimatedTokenUsage",
	"promptTokens",
	"completionTokens",
	"totalTokens",
	"finish_reason",
	"stop_reason",
	"stop_sequence",
	"model",
	"model_name",
	"model_provider",
	"system_fingerprint",
	"service_tier",
	"logprobs",
	"output_version",
	"tool_call_chunks",
	"index",
	"input",
	"function",
	"arguments",
	"role",
	"refusal",
	"annotations",
	"image_url",
	"url",
	"detail",
	"mime_type",
	"data",
	"source_type",
	"cache_control",
	"thinking",
	"signature",
	"summary",
	"pageContent",
	"metadata",
] as const;

export const TYPED_ARRAYS = [
	"Int8Array",
	"Uint8ClampedArray",
	"Int16Array",
	"Uint16Array",
	"Int32Array",
	"Uint32Array",
	"Float32Array",
	"Float64Array",
	"BigInt64Array",
	"BigUint64Array",
	"DataView",
	"Float16Array",
] as const;

/**
 * How deep values may be nested, the top not counted. Even the decoder's first steps, when its code is not optimized
 * yet, need no more than half of Node's usual stack for this: what can be stored can be read.
 */
export const DEEPEST = 1000;
