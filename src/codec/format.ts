/**
 * The numbers of the stored value format, see FORMAT.md.
 *
 * A value is one layout byte, then MessagePack. A *tagged* value is an array that begins with `undefined` and a tag; it stands
 * for what MessagePack has no word for. An array of the application that begins with `undefined` is itself written with a tag,
 * so that data never looks like a tagged value.
 */

/** First byte of a value. `array` and `object` have no header: elements, or keys and values, follow to the end. */
export const LAYOUT = { value: 0, array: 1, object: 2, refs: 0x10 } as const;

/** What follows the tag in the array is named beside it. */
export const TAG = {
	/** elements of an array that begins with undefined */
	array: 0,
	negativeZero: 1,
	nan: 2,
	/** UTF-16LE code units of a string that UTF-8, or msgpackr's reader of it, would change */
	text: 3,
	/** key, value, key, value... of an object with a key that a MessagePack map would not keep */
	object: 4,
	/** length, index, value, index, value... */
	sparse: 5,
	/** number of an object that occurred before. Objects are numbered as they begin */
	reference: 6,
	/** milliseconds since 1970, NaN for an invalid date */
	date: 7,
	/** key, value, key, value... */
	map: 8,
	/** values... */
	set: 9,
	/** flags (1: a hidden cause, 2: hidden errors), class, name, message, stack, [cause], [errors], key, value... */
	error: 10,
	/** source, flags, lastIndex */
	regexp: 11,
	/** href */
	url: 12,
	/** index in TYPED_ARRAYS, bytes */
	typedArray: 13,
	/** bytes of an ArrayBuffer */
	arrayBuffer: 14,
	/** bytes of a Node.js Buffer; a Uint8Array is plain MessagePack bin */
	nodeBuffer: 15,
	/** value of a LangGraph DeltaSnapshot */
	deltaSnapshot: 16,
	/** name in the application's registry, what the class made of the instance */
	registered: 17,
	/** JSON of another LangChain object, for LangChain to load */
	loadable: 18,
	/** plus the number of a LangChain class: argument, value, argument, value... of its constructor */
	langchain: 32,
} as const;

/** The greatest tag that fits in one byte. */
export const LAST_TAG = 127;

/** Constructor arguments of messages and documents that are written as numbers. Only ever added to: a number is for good. */
export const ARGUMENTS = [
	"id",
	"content",
	"additional_kwargs",
	"response_metadata",
	"tool_calls",
	"invalid_tool_calls",
	"usage_metadata",
	"name",
	"tool_call_id",
	"status",
	"artifact",
	"tool_call_chunks",
	"role",
	"type",
	"pageContent",
	"metadata",
] as const;

/** Only ever added to, too. */
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
 * How deep arrays, objects and tagged values may be nested, the top not counted. msgpackr's reader ends at some 790 levels on
 * Node's usual stack, when its code is not optimized yet: what can be stored can be read.
 */
export const DEEPEST = 500;
