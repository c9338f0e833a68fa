import { existsSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesDeltaValue, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { copyByHand } from "../direct-thread.ts";
import { timeEach, timeReads } from "../measure.ts";
import { Random } from "../random.ts";
import { writeText } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { check, EQUAL_TURN, type Saver, type Stage, type Workload } from "../workload.ts";

const thread = { configurable: { thread_id: "delta" } };
const TIMED_TURNS = 8;
const HISTORY = 20;
/** An official saver takes seconds, and once would tell too little. */
const HISTORY_BUDGET_MS = 6000;
/** Where ours is many times faster than the target asks, once or twice is enough. */
const SHORT_HISTORY_BUDGET_MS = 2000;

const CHARACTERS = 385;
/** Every so many turns the answer comes in a second step, so that the thread does not end just after a snapshot. */
const LONG_TURN = 4;

function compileChat(checkpointer: Saver, seed: number) {
	const random = new Random(seed);
	const fields = () => ({ id: random.uuid(), content: writeText(random, CHARACTERS) });
	let turn = 0;
	const graph = new StateGraph(new StateSchema({ messages: MessagesDeltaValue }))
		.addNode("model", () => ({ messages: [new AIMessage(fields())] }))
		.addNode("more", () => ({ messages: [new AIMessage(fields())] }))
		.addEdge(START, "model")
		.addConditionalEdges("model", () => (turn % LONG_TURN === 0 ? "more" : END))
		.addEdge("more", END)
		.compile({ checkpointer });
	const takeTurn = () => {
		turn++;
		return graph.invoke({ messages: [new HumanMessage(fields())] }, thread);
	};
	return { graph, takeTurn };
}

/** How many messages so many turns make. */
function countMessages(turns: number): number {
	return 2 * turns + Math.floor(turns / LONG_TURN);
}

async function takeTurns(saver: Saver, turns: number): Promise<void> {
	const { takeTurn } = compileChat(saver, 41);
	for (let turn = 0; turn < turns; turn++) await takeTurn();
}

/**
 * All savers get the thread copied from a file that the first process makes: to make it on the official ones, turn by
 * turn, takes a time that grows with the square of its length.
 */
async function copyTurns({ shared }: Stage, turns: number, target: Saver): Promise<void> {
	const path = join(shared as string, `delta-${turns}.db`);
	const isThere = existsSync(path);
	const source = new SqliteSaver(path);
	if (!isThere) await takeTurns(source as Saver, turns);
	await copyByHand(source as Saver, "delta", target, "delta");
	await source.close();
}

function delta(turns: number, quickTurns: number, rounds: number, isTargeted = false): Workload {
	return {
		name: `delta-${turns}`,
		title: `DeltaChannel, ${turns.toLocaleString("en")} turns`,
		rounds,
		backends: ["sqlite", "memory", "postgres"],
		measures: {
			turn: { title: "turn", target: EQUAL_TURN },
			get: { title: "getState", target: isTargeted ? { sqlite: 25, memory: 18 } : {} },
			history: {
				title: "getStateHistory of 20",
				target: isTargeted ? { sqlite: 20, memory: 15, postgres: 20 } : { postgres: 20 },
			},
			bytes: { title: "bytes" },
		},
		async run(stage) {
			const count = stage.quick ? quickTurns : turns;
			return measureOn(
				stage,
				async (saver) => {
					await copyTurns(stage, count, saver);
					return {};
				},
				async (saver) => {
					const { graph, takeTurn } = compileChat(saver, 42);
					// A server that goes on with a conversation has had it before.
					await takeTurn();
					const turn = await timeEach(Array.from({ length: TIMED_TURNS }), takeTurn, TIMED_TURNS);
					const { messages } = (await graph.getState(thread)).values as { messages: BaseMessage[] };
					const expected = countMessages(count) + countMessages(1 + TIMED_TURNS);
					check(messages.length === expected, `${messages.length} messages instead of ${expected}`);
					const get = await timeReads(() => graph.getState(thread));
					const history = await timeReads(
						async () => {
							let found = 0;
							for await (const _ of graph.getStateHistory(thread, { limit: HISTORY })) found++;
							check(found === HISTORY, `${found} states instead of ${HISTORY}`);
						},
						isTargeted ? HISTORY_BUDGET_MS : SHORT_HISTORY_BUDGET_MS,
					);
					return { turn, get, history };
				},
			);
		},
	};
}

export const deltas = [delta(300, 10, 1, true), delta(1000, 10, 1)];
