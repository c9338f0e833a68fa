import assert from "node:assert/strict";
import { inspect } from "node:util";

/**
 * Fails unless both are the same in all that a program can see: types, prototypes, keys and their order, holes, signs of
 * zero, what is hidden in errors and collections, and which objects are one and the same.
 */
export function assertSame(actual: unknown, expected: unknown): void {
	new Comparison().compare(actual, expected, "value");
}

/** Whether {@link assertSame} would pass. */
export function isSame(actual: unknown, expected: unknown): boolean {
	try {
		assertSame(actual, expected);
		return true;
	} catch {
		return false;
	}
}

class Comparison {
	/** Counterparts found so far: an object has one only. */
	readonly #pairs = new Map<object, object>();
	readonly #reverse = new Map<object, object>();

	compare(actual: unknown, expected: unknown, path: string): void {
		if (!isObject(expected) || !isObject(actual)) {
			if (!Object.is(actual, expected)) fail(path, actual, expected);
			return;
		}
		if (this.#pairs.has(expected) || this.#reverse.has(actual)) {
			const isOne = this.#pairs.get(expected) === actual && this.#reverse.get(actual) === expected;
			if (!isOne) assert.fail(`${path}: not the object that it should be`);
			return;
		}
		this.#pairs.set(expected, actual);
		this.#reverse.set(actual, expected);
		if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) fail(`${path} (class)`, actual, expected);
		this.#compareInside(actual, expected, path);
		this.#compareProperties(actual, expected, path);
	}

	#compareInside(actual: object, expected: object, path: string): void {
		if (expected instanceof Map && actual instanceof Map) {
			this.compareLists([...actual.keys()], [...expected.keys()], `${path}.keys()`);
			this.compareLists([...actual.values()], [...expected.values()], `${path}.values()`);
		} else if (expected instanceof Set && actual instanceof Set)
			this.compareLists([...actual], [...expected], `${path}.values()`);
		else if (expected instanceof Date && actual instanceof Date)
			this.compare(actual.getTime(), expected.getTime(), `${path}.getTime()`);
		else if (expected instanceof RegExp && actual instanceof RegExp) this.compare(`${actual}`, `${expected}`, path);
		else if (expected instanceof URL && actual instanceof URL) this.compare(actual.href, expected.href, path);
		else if (expected instanceof ArrayBuffer || ArrayBuffer.isView(expected)) {
			const bytes = bytesOf(actual as ArrayBuffer);
			assert.ok(Buffer.compare(bytes, bytesOf(expected)) === 0, `${path}: other bytes`);
		}
	}

	compareLists(actual: unknown[], expected: unknown[], path: string): void {
		if (actual.length !== expected.length) fail(path, actual, expected);
		for (const [i, item] of expected.entries()) this.compare(actual[i], item, `${path}[${i}]`);
	}

	#compareProperties(actual: object, expected: object, path: string): void {
		if (ArrayBuffer.isView(expected) || expected instanceof URL) return;
		const keys = ownKeys(expected);
		if (ownKeys(actual).join() !== keys.join()) fail(`${path} (keys)`, ownKeys(actual), keys);
		for (const key of keys) {
			if (isVisible(actual, key) !== isVisible(expected, key)) assert.fail(`${path}.${key}: hidden on one side only`);
			this.compare(read(actual, key), read(expected, key), `${path}.${key}`);
		}
	}
}

function ownKeys(value: object): string[] {
	const keys = Object.getOwnPropertyNames(value);
	// An error may have these of its own or from its class, and in any order.
	if (!(value instanceof Error)) return keys;
	const visible = Object.keys(value);
	return [...visible, ...["message", "name", "stack", "cause", "errors"].filter((key) => !visible.includes(key))];
}

function isVisible(value: object, key: string): boolean {
	return Object.prototype.propertyIsEnumerable.call(value, key);
}

function read(value: object, key: string): unknown {
	return (value as Record<string, unknown>)[key];
}

function bytesOf(value: ArrayBuffer | ArrayBufferView): Uint8Array {
	return ArrayBuffer.isView(value)
		? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
		: new Uint8Array(value);
}

function isObject(value: unknown): value is object {
	return typeof value === "object" && value !== null;
}

function fail(path: string, actual: unknown, expected: unknown): never {
	assert.fail(`${path}: got ${show(actual)}, expected ${show(expected)}`);
}

function show(value: unknown): string {
	return inspect(value, { depth: 2, breakLength: Number.POSITIVE_INFINITY }).slice(0, 300);
}
