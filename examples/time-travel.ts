/**
 * Time travel: look at every past state, run on from one of them, keep both outcomes.
 *
 *     npx tsx examples/time-travel.ts
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { MemorySaver } from "langgraph-checkpoint-delta";

const State = Annotation.Root({
	topic: Annotation<string>(),
	poem: Annotation<string[]>({ reducer: (poem, lines) => poem.concat(lines), default: () => [] }),
});

const checkpointer = new MemorySaver();
const graph = new StateGraph(State)
	.addNode("first line", ({ topic }) => ({ poem: [`The ${topic} came in on silent feet,`] }))
	.addNode("second line", ({ topic }) => ({ poem: [`and no one saw the ${topic} leave.`] }))
	.addEdge(START, "first line")
	.addEdge("first line", "second line")
	.addEdge("second line", END)
	.compile({ checkpointer });

const main = { configurable: { thread_id: "main" } };
await graph.invoke({ topic: "fog" }, main);

console.log("History, newest first:");
let halfway: RunnableConfig = main;
for await (const state of graph.getStateHistory(main)) {
	const next = state.next[0] ? `next is "${state.next[0]}"` : "the end";
	console.log(`  step ${state.metadata?.step}: ${next}, lines: ${state.values.poem?.length ?? 0}`);
	if (state.next[0] === "second line") halfway = state.config;
}

// A whole thread can be copied, to try something without touching the original. Checkpoint ids stay the same.
const { checkpoints } = await checkpointer.copyThread("main", "experiment");
console.log(`Copied ${checkpoints} checkpoints to "experiment".`);

// Fork: change the past of the main thread, run on from there. The new branch becomes its head.
const before = await graph.getState(main);
const forked = await graph.updateState(halfway, { topic: "cat" });
const { poem } = await graph.invoke(null, forked);
console.log(`main is now:    ${poem.join(" ")}`);

const experiment = await graph.getState({ configurable: { thread_id: "experiment" } });
console.log(`experiment is:  ${experiment.values.poem.join(" ")}`);

// What main was before is not gone: it is the other branch, and can be read or run on like any state.
const other = await graph.getState(before.config);
console.log(`main once was:  ${other.values.poem.join(" ")}`);
