import assert from "node:assert/strict";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CheckpointError } from "../../src/index.ts";
import { random } from "../support/byte-samples.ts";
import { CLASSES, Hooked, Plain } from "./arbitraries.ts";
import { CHAINS, DATA, MESSAGES } from "./langchain-values.ts";
import { LOSSLESS } from "./values.ts";

const codec = new DeltaCodec({ classes: CLASSES });

/** Bytes of honest values, short enough that a change hits something that matters. */
const SEEDS: readonly Uint8Array[] = [
	...[LOSSLESS, MESSAGES, DATA, CHAINS].flatMap((table) =>
		Object.values<() => unknown>(table).map((create) => create()),
	),
	Object.assign(new Plain(), { a: [1], b: { c: "d" } }),
	[new Hooked("name", { held: [1, 2] })],
	roundInstances(),
]
	.map((value) => codec.encode(value).bytes)
	.filter((bytes) => bytes.length < 4000);

function roundInstances(): unknown {
	const plain = new Plain();
	plain.self = plain;
	plain.hooked = new Hooked("n", [plain]);
	return [plain, { plain }];
}

/** First bytes of everything the format has, and of what it has not. */
const HEADS = [
	0x00, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x91, 0x93, 0x9f, 0xa0, 0xa1, 0xbf, 0xc0, 0xc1, 0xc2, 0xc4, 0xc5, 0xc6,
];
const MORE_HEADS = [
	0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcf, 0xd0, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xdb, 0xdd, 0xdf, 0xe0,
];
const INTERESTING = [...HEADS, ...MORE_HEADS, 0, 1, 2, 3, 4, 5, 16, 17, 18, 19, 20, 32, 0x42, 0x72, 0xff];

/** Makes byte strings that are nearly right, in many ways. */
export class HostileBytes {
	readonly #next: () => number;

	constructor(seed: number) {
		this.#next = random(seed);
	}

