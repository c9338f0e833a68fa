import { register } from "node:module";

/*
 * `node --import` this to load LangGraph 1.7, installed as `langgraph-next`, beside 1.4. With LANGGRAPH=next in the
 * environment, whatever imports `@langchain/langgraph` gets 1.7 as well.
 *
 * LangGraph 1.7 wants `@langchain/langgraph-checkpoint` 1.2. Once that can be installed, this folder, the alias and the
 * overrides in package.json go.
 */
register("./hooks.mjs", import.meta.url);
