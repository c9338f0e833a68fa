import { AIMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import {
	type BaseCheckpointSaver,
	type Checkpoint,
	type CheckpointMetadata,
	emptyCheckpoint,
	MemorySaver as OfficialSaver,
} from "@langchain/langgraph-checkpoint";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

const config = { configurable: { thread_id: "thread" } };

/** What code written for LangGraph's MemorySaver may do with a saver. */
const savers = [
	["LangGraph's own MemorySaver", OfficialSaver],
	["MemorySaver", MemorySaver],
	[
		"SqliteSaver",
		class extends SqliteSaver {
			constructor() {
				super(":memory:");
			}
		},
	],
] as [string, new () => OfficialSaver][];

/** A chat in which a node asks: two runs with everything that core calls. */
async function talk(checkpointer: BaseCheckpointSaver) {
	const graph = new StateGraph(MessagesAnnotation)
		.addNode("greet", () => ({ messages: [new AIMessage("hello")] }))
		.addNode("ask", () => ({ messages: [new AIMessage(`answer ${interrupt("well?")}`)] }))
		.addEdge(START, "greet")
		.addEdge("greet", "ask")
		.compile({ checkpointer });
	await graph.invoke({ messages: [new HumanMessage("hi")] }, config);
	await graph.invoke(new Command({ resume: "yes" }), config);
	const { values } = await graph.getState(config);
	const texts = values.messages.map(({ content }: { content: unknown }) => content);
	const steps: unknown[] = [];
	for await (const { metadata } of graph.getStateHistory(config)) steps.push(metadata?.step);
	return { texts, steps };
}

const TALK = { texts: ["hi", "hello", "answer yes"], steps: [2, 1, 0, -1] };

describe.each(savers)("%s", (_, Saver) => {
	it("works as it is", async () => {
		expect(await talk(new Saver())).toEqual(TALK);
	});

	it("can be extended by a class whose put takes three arguments", async () => {
		class Counting extends Saver {
			puts = 0;
			override async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
				this.puts++;
				return super.put(config, checkpoint, metadata);
			}
		}
		const saver = new Counting();
		expect(await talk(saver)).toEqual(TALK);
		expect(saver.puts).toBe(4);
	});

	it("can be extended by a class that uses names of its own", async () => {
		class Named extends Saver {
			engine = "mine";
			cache = new Map();
			isClosed = "no";
		}
		const saver = new Named();
		expect(await talk(saver)).toEqual(TALK);
		expect([saver.engine, saver.isClosed]).toEqual(["mine", "no"]);
	});

	it("works behind a Proxy", async () => {
		const calls: string[] = [];
		const saver = new Proxy(new Saver(), {
			get(target, name, receiver) {
				if (typeof name === "string") calls.push(name);
				return Reflect.get(target, name, receiver);
			},
		});
		expect(await talk(saver)).toEqual(TALK);
		expect(calls).toContain("put");
		await saver.deleteThread("thread");
		expect(await saver.getTuple(config)).toBeUndefined();
	});

	it("works behind an object that hands on the calls it knows", async () => {
		const saver = new Saver();
		const names = ["getTuple", "list", "put", "putWrites", "getDeltaChannelHistory", "getNextVersion"] as const;
		const bound = Object.fromEntries(names.map((name) => [name, (saver[name] as () => unknown).bind(saver)]));
		const wrapper = Object.assign(Object.create(OfficialSaver.prototype), { serde: saver.serde }, bound);
		expect(await talk(wrapper)).toEqual(TALK);
	});

	it("works behind a wrapper that copies every config", async () => {
		const saver = new Saver();
		const copy = ({ configurable: { thread_id, checkpoint_ns, checkpoint_id } = {} }: RunnableConfig) => ({
			configurable: { thread_id, checkpoint_ns, checkpoint_id },
		});
		class Copying extends OfficialSaver {
			override getTuple = (config: RunnableConfig) => saver.getTuple(copy(config));
			override list: OfficialSaver["list"] = (config, options) => saver.list(copy(config), options);
			override put: OfficialSaver["put"] = (config, ...rest) => saver.put(copy(config), ...rest);
			override putWrites: OfficialSaver["putWrites"] = (config, ...rest) => saver.putWrites(copy(config), ...rest);
		}
		expect(await talk(new Copying())).toEqual(TALK);
	});

	it("answers get with the checkpoint alone", async () => {
		const saver = new Saver();
		const checkpoint = { ...emptyCheckpoint(), channel_values: { a: [1] }, channel_versions: { a: 1 } };
		await saver.put(config, checkpoint, { source: "input", step: -1, parents: {} });
		expect(await saver.get(config)).toEqual(checkpoint);
		expect(await saver.get({ configurable: { thread_id: "other" } })).toBeUndefined();
	});

	it("has methods that can be called by themselves once they are bound", async () => {
		const saver = new Saver();
		const { put, getTuple } = { put: saver.put.bind(saver), getTuple: saver.getTuple.bind(saver) };
		const checkpoint = { ...emptyCheckpoint(), channel_values: { a: 1 }, channel_versions: { a: 1 } };
		await put(config, checkpoint, { source: "input", step: -1, parents: {} });
		expect((await getTuple(config))?.checkpoint.channel_values).toEqual({ a: 1 });
	});

	it("can be part of a config that is written to JSON", () => {
		const saver = new Saver();
		const text = JSON.stringify({ configurable: { thread_id: "t", saver } });
		expect(JSON.parse(text).configurable.thread_id).toBe("t");
		expect(text.length).toBeLessThan(200);
	});

	it("answers tuples that can be cloned", async () => {
		const saver = new Saver();
		const values = { list: [1, { deep: [true, null] }], text: "x", undefined: undefined };
		const checkpoint = { ...emptyCheckpoint(), channel_values: values, channel_versions: { list: 1, text: 1 } };
		const stored = await saver.put(config, checkpoint, { source: "input", step: -1, parents: {} });
		await saver.putWrites(stored, [["list", { some: ["write"] }]], "task");
		const tuple = await saver.getTuple(config);
		expect(structuredClone(tuple)).toEqual(tuple);
		await talk(saver);
		expect(() => structuredClone({ ...tuple, pendingWrites: [] })).not.toThrow();
	});

	it("answers tuples whose messages can be cloned", async () => {
		const saver = new Saver();
		await talk(saver);
		const tuple = await saver.getTuple(config);
		const clone = structuredClone(tuple!);
		const contents = (clone.checkpoint.channel_values.messages as { content: string }[]).map(({ content }) => content);
		expect(contents).toEqual(TALK.texts);
	});
});
