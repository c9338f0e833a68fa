/**
 * The numbers of the stored value format, see FORMAT.md.
 *
 * A value is one layout byte, then MessagePack. A *tagged* value is an array that begins with `undefined` and a tag; it stands
 * for what MessagePack has no word for. An array of the application that begins with `undefined` is itself written with a tag,
 * so that data never looks like a tagged value.
 */

/** First byte of a value. `array` and `object` have no header: elements, or keys and values, follow to the end. */
export const LAYOUT = { value: 0, array: 1, object: 2, refs: 0x10 } as const;

/** The fields that follow a tag in its array are named beside it. */
export const TAG = {
	array: 0, // elements of an array that begins with undefined
	negativeZero: 1,
	nan: 2,
	text: 3, // UTF-16LE code units of a string that UTF-8, or msgpackr's reader of it, would change
	object: 4, // key, value... of an object with a key that a MessagePack map would not keep
	sparse: 5, // length, index, value...
	reference: 6, // number of an object that occurred before; objects are numbered as they begin
	date: 7, // milliseconds since 1970, NaN for an invalid date
	map: 8, // key, value...
	set: 9, // values...
	error: 10, // flags (1: hidden cause, 2: hidden errors), class, name, message, stack, [cause], [errors], key, value...
	regexp: 11, // source, flags, lastIndex
	url: 12, // href
	typedArray: 13, // index in TYPED_ARRAYS, bytes
	arrayBuffer: 14, // bytes
	nodeBuffer: 15, // bytes of a Node.js Buffer; a Uint8Array is plain MessagePack bin
	deltaSnapshot: 16, // value of a LangGraph DeltaSnapshot
	registered: 17, // name in the application's registry, what the class made of the instance
	loadable: 18, // JSON of another LangChain object, for LangChain to load
	langchain: 32, // plus the number of a LangChain class: argument, value... of its constructor
} as const;

/** The greatest tag that fits in one byte. */
export const LAST_TAG = 127;

/** Constructor arguments that are written as numbers. Only ever added to, like all lists here: a number is for good. */
export const ARGUMENTS: readonly string[] = [
	...["id", "content", "additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls", "usage_metadata"],
	...["name", "tool_call_id", "status", "artifact", "tool_call_chunks", "role", "type", "pageContent", "metadata"],
];

export const TYPED_ARRAYS: readonly unknown[] = [
	...["Int8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array"],
	...["Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "DataView", "Float16Array"],
];

/**
 * How deep arrays, objects and tagged values may be nested, the top not counted. msgpackr's reader ends at some 790 levels on
 * Node's usual stack, when its code is not optimized yet: what can be stored can be read.
 */
export const DEEPEST = 500;
