import { TYPED_ARRAYS } from "./format.ts";

type AnyClass = new (...args: never[]) => object;

/** Classes of the language whose instances have a place in the format, besides those of bytes. */
const BUILT_INS: readonly AnyClass[] = [Map, Set, Date, RegExp, URL, Error];

/** An instance of a class of the language that has a place in the format. */
export function isBuiltIn(value: object): boolean {
	return isBinary(value) || BUILT_INS.some((type) => value instanceof type);
}

/** One of a class that extends a class of the language, and that would come back as the latter. */
export function isOddBuiltIn(value: object): boolean {
	if (value instanceof Error || !(Array.isArray(value) || isBuiltIn(value))) return false;
	const name = Object.prototype.toString.call(value).slice("[object ".length, -1);
	const prototype = Object.getPrototypeOf(value);
	return ![name, "Buffer"].some(
		(type) => (globalThis as never as Record<string, AnyClass>)[type]?.prototype === prototype,
	);
}

export function isBinary(value: object): value is ArrayBufferView | ArrayBuffer {
	if (value instanceof ArrayBuffer) return true;
	if (!ArrayBuffer.isView(value)) return false;
	const name = nameOf(value);
	return name === "Uint8Array" || TYPED_ARRAYS.includes(name);
}

export function isBuffer(value: ArrayBufferView): boolean {
	return typeof Buffer !== "undefined" && Buffer.isBuffer(value);
}

/** The name of its class, or of the class that this one extends, in whatever realm. */
export function nameOf(view: ArrayBufferView): unknown {
	return view[Symbol.toStringTag as never];
}

/** A primitive value in place of the object that wraps it. */
export function unboxed(value: unknown): unknown {
	const isBoxed =
		value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt;
	return isBoxed ? value.valueOf() : value;
}

/** What JSON leaves out of objects and puts null for in arrays. */
export function isUnstorable(value: unknown): boolean {
	return typeof value === "function" || typeof value === "symbol";
}

/** An object of the kind that stored properties are read as. */
export function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** An object without a class of its own. */
export function isPlain(value: unknown): boolean {
	if (typeof value !== "object" || value === null) return false;
	const prototype = Object.getPrototypeOf(value);
	return prototype === Object.prototype || prototype === null;
}

/** Whether it decides itself what is stored of it. */
export function hasToJson(value: unknown): boolean {
	return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

/** Sets a property that may be called `__proto__`. */
export function define(target: object, key: string, value: unknown, enumerable = false): void {
	Object.defineProperty(target, key, { value, writable: true, enumerable, configurable: true });
}
