import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as langgraph from "@langchain/langgraph";
import { type BaseCheckpointSaver, type CheckpointTuple, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { type Core, core } from "./core.ts";
import { Reference } from "./graph-reference.ts";

type Log = string[];

type Any = any;

/** What scenarios need of LangGraph, of either version. */
export type LangGraph = Pick<
	typeof langgraph,
	"Annotation" | "Command" | "DeltaChannel" | "END" | "START" | "StateGraph" | "interrupt"
>;

/** One of the two worlds that a scenario is played in: with a DeltaChannel, or with an ordinary reducer as the truth. */
export class World {
	readonly saver: BaseCheckpointSaver;
	readonly config = { configurable: { thread_id: "thread" } };
	/** What the scenario saw while it ran. */
	readonly live: unknown[] = [];
	readonly delta: boolean;
	readonly #calls = new Map<string, number>();

	constructor(saver: BaseCheckpointSaver, delta: boolean) {
		this.saver = saver;
		this.delta = delta;
	}

	/** The channel under test. */
	log(snapshotFrequency = 1000, { Annotation, DeltaChannel }: LangGraph = langgraph): Any {
		if (!this.delta) return Annotation<Log, Log>({ reducer: (log, more) => [...log, ...more], default: () => [] });
		const reducer = (log: Log, writes: Log[]) => [...log, ...writes.flat()];
		return () => new DeltaChannel<Log, Log>(reducer, { snapshotFrequency });
	}

	/** A graph builder whose state is `log` and an ordinary channel beside it. */
	builder(snapshotFrequency?: number, lib: LangGraph = langgraph): Any {
		const { Annotation, StateGraph } = lib;
		return new StateGraph(Annotation.Root({ log: this.log(snapshotFrequency, lib), note: Annotation<string> }));
	}

	compile(builder: Any): Any {
		return builder.compile({ checkpointer: this.saver });
	}

	/** A node that appends its name, how often it has been called, and how much of the log it saw. */
	say(name: string) {
		return (state: { log?: Log }) => ({ log: [this.sign(name, state)] });
	}

	/** A node that asks before it appends. */
	ask(name: string, { interrupt }: LangGraph = langgraph) {
		return (state: { log?: Log }) => {
			const answer = interrupt(name);
			return { log: [`${this.sign(name, state)}:${answer}`] };
		};
	}

	sign(name: string, state: { log?: Log }): string {
		const call = (this.#calls.get(name) ?? 0) + 1;
		this.#calls.set(name, call);
		return `${name}${call}@${state.log?.length ?? 0}`;
	}

	/** The snapshot of the thread's history that `find` accepts, the newest first. */
	async find(graph: Any, find: (snapshot: Any) => boolean): Promise<Any> {
		for await (const snapshot of graph.getStateHistory(this.config)) if (find(snapshot)) return snapshot;
		throw new Error("The history has no such checkpoint.");
	}

	/** Config of the newest checkpoint with this step. */
	async at(graph: Any, step: number): Promise<Any> {
		return (await this.find(graph, (snapshot) => snapshot.metadata.step === step)).config;
	}

	/** Config of the newest checkpoint that has this node to run next. */
	async before(graph: Any, node: string): Promise<Any> {
		return (await this.find(graph, (snapshot) => snapshot.next.includes(node))).config;
	}

	/** Waits until the newest checkpoint is of this step: a run goes on while its checkpoints are being stored. */
	async reach(graph: Any, step: number): Promise<void> {
		while ((await graph.getState(this.config)).metadata.step < step) await setTimeout(1);
	}

	async head(graph: Any): Promise<void> {
		this.live.push((await graph.getState(this.config)).values.log);
	}
}

export interface Scenario {
	readonly name: string;
	/** Which of the kinds of fork it is of. */
	readonly kind: string;
	/** Parallel tasks: under LangGraph 1.4 a DeltaChannel orders their writes by task id, a reducer by node. */
	readonly parallel?: boolean;
	/** Versions of LangGraph take turns: where one finishes a superstep that the other began, tasks have no common order. */
	readonly mixed?: boolean;
	/** Plays it and answers the graph whose history is compared, or several that each read it. */
	readonly play: (world: World) => Promise<Any>;
	/** What the official MemorySaver makes of it under LangGraph 1.4. */
	readonly official: "right" | "wrong" | "endless";
	/** The same under 1.7, in the order that it asks for: right unless told. */
	readonly officialNext?: "wrong";
	/** Why no saver can get it right, and the lines that differ, as they are with one that gets right what can be. */
	readonly impossible?: { readonly core: Core; readonly reason: string; readonly answer: readonly string[] };
	/** Why LangGraph itself does not get through it, on any saver. */
	readonly refused?: { readonly core: Core; readonly reason: string };
}

export interface Difference {
	readonly is: string | undefined;
	readonly shouldBe: string | undefined;
}

/** Plays a scenario with a DeltaChannel on `saver` and tells where it differs from an ordinary reducer. */
export async function differences(scenario: Scenario, saver: BaseCheckpointSaver): Promise<Difference[]> {
	const truth = await truthOf(scenario);
	const tried = await transcript(scenario, new World(saver, true));
	const lines = Array.from({ length: Math.max(truth.length, tried.length) }, (_, i) => i);
	return lines.map((i) => ({ is: tried[i], shouldBe: truth[i] })).filter(({ is, shouldBe }) => is !== shouldBe);
}

const truths = new WeakMap<Scenario, Promise<string[]>>();

/** The transcript of an ordinary reducer: the same in every world, so it is played once, whatever it is compared with. */
function truthOf(scenario: Scenario): Promise<string[]> {
	const truth = truths.get(scenario) ?? transcript(scenario, new World(new Reference(), false));
	truths.set(scenario, truth);
	return truth;
}

/** Everything that can be seen of the channel: while it ran, and then at every checkpoint of the history. */
export async function transcript(scenario: Scenario, world: World): Promise<string[]> {
	const isOrdered = !scenario.mixed && (core !== "1.4" || !scenario.parallel);
	const show = (log: unknown) => JSON.stringify(isOrdered || !Array.isArray(log) ? log : [...log].sort());
	const graphs = [await scenario.play(world)].flat();
	const lines = world.live.map((log) => `live ${show(log)}`);
	for (const graph of graphs) lines.push(...(await historyLines(world, graph, scenario, isOrdered)));
	const inner: CheckpointTuple[] = [];
	for await (const tuple of world.saver.list(world.config))
		if (tuple.config.configurable?.checkpoint_ns) inner.push(tuple);
	inner.sort((a, b) => (a.checkpoint.id < b.checkpoint.id ? 1 : -1));
	for (const tuple of inner)
		lines.push(`inner ${tuple.metadata?.source} ${tuple.metadata?.step} ${show(await storedLog(world, tuple))}`);
	return lines;
}

/** A line for each checkpoint of the thread, the newest first. */
async function historyLines(world: World, graph: Any, { mixed }: Scenario, isOrdered: boolean): Promise<string[]> {
	const history: Any[] = [];
	for await (const snapshot of graph.getStateHistory(world.config)) history.push(snapshot);
	const logs = new ShownLogs(isOrdered, mixed);
	const lines = history.toReversed().map(({ config, parentConfig, metadata, values, next }) => {
		const log = logs.show(config, parentConfig, values.log ?? []);
		// Exit durability puts an empty checkpoint below the first one, for DeltaChannels only.
		if (metadata.step === -2) return [];
		return [`${metadata.source} ${metadata.step} -> ${next} ${JSON.stringify(log)}`];
	});
	return lines.toReversed().flat();
}

/** Logs as they are compared: where parallel tasks have no order, what a checkpoint adds to its parent's log is sorted. */
export class ShownLogs {
	readonly #isOrdered: boolean;
	readonly #isMixed: boolean;
	readonly #logs = new Map<string, { log: Log; shown: Log }>();

	constructor(isOrdered: boolean, isMixed = false) {
		this.#isOrdered = isOrdered;
		this.#isMixed = isMixed;
	}

	/** Expects to be asked for the parent first. */
	show(config: Any, parentConfig: Any, log: Log): Log {
		const parent = this.#logs.get(parentConfig?.configurable.checkpoint_id) ?? { log: [], shown: [] };
		const arrange = (some: Log) => (this.#isMixed ? some.toSorted() : some);
		const goesOn = isDeepStrictEqual(arrange(log.slice(0, parent.log.length)), arrange(parent.log));
		const added = goesOn ? log.slice(parent.log.length) : log;
		const shown = this.#isOrdered ? log : [...(goesOn ? parent.shown : []), ...added.toSorted()];
		this.#logs.set(config.configurable.checkpoint_id, { log, shown });
		return shown;
	}
}

/** Core reads a subgraph's checkpoints without a saver when it is not running, so this does it as a running one does. */
async function storedLog(world: World, { config, checkpoint }: CheckpointTuple): Promise<unknown> {
	const { log } = checkpoint.channel_values;
	if (Object.hasOwn(checkpoint.channel_values, "log")) return isDeltaSnapshot(log) ? log.value : log;
	if (!world.delta) return [];
	const history = await world.saver.getDeltaChannelHistory({ config, channels: ["log"] });
	const seed = history.log?.seed;
	const start = (isDeltaSnapshot(seed) ? seed.value : seed) as Log | undefined;
	return [...(start ?? []), ...(history.log?.writes.flatMap(([, , value]) => value as Log) ?? [])];
}
