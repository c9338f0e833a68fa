import { END, START, StateGraph } from "@langchain/langgraph";
import type { Bench } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const looping = (bench: Bench) =>
	new StateGraph(LogState)
		.addNode("step", say("step"))
		.addEdge(START, "step")
		.addConditionalEdges("step", ({ log }) => (log.length % 4 ? "step" : END))
		.compile({ checkpointer: bench.saver });

export default [
	scenario(
		"a history is read in parts: by limit, before each of its checkpoints, by source and step",
		async (bench) => {
			const graph = looping(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			await bench.update(graph, thread("t"), { log: ["edit"] }, "step");
			await bench.run(graph, { log: ["again"] }, thread("t"));
			const all = await bench.history(graph, thread("t"));
			for (const limit of [0, 1, 5, 1000]) await bench.history(graph, thread("t"), { limit });
			for (const { config } of all) {
				await bench.history(graph, thread("t"), { before: config });
				await bench.history(graph, thread("t"), { before: config, limit: 1 });
				await bench.history(graph, thread("t"), { before: config, limit: 2, filter: { source: "loop" } });
				await bench.history(graph, config);
			}
			for (const filter of [
				{ source: "input" },
				{ source: "update" },
				{ step: 0 },
				{ step: 2, source: "loop" },
				{ step: "2" },
			]) {
				await bench.history(graph, thread("t"), { filter });
			}
			await bench.history(graph, thread("no such thread"));
			await bench.state(graph, thread("no such thread"));
		},
		{ durabilities: ["async", "exit"] },
	),

	scenario(
		"a history is read item by item while the thread grows, and left early",
		async (bench) => {
			const graph = looping(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			let count = 0;
			for await (const snapshot of graph.getStateHistory(thread("t"))) {
				bench.note("item", snapshot);
				await bench.update(graph, thread("t"), { log: [`while reading ${count}`] }, "step");
				await bench.run(graph, { log: ["run while reading"] }, thread("t"));
				if (++count === 3) break;
			}
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async", "sync"] },
	),

	scenario(
		"checkpoints are filtered by metadata that is an object",
		async (bench) => {
			const graph = looping(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const found = await bench.history(graph, thread("t"), { filter: { parents: {} } });
			bench.fact("how many", found.length);
		},
		{
			durabilities: ["async"],
			differences: [
				{
					where: /list\(.*"parents":\{\}/,
					only: "calls",
					reason: "the official saver compares objects by identity, so no object ever matches",
				},
				{ where: /: history \[\d+\]$|: fact: how many/, only: "runs", reason: "the same, seen through the graph" },
			],
		},
	),
];
