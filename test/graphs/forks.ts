import { Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { Bench, Snapshot } from "../support/graph-bench.ts";
import { LogState, say } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

const HISTORY = ["async", "sync"] as const;

/** A draft that comes out differently each time, and a review of it. */
function drafting(bench: Bench) {
	let drafts = 0;
	return new StateGraph(LogState)
		.addNode("plan", say("plan"))
		.addNode("draft", () => ({ log: [`draft ${++drafts}`], last: `draft ${drafts}`, facts: { drafts } }))
		.addNode("review", ({ last }) => ({ log: [`review of ${last}`] }))
		.addEdge(START, "plan")
		.addEdge("plan", "draft")
		.addEdge("draft", "review")
		.compile({ checkpointer: bench.saver });
}

const followedBy = (snapshots: Snapshot[], next: string) => snapshots.filter((one) => one.next.join() === next);

export default [
	scenario(
		"an older checkpoint is run again and gives another branch",
		async (bench) => {
			const graph = drafting(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const { config } = await bench.before(graph, thread("t"), "draft");
			await bench.run(graph, null, config);
			await bench.peek(graph, thread("t"));
			await bench.run(graph, null, config);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: HISTORY },
	),

	scenario(
		"an older checkpoint is updated and run on",
		async (bench) => {
			const graph = drafting(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const { config } = await bench.before(graph, thread("t"), "review");
			const fork = await bench.update(graph, config, { log: ["draft by hand"], last: "draft by hand" }, "draft");
			await bench.state(graph, fork);
			await bench.peek(graph, thread("t"));
			await bench.run(graph, null, fork);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: HISTORY },
	),

	scenario(
		"two updates fork one checkpoint, and both branches run on in turns",
		async (bench) => {
			const graph = drafting(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const { config } = await bench.before(graph, thread("t"), "draft");
			const left = await bench.update(graph, config, { log: ["left"], last: "left", facts: { left: 1 } }, "draft");
			const right = await bench.update(graph, config, { log: ["right"], last: "right", facts: { right: 1 } }, "draft");
			await bench.peek(graph, thread("t"));
			await bench.run(graph, null, left);
			await bench.run(graph, null, right);
			await bench.peek(graph, thread("t"));
			for (const base of followedBy(await bench.history(graph, thread("t")), "review")) {
				await bench.run(graph, null, base.config);
			}
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: HISTORY },
	),

	scenario("new input is given to an older checkpoint", async (bench) => {
		const graph = drafting(bench);
		await bench.run(graph, { log: ["in"] }, thread("t"));
		await bench.run(graph, { log: ["second"] }, thread("t"));
		const ended = (await bench.history(graph, thread("t"))).filter(({ next }) => next.length === 0);
		await bench.run(graph, { log: ["instead of the second"] }, ended.at(-1)?.config ?? {});
		await bench.peek(graph, thread("t"));
		await bench.run(graph, { log: ["third"] }, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario(
		"every checkpoint of a thread is run again, the oldest first",
		async (bench) => {
			const graph = drafting(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			for (const { config } of (await bench.history(graph, thread("t"))).toReversed())
				await bench.run(graph, null, config);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async"] },
	),

	scenario(
		"a question is answered again from the checkpoint that asked it",
		async (bench) => {
			const graph = new StateGraph(LogState)
				.addNode("plan", say("plan"))
				.addNode("ask", () => ({ log: [`answer ${interrupt("which?")}`] }))
				.addNode("act", say("act"))
				.addEdge(START, "plan")
				.addEdge("plan", "ask")
				.addEdge("ask", "act")
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const asked = await bench.state(graph, thread("t"));
			await bench.run(graph, new Command({ resume: "this" }), thread("t"));
			await bench.peek(graph, thread("t"));
			await bench.run(graph, new Command({ resume: "that" }), asked.config);
			await bench.peek(graph, thread("t"));
			await bench.run(graph, null, asked.config);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: HISTORY },
	),

	scenario(
		"a branch of a branch goes on while the first branch grows too",
		async (bench) => {
			const graph = new StateGraph(LogState)
				.addNode("loop", ({ log }) => ({ log: [`${log.length}`], facts: { [`n${log.length}`]: log.join() } }))
				.addEdge(START, "loop")
				.addConditionalEdges("loop", ({ log }) => (log.length % 4 ? "loop" : END))
				.compile({ checkpointer: bench.saver });
			await bench.run(graph, { log: ["root"] }, thread("t"));
			const trunk = await bench.state(graph, thread("t"));
			const middle = (await bench.history(graph, thread("t")))[2] as Snapshot;
			const branch = await bench.update(graph, middle.config, { log: ["branch"], facts: { n1: "changed" } });
			await bench.run(graph, null, branch);
			const inner = (await bench.history(graph, thread("t")))[1] as Snapshot;
			const twig = await bench.update(graph, inner.config, { log: ["twig"], facts: { twig: true } });
			await bench.run(graph, null, twig);
			await bench.run(graph, { log: ["trunk goes on"] }, trunk.config);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: HISTORY },
	),

	scenario(
		"a checkpoint that does not exist is asked for",
		async (bench) => {
			const graph = drafting(bench);
			await bench.run(graph, { log: ["in"] }, thread("t"));
			const nowhere = thread("t", { checkpoint_ns: "", checkpoint_id: "1ef00000-0000-6000-8000-000000000000" });
			await bench.state(graph, nowhere);
			await bench.run(graph, { log: ["from nowhere"] }, nowhere);
			await bench.survey(graph, thread("t"));
		},
		{ durabilities: ["async"] },
	),
];
