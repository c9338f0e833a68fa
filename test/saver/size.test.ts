import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "../../src/sqlite.ts";

const config = { configurable: { thread_id: "chat" }, recursionLimit: 10_000 };

/** Goes on with a conversation, a message at each step, until it has that many; answers the bytes of the closed database. */
async function chatUpTo(messages: number, path: string): Promise<number> {
	const checkpointer = new SqliteSaver(path);
	const graph = new StateGraph(MessagesAnnotation)
		.addNode("speak", ({ messages }) => ({ messages: [new AIMessage(sentence(messages.length))] }))
		.addEdge("__start__", "speak")
		.addConditionalEdges("speak", (state) => (state.messages.length < messages ? "speak" : "__end__"))
		.compile({ checkpointer });
	await graph.invoke({ messages: [new HumanMessage("Tell me a story.")] }, config);
	expect((await graph.getState(config)).values.messages).toHaveLength(messages);
	await checkpointer.close();
	return (await stat(path)).size;
}

/** About as long as a message usually is, and no two alike. */
function sentence(seed: number): string {
	const words = [
		"delta",
		"graph",
		"node",
		"state",
		"thread",
		"branch",
		"merge",
		"step",
		"agent",
		"tool",
		"plan",
		"write",
	];
	let text = "";
	for (let i = seed; text.length < 230; i = (i * 31 + 17) % 9973) text += `${words[i % words.length]} ${i} `;
	return text;
}

describe("the size of a thread with an ordinary messages reducer", () => {
	it("stays below 2.5 MB on disk at 1,000 messages and grows in proportion", async () => {
		const folder = await mkdtemp(join(tmpdir(), "size-"));
		try {
			const path = join(folder, "chat.db");
			const half = await chatUpTo(500, path);
			const thousand = await chatUpTo(1000, path);
			expect(thousand).toBeLessThan(2_500_000);
			expect(thousand / half).toBeLessThan(2.3);
		} finally {
			await rm(folder, { recursive: true });
		}
	});
});
