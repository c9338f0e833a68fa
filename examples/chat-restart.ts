/**
 * A chat that survives a restart.
 *
 * Each message below is handled by a process of its own, which opens the database, answers and ends. What the chat
 * remembers is in the database and nowhere else.
 *
 *     npx tsx examples/chat-restart.ts
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";

/** Stands in for a model: knows only what the messages say. */
function answer({ messages }: typeof MessagesAnnotation.State) {
	const said = messages.filter((message) => message.type === "human").map((message) => message.text);
	if (!said.at(-1)?.endsWith("?")) return { messages: [new AIMessage("Noted.")] };
	const name = said.map((text) => /my name is (\w+)/i.exec(text)?.[1]).find((match) => match);
	return { messages: [new AIMessage(name ? `You are ${name}.` : "I don't know you.")] };
}

async function chat(database: string, text: string) {
	const checkpointer = new SqliteSaver(database);
	const graph = new StateGraph(MessagesAnnotation)
		.addNode("answer", answer)
		.addEdge(START, "answer")
		.addEdge("answer", END)
		.compile({ checkpointer });

	const config = { configurable: { thread_id: "ada" } };
	const { messages } = await graph.invoke({ messages: [new HumanMessage(text)] }, config);
	console.log(`[process ${process.pid}, ${messages.length} messages] ${text} -> ${messages.at(-1)?.text}`);
	await checkpointer.close();
}

const [database, text] = process.argv.slice(2);
if (database && text) {
	await chat(database, text);
} else {
	const folder = mkdtempSync(join(tmpdir(), "chat-restart-"));
	for (const message of ["Who am I?", "Hello, my name is Ada.", "Who am I?"]) {
		const self = [...process.execArgv, fileURLToPath(import.meta.url)];
		execFileSync(process.execPath, [...self, join(folder, "chat.db"), message], { stdio: "inherit" });
	}
	rmSync(folder, { recursive: true });
}
