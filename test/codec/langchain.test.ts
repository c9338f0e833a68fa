import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, isBaseMessage } from "@langchain/core/messages";
import { ChatPromptTemplate, FewShotChatMessagePromptTemplate, PromptTemplate } from "@langchain/core/prompts";
import { RunnableLambda, RunnableSequence } from "@langchain/core/runnables";
import { FakeStreamingChatModel } from "@langchain/core/utils/testing";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot, MemorySaver as OfficialMemorySaver } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CHAINS, DATA, MESSAGES } from "./langchain-values.ts";
import { assertSame } from "./same.ts";

const codec = new DeltaCodec();
const official = new OfficialMemorySaver().serde;

function roundTrip<T>(value: T): T {
	return codec.decode(codec.encode(value)) as T;
}

async function officialRoundTrip<T>(value: T): Promise<T> {
	return official.loadsTyped(...(await official.dumpsTyped(value)));
}

/** All that a message has, but for the arguments that it once was made with. */
function fieldsOf(message: object): Record<string, unknown> {
	const { lc_kwargs, ...fields } = message as Record<string, unknown>;
	return fields;
}

/** What the official serializer does not give back as it was, and why. */
const LOST_OFFICIALLY: Record<string, string> = {
	"a message whose fields are undefined": "keys with the value undefined are lost",
	"a ToolMessageChunk": "tool_call_id is taken for toolCallId and lost",
	"a Document": "becomes a plain object",
	"a Document without an id": "becomes a plain object",
	"a StringPromptValue": "the value becomes the arguments it was in",
};

describe("messages", () => {
	it.each(Object.entries(MESSAGES))("come back as they were: %s", (_, create) => {
		const message = create();
		assertSame(fieldsOf(roundTrip(message)), fieldsOf(message));
		expect(Object.getPrototypeOf(roundTrip(message))).toBe(Object.getPrototypeOf(message));
	});

	it.each(Object.entries(MESSAGES).filter(([name]) => !(name in LOST_OFFICIALLY)))(
		"come back as from the official serializer: %s",
		async (_, create) => {
			const [ours, theirs] = [roundTrip(create()), await officialRoundTrip(create())];
			expect(fieldsOf(ours)).toStrictEqual(fieldsOf(theirs));
			assertSame([ours.constructor === theirs.constructor, isBaseMessage(ours)], [true, true]);
			expect(ours.contentBlocks).toStrictEqual(theirs.contentBlocks);
			expect(ours.toDict()).toMatchObject(theirs.toDict());
			expect(`${ours.getType()} ${ours.text}`).toBe(`${theirs.getType()} ${theirs.text}`);
		},
	);

	it.each(Object.entries(MESSAGES))("have the same bytes after they came back: %s", (_, create) => {
		const { bytes } = codec.encode([create()]);
		const again = new DeltaCodec().encode(codec.decode({ type: undefined, bytes })).bytes;
		expect(Buffer.from(again).toString("latin1")).toBe(Buffer.from(bytes).toString("latin1"));
	});

	it("keep what no JSON could hold", () => {
		const message = new AIMessage({
			content: "x",
			additional_kwargs: {
				at: new Date(0),
				big: 10n ** 30n,
				bytes: new Uint8Array([1]),
				no: undefined,
				nan: Number.NaN,
			},
			tool_calls: [{ name: "t", args: { map: new Map([[1, 2]]) }, id: "1" }],
		});
		assertSame(fieldsOf(roundTrip(message)), fieldsOf(message));
	});

	it("keep data in them that looks like LangChain's own records as data", () => {
		const record = {
			lc: 1,
			type: "constructor",
			id: ["langchain_core", "messages", "AIMessage"],
			kwargs: { content: "" },
		};
		const message = new HumanMessage({
			content: [{ type: "text", text: "x", record }] as never,
			additional_kwargs: { record },
			response_metadata: { __lc_escaped__: record },
		});
		assertSame(fieldsOf(roundTrip(message)), fieldsOf(message));
	});

	it("that hold themselves, each other or the list they are in do so again", () => {
		const list: BaseMessage[] = [new HumanMessage("a"), new AIMessage("b")];
		list[0]!.additional_kwargs.self = list[0];
		list[0]!.additional_kwargs.next = list[1];
		list[1]!.additional_kwargs.list = list;
		const back = roundTrip(list);
		assertSame(back.map(fieldsOf), list.map(fieldsOf));
		expect(back[0]!.additional_kwargs.self).toBe(back[0]);
		expect(back[1]!.additional_kwargs.list).toBe(back);
	});

	it("of a class that extends one of LangChain's come back as that one", () => {
		class MyMessage extends HumanMessage {
			mine = 1;
		}
		const back = roundTrip(new MyMessage({ content: "x", id: "1" }));
		expect([back.constructor === HumanMessage, back.content, back.id]).toEqual([true, "x", "1"]);
	});

	it("of a second copy of LangChain come back as those of ours", () => {
		const copies = Object.values(MESSAGES).map((create) => asOfAnotherCopy(create()));
		for (const copy of copies) {
			const back = roundTrip(copy) as BaseMessage;
			expect(back instanceof Object.getPrototypeOf(copy).constructor.original).toBe(true);
			assertSame(back.content, (copy as BaseMessage).content);
		}
	});

	it("made from anything that came as JSON can be read again", () => {
		const fields = '{"content": "x", "__proto__": {"content": "y"}, "constructor": 1, "toString": 2, "lc_kwargs": 3}';
		for (const type of [HumanMessage, AIMessage, AIMessageChunk]) {
			const [back] = roundTrip([new type(JSON.parse(fields))]);
			expect([back instanceof type, back?.content]).toEqual([true, "x"]);
		}
	});

	it("without the arguments they were made with are stored by what they have", () => {
		const message = Object.assign(new HumanMessage("x"), { lc_kwargs: undefined, id: "1" });
		const [back] = roundTrip<unknown>([message]) as [HumanMessage];
		expect([back instanceof HumanMessage, back.content, back.id]).toEqual([true, "x", "1"]);
	});
});

