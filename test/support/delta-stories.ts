import { Annotation, Command, DeltaChannel, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { BinaryOperatorAggregate, EphemeralValue } from "@langchain/langgraph/channels";
import { Channel, Pregel } from "@langchain/langgraph/pregel";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { type Core, core } from "./core.ts";
import { ShownLogs } from "./delta-world.ts";
import type { Durability } from "./graph-bench.ts";

type Any = any;
type Log = string[];

const concat = (log: Log, more: Log) => [...log, ...more];
const concatAll = (log: Log, writes: Log[]) => [...log, ...writes.flat()];

const State = Annotation.Root({
	delta: (() => new DeltaChannel<Log, Log>(concatAll, { snapshotFrequency: 1000 })) as Any,
	plain: Annotation<Log, Log>({ reducer: concat, default: () => [] }),
	note: Annotation<string>,
});

/** The same for both channels: the plain one tells what the other should be. */
const both = (...log: Log) => ({ delta: log, plain: log });

/** What a story is told with. */
export class Teller {
	readonly config = { configurable: { thread_id: "thread" } };
	readonly #saver: BaseCheckpointSaver;
	readonly #durability: Durability;

	constructor(saver: BaseCheckpointSaver, durability: Durability) {
		this.#saver = saver;
		this.#durability = durability;
	}

	compile(build: (builder: Any) => Any): Any {
		return build(new StateGraph(State)).compile({ checkpointer: this.#saver });
	}

	/** A graph whose input goes straight into the channels. */
	pregel(): Any {
		const a = Channel.subscribeTo("go")
			.pipe(() => ["a"])
			.pipe(Channel.writeTo(["delta", "plain"]));
		const channels = {
			delta: new DeltaChannel<Log, Log>(concatAll, { snapshotFrequency: 1000 }),
			plain: new BinaryOperatorAggregate<Log, Log>(concat, () => []),
			go: new EphemeralValue(),
		};
		const ports = { inputChannels: ["delta", "plain", "go"], outputChannels: ["delta", "plain"] };
		return new Pregel({ channels, nodes: { a }, checkpointer: this.#saver, ...ports } as Any);
	}

	/** Runs the graph; an error is part of the story. */
	async run(graph: Any, input: Any, config: Any = this.config): Promise<Any> {
		return graph.invoke(input, { ...config, durability: this.#durability }).catch(() => undefined);
	}

	/** Config of the newest checkpoint that has this node to run next. */
	async before(graph: Any, node: string): Promise<Any> {
		for await (const { next, config } of graph.getStateHistory(this.config)) if (next.includes(node)) return config;
		throw new Error(`No checkpoint is followed by ${node}.`);
	}

	/** Ids of the questions that wait. */
	async questions(graph: Any): Promise<string[]> {
		const { tasks } = await graph.getState(this.config);
		return tasks.flatMap((task: Any) => task.interrupts.map(({ id }: Any) => id));
	}
}

/** Something that a user does with a graph whose two channels are written alike. */
export interface Story {
	readonly name: string;
	readonly tell: (teller: Teller) => Promise<Any>;
	/** Why no saver can get it right, and where. */
	readonly impossible?: { readonly core: Core; readonly durabilities: readonly Durability[]; readonly reason: string };
}

const names = ["h", "c", "a", "g", "b", "f", "d", "e"];

/** start → a → eight workers by packets → z, where the worker `asks`, if any, interrupts */
const fanOut = (teller: Teller, asks: readonly string[] = []) =>
	teller.compile((builder) =>
		builder
			.addNode("a", () => both("a"))
			.addNode("worker", ({ name }: Any) => both(asks.includes(name) ? `${name}:${interrupt(name)}` : name))
			.addNode("z", ({ delta }: Any) => both(`z@${delta.length}`))
			.addEdge(START, "a")
			.addConditionalEdges("a", () => names.map((name) => new Send("worker", { name })))
			.addEdge("worker", "z"),
	);

/** start → eight nodes at once → z */
const parallel = (
	teller: Teller,
	node: (name: string) => (state: Any) => Any,
	options: (name: string) => Any = () => ({}),
) =>
	teller.compile((builder) => {
		for (const name of names) builder.addNode(name, node(name), options(name)).addEdge(START, name);
		return builder.addNode("z", ({ delta }: Any) => both(`z@${delta.length}`)).addEdge(names, "z");
	});

/** start → a → (done, ask) → z, where `ask` interrupts while `done` is done */
const half = (teller: Teller) =>
	teller.compile((builder) =>
		builder
			.addNode("a", () => both("a"))
			.addNode("done", () => both("done"))
			.addNode("ask", () => both(`ask:${interrupt("ask")}`))
			.addNode("z", ({ delta }: Any) => both(`z@${delta.length}`))
			.addEdge(START, "a")
			.addEdge("a", "done")
			.addEdge("a", "ask")
			.addEdge(["done", "ask"], "z"),
	);

/** start → a → b → c */
const line = (teller: Teller) =>
	teller.compile((builder) =>
		builder
			.addNode("a", () => both("a"))
			.addNode("b", () => both("b"))
			.addNode("c", ({ delta }: Any) => both(`c@${delta.length}`))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", "c"),
	);

export const deltaStories: readonly Story[] = [
	{
		name: "packets to eight workers, whose ids sort otherwise than their places",
		tell: async (teller) => {
			const graph = fanOut(teller);
			for (const turn of ["1", "2"]) await teller.run(graph, both(turn));
			return graph;
		},
	},
	{
		name: "eight parallel nodes",
		tell: async (teller) => {
			const graph = parallel(teller, (name) => () => both(name, `${name}+`));
			for (const turn of ["1", "2"]) await teller.run(graph, both(turn));
			return graph;
		},
	},
	{
		name: "eight questions that are answered together",
		tell: async (teller) => {
			const graph = fanOut(teller, names);
			await teller.run(graph, both("in"));
			const questions = await teller.questions(graph);
			await teller.run(graph, new Command({ resume: Object.fromEntries(questions.map((id, i) => [id, i])) }));
			return graph;
		},
	},
	{
		name: "four questions of eight workers that are answered one after the other",
		tell: async (teller) => {
			const graph = fanOut(teller, ["c", "g", "f", "e"]);
			await teller.run(graph, both("in"));
			for (const id of await teller.questions(graph))
				await teller.run(graph, new Command({ resume: { [id]: "answered" } }));
			return graph;
		},
	},
	{
		name: "a node that fails among others, and is run again",
		tell: async (teller) => {
			let isBroken = true;
			const fail = async () => {
				await new Promise((resolve) => setTimeout(resolve, 5));
				if (isBroken) throw new Error("broken");
				return both("c, at last");
			};
			const graph = parallel(teller, (name) => (name === "c" ? fail : () => both(name)));
			await teller.run(graph, both("in"));
			await teller.run(graph, null);
			isBroken = false;
			await teller.run(graph, null);
			return graph;
		},
	},
	{
		name: "the error handler of a node among others",
		tell: async (teller) => {
			const fail = () => {
				throw new Error("broken");
			};
			const graph = parallel(
				teller,
				(name) => (name === "c" ? fail : () => both(name)),
				(name) => (name === "c" ? { errorHandler: () => both("c, handled") } : {}),
			);
			for (const turn of ["1", "2"]) await teller.run(graph, both(turn));
			return graph;
		},
	},
	{
		name: "time travel into a fan-out",
		tell: async (teller) => {
			const graph = fanOut(teller, ["c"]);
			await teller.run(graph, both("in"));
			await teller.run(graph, new Command({ resume: "yes" }));
			const before = await teller.before(graph, "worker");
			await teller.run(graph, null, before);
			await teller.run(graph, new Command({ resume: "no" }));
			await teller.run(graph, new Command({ resume: "other" }), before);
			return graph;
		},
	},
	{
		name: "a new input on an older checkpoint, twice",
		tell: async (teller) => {
			const graph = fanOut(teller, ["c"]);
			await teller.run(graph, both("in"));
			const before = await teller.before(graph, "worker");
			for (const word of ["other", "third"]) await teller.run(graph, both(word), before);
			await teller.run(graph, new Command({ resume: "yes" }));
			return graph;
		},
	},
	{
		name: "a command with an update over a half-finished superstep",
		tell: async (teller) => {
			const graph = half(teller);
			await teller.run(graph, both("in"));
			await teller.run(graph, new Command({ resume: "yes", update: both("updated") }));
			await teller.run(graph, both("next"));
			await teller.run(graph, new Command({ goto: "z", update: both("sent on") }));
			return graph;
		},
	},
	{
		name: "bulk updates",
		tell: async (teller) => {
			const graph = line(teller);
			await teller.run(graph, both("in"));
			const updates = (...words: Log) =>
				words.map((word, i) => ({ values: both(word), asNode: ["b", "a", "c"][i % 3] }));
			await graph.bulkUpdateState(teller.config, [
				{ updates: updates("1", "2", "3", "4") },
				{ updates: updates("5", "6") },
			]);
			await teller.run(graph, both("next"));
			await graph.bulkUpdateState(await teller.before(graph, "b"), [{ updates: updates("7", "8", "9") }]);
			await teller.run(graph, null);
			return graph;
		},
	},
	{
		name: "updates as the input",
		tell: async (teller) => {
			const graph = line(teller);
			await graph.updateState(teller.config, both("first"), "__input__");
			await teller.run(graph, null);
			await graph.updateState(teller.config, both("second"), "__input__");
			await teller.run(graph, null);
			await graph.updateState(await teller.before(graph, START), both("third"), "__input__");
			await teller.run(graph, null);
			return graph;
		},
	},
	{
		name: "an input that goes straight into the channel",
		impossible: {
			core: "1.4",
			durabilities: ["sync", "async"],
			reason: "the second input is stored as a pending write of its parent, and core applies it whenever that is read",
		},
		tell: async (teller) => {
			const graph = teller.pregel();
			for (const turn of ["1", "2"]) await teller.run(graph, { ...both(turn), go: "on" });
			await graph.updateState(teller.config, { ...both("typed"), go: "on" }, "__input__");
			await teller.run(graph, null);
			return graph;
		},
	},
];

/** Tells a story and answers where in the whole history the two channels differ, each element in order. */
export async function tellStory(story: Story, saver: BaseCheckpointSaver, durability: Durability): Promise<string[]> {
	const teller = new Teller(saver, durability);
	const graph = await story.tell(teller);
	const history: Any[] = [];
	for await (const snapshot of graph.getStateHistory(teller.config)) history.push(snapshot);
	const [delta, plain] = [new ShownLogs(core !== "1.4"), new ShownLogs(core !== "1.4")];
	const lines = history.toReversed().flatMap(({ config, parentConfig, metadata, values }) => {
		const is = JSON.stringify(delta.show(config, parentConfig, values.delta ?? []));
		const shouldBe = JSON.stringify(plain.show(config, parentConfig, values.plain ?? []));
		return is === shouldBe ? [] : [`${metadata.source} ${metadata.step}: is ${is}, should be ${shouldBe}`];
	});
	if (history.length < 2) throw new Error("The story has no history.");
	return lines;
}
