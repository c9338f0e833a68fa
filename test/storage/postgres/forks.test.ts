import { Annotation, END, START, StateGraph, type StateSnapshot } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver as OfficialSaver } from "@langchain/langgraph-checkpoint-postgres";
import { PostgresSaver } from "../../../src/postgres.ts";
import { newSchema } from "../../support/postgres.ts";

const thread = { configurable: { thread_id: "thread" } };

async function findState(
	graph: { getStateHistory(config: typeof thread): AsyncIterableIterator<StateSnapshot> },
	matches: (state: StateSnapshot) => boolean,
): Promise<StateSnapshot[]> {
	const found: StateSnapshot[] = [];
	for await (const state of graph.getStateHistory(thread)) if (matches(state)) found.push(state);
	return found;
}

/** Writes a draft, goes back to before it, and writes another. */
async function regenerate(checkpointer: BaseCheckpointSaver) {
	let drafts = 0;
	const State = Annotation.Root({ draft: Annotation<string>, final: Annotation<string> });
	const graph = new StateGraph(State)
		.addNode("write", () => ({ draft: `draft ${++drafts}` }))
		.addNode("finish", ({ draft }) => ({ final: `final of ${draft}` }))
		.addEdge(START, "write")
		.addEdge("write", "finish")
		.compile({ checkpointer });
	const first = await graph.invoke({}, thread);
	const [before] = await findState(graph, ({ next }) => next[0] === "write");
	const second = await graph.invoke(null, before!.config);
	const [stored] = await findState(graph, ({ next }) => next[0] === "finish");
	return { first, second, stored: stored?.values, head: (await graph.getState(thread)).values };
}

/** Changes the state as it was after the first of two steps, and goes on from there. */
async function updateThePast(checkpointer: BaseCheckpointSaver) {
	const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
	const graph = new StateGraph(State)
		.addNode("one", () => ({ log: ["one"] }))
		.addNode("two", () => ({ log: ["two"] }))
		.addNode("three", () => ({ log: ["three"] }))
		.addEdge(START, "one")
		.addEdge("one", "two")
		.addEdge("two", "three")
		.addEdge("three", END)
		.compile({ checkpointer });
	await graph.invoke({ log: ["asked"] }, thread);
	const [afterOne] = await findState(graph, ({ next }) => next[0] === "two");
	const fork = await graph.updateState(afterOne!.config, { log: ["changed"] }, "one");
	const { next } = await graph.getState(fork);
	await graph.invoke(null, fork);
	return { next, log: (await graph.getState(thread)).values.log };
}

/** Whoever comes first waits for the second. */
function meetingOfTwo(): () => Promise<void> {
	let waiting = 0;
	let go = () => {};
	const isComplete = new Promise<void>((resolve) => {
		go = resolve;
	});
	return () => {
		if (++waiting === 2) go();
		return isComplete;
	};
}

/** Runs one thread twice at the same time. Returns what the runs gave, and what is stored of them. */
async function runTwice(checkpointer: BaseCheckpointSaver) {
	const bothHaveBegun = meetingOfTwo();
	const bothAreHere = meetingOfTwo();
	const getTuple = checkpointer.getTuple.bind(checkpointer);
	// Or the second one might go on where the first one has come to.
	checkpointer.getTuple = async (config) => {
		const found = await getTuple(config);
		await bothHaveBegun();
		return found;
	};
	const State = Annotation.Root({
		question: Annotation<string>,
		messages: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
	});
	const graph = new StateGraph(State)
		.addNode("answer", async ({ question }) => {
			await bothAreHere();
			return { messages: [`answer to ${question}`] };
		})
		.addEdge(START, "answer")
		.compile({ checkpointer });
	const ask = (question: string) => graph.invoke({ question, messages: [question] }, { ...thread, durability: "sync" });
	const results = await Promise.all([ask("a"), ask("b")]);
	const ends = await findState(graph, ({ next }) => next.length === 0);
	const sorted = (states: { messages: string[] }[]) => states.map(({ messages }) => messages.join()).sort();
	return { given: sorted(results), stored: sorted(ends.map(({ values }) => values)) };
}

async function openOfficial(): Promise<OfficialSaver> {
	const { pool, schema } = await newSchema();
	const saver = new OfficialSaver(pool, undefined, { schema });
	await saver.setup();
	return saver;
}

async function openOurs(): Promise<PostgresSaver> {
	const { pool, schema } = await newSchema();
	return new PostgresSaver(pool, { schema });
}

describe("Forks in PostgreSQL", () => {
	it("are read as they were: a regenerated answer", async () => {
		const { second, stored, head } = await regenerate(await openOurs());
		expect(second).toEqual({ draft: "draft 2", final: "final of draft 2" });
		expect(stored).toEqual({ draft: "draft 2" });
		expect(head).toEqual(second);
	});

	it("are mixed up by the official saver: the new branch reads the old answer", async () => {
		const { second, stored, head } = await regenerate(await openOfficial());
		expect(second).toEqual({ draft: "draft 2", final: "final of draft 2" });
		expect(stored).toEqual({ draft: "draft 1" });
		expect(head).not.toEqual(second);
	});

	it("go on where they began: a changed past", async () => {
		const { next, log } = await updateThePast(await openOurs());
		expect(next).toEqual(["two"]);
		expect(log).toEqual(["asked", "one", "changed", "two", "three"]);
	});

	it("end where they begin with the official saver: a changed past has no next step", async () => {
		const { next, log } = await updateThePast(await openOfficial());
		expect(next).toEqual([]);
		expect(log).not.toEqual(["asked", "one", "changed", "two", "three"]);
	});

	it("are each what their run made of them: two runs at once", async () => {
		const { given, stored } = await runTwice(await openOurs());
		expect(given).toEqual(["a,answer to a", "b,answer to b"]);
		expect(stored).toEqual(given);
	});

	it("are mixed up by the official saver: two runs at once", async () => {
		const { given, stored } = await runTwice(await openOfficial());
		expect(given).toEqual(["a,answer to a", "b,answer to b"]);
		expect(stored).toHaveLength(2);
		expect(stored).not.toEqual(given);
	});
});
