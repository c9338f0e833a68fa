import { Command, END, interrupt, Overwrite, Send, START } from "@langchain/langgraph";
import { EphemeralValue } from "@langchain/langgraph/channels";
import { Channel, Pregel } from "@langchain/langgraph/pregel";
import type { Scenario, World } from "./delta-world.ts";

type Any = any;

/** start → a → b → end */
export function line(world: World, snapshotFrequency?: number): Any {
	return world.compile(
		world
			.builder(snapshotFrequency)
			.addNode("a", world.say("a"))
			.addNode("b", world.say("b"))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", END),
	);
}

/** start → a → ask → end, where `ask` interrupts */
function question(world: World, snapshotFrequency?: number): Any {
	return world.compile(
		world
			.builder(snapshotFrequency)
			.addNode("a", world.say("a"))
			.addNode("ask", world.ask("ask"))
			.addNode("b", world.say("b"))
			.addEdge(START, "a")
			.addEdge("a", "ask")
			.addEdge("ask", "b")
			.addEdge("b", END),
	);
}

/** start → a → (done, ask) → z → end, where `ask` interrupts while `done` is done */
function half(world: World): Any {
	return world.compile(
		world
			.builder()
			.addNode("a", world.say("a"))
			.addNode("done", world.say("done"))
			.addNode("ask", world.ask("ask"))
			.addNode("z", world.say("z"))
			.addEdge(START, "a")
			.addEdge("a", "done")
			.addEdge("a", "ask")
			.addEdge(["done", "ask"], "z")
			.addEdge("z", END),
	);
}

/** start → a, which sends to two workers, one of which interrupts */
function sends(world: World): Any {
	return world.compile(
		world
			.builder()
			.addNode("a", world.say("a"))
			.addNode("worker", (state: Any) => {
				if (state.asks) interrupt("worker");
				return { log: [world.sign(`worker-${state.name}-`, {})] };
			})
			.addNode("z", world.say("z"))
			.addEdge(START, "a")
			.addConditionalEdges("a", () => [
				new Send("worker", { name: "x" }),
				new Send("worker", { name: "y", asks: true }),
			])
			.addEdge("worker", "z")
			.addEdge("z", END),
	);
}

const input = (...log: string[]) => ({ log });

async function run(world: World, graph: Any, value: Any, config: Any = world.config): Promise<void> {
	const result = await graph.invoke(value, config);
	world.live.push(result.log);
}

/** A config that names a checkpoint, with more settings of the run. */
const exit = (config: Any) => ({ ...config, durability: "exit" });

