import * as langgraph from "@langchain/langgraph";
import type { LangGraph, Scenario, World } from "./delta-world.ts";
import type { Durability } from "./graph-bench.ts";

type Any = any;

const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/**
 * A scenario of `length` random steps, the same for the same seed: runs, answers, updates and copies anywhere in the history.
 *
 * @param durability of all runs; `undefined` has some of them in exit durability and the others in the default one
 * @param cores versions of LangGraph that take turns
 */
export function randomScenario(
	seed: number,
	length: number,
	durability?: Durability,
	cores: readonly LangGraph[] = [langgraph],
): Scenario {
	return {
		name: `random history ${seed}`,
		kind: "random",
		official: "wrong",
		parallel: true,
		mixed: cores.length > 1,
		play: async (world) => {
			const random = mulberry32(seed);
			const snapshotFrequency = pick(random, [1000, 1000, 2, 3]);
			const graphs = cores.map((core) => ({ core, graph: half(world, snapshotFrequency, core) }));
			const turn = mulberry32(seed);
			for (let step = 0; step < length; step++) await takeStep(world, pick(turn, graphs), random, step, durability);
			return graphs.map(({ graph }) => graph);
		},
	};
}

async function takeStep(
	world: World,
	{ core: { Command, END }, graph }: { core: LangGraph; graph: Any },
	random: () => number,
	step: number,
	given: Durability | undefined,
): Promise<void> {
	const history: Any[] = [];
	for await (const snapshot of graph.getStateHistory(world.config))
		if (snapshot.metadata.step !== -2) history.push(snapshot);
	const chosen = history.length > 0 && random() < 0.6 ? pick(random, history) : undefined;
	const snapshot = chosen ?? history[0];
	const action = history.length === 0 ? "input" : pick(random, ACTIONS);
	const chance = random() < 0.3 ? "exit" : "async";
	const durability = given ?? chance;
	const node = pick(random, ["a", "done", "ask", "z"]);
	const values = random() < 0.8 ? { log: [`update ${step}`] } : { note: "update" };
	if (snapshot && (await isUndecidable(world, action, snapshot, chosen !== undefined, durability))) return;

	const target = chosen ? chosen.config : world.config;
	const log = [`${action} ${step}`];
	const invoke = async (input: Any) => {
		const result = await graph
			.invoke(input, { ...target, durability })
			.catch((error: Error) => ({ log: [error.name] }));
		world.live.push(result.log);
	};
	const resume = `answer ${step}`;
	if (action === "input") await invoke({ log });
	else if (action === "run") await invoke(null);
	else if (action === "answer") await invoke(new Command({ resume }));
	else if (action === "answer and update") await invoke(new Command({ resume, update: { log } }));
	else if (action === "command") await invoke(new Command({ update: { log }, goto: node === "z" ? "a" : node }));
	else if (action === "update") await graph.updateState(target, values, node);
	else if (action === "empty update") await graph.updateState(target, null);
	else await graph.updateState(target, null, action === "copy" ? "__copy__" : END);
}

const ACTIONS = [
	...["input", "input", "run", "run", "answer", "answer", "answer and update"],
	...["command", "update", "update", "empty update", "copy", "end"],
] as const;

/** Steps that are pointless, or of which the scenarios tell why no saver can get them right. */
async function isUndecidable(
	world: World,
	action: (typeof ACTIONS)[number],
	snapshot: Any,
	byId: boolean,
	durability: string,
): Promise<boolean> {
	if (action.startsWith("answer") && snapshot.next.length === 0) return true;
	if (action === "answer and update" && durability === "exit" && snapshot.metadata.step === -1) return true;
	if (action !== "update" || !byId) return false;
	const tuple = await world.saver.getTuple(snapshot.config);
	return tuple?.pendingWrites?.some(([task, channel]) => task === NULL_TASK && channel !== "__resume__") ?? false;
}

/** start → a → (done, ask) → z → end, where `ask` interrupts while `done` is done */
function half(world: World, snapshotFrequency: number, core: LangGraph): Any {
	const { START, END } = core;
	return world.compile(
		world
			.builder(snapshotFrequency, core)
			.addNode("a", world.say("a"))
			.addNode("done", world.say("done"))
			.addNode("ask", world.ask("ask", core))
			.addNode("z", world.say("z"))
			.addEdge(START, "a")
			.addEdge("a", "done")
			.addEdge("a", "ask")
			.addEdge(["done", "ask"], "z")
			.addEdge("z", END),
	);
}

function pick<T>(random: () => number, items: readonly T[]): T {
	return items[Math.floor(random() * items.length)] as T;
}

/** Numbers from 0 to 1 that depend on the seed alone. */
export function mulberry32(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}
