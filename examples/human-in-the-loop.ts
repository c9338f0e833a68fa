/**
 * An agent that asks a person before it acts.
 *
 * The run stops at `interrupt`, with all its state in the checkpointer. The answer may come a minute or a month later:
 * the run goes on where it stopped, and steps that were done are not done again.
 *
 *     npx tsx examples/human-in-the-loop.ts
 */
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { MemorySaver } from "langgraph-checkpoint-delta";

const State = Annotation.Root({
	order: Annotation<string>(),
	amount: Annotation<number>(),
	log: Annotation<string[]>({ reducer: (log, lines) => log.concat(lines), default: () => [] }),
});

let lookups = 0;

const graph = new StateGraph(State)
	.addNode("look up", ({ order }) => {
		lookups++;
		return { amount: 40, log: [`order ${order} cost 40 EUR`] };
	})
	.addNode("refund", ({ amount }) => {
		const { approved, by } = interrupt<{ question: string }, { approved: boolean; by: string }>({
			question: `Refund ${amount} EUR?`,
		});
		return { log: [approved ? `refunded ${amount} EUR, approved by ${by}` : `refused by ${by}`] };
	})
	.addEdge(START, "look up")
	.addEdge("look up", "refund")
	.addEdge("refund", END)
	.compile({ checkpointer: new MemorySaver() });

for (const [thread_id, approved] of [
	["ticket-1", true],
	["ticket-2", false],
] as const) {
	const config = { configurable: { thread_id } };
	await graph.invoke({ order: thread_id.replace("ticket", "A") }, config);

	const waiting = await graph.getState(config);
	console.log(`${thread_id} waits before "${waiting.next}":`, waiting.tasks[0]?.interrupts[0]?.value);

	const { log } = await graph.invoke(new Command({ resume: { approved, by: "Grace" } }), config);
	console.log(`${thread_id} is done:`, log);
}
console.log(`2 orders, ${lookups} look-ups`);