	make(): Uint8Array {
		const kind = this.#below(10);
		if (kind === 0) return Uint8Array.from({ length: this.#below(60) }, () => this.#below(256));
		if (kind < 3) return Uint8Array.from([this.#pick([0, 1, 2, 0x10, 0x11, 0x12]), ...this.#tokens(4)]);
		let bytes = [...this.#pick(SEEDS)];
		for (let i = this.#below(4); i >= 0; i--) bytes = this.#mutate(bytes);
		return Uint8Array.from(bytes);
	}

	#mutate(bytes: number[]): number[] {
		const at = this.#below(bytes.length + 1);
		switch (this.#below(9)) {
			case 0:
				return bytes.slice(0, at);
			case 1:
				return bytes.toSpliced(at, 1 + this.#below(4));
			case 2:
				return bytes.toSpliced(at, 0, ...this.#tokens(2));
			case 3:
				return bytes.toSpliced(at, 1, this.#pick(INTERESTING));
			case 4:
				return bytes.toSpliced(at, 1, (bytes[at] ?? 0) ^ (1 << this.#below(8)));
			case 5: {
				const other = [...this.#pick(SEEDS)];
				return [...bytes.slice(0, at), ...other.slice(this.#below(other.length))];
			}
			case 6:
				return [(bytes[0] ?? 0) ^ 0x10, ...bytes.slice(1)];
			case 7:
				return [...bytes.slice(0, at), 0x93, 0xd4, 0, 0, 6, this.#below(12), ...bytes.slice(at + this.#below(2))];
			default:
				return bytes.toSpliced(at, 0, ...bytes.slice(this.#below(at + 1), at));
		}
	}

	/** Random, but as it should be: heads with as much behind them as they say. */
	#tokens(depth: number): number[] {
		const many = (count: number) => Array.from({ length: count }, () => this.#tokens(depth - 1)).flat();
		const count = depth > 0 ? this.#below(4) : 0;
		switch (this.#below(9)) {
			case 0:
				return [0x90 | count, ...many(count)];
			case 1:
				return [
					0x80 | count,
					...Array.from({ length: count }, () => [0xa1, 97 + this.#below(4), ...this.#tokens(0)]).flat(),
				];
			case 2:
				return [0x92 + count, 0xd4, 0, 0, this.#pick([...Array(20).keys(), 32, 38, 45, 60, 0x7f]), ...many(count)];
			case 3:
				return [0x93, 0xd4, 0, 0, 6, this.#below(8)];
			case 4:
				return this.#pick([
					[0xd4, 0, 0],
					[0xd4, 0x42, 5],
					[0xd4, 0x72, 0x40],
					[0xd5, 0x42, 1, 2],
					[0xd4, 0x73, 0],
					[0xd4, this.#below(256), 0],
				]);
			case 5:
				return [0xc4, count, ...Array.from({ length: count }, () => this.#below(256))];
			case 6:
				return [0xa0 | count, ...Array.from({ length: count }, () => this.#below(200))];
			case 7:
				return [this.#pick(INTERESTING)];
			default:
				return [this.#below(128)];
		}
	}

	#below(end: number): number {
		return Math.floor(this.#next() * end);
	}

	#pick<T>(items: readonly T[]): T {
		return items[this.#below(items.length)] as T;
	}
}

/**
 * Decodes bytes that nobody vouches for. Fails unless there is a value of the closed set of classes, or an error with
 * the code CORRUPT. Returns whether there was a value.
 */
export async function assertHarmless(bytes: Uint8Array): Promise<boolean> {
	const before = bytes.slice();
	let value: unknown;
	try {
		value = await codec.decode({ type: undefined, bytes });
	} catch (error) {
		assert.ok(error instanceof CheckpointError && error.code === "CORRUPT", `not CORRUPT, but ${error}`);
		return false;
	} finally {
		assert.ok(Buffer.compare(bytes, before) === 0, "the stored bytes were changed");
	}
	assertClosed(value);
	return true;
}

const prototypesOf = (table: Record<string, () => object>) =>
	Object.values(table).map((create): object => Object.getPrototypeOf(create()));

const CHAIN_PROTOTYPES: ReadonlySet<unknown> = new Set(prototypesOf(CHAINS));

const BUILT_INS = [
	...[Object, Array, Map, Set, Date, RegExp, URL, ArrayBuffer, DataView, Buffer],
	...[Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError],
	...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array],
	...[Float32Array, Float64Array, BigInt64Array, BigUint64Array, DeltaSnapshot, Plain, Hooked],
];

/** Prototypes of all that stored bytes may become. */
const CLOSED: ReadonlySet<unknown> = new Set([
	...BUILT_INS.map((type): object => type.prototype),
	...prototypesOf({ ...MESSAGES, ...DATA, ...CHAINS }),
]);

function assertClosed(root: unknown): void {
	const seen = new Set<unknown>([root]);
	for (const value of seen) {
		if (typeof value !== "object" || value === null) continue;
		const prototype = Object.getPrototypeOf(value);
		// What LangChain's own loader builds has functions of its own.
		if (CHAIN_PROTOTYPES.has(prototype)) continue;
		assert.ok(CLOSED.has(prototype), `an instance of ${prototype?.constructor?.name}`);
		if (value instanceof Map) for (const [key, item] of value) seen.add(key).add(item);
		else if (value instanceof Set) for (const item of value) seen.add(item);
		if (ArrayBuffer.isView(value)) continue;
		for (const key of Reflect.ownKeys(value)) seen.add(Object.getOwnPropertyDescriptor(value, key)?.value);
	}
	for (const value of seen)
		assert.ok(typeof value !== "function" && typeof value !== "symbol", "something that can act");
}

/** Notes all that is on the prototypes and classes that bytes may reach, to see whether it stays that way. */
export async function watchPrototypes(): Promise<() => void> {
	// LangChain's loader gives classes the names that they go by in its JSON.
	for (const create of Object.values(CHAINS)) await codec.decode(codec.encode(create()));
	const owners = [...CLOSED, Function.prototype].flatMap((prototype) => [prototype, (prototype as object).constructor]);
	const take = () => owners.map((owner) => Object.getOwnPropertyDescriptors(owner));
	const before = take();
	return () => assert.deepStrictEqual(take(), before);
}
