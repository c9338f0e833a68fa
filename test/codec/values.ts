/** Makes a value anew, so that what is stored can be compared with what never was near a saver. */
type Make = () => unknown;

/** Values that come back as they were. */
export const LOSSLESS: Record<string, Make> = {
	undefined: () => undefined,
	null: () => null,
	booleans: () => [true, false],
	"a key with the value undefined": () => ({ a: undefined, b: 1, c: undefined }),
	"an array with undefined in it": () => [undefined, 1, undefined],
	"small integers": () => [0, 1, 127, 128, 255, 256, 65_535, 65_536, -1, -32, -33, -128, -129, -32_768, -32_769],
	"large integers": () => [2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53, -(2 ** 53)],
	fractions: () => [0.1, -0.1, 1e-300, 1e300, Number.MIN_VALUE, Number.MAX_VALUE, Number.EPSILON],
	"NaN, infinities and negative zero": () => [
		Number.NaN,
		Number.POSITIVE_INFINITY,
		Number.NEGATIVE_INFINITY,
		-0,
		0,
		{ nan: Number.NaN, zero: -0 },
	],
	"BigInts of any size": () => [0n, 1n, -1n, 255n, 256n, -(2n ** 63n), 2n ** 64n, 10n ** 400n, -(7n ** 3000n)],
	"an empty string": () => "",
	"strings around every size of header": () => [23, 24, 31, 32, 255, 256, 65_535, 65_536].map((n) => "x".repeat(n)),
	"text beyond ASCII around every size of header": () =>
		[7, 8, 10, 11, 12, 15, 16, 85, 86, 127, 128, 21_845, 21_846].map((n) => "é中🧵".repeat(n)),
	"a NUL, a line separator and a byte order mark": () => ["\u0000", "a\u0000b", "\u2028", "\ufeffx", "x\ufeff"],
	"half of a surrogate pair": () => ["\ud83e", "\udd75", "a\ud83eb", "\udd75\ud83e", `${"x".repeat(5000)}\ud800`],
	"keys that are half of a surrogate pair, empty, or NUL": () => ({
		"\ud800": 1,
		"": 2,
		"\u0000": 3,
		"\udfff\ud800": 4,
	}),
	"keys of every length": () => Object.fromEntries(Array.from({ length: 70 }, (_, n) => ["k".repeat(n), n])),
	"keys that look like indexes": () => ({ "2": "c", "0": "a", "-1": "b", "1.5": "d", "4294967295": "e", x: "f" }),
	"keys of JavaScript's own": () =>
		JSON.parse(
			'{"__proto__": {"polluted": true}, "constructor": 1, "prototype": 2, "hasOwnProperty": 3, "toString": 4}',
		),
	"a key __proto__ that holds null or a primitive": () => [
		JSON.parse('{"__proto__": null}'),
		JSON.parse('{"__proto__": 1}'),
	],
	"keys of LangChain's own": () => ({
		lc: 1,
		type: "constructor",
		id: ["langchain_core"],
		kwargs: {},
		lg_name: "Send",
	}),
	"an empty object and an empty array": () => [{}, []],
	"a Date": () => [new Date(0), new Date("2026-11-16T01:02:03.456Z"), new Date(-8.64e15), new Date(8.64e15)],
	"an invalid Date": () => new Date(Number.NaN),
	"a RegExp": () => [
		/a+b/gi,
		/\//u,
		RegExp("(?<year>\\d{4})", ["d", "s", "v"].join("")),
		/(?:)/,
		Object.assign(/x/g, { lastIndex: 7 }),
	],
	"a URL": () => [new URL("https://user:pass@example.com:8080/a%20b?q=1&q=2#h"), new URL("data:text/plain,x")],
	"a Map": () =>
		new Map<unknown, unknown>([
			["a", 1],
			[2, { deep: new Map([[null, undefined]]) }],
			[Number.NaN, -0],
			[{ key: "object" }, [new Set([1])]],
			[undefined, undefined],
		]),
	"an empty Map and an empty Set": () => [new Map(), new Set()],
	"a Set": () => new Set<unknown>(["a", 1, "1", null, undefined, Number.NaN, { x: 1 }, [1], new Set()]),
	"an Error": () => new Error("no"),
	"an Error without a message": () => new Error(),
	"an Error with its stack": () => Object.assign(new Error("no"), { stack: "Error: no\n    at here" }),
	"an Error with a name, a code and properties": () =>
		Object.assign(new Error("no"), { name: "Custom", code: "E_NO", details: { at: new Date(0), list: [1n] } }),
	"an Error with a property called errors": () => Object.assign(new Error("invalid"), { errors: [{ path: ["a"] }] }),
	"an Error with a property called __proto__": () =>
		Object.defineProperty(new Error("no"), "__proto__", {
			value: { x: 1 },
			enumerable: true,
			writable: true,
			configurable: true,
		}),
	"an Error with a cause": () => new Error("outer", { cause: new TypeError("inner", { cause: { reason: [1, 2] } }) }),
	"an Error with the cause undefined": () => new Error("outer", { cause: undefined }),
	"an Error whose message is not text": () => Object.defineProperty(new Error("x"), "message", { value: { a: 1 } }),
	"every class of Error": () => [
		new EvalError("eval"),
		new RangeError("range"),
		new ReferenceError("reference"),
		new SyntaxError("syntax"),
		new TypeError("type"),
		new URIError("uri"),
	],
	"an AggregateError": () => new AggregateError([new Error("a"), "b", { c: 1 }], "several", { cause: 5 }),
	"an AggregateError without errors": () => new AggregateError([]),
	"an ArrayBuffer": () => new Uint8Array([0, 1, 255]).buffer,
	"every typed array": () => [
		new Int8Array([-128, 127]),
		new Uint8Array([0, 255]),
		new Uint8ClampedArray([0, 255]),
		new Int16Array([-32_768, 32_767]),
		new Uint16Array([0, 65_535]),
		new Int32Array([-(2 ** 31), 2 ** 31 - 1]),
		new Uint32Array([0, 2 ** 32 - 1]),
		new Float32Array([0.5, Number.NaN, -0]),
		new Float64Array([0.1, Number.NEGATIVE_INFINITY]),
		new BigInt64Array([-(2n ** 63n)]),
		new BigUint64Array([2n ** 64n - 1n]),
		new DataView(new Uint8Array([1, 2, 3]).buffer),
	],
	"empty bytes": () => [
		new Uint8Array(),
		new ArrayBuffer(0),
		new Float64Array(),
		Buffer.alloc(0),
		new DataView(new ArrayBuffer(0)),
	],
	"bytes around every size of header": () => [255, 256, 65_535, 65_536].map((n) => new Uint8Array(n).fill(7)),
	"a Buffer": () => [Buffer.from("bytes"), Buffer.from([0, 255])],
	"a sparse array": () => sparse(5, { 1: "b", 3: undefined }),
	"an array that is nothing but a hole": () => [sparse(1, {}), sparse(1000, {}), sparse(2 ** 32 - 1, {})],
	"a sparse array with an element far out": () => sparse(2 ** 32 - 1, { 4294967294: "last", 0: "first" }),
	"a deep nest": () =>
		Array.from({ length: 400 }).reduce<unknown>((inner, _, n) => (n % 2 ? { inner } : [inner]), "core"),
	"a deep nest of collections": () =>
		Array.from({ length: 200 }).reduce<unknown>((inner, _, n) => (n % 2 ? new Map([[n, inner]]) : new Set([inner])), 1),
	"one object in many places": () => {
		const shared = { list: [1] };
		return { a: shared, b: [shared, shared.list], c: new Map([[shared, shared.list]]), d: new Set([shared]) };
	},
	"one Date, one pattern and one buffer in two places each": () => {
		const [date, pattern, bytes, buffer] = [new Date(1), /x/, new Uint8Array([1]), Buffer.from("b")];
		return [date, pattern, bytes, buffer, { date, pattern, bytes, buffer }];
	},
	"an object that holds itself": () => {
		const object: Record<string, unknown> = { name: "o" };
		object.self = object;
		object.list = [object];
		return object;
	},
	"an array that holds itself": () => {
		const array: unknown[] = [1];
		array.push(array, { array });
		return array;
	},
	"a Map and a Set that hold themselves, also as keys": () => {
		const [map, set] = [new Map<unknown, unknown>(), new Set<unknown>()];
		map.set(map, set).set("set", set);
		return { map, set: set.add(set).add(map) };
	},
	"an Error that is its own cause": () => {
		const error: Error = new Error("round", { cause: [] });
		(error.cause as unknown[]).push(error);
		return error;
	},
	"a sparse array that holds itself": () => {
		const array = sparse(10, { 3: {} });
		(array[3] as Record<string, unknown>).array = array;
		return array;
	},
	"objects that hold each other": () => {
		const [a, b]: Record<string, unknown>[] = [{}, {}];
		Object.assign(a!, { b, both: [a, b] });
		Object.assign(b!, { a });
		return [a, b];
	},
};

