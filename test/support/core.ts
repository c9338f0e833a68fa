/** The LangGraph that the tests of this process run on, see `test/langgraph-next`. */
export const core = process.env.LANGGRAPH === "next" ? "1.7" : "1.4";

export type Core = "1.4" | "1.7";
