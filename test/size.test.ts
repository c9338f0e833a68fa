import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "../src/sqlite.ts";

/** Bytes of a closed database after a conversation with an ordinary messages reducer. */
async function fileSize(messages: number): Promise<number> {
	const folder = await mkdtemp(join(tmpdir(), "size-"));
	try {
		const path = join(folder, "chat.db");
		const checkpointer = new SqliteSaver(path);
		const graph = new StateGraph(MessagesAnnotation)
			.addNode("answer", ({ messages }) => ({ messages: [new AIMessage(sentence(messages.length))] }))
			.addEdge("__start__", "answer")
			.compile({ checkpointer });
		const config = { configurable: { thread_id: "chat" } };
		for (let i = 0; i < messages; i += 2) await graph.invoke({ messages: [new HumanMessage(sentence(i))] }, config);
		const state = await graph.getState(config);
		expect(state.values.messages).toHaveLength(messages);
		await checkpointer.close();
		return (await stat(path)).size;
	} finally {
		await rm(folder, { recursive: true });
	}
}

/** About as long as a message usually is, and no two alike. */
function sentence(seed: number): string {
	const words = ["delta", "graph", "node", "state", "thread", "branch", "merge", "step", "agent", "tool", "plan", "write"];
	let text = "";
	for (let i = seed; text.length < 230; i = (i * 31 + 17) % 9973) text += `${words[i % words.length]} ${i} `;
	return text;
}

describe("the size of a thread on disk", () => {
	it("stays below 2.5 MB at 1,000 messages and grows in proportion", { timeout: 120_000 }, async () => {
		const thousand = await fileSize(1000);
		expect(thousand).toBeLessThan(2_500_000);
		expect((await fileSize(2000)) / thousand).toBeLessThan(2.3);
	});
});
