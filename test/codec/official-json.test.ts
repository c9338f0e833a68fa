import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { DeltaSnapshot, MemorySaver as OfficialMemorySaver } from "@langchain/langgraph-checkpoint";
import { CheckpointError, decodeOfficial } from "../../src/index.ts";

const official = new OfficialMemorySaver().serde;

const values: Record<string, unknown> = {
	primitives: [1, "two", true, null, -0.5],
	nested: { a: { b: [{ c: undefined }] } },
	collections: { map: new Map([["k", new Set([1, 2])]]), set: new Set(["x"]) },
	"an error": new Error("no"),
	"a pattern": /a+b/gi,
	"nested bytes": { bytes: new Uint8Array([0, 255, 7]) },
	"bytes alone": new Uint8Array([1, 2, 3]),
	"a snapshot": new DeltaSnapshot([1, 2]),
	messages: [
		new HumanMessage({ content: "hello", id: "1", name: "ada" }),
		new AIMessage({
			content: [{ type: "text", text: "hi" }],
			tool_calls: [{ name: "search", args: { deep: { q: 1 } }, id: "c1", type: "tool_call" }],
			response_metadata: { model_name: "m" },
			usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
			additional_kwargs: { some_key: 1 },
		}),
		new ToolMessage({ content: "found", tool_call_id: "c1", status: "success", artifact: { big: [1] } }),
		new AIMessageChunk({ content: "part", tool_call_chunks: [{ name: "t", args: "{}", index: 0, id: "x" }] }),
	],
	"data like a record": { lc: 2, type: "constructor", id: ["Function"], args: ["return 1"] },
	"data like a secret": { lc: 1, type: "secret", id: ["HOME"] },
};

describe("reading what LangGraph's own serializer wrote", () => {
	it.each(Object.entries(values))("gives what it gives itself: %s", async (name, value) => {
		const [type, data] = await official.dumpsTyped(value);
		const ours = decodeOfficial(type, data);
		if (name === "data like a secret") expect(ours).toEqual(value);
		else expect(ours).toStrictEqual(await official.loadsTyped(type, data));
	});

	it("builds no class outside the closed set", () => {
		const model = {
			lc: 1,
			type: "constructor",
			id: ["langchain_core", "tracers", "tracer_langchain", "LangChainTracer"],
			kwargs: {},
		};
		expect(decodeOfficial("json", JSON.stringify(model))).toEqual(model);
	});

	it.each([
		["json", "{"],
		["pickle", "x"],
	])("refuses %s %s with a code", (type, data) => {
		expect(() => decodeOfficial(type, data)).toThrow(CheckpointError);
	});
});
