import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { Random } from "../random.ts";
import { timeTurns } from "../reference-saver.ts";
import { writeText } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { check, EQUAL_TURN, type Saver, type Workload } from "../workload.ts";

const thread = { configurable: { thread_id: "agent" } };
/** Question, tool call, tool answer, answer. */
const MESSAGES_PER_TURN = 4;

/** Asks for a search first, and answers when it has one. */
function think(messages: readonly BaseMessage[], random: Random): AIMessage {
	const id = random.uuid();
	if (messages.at(-1)?.type === "tool") return new AIMessage({ id, content: writeText(random, 500) });
	const call = { id: `call_${random.hex(24)}`, name: "search", args: { query: writeText(random, 60) } };
	return new AIMessage({ id, content: "", tool_calls: [call] });
}

function compileAgent(checkpointer: Saver) {
	const random = new Random(31);
	const search = tool(() => writeText(random, 900), {
		name: "search",
		description: "Finds pages",
		schema: z.object({ query: z.string() }),
	});
	return new StateGraph(MessagesAnnotation)
		.addNode("model", ({ messages }) => ({ messages: [think(messages, random)] }))
		.addNode("tools", new ToolNode([search]))
		.addEdge(START, "model")
		.addConditionalEdges("model", toolsCondition)
		.addEdge("tools", "model")
		.compile({ checkpointer });
}

/** Makes what takes a turn. */
export function startAgent(saver: Saver): () => Promise<unknown> {
	const graph = compileAgent(saver);
	const random = new Random(32);
	return () => {
		const question = new HumanMessage({ id: random.uuid(), content: writeText(random, 120) });
		return graph.invoke({ messages: [question] }, thread);
	};
}

export async function checkAgent(saver: Saver, turns: number): Promise<void> {
	const messages = (await saver.getTuple(thread))?.checkpoint.channel_values.messages as BaseMessage[];
	check(messages.length === turns * MESSAGES_PER_TURN, `${messages.length} messages after ${turns} turns`);
}

/** A long conversation with an agent that uses a tool, run by LangGraph. */
export const agent: Workload = {
	name: "agent",
	title: "agent loop",
	rounds: { sqlite: 2, postgres: 2 },
	warmUpMs: 1500,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		saver: { title: "time per turn spent in the saver", target: { sqlite: 3.3, memory: 4 } },
		turn: { title: "whole turn", target: EQUAL_TURN },
		bytes: { title: "bytes" },
	},
	async run(stage) {
		const turns = stage.quick ? 5 : 80;
		return measureOn(
			stage,
			(saver) => timeTurns(saver, turns, startAgent),
			async (saver) => {
				await checkAgent(saver, turns);
				return {};
			},
		);
	},
};