class Point {
	x = 1;
	#hidden = 2;
	method = () => this.#hidden;
	get sum() {
		return this.x + this.#hidden;
	}
}

class Celsius {
	readonly #degrees: number;
	constructor(degrees: number) {
		this.#degrees = degrees;
	}
	toJSON() {
		return `${this.#degrees} °C`;
	}
}

/** Values that come back as something else, and what that is. */
export const CHANGED: Record<string, [given: Make, stored: Make]> = {
	"functions and symbols in objects are left out": [
		() => ({ a: 1, f() {}, g: Symbol("s"), h: class {}, z: 2, deep: { f() {} } }),
		() => ({ a: 1, z: 2, deep: {} }),
	],
	"functions and symbols in arrays become null": [() => [1, () => 1, Symbol.iterator], () => [1, null, null]],
	"functions in collections become null": [
		() => [new Map<unknown, unknown>([["f", () => 1]]), new Set([() => 1])],
		() => [new Map([["f", null]]), new Set([null])],
	],
	"a function alone becomes undefined": [() => () => 1, () => undefined],
	"a symbol alone becomes undefined": [() => Symbol("s"), () => undefined],
	"keys that are symbols are left out": [() => ({ [Symbol("s")]: 1, a: 1 }), () => ({ a: 1 })],
	"boxed primitives become primitives": [
		() => [Object(1), Object("x"), Object(true), Object(5n), { n: Object(-0) }],
		() => [1, "x", true, 5n, { n: -0 }],
	],
	"getters become what they get": [
		() => ({
			get a() {
				return [1];
			},
			b: 2,
		}),
		() => ({ a: [1], b: 2 }),
	],
	"hidden properties are left out": [() => Object.defineProperty({ a: 1 }, "b", { value: 2 }), () => ({ a: 1 })],
	"an object without a prototype becomes an ordinary one": [
		() => Object.assign(Object.create(null), { a: 1, toString: 2 }),
		() => ({ a: 1, toString: 2 }),
	],
	"an instance of a class becomes a plain object": [() => new Point(), () => ({ x: 1 })],
	"one instance in two places becomes one plain object": [
		() => {
			const point = new Point();
			return [point, { point }];
		},
		() => {
			const point = { x: 1 };
			return [point, { point }];
		},
	],
	"an instance that holds itself becomes a plain object that does": [
		() => {
			const point = Object.assign(new Point(), { self: [] as unknown[] });
			point.self.push(point);
			return point;
		},
		() => {
			const point = { x: 1, self: [] as unknown[] };
			point.self.push(point);
			return point;
		},
	],
	"what has toJSON becomes that": [() => [new Celsius(20), { t: new Celsius(-3) }], () => ["20 °C", { t: "-3 °C" }]],
	"what has toJSON and is there twice does not hide what is beside it": [
		() => {
			const t = new Celsius(1);
			return [t, { a: 1 }, t, { b: 2 }, t];
		},
		() => ["1 °C", { a: 1 }, "1 °C", { b: 2 }, "1 °C"],
	],
	"toJSON that gives an object stored before": [
		() => {
			const inner = { a: 1 };
			const outer = { toJSON: () => inner };
			return [inner, outer, outer, { b: 2 }, inner];
		},
		() => {
			const inner = { a: 1 };
			return [inner, inner, inner, { b: 2 }, inner];
		},
	],
	"toJSON that gives a new object with the old one in it": [
		() => {
			const outer: Record<string, unknown> = { toJSON: () => ({ outer, n: 1 }) };
			return [outer, { x: 1 }, outer];
		},
		() => {
			const object: Record<string, unknown> = { n: 1 };
			const ordered = Object.assign({ outer: {} as unknown }, object);
			ordered.outer = ordered;
			return [ordered, { x: 1 }, ordered];
		},
	],
	"toJSON is asked once, as JSON does": [
		() => {
			const again = (): unknown => ({ n: 1, toJSON: again });
			return again();
		},
		() => ({ n: 1 }),
	],
	"other properties of arrays are left out": [
		() => [Object.assign([1, 2], { extra: 1 }), "ab".match(/a/), Object.assign(sparse(3, { 1: 1 }), { extra: 1 })],
		() => [[1, 2], ["a"], sparse(3, { 1: 1 })],
	],
	"subclasses of the language's classes become those": [
		() => [
			Object.setPrototypeOf(new Map([[1, 2]]), class extends Map {}.prototype),
			Object.setPrototypeOf(new Set([1]), class extends Set {}.prototype),
			Object.setPrototypeOf(new Date(5), class extends Date {}.prototype),
			Object.assign(new (class Odd extends Error {})("odd"), { stack: "s" }),
			Object.setPrototypeOf(new Uint8Array([1]), class extends Uint8Array {}.prototype),
			Object.setPrototypeOf([1, 2], class extends Array {}.prototype),
		],
		() => [
			new Map([[1, 2]]),
			new Set([1]),
			new Date(5),
			Object.assign(new Error("odd"), { stack: "s" }),
			new Uint8Array([1]),
			[1, 2],
		],
	],
	"bytes that are a part of a larger buffer become those alone": [
		() => [new Uint8Array([1, 2, 3, 4]).subarray(1, 3), new Uint16Array(new Uint8Array([0, 0, 1, 0, 2, 0]).buffer, 2)],
		() => [new Uint8Array([2, 3]), new Uint16Array([1, 2])],
	],
};

/** Values that come back as they were, and take too long to be put everywhere. */
export const LARGE: Record<string, Make> = {
	"an object with many keys": () => Object.fromEntries(Array.from({ length: 70_000 }, (_, n) => [`key ${n}`, n])),
	"a list with many elements": () => Array.from({ length: 70_000 }, (_, n) => n % 300),
	"a string of a million characters": () => "é".repeat(1_000_000),
	"a string of a million characters with half of a pair": () => `${"x".repeat(1_000_000)}\ud800`,
	"a megabyte of bytes": () => new Uint8Array(1_000_000).fill(9),
	"a BigInt of a hundred thousand digits": () => 10n ** 100_000n,
	"a list too large for the buffer that is kept": () => [new Uint8Array(9_000_000), "end"],
};

/** An array with holes. */
function sparse(length: number, elements: Record<number, unknown>): unknown[] {
	const array: unknown[] = [];
	array.length = length > 2 ** 25 ? length : 0;
	for (const [index, value] of Object.entries(elements)) array[Number(index)] = value;
	array.length = length;
	return array;
}
