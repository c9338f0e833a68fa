import { TYPED_ARRAYS } from "./format.ts";

/** One of a class that extends a class of the language, and that would come back as the latter. */
export function isOddBuiltIn(value: object): boolean {
	if (!Array.isArray(value) && !isBinary(value) && ![Map, Set, Date, RegExp, URL].some((type) => value instanceof type))
		return false;
	const name = Object.prototype.toString.call(value).slice("[object ".length, -1);
	const { [name]: type, Buffer } = globalThis as never as Record<string, { prototype: unknown }>;
	const prototype = Object.getPrototypeOf(value);
	return prototype !== type?.prototype && prototype !== Buffer?.prototype;
}

export function isBinary(value: object): value is ArrayBufferView | ArrayBuffer {
	if (value instanceof ArrayBuffer) return true;
	if (!ArrayBuffer.isView(value)) return false;
	const name = nameOf(value);
	return name === "Uint8Array" || TYPED_ARRAYS.includes(name);
}

/** The name of its class, or of the class that this one extends, in whatever realm. */
export function nameOf(view: ArrayBufferView): unknown {
	return view[Symbol.toStringTag as never];
}

/** What JSON leaves out of objects and puts null for in arrays. */
export function isUnstorable(value: unknown): boolean {
	return typeof value === "function" || typeof value === "symbol";
}

/** An object of the kind that stored properties are read as. */
export function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Whether an object with this prototype has no class of its own. */
export function isPlain(prototype: unknown): boolean {
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
