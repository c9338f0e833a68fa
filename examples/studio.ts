/**
 * A graph on its own saver in LangGraph Studio.
 *
 *     npx tsx examples/studio.ts
 */
import { Annotation, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";
import { createStudioHandler, serveStudio } from "langgraph-checkpoint-delta/studio";

const graph = new StateGraph(Annotation.Root({ name: Annotation<string>(), greeting: Annotation<string>() }))
	.addNode("greet", ({ name }) => ({ greeting: `Hello, ${name}!` }))
	.addEdge("__start__", "greet")
	.compile({ checkpointer: new SqliteSaver(process.env.DATABASE ?? "checkpoints.db") });

await serveStudio(createStudioHandler({ graphs: { agent: graph } }), { port: Number(process.env.PORT ?? 2024) });
