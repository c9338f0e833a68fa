import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import {
	Annotation,
	END,
	MessagesDeltaValue,
	messagesStateReducer,
	START,
	StateGraph,
	StateSchema,
} from "@langchain/langgraph";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import pg from "pg";
import { PostgresSaver } from "../../../src/postgres.ts";
import { newSchema, postgresUrl } from "../../support/postgres.ts";
import { PostgresProxy } from "../../support/postgres-proxy.ts";

/** Counts what LangGraph asks of it. */
class CountingSaver extends PostgresSaver {
	calls = 0;

	override getTuple(...args: Parameters<PostgresSaver["getTuple"]>) {
		this.calls++;
		return super.getTuple(...args);
	}

	override put(...args: Parameters<PostgresSaver["put"]>) {
		this.calls++;
		return super.put(...args);
	}

	override putWrites(...args: Parameters<PostgresSaver["putWrites"]>) {
		this.calls++;
		return super.putWrites(...args);
	}

	override getDeltaChannelHistory(...args: Parameters<PostgresSaver["getDeltaChannelHistory"]>) {
		this.calls++;
		return super.getDeltaChannelHistory(...args);
	}
}

let proxy: PostgresProxy;
let pool: pg.Pool;
let schema: string;

/** A saver that has been used, so that it need not look at its tables any more nor reserve numbers. */
async function openSaver(): Promise<CountingSaver> {
	const saver = new CountingSaver(pool, { schema });
	await compileChat(saver).invoke({ messages: [new HumanMessage("first")] }, { configurable: { thread_id: "first" } });
	saver.calls = 0;
	return saver;
}

const text = (n: number) => `${n}: ${"words that make a message of some length ".repeat(20)}`;

function compileChat(checkpointer: PostgresSaver) {
	const State = Annotation.Root({ messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer }) });
	const child = new StateGraph(State)
		.addNode("think", ({ messages }) => ({ messages: [new AIMessage(text(messages.length))] }))
		.addEdge(START, "think")
		.compile();
	return new StateGraph(State)
		.addNode("child", child)
		.addNode("model", ({ messages }) => ({ messages: [new AIMessage(text(messages.length))] }))
		.addEdge(START, "child")
		.addEdge("child", "model")
		.addEdge("model", END)
		.compile({ checkpointer });
}

beforeAll(async () => {
	proxy = await PostgresProxy.start(await postgresUrl());
	pool = new pg.Pool({ connectionString: proxy.url, max: 4 });
	({ schema } = await newSchema());
});

afterAll(async () => {
	await pool.end();
	await proxy.stop();
});

describe("round trips to PostgreSQL", () => {
	it("are one for each call that a graph makes", async () => {
		const saver = await openSaver();
		const graph = compileChat(saver);
		const config = { configurable: { thread_id: "chat" }, durability: "sync" as const };
		// In a new thread writes may overtake the first checkpoint, and find no thread yet.
		await graph.invoke({ messages: [new HumanMessage(text(0))] }, config);
		for (let turn = 1; turn < 5; turn++) {
			saver.calls = 0;
			const trips = await proxy.count(() => graph.invoke({ messages: [new HumanMessage(text(turn))] }, config));
			expect(saver.calls).toBeGreaterThan(10);
			expect(trips).toBe(saver.calls);
		}
		expect((await graph.getState(config)).values.messages).toHaveLength(15);
	});

	it("are one for the first checkpoint of a thread, whose absence was seen, and one for its writes", async () => {
		const saver = await openSaver();
		const configurable = { thread_id: "new", checkpoint_ns: "" };
		const checkpoint = { ...emptyCheckpoint(), channel_values: { a: text(0) }, channel_versions: { a: 1 } };
		const metadata = { source: "input" as const, step: -1, parents: {} };
		expect(await proxy.count(() => saver.getTuple({ configurable }))).toBe(1);
		expect(await proxy.count(() => saver.put({ configurable }, checkpoint, metadata, { a: 1 }))).toBe(1);
		const config = { configurable: { ...configurable, checkpoint_id: checkpoint.id } };
		expect(await proxy.count(() => saver.putWrites(config, [["a", text(1)]], "task"))).toBe(1);
	});

	it("are one to read a checkpoint, whether or not anything of it is known", async () => {
		const config = { configurable: { thread_id: "read" } };
		await compileChat(await openSaver()).invoke({ messages: [new HumanMessage(text(0))] }, config);
		const saver = new PostgresSaver(pool, { schema });
		await saver.setup();
		for (let n = 0; n < 2; n++) {
			const trips = await proxy.count(async () => {
				const tuple = await saver.getTuple(config);
				expect(tuple?.checkpoint.channel_values.messages).toHaveLength(3);
			});
			expect(trips).toBe(1);
		}
	});

	it("are one for 50 listed checkpoints, and none while they are being looked at", async () => {
		const saver = await openSaver();
		const graph = compileChat(saver);
		const config = { configurable: { thread_id: "list" } };
		for (let turn = 0; turn < 14; turn++) await graph.invoke({ messages: [new HumanMessage(text(turn))] }, config);
		let listed = 0;
		const trips = await proxy.count(async () => {
			for await (const tuple of saver.list({ configurable: { thread_id: "list", checkpoint_ns: "" } }, { limit: 50 })) {
				expect(tuple.checkpoint.channel_values).toBeDefined();
				expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0]);
				listed++;
			}
		});
		expect([listed, trips]).toEqual([50, 1]);
	});

	it("are one for what labels find among many checkpoints, else one for each page of rows, and one for values", async () => {
		const saver = await openSaver();
		const configurable = { thread_id: "filter", checkpoint_ns: "" };
		for (let n = 0; n < 150; n++) {
			const checkpoint = {
				...emptyCheckpoint(),
				id: uuid6(n),
				channel_values: { a: text(n) },
				channel_versions: { a: n },
			};
			const metadata = {
				source: "loop" as const,
				step: n,
				parents: {},
				user: n % 50 === 7 ? "one" : "other",
				odd: [n === 7],
			};
			await saver.put({ configurable }, checkpoint, metadata, { a: n });
		}
		for (const [filter, count, expected] of [
			[{ user: "one" }, 3, 1],
			[{ step: 20 }, 1, 1],
			[{ source: "loop", user: "one", step: 107 }, 1, 1],
			[{ user: "one", odd: [true] }, 1, 1],
			[{ odd: [true] }, 1, 3],
		] as [object, number, number][]) {
			const found: number[] = [];
			const trips = await proxy.count(async () => {
				for await (const { metadata } of saver.list({ configurable }, { filter: { ...filter } }))
					found.push(metadata?.step as number);
			});
			expect([found.length, trips]).toEqual([count, expected]);
		}
	});

	it("are one for the history of a delta channel, however long it is", async () => {
		const saver = await openSaver();
		const graph = new StateGraph(new StateSchema({ messages: MessagesDeltaValue }))
			.addNode("model", () => ({ messages: [new AIMessage("answer")] }))
			.addEdge(START, "model")
			.compile({ checkpointer: saver });
		const config = { configurable: { thread_id: "delta" } };
		for (let turn = 0; turn < 40; turn++) await graph.invoke({ messages: [new HumanMessage(`${turn}`)] }, config);
		saver.calls = 0;
		const trips = await proxy.count(async () => {
			expect((await graph.getState(config)).values.messages).toHaveLength(80);
		});
		// The checkpoint, then the history.
		expect([saver.calls, trips]).toEqual([2, 2]);
	});
});