/** The same message, of a class that has the same name and is another one. */
function asOfAnotherCopy(message: BaseMessage): object {
	const original = message.constructor as unknown as { lc_name(): string; name: string };
	const copy = { [original.name]: class {} }[original.name] as any;
	copy.original = original;
	if (Object.hasOwn(original, "lc_name")) copy.lc_name = () => original.lc_name();
	return Object.setPrototypeOf(Object.defineProperties({}, Object.getOwnPropertyDescriptors(message)), copy.prototype);
}

describe("documents and prompt values", () => {
	it.each(Object.entries(DATA))("come back as they were: %s", (_, create) => {
		assertSame(roundTrip(create()), create());
	});

	it.each(Object.entries(DATA).filter(([name]) => !(name in LOST_OFFICIALLY)))(
		"come back as from the official serializer: %s",
		async (_, create) => {
			assertSame(roundTrip(create()), await officialRoundTrip(create()));
		},
	);

	it("keep what the official serializer loses", async () => {
		for (const name of Object.keys(LOST_OFFICIALLY)) {
			const create = { ...MESSAGES, ...DATA }[name]!;
			const [ours, theirs] = [roundTrip(create()), await officialRoundTrip(create())];
			assertSame(fieldsOf(ours), fieldsOf(create()));
			expect(() => assertSame(theirs, create())).toThrow();
		}
	});
});

describe("building blocks of chains", () => {
	it.each(Object.entries(CHAINS))("come back as from the official serializer: %s", async (_, create) => {
		const ours = (await roundTrip(create())) as object;
		const theirs = (await officialRoundTrip(create())) as object;
		expect(ours.constructor).toBe(theirs.constructor);
		expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs));
		expect(Object.keys(ours)).toEqual(Object.keys(theirs));
	});

	it("work when they come back, wherever they are", async () => {
		const prompt = PromptTemplate.fromTemplate("Say {word}");
		const state = (await roundTrip({ list: [{ prompt, at: new Date(0) }], map: new Map([["p", prompt]]) })) as any;
		const formatted = await state.list[0].prompt.invoke({ word: "hi" });
		expect(formatted.value).toBe("Say hi");
		expect(state.map.get("p")).toBe(state.list[0].prompt);
		assertSame(state.list[0].at, new Date(0));
	});

	it("keep data in them that looks like LangChain's own records as data", async () => {
		const record = { lc: 1, type: "secret", id: ["HOME"] };
		const few = new FewShotChatMessagePromptTemplate({
			examples: [{ record: record as never }],
			examplePrompt: ChatPromptTemplate.fromMessages([["human", "{record}"]]),
			inputVariables: [],
		});
		const back = (await roundTrip([few])) as FewShotChatMessagePromptTemplate[];
		assertSame(back[0]!.examples, [{ record }]);
	});

	it("that LangChain writes and can't load come back as what it wrote", async () => {
		const prompt = await PromptTemplate.fromTemplate("Say {word} to {name}").partial({ name: "you" });
		const [back, other] = (await roundTrip([prompt, "other"])) as unknown[];
		assertSame([back, other], [JSON.parse(JSON.stringify(prompt)), "other"]);
	});

	it("with something in them that can't be loaded are stored as data, not as what can't be read", async () => {
		const model = new FakeStreamingChatModel({});
		const lambda = RunnableLambda.from((x: string) => x);
		for (const value of [RunnableSequence.from([PromptTemplate.fromTemplate("x"), lambda]), model, lambda]) {
			const back = (await roundTrip({ value })) as any;
			expect(back.value).toMatchObject({ lc: 1 });
			expect(back.value.constructor).toBe(Object);
		}
	});
});

describe("LangGraph's own objects", () => {
	it("come back in the form that LangGraph expects, as from the official serializer", async () => {
		const send = new Send("worker", { n: 1, message: new HumanMessage("x") });
		const values: unknown[] = [
			send,
			new Send("worker", [1], { timeout: 5 } as never),
			[send, send],
			new Overwrite(["x"]),
			{ __overwrite__: null },
			new Command({
				goto: ["a", "b"],
				update: { x: 1 },
				resume: { r: [1] },
				graph: Command.PARENT,
			}),
			{ id: "b7d1", value: { question: "sure?" } },
			{ message: "failed", name: "TypeError" },
		];
		for (const value of values) expect(roundTrip(value)).toEqual(await officialRoundTrip(value));
	});

	it("keep what a Command sends in a form that LangGraph takes for a Send", () => {
		const { goto } = roundTrip(new Command({ goto: [new Send("b", { c: 1 })] }));
		expect(goto).toMatchObject([{ lg_name: "Send", node: "b", args: { c: 1 } }]);
	});

	it("keep a DeltaSnapshot what it is, whatever it holds, even itself", () => {
		for (const value of [undefined, null, ["a", { b: 1 }], new Map([[1, new HumanMessage("x")]])])
			assertSame(fieldsOf(roundTrip(new DeltaSnapshot(value))), fieldsOf(new DeltaSnapshot(value)));
		const snapshot = new DeltaSnapshot<unknown[]>([]);
		snapshot.value.push(snapshot);
		assertSame(roundTrip({ snapshot }), { snapshot });
	});

	it("keep data that looks like a DeltaSnapshot or a Send as data", () => {
		const data = [
			{ lg_name: "DeltaSnapshot", value: 1 },
			{ lg_name: "Send", node: "n", args: 1, extra: true },
		];
		assertSame(roundTrip(data), data);
	});
});