export const scenarios: readonly Scenario[] = [
	{
		name: "a plain run",
		kind: "runs",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			return graph;
		},
	},
	{
		name: "several turns",
		kind: "runs",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			for (const turn of ["1", "2", "3"]) await run(world, graph, input(turn));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "several turns in sync durability",
		kind: "runs",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			for (const turn of ["1", "2"]) await run(world, graph, input(turn), { ...world.config, durability: "sync" });
			return graph;
		},
	},
	{
		name: "a node that fails beside one that finishes, then a retry",
		kind: "runs",
		official: "right",
		parallel: true,
		play: async (world) => {
			let broken = true;
			const graph = world.compile(
				world
					.builder()
					.addNode("done", world.say("done"))
					.addNode("fails", async (state: Any) => {
						await new Promise((resolve) => setTimeout(resolve, 20));
						if (broken) throw new Error("broken");
						return world.say("fails")(state);
					})
					.addEdge(START, "done")
					.addEdge(START, "fails"),
			);
			await graph.invoke(input("in"), world.config).catch(() => {});
			broken = false;
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a run again from an older checkpoint",
		kind: "time travel",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, null, await world.before(graph, "a"));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "a run again from the first checkpoint",
		kind: "time travel",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, null, await world.at(graph, -1));
			return graph;
		},
	},
	{
		name: "two runs again from the same checkpoint, then another turn",
		kind: "time travel",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const before = await world.before(graph, "b");
			await run(world, graph, null, before);
			await run(world, graph, null, before);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "a new input to an older checkpoint",
		kind: "time travel",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, input("other"), await world.before(graph, "b"));
			return graph;
		},
	},
	{
		name: "a run again from a branch's own checkpoint",
		kind: "time travel",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, null, await world.before(graph, "a"));
			await run(world, graph, null, await world.before(graph, "b"));
			await run(world, graph, null, await world.before(graph, "b"));
			return graph;
		},
	},
	{
		name: "an update of the head, then a turn",
		kind: "update",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(world.config, input("edit"), "b");
			await world.head(graph);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "an update of an older checkpoint, then a run on from it",
		kind: "update of an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), input("edit"), "a");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "an update without values of an older checkpoint",
		kind: "update of an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), null);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "an update that leaves the channel alone",
		kind: "update of an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), { note: "edit" }, "a");
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "two runs from one updated checkpoint",
		kind: "runs from an updated checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const updated = await graph.updateState(await world.before(graph, "a"), input("edit"), "__start__");
			await run(world, graph, null, updated);
			await run(world, graph, null, updated);
			await run(world, graph, null, updated);
			return graph;
		},
	},
	{
		name: "two runs from one updated checkpoint, the second half done and then resumed",
		kind: "runs from an updated checkpoint",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			const updated = await graph.updateState(await world.before(graph, "ask"), input("edit"), "a");
			await run(world, graph, null, updated);
			await run(world, graph, null, updated);
			await run(world, graph, new Command({ resume: "yes" }));
			return graph;
		},
	},
	{
		name: "two updates of the same checkpoint",
		kind: "two updates of one checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const before = await world.before(graph, "b");
			await graph.updateState(before, input("edit 1"), "a");
			await graph.updateState(before, input("edit 2", "more"), "a");
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "three updates of the head's checkpoint, two of them alike",
		kind: "two updates of one checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			for (const edit of ["same", "other", "same"]) await graph.updateState(config, input(edit), "b");
			await graph.updateState(config, { note: "only" }, "b");
			return graph;
		},
	},
	{
		name: "two updates of the same checkpoint with one config object that has metadata",
		kind: "two updates of one checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const config = { ...(await world.before(graph, "b")), metadata: { user: "me" } };
			await graph.updateState(config, input("edit 1"), "a");
			await graph.updateState(config, input("edit 2"), "a");
			return graph;
		},
	},
	{
		name: "several updates in one superstep",
		kind: "two updates of one checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.bulkUpdateState(await world.before(graph, "b"), [
				{
					updates: [
						{ values: input("edit a"), asNode: "a" },
						{ values: input("edit b"), asNode: "b" },
					],
				},
				{ updates: [{ values: input("then"), asNode: "a" }] },
			]);
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "an update of a half-finished superstep, named by its id, then its resume",
		kind: "update of a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await graph.updateState(config, input("edit"), "a");
			await world.head(graph);
			await run(world, graph, null);
			await run(world, graph, new Command({ resume: "yes" }));
			await run(world, graph, new Command({ resume: "first" }), config);
			return graph;
		},
	},
	{
		name: "an update of a half-finished superstep without an id",
		kind: "update of a half-finished superstep",
		official: "right",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await graph.updateState(world.config, input("edit"), "ask");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "an update of a half-finished superstep that leaves the channel alone",
		kind: "update of a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await graph.updateState(world.config, { note: "edit" }, "ask");
			await world.head(graph);
			await graph.updateState(config, { note: "edit" }, "ask");
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "an update of half-finished packets, without an id and with it",
		kind: "update of a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = sends(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await graph.updateState(world.config, { note: "edit" }, "worker");
			await world.head(graph);
			await graph.updateState(config, { note: "edit" }, "worker");
			await world.head(graph);
			await graph.updateState(config, input("edit"), "worker");
			return graph;
		},
	},
	{
		name: "a new input over an interrupted superstep",
		kind: "input over an interrupted superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await run(world, graph, input("never mind"));
			await run(world, graph, new Command({ resume: "yes" }));
			return graph;
		},
	},
	{
		name: "an interrupt and its resume",
		kind: "resume",
		official: "right",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, input("in"));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "yes" }));
			return graph;
		},
	},
	{
		name: "a half-finished superstep and its resume",
		kind: "resume",
		official: "right",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "yes" }));
			return graph;
		},
	},
	{
		name: "a resume that also updates the state",
		kind: "resume",
		official: "right",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes", update: input("edit") }));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "a resume of a half-finished superstep at the head, named by its id: what was done is done again",
		kind: "resume",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes" }), (await graph.getState(world.config)).config);
			return graph;
		},
	},
	{
		name: "two answers to the same question",
		kind: "resume",
		official: "wrong",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await run(world, graph, new Command({ resume: "yes" }));
			await run(world, graph, new Command({ resume: "no" }), config);
			return graph;
		},
	},
	{
		name: "a copy of a checkpoint, then a run on from it",
		kind: "copy",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), null, "__copy__");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a copy of the head, of the first checkpoint, and of a copy",
		kind: "copy",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const first = await world.at(graph, -1);
			const copy = await graph.updateState(world.config, null, "__copy__");
			await graph.updateState(copy, null, "__copy__");
			await graph.updateState(first, null, "__copy__");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "copies of two updates of one checkpoint",
		kind: "copy",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const before = await world.before(graph, "b");
			const one = await graph.updateState(before, input("edit 1"), "a");
			const two = await graph.updateState(before, input("edit 2"), "a");
			await graph.updateState(one, null, "__copy__");
			await graph.updateState(two, null, "__copy__");
			await graph.updateState(one, null, "__copy__");
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a copy with updates",
		kind: "copy",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), [[input("edit"), "b"]], "__copy__");
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "an update as the end",
		kind: "update as the end",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), null, END);
			await world.head(graph);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "an update as the end of a half-finished superstep",
		kind: "update as the end",
		official: "right",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await graph.updateState(world.config, null, END);
			await world.head(graph);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "an update as the input of an older checkpoint",
		kind: "update as the input",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await graph.updateState(await world.before(graph, "b"), input("typed"), "__input__");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a command as the first input of a thread",
		kind: "command as input",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, new Command({ update: input("edit"), goto: "b" }));
			await world.head(graph);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "a command as the first input of a thread, and a copy of what it made",
		kind: "command as input",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, new Command({ update: input("edit"), goto: "b" }));
			await graph.updateState(await world.at(graph, -1), null, "__copy__");
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a command as input, then others over the same checkpoint",
		kind: "command as input",
		official: "wrong",
		refused: {
			core: "1.7",
			reason:
				"What the first command wrote is applied again with the third one: two values for a channel that takes one.",
		},
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await run(world, graph, new Command({ update: { log: ["edit 1"], note: "1" }, goto: "b" }));
			await run(world, graph, new Command({ update: { log: ["edit 2"] }, goto: "a" }), config);
			await run(world, graph, new Command({ update: { note: "3" }, goto: "b" }), config);
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "a run again from a checkpoint that a command had updated",
		kind: "command as input",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const config = await world.before(graph, "b");
			await run(world, graph, new Command({ update: input("edit"), goto: "a" }), config);
			await run(world, graph, null, config);
			return graph;
		},
	},
	{
		name: "an update of a thread that has nothing",
		kind: "update of an empty thread",
		official: "wrong",
		impossible: {
			core: "1.4",
			reason:
				"Without a saved checkpoint core skips putWrites and puts a checkpoint without the channel: no call carries the value.",
			answer: ["live []", 'live ["b1@0"]', 'loop 1 ->  ["b1@0"]', "update 0 -> b []"],
		},
		play: async (world) => {
			const graph = line(world);
			await graph.updateState(world.config, input("edit"), "a");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "turns in exit durability",
		kind: "exit durability",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("1"), exit(world.config));
			await run(world, graph, input("2"), exit(world.config));
			await run(world, graph, input("3"));
			return graph;
		},
	},
	{
		name: "a command as the first input in exit durability",
		kind: "exit durability",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, new Command({ update: input("edit"), goto: "b" }), exit(world.config));
			await run(world, graph, new Command({ update: input("more"), goto: "a" }), exit(world.config));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "a command in exit durability that is interrupted at once",
		kind: "exit durability",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, new Command({ update: input("edit"), goto: "ask" }), exit(world.config));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			await run(world, graph, new Command({ update: input("edit"), goto: "ask" }), exit(world.config));
			await run(world, graph, new Command({ resume: "no" }));
			return graph;
		},
	},
	{
		name: "an interrupt that is answered twice in exit durability",
		kind: "exit durability, interrupted",
		official: "endless",
		play: async (world) => {
			const graph = askTwice(world);
			await run(world, graph, input("in"), exit(world.config));
			await run(world, graph, new Command({ resume: "1" }), exit(world.config));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "2" }), exit(world.config));
			return graph;
		},
	},
	{
		name: "an interrupt and its resume in exit durability",
		kind: "exit durability, interrupted",
		official: "right",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, input("in"), exit(world.config));
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "a half-finished superstep resumed in exit durability",
		kind: "exit durability over a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "a superstep half-finished and resumed in exit durability",
		kind: "exit durability over a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"), exit(world.config));
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			await run(world, graph, input("next"), exit(world.config));
			await run(world, graph, new Command({ resume: "no" }));
			return graph;
		},
	},
	{
		name: "a new input over an interrupted superstep in exit durability",
		kind: "exit durability over a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			await run(world, graph, input("never mind"), exit(world.config));
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			return graph;
		},
	},
	{
		name: "an update of a half-finished superstep, then a run of its parent in exit durability",
		kind: "exit durability over a half-finished superstep",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = half(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			await graph.updateState(config, input("edit"), "a");
			await run(world, graph, new Command({ resume: "yes" }), exit(config));
			return graph;
		},
	},
	{
		name: "a run again from an older checkpoint in exit durability",
		kind: "exit durability from an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, null, exit(await world.before(graph, "a")));
			await world.head(graph);
			await run(world, graph, input("next"), exit(world.config));
			return graph;
		},
	},
	{
		name: "two runs again from the same checkpoint in exit durability, then one in another",
		kind: "exit durability from an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const before = await world.before(graph, "a");
			await run(world, graph, null, exit(before));
			await run(world, graph, null, exit(before));
			await run(world, graph, null, before);
			await run(world, graph, null, exit(before));
			return graph;
		},
	},
	{
		name: "a run again in exit durability that is interrupted at once, and its resume",
		kind: "exit durability from an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = question(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes" }));
			await run(world, graph, null, exit(await world.before(graph, "ask")));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "again" }));
			return graph;
		},
	},
	{
		name: "two turns over the same checkpoint in exit durability",
		kind: "exit durability from an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"), exit(world.config));
			const { config } = await graph.getState(world.config);
			await run(world, graph, input("one"), exit(config));
			await run(world, graph, input("other"), exit(config));
			await run(world, graph, input("next"));
			return graph;
		},
	},
	{
		name: "two runs from one updated checkpoint in exit durability",
		kind: "exit durability from an older checkpoint",
		official: "wrong",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const updated = await graph.updateState(await world.before(graph, "a"), input("edit"), "__start__");
			await run(world, graph, null, exit(updated));
			await run(world, graph, null, exit(updated));
			return graph;
		},
	},
	{
		name: "an answer that also updates the state, asked again, in exit durability",
		kind: "exit durability, interrupted",
		official: "endless",
		officialNext: "wrong",
		play: async (world) => {
			const graph = askTwice(world);
			await run(world, graph, input("in"), exit(world.config));
			await run(world, graph, new Command({ resume: "1", update: input("edit") }), exit(world.config));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "2" }), exit(world.config));
			return graph;
		},
	},
	{
		name: "an answer that also updates the state, asked again",
		kind: "resume",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = askTwice(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "1", update: input("edit") }));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "2" }));
			return graph;
		},
	},
	{
		name: "the first input of a graph whose input is the channel itself",
		kind: "input that is the channel",
		official: "wrong",
		play: async (world) => {
			const graph = pregel(world);
			await run(world, graph, { log: ["in"], go: "on" });
			await world.head(graph);
			return graph;
		},
	},
	{
		name: "an update as the input of a graph whose input is the channel itself",
		kind: "input that is the channel",
		official: "wrong",
		play: async (world) => {
			const graph = pregel(world);
			await run(world, graph, { log: ["in"], go: "on" });
			await graph.updateState(world.config, { log: ["typed"], go: "on" }, "__input__");
			await world.head(graph);
			await run(world, graph, null);
			return graph;
		},
	},
	{
		name: "a second input of a graph whose input is the channel itself",
		kind: "input that is the channel",
		official: "wrong",
		impossible: {
			core: "1.4",
			reason:
				"Core stores the input as a pending write of the checkpoint that it was given to, and itself applies it whenever that checkpoint is read.",
			answer: ['loop 0 ->  ["in","a1@0","next"]'],
		},
		play: async (world) => {
			const graph = pregel(world);
			await run(world, graph, { log: ["in"], go: "on" });
			await run(world, graph, { log: ["next"], go: "on" });
			return graph;
		},
	},
	{
		name: "a command to the first checkpoint of a thread in exit durability",
		kind: "exit durability",
		official: "wrong",
		parallel: true,
		impossible: {
			core: "1.4",
			reason:
				"At step 0 core files the command's update under the very task id that marks a pending one, and itself applies that whenever the checkpoint is read.",
			// The second is right, but does not begin with what its parent shows.
			answer: ['loop 2 ->  ["edit","a2@2","b2@3","in"]', 'input -1 -> __start__ ["edit"]'],
		},
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			const first = await world.at(graph, -1);
			await run(world, graph, new Command({ resume: "go on", update: input("edit") }), exit(first));
			return graph;
		},
	},
	{
		name: "an update without an id where a command has left one pending",
		kind: "update",
		official: "right",
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "nothing", update: input("pending") }));
			await graph.updateState(world.config, input("edit"), "b");
			return graph;
		},
	},
	{
		name: "an update by id where a command has left one pending",
		kind: "update",
		official: "wrong",
		impossible: {
			core: "1.4",
			reason:
				"Core leaves the pending one out of the new state; without the id it adds it. The saver gets the same calls and takes the usual one of the two.",
			answer: ['update 3 ->  ["in","a1@1","b1@2","pending","edit"]'],
		},
		play: async (world) => {
			const graph = line(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "nothing", update: input("pending") }));
			await graph.updateState((await graph.getState(world.config)).config, input("edit"), "b");
			return graph;
		},
	},
	{
		name: "an interrupt that is met again in exit durability, right after a snapshot",
		kind: "exit durability, interrupted",
		official: "endless",
		play: async (world) => {
			const graph = question(world, 1);
			await run(world, graph, input("in"), exit(world.config));
			await run(world, graph, null, exit(world.config));
			await world.head(graph);
			await run(world, graph, new Command({ resume: "yes" }), exit(world.config));
			return graph;
		},
	},
	{
		name: "an overwritten value, and a run again from before it",
		kind: "snapshots",
		official: "wrong",
		play: async (world) => {
			const graph = world.compile(
				world
					.builder()
					.addNode("a", world.say("a"))
					.addNode("reset", () => ({ log: new Overwrite(["reset"]) }))
					.addNode("b", world.say("b"))
					.addEdge(START, "a")
					.addEdge("a", "reset")
					.addEdge("reset", "b")
					.addEdge("b", END),
			);
			await run(world, graph, input("in"));
			await run(world, graph, null, await world.before(graph, "reset"));
			await run(world, graph, input("next"));
			await run(world, graph, null, await world.before(graph, "b"));
			return graph;
		},
	},
	...[1, 2, 3].map(
		(frequency): Scenario => ({
			name: `turns, time travel and updates with a snapshot every ${frequency} updates`,
			kind: "snapshots",
			official: "wrong",
			play: async (world) => {
				const graph = line(world, frequency);
				await run(world, graph, input("1"));
				await run(world, graph, input("2"));
				const before = await world.before(graph, "b");
				await run(world, graph, null, before);
				await graph.updateState(before, input("edit 1"), "a");
				await run(world, graph, null);
				await graph.updateState(before, input("edit 2"), "a");
				await run(world, graph, null, exit(before));
				await run(world, graph, input("3"), exit(world.config));
				return graph;
			},
		}),
	),
	{
		name: "packets to parallel workers, and a run again",
		kind: "packets",
		official: "wrong",
		parallel: true,
		play: async (world) => {
			const graph = sends(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes" }));
			await run(world, graph, null, await world.before(graph, "worker"));
			await run(world, graph, new Command({ resume: "again" }));
			return graph;
		},
	},
	{
		name: "two runs at once on one thread",
		kind: "concurrent runs",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = gated(world);
			await run(world, graph, input("in"));
			const [slow, open] = graph.gate();
			const first = graph.invoke(input("slow"), world.config);
			await slow;
			await world.reach(graph, 4);
			const second = await graph.invoke(input("fast"), world.config);
			open();
			world.live.push((await first).log, second.log);
			return graph;
		},
	},
	{
		name: "two runs at once from one updated checkpoint",
		kind: "concurrent runs",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = gated(world);
			await run(world, graph, input("in"));
			const updated = await graph.updateState(await world.before(graph, "a"), input("edit"), "__start__");
			const [slow, open] = graph.gate();
			const first = graph.invoke(null, updated);
			await slow;
			const second = await graph.invoke(null, updated);
			open();
			world.live.push((await first).log, second.log);
			return graph;
		},
	},
	{
		name: "two commands at once over one checkpoint",
		kind: "concurrent runs",
		official: "wrong",
		play: async (world) => {
			const graph = gated(world);
			await run(world, graph, input("in"));
			const { config } = await graph.getState(world.config);
			const [slow, open] = graph.gate();
			const first = graph.invoke(new Command({ update: input("slow"), goto: "a" }), config);
			await slow;
			await world.reach(graph, 3);
			const second = await graph.invoke(new Command({ update: input("fast"), goto: "a" }), config);
			open();
			world.live.push((await first).log, second.log);
			return graph;
		},
	},
	{
		name: "two runs at once from one checkpoint in exit durability",
		kind: "concurrent runs",
		official: "wrong",
		officialNext: "wrong",
		play: async (world) => {
			const graph = gated(world);
			await run(world, graph, input("in"));
			const [slow, open] = graph.gate();
			const first = graph.invoke(input("slow"), exit(world.config));
			await slow;
			const second = await graph.invoke(input("fast"), exit(world.config));
			open();
			world.live.push((await first).log, second.log);
			return graph;
		},
	},
	{
		name: "a subgraph that has the channel, interrupted, resumed and run again",
		kind: "subgraphs",
		official: "wrong",
		play: async (world) => {
			const graph = nested(world);
			await run(world, graph, input("in"));
			await run(world, graph, new Command({ resume: "yes" }));
			await run(world, graph, null, await world.before(graph, "inner"));
			await run(world, graph, new Command({ resume: "again" }));
			return graph;
		},
	},
	{
		name: "the state of an interrupted subgraph, read with its parent's",
		kind: "subgraphs",
		official: "wrong",
		impossible: {
			core: "1.4",
			reason:
				"Core rebuilds the subgraph's channels without a saver: getDeltaChannelHistory is never asked, and the checkpoint must not hold a value.",
			answer: ["live []"],
		},
		play: async (world) => {
			const graph = nested(world);
			await run(world, graph, input("in"));
			const state = await graph.getState(world.config, { subgraphs: true });
			world.live.push(state.tasks[0].state.values.log);
			return graph;
		},
	},
];

