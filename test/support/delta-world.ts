import {
	Annotation,
	type BaseCheckpointSaver,
	DeltaChannel,
	interrupt,
	MemorySaver as OfficialMemorySaver,
	StateGraph,
} from "@langchain/langgraph";
import { type CheckpointTuple, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";

type Log = string[];

type Any = any;

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
	log(snapshotFrequency = 1000): Any {
		if (!this.delta) return Annotation<Log, Log>({ reducer: (log, more) => [...log, ...more], default: () => [] });
		const reducer = (log: Log, writes: Log[]) => [...log, ...writes.flat()];
		return () => new DeltaChannel<Log, Log>(reducer, { snapshotFrequency });
	}

	/** A graph builder whose state is `log` and an ordinary channel beside it. */
	builder(snapshotFrequency?: number): Any {
		return new StateGraph(Annotation.Root({ log: this.log(snapshotFrequency), note: Annotation<string> }));
	}

	compile(builder: Any): Any {
		return builder.compile({ checkpointer: this.saver });
	}

	/** A node that appends its name, how often it has been called, and how much of the log it saw. */
	say(name: string) {
		return (state: { log?: Log }) => ({ log: [this.sign(name, state)] });
	}

	/** A node that asks before it appends. */
	ask(name: string) {
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

	async head(graph: Any): Promise<void> {
		this.live.push((await graph.getState(this.config)).values.log);
	}
}

export interface Scenario {
	readonly name: string;
	/** Which of the kinds of fork it is of. */
	readonly kind: string;
	/** Parallel tasks: a DeltaChannel orders their writes by task id, a reducer by node. */
	readonly unordered?: boolean;
	/** What the later run finds depends on how fast the store is. */
	readonly timed?: boolean;
	/** Plays it and answers the graph whose history is compared. */
	readonly play: (world: World) => Promise<Any>;
	/** What the official MemorySaver makes of it. */
	readonly official: "right" | "wrong" | "endless";
	/** Why no saver can get it right, and the lines that differ, as they are with one that gets right what can be. */
	readonly impossible?: { readonly reason: string; readonly answer: readonly string[] };
}

export interface Difference {
	readonly is: string | undefined;
	readonly shouldBe: string | undefined;
}

/** Plays a scenario with a DeltaChannel on `saver` and tells where it differs from an ordinary reducer. */
export async function differences(scenario: Scenario, saver: BaseCheckpointSaver): Promise<Difference[]> {
	const truth = await transcript(scenario, new World(new OfficialMemorySaver(), false));
	const tried = await transcript(scenario, new World(saver, true));
	const lines = Array.from({ length: Math.max(truth.length, tried.length) }, (_, i) => i);
	return lines.map((i) => ({ is: tried[i], shouldBe: truth[i] })).filter(({ is, shouldBe }) => is !== shouldBe);
}

/** Everything that can be seen of the channel: while it ran, and then at every checkpoint of the history. */
export async function transcript(scenario: Scenario, world: World): Promise<string[]> {
	const show = (log: unknown) => JSON.stringify(scenario.unordered && Array.isArray(log) ? [...log].sort() : log);
	const graph = await scenario.play(world);
	const lines = world.live.map((log) => `live ${show(log)}`);
	for await (const { metadata, values, next } of graph.getStateHistory(world.config)) {
		// Exit durability puts an empty checkpoint below the first one, for DeltaChannels only.
		if (metadata.step === -2) continue;
		lines.push(`${metadata.source} ${metadata.step} -> ${next} ${show(values.log ?? [])}`);
	}
	const inner: CheckpointTuple[] = [];
	for await (const tuple of world.saver.list(world.config))
		if (tuple.config.configurable?.checkpoint_ns) inner.push(tuple);
	inner.sort((a, b) => (a.checkpoint.id < b.checkpoint.id ? 1 : -1));
	for (const tuple of inner)
		lines.push(`inner ${tuple.metadata?.source} ${tuple.metadata?.step} ${show(await storedLog(world, tuple))}`);
	return lines;
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
