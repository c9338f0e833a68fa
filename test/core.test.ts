import { StateGraph } from "@langchain/langgraph";
import { StateGraph as NextStateGraph } from "langgraph-next";
import { expect, it } from "vitest";
import { core } from "./support/core.ts";

it(`runs on LangGraph ${core}`, () => {
	expect(StateGraph === (NextStateGraph as unknown)).toBe(core === "1.7");
});