/** A line whose first node can be held: `gate()` answers when it is reached, and what lets it go on. */
function gated(world: World): Any {
	let gate: { reached: () => void; open: Promise<void> } | undefined;
	const builder = world
		.builder()
		.addNode("a", async (state: Any) => {
			const mine = gate;
			gate = undefined;
			const written = world.say("a")(state);
			mine?.reached();
			await mine?.open;
			return written;
		})
		.addNode("b", world.say("b"))
		.addEdge(START, "a")
		.addEdge("a", "b")
		.addEdge("b", END);
	return Object.assign(world.compile(builder), {
		gate() {
			let open = () => {};
			const reached = new Promise<void>((resolve) => {
				gate = { reached: resolve, open: new Promise((let_go) => (open = let_go)) };
			});
			return [reached, () => open()];
		},
	});
}

/** start → a → ask → end, where `ask` interrupts twice */
export function askTwice(world: World): Any {
	return world.compile(
		world
			.builder()
			.addNode("a", world.say("a"))
			.addNode("ask", (state: Any) => {
				const answers = [interrupt("first"), interrupt("second")];
				return { log: [`${world.sign("ask", state)}:${answers}`] };
			})
			.addEdge(START, "a")
			.addEdge("a", "ask")
			.addEdge("ask", END),
	);
}

/** A graph without a start node: its input goes right into the channel. */
function pregel(world: World): Any {
	const channel = world.log();
	const log = world.delta ? channel() : channel;
	const a = Channel.subscribeTo("go")
		.pipe(() => world.say("a")({}).log)
		.pipe(Channel.writeTo(["log"]));
	const channels = { log, go: new EphemeralValue() };
	const ports = { inputChannels: ["log", "go"], outputChannels: ["log"] };
	return new Pregel({ channels, nodes: { a }, checkpointer: world.saver, ...ports } as Any);
}

/** start → outer → inner (start → x → ask → end) → end */
export function nested(world: World): Any {
	const inner = world
		.builder()
		.addNode("x", world.say("x"))
		.addNode("ask", world.ask("ask"))
		.addEdge(START, "x")
		.addEdge("x", "ask")
		.addEdge("ask", END)
		.compile();
	return world.compile(
		world
			.builder()
			.addNode("outer", world.say("outer"))
			.addNode("inner", inner)
			.addEdge(START, "outer")
			.addEdge("outer", "inner"),
	);
}
