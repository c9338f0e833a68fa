import { Command, END, interrupt, NodeInterrupt, START, StateGraph } from "@langchain/langgraph";
import type { Bench, Snapshot } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const ask = (question: unknown) => () => ({ log: [`answer ${JSON.stringify(interrupt(question) ?? "none")}`] });

/** One node that asks, between two that don't. */
const asking = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("before", say("before"))
		.addNode("ask", ask("sure?"))
		.addNode("after", say("after"))
		.addEdge(START, "before")
		.addEdge("before", "ask")
		.addEdge("ask", "after")
		.compile({ checkpointer: bench.saver });

/** Two nodes that ask in one superstep, and one that does not. */
const askingTwice = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("left", ask("left?"))
		.addNode("right", ask({ which: "right?" }))
		.addNode("quiet", say("quiet"))
		.addNode("join", say("join"))
		.addEdge(START, "left")
		.addEdge(START, "right")
		.addEdge(START, "quiet")
		.addEdge(["left", "right", "quiet"], "join")
		.compile({ checkpointer: bench.saver });

const interruptsOf = ({ tasks }: Snapshot) => tasks.flatMap(({ interrupts }) => interrupts);

export default [
	scenario("a node asks and is answered", async (bench) => {
		const graph = asking(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: { yes: ["of", "course"] } }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"answers of all small kinds arrive as given",
		async (bench) => {
			const answers = [0, "", false, null, [], {}, "text", { deep: [{ er: true }] }];
			for (const [at, answer] of answers.entries()) {
				const graph = new StateGraph(LogState)
					.addNode("ask", ask({ at, options: answers }))
					.addEdge(START, "ask")
					.compile({ checkpointer: bench.saver });
				await bench.run(graph, { log: [] }, thread(`t${at}`));
				await bench.run(graph, new Command({ resume: answer }), thread(`t${at}`));
				await bench.state(graph, thread(`t${at}`));
				await bench.dump(thread(`t${at}`));
			}
		},
		{ durabilities: ["async"] },
	),

	scenario("a node asks three times in a row", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("ask", () => ({ log: [interrupt("first?"), interrupt("second?"), interrupt("third?")] }))
			.addNode("after", say("after"))
			.addEdge(START, "ask")
			.addEdge("ask", "after")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		for (const answer of ["1", "2", "3"]) {
			await bench.peek(graph, thread("t"));
			await bench.run(graph, new Command({ resume: answer }), thread("t"));
		}
		await bench.survey(graph, thread("t"));
	}),

	scenario("two nodes ask at once and are answered with a map of answers", async (bench) => {
		const graph = askingTwice(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		const asked = interruptsOf(await bench.state(graph, thread("t")));
		const resume = Object.fromEntries(asked.map(({ id, value }) => [`${id}`, `to ${JSON.stringify(value)}`]));
		await bench.run(graph, new Command({ resume }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("two nodes ask at once and are answered one after the other", async (bench) => {
		const graph = askingTwice(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		for (let at = 0; at < 2; at++) {
			const [asked] = interruptsOf(await bench.state(graph, thread("t")));
			await bench.run(graph, new Command({ resume: { [`${asked?.id}`]: `answer ${at}` } }), thread("t"));
			await bench.survey(graph, thread("t"));
		}
	}),

	scenario("a waiting thread gets new input instead of an answer", async (bench) => {
		const graph = asking(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, { log: ["other"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "ok", update: { facts: { by: "command" } } }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a waiting thread is run again without an answer", async (bench) => {
		const graph = asking(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "ok" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("the state is updated while a node waits, and then it is answered", async (bench) => {
		const graph = asking(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.update(graph, thread("t"), { log: ["edited"] }, "before");
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		await bench.run(graph, new Command({ resume: "ok" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("a run stops before and after named nodes, set when compiled or when run", async (bench) => {
		const builder = new StateGraph(LogState)
			.addNode("a", say("a"))
			.addNode("b", say("b"))
			.addNode("c", say("c"))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", "c")
			.addEdge("c", END);
		const graph = builder.compile({ checkpointer: bench.saver, interruptBefore: ["b"], interruptAfter: ["b"] });
		await bench.run(graph, { log: ["in"] }, thread("compiled"));
		await bench.run(graph, null, thread("compiled"));
		await bench.peek(graph, thread("compiled"));
		await bench.run(graph, null, thread("compiled"));
		await bench.survey(graph, thread("compiled"));
		const free = builder.compile({ checkpointer: bench.saver });
		for (const input of [{ log: ["in"] }, null, null]) {
			await bench.run(free, input, { ...thread("all"), interruptBefore: "all" });
		}
		await bench.survey(free, thread("all"));
	}),

	scenario("a node stops itself with the older exception, inside a loop", async (bench) => {
		const graph = new StateGraph(LogState)
			.addNode("loop", ({ log }) => {
				if (log.length === 2) throw new NodeInterrupt("two is too much");
				return { log: [`${log.length}`] };
			})
			.addEdge(START, "loop")
			.addConditionalEdges("loop", ({ log }) => (log.length < 5 ? "loop" : END))
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.update(graph, thread("t"), { log: ["pushed past"] });
		await bench.run(graph, null, thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];
