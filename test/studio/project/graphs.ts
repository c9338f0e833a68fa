/**
 * The graphs that the tests serve: to our own server, and to the official one beside it.
 *
 * They need no API key, no clock and no chance: what they answer follows from what they are asked.
 */
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import {
	Annotation,
	END,
	interrupt,
	type LangGraphRunnableConfig,
	MessagesAnnotation,
	START,
	StateGraph,
} from "@langchain/langgraph";
import { z } from "zod";

/** Says word by word how many messages it saw and what the last one was. */
class EchoModel extends SimpleChatModel {
	_llmType(): string {
		return "echo";
	}

	async _call(messages: BaseMessage[]): Promise<string> {
		return `${messages.length}: ${messages.at(-1)?.text}`;
	}

	override async *_streamResponseChunks(
		messages: BaseMessage[],
		_options: this["ParsedCallOptions"],
		runManager?: CallbackManagerForLLMRun,
	): AsyncGenerator<ChatGenerationChunk> {
		for (const word of (await this._call(messages)).split(/(?<= )/)) {
			const chunk = new ChatGenerationChunk({ message: new AIMessageChunk({ content: word }), text: word });
			yield chunk;
			await runManager?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, { chunk });
		}
	}
}

/** A chat. */
export const chat = new StateGraph(MessagesAnnotation)
	.addNode("model", async ({ messages }, config) => ({ messages: [await new EchoModel({}).invoke(messages, config)] }))
	.addEdge(START, "model")
	.addEdge("model", END)
	.compile();

const log = () => Annotation<string[]>({ reducer: (lines, more) => lines.concat(more), default: () => [] });

/** Asks a person before it publishes. Has a schema that can be read at run time. */
export const review = new StateGraph(
	z.object({ topic: z.string(), draft: z.string().optional(), verdict: z.string().optional() }),
)
	.addNode("write", ({ topic }) => ({ draft: `On ${topic}.` }))
	.addNode("review", ({ draft }) => ({ verdict: interrupt<object, string>({ question: `Publish "${draft}"?` }) }))
	.addNode("publish", ({ draft, verdict }) => ({ draft: `${draft} (${verdict})` }))
	.addEdge(START, "write")
	.addEdge("write", "review")
	.addEdge("review", "publish")
	.addEdge("publish", END)
	.compile();

const Nested = Annotation.Root({ log: log(), ask: Annotation<boolean>() });

const child = new StateGraph(Nested)
	.addNode("greet", (_, config: LangGraphRunnableConfig) => {
		config.writer?.({ said: "hello" });
		return { log: ["child greets"] };
	})
	.addNode("listen", ({ ask }) => ({ log: [ask ? `child heard ${interrupt("Well?")}` : "child did not ask"] }))
	.addEdge(START, "greet")
	.addEdge("greet", "listen")
	.addEdge("listen", END)
	.compile();

/** A graph in a graph. */
export const nested = new StateGraph(Nested)
	.addNode("before", () => ({ log: ["before"] }))
	.addNode("child", child)
	.addNode("after", () => ({ log: ["after"] }))
	.addEdge(START, "before")
	.addEdge("before", "child")
	.addEdge("child", "after")
	.addEdge("after", END)
	.compile();

/** Works in three steps. The second waits until a file is there, if it is named, and fails if it is told to. */
export const work = new StateGraph(
	Annotation.Root({ log: log(), name: Annotation<string>(), until: Annotation<string>(), fail: Annotation<string>() }),
)
	.addNode("first", ({ name }) => ({ log: [`${name} started`] }))
	.addNode("second", async ({ name, until, fail }, { signal }: LangGraphRunnableConfig) => {
		while (until && !existsSync(until)) await setTimeout(5, undefined, { signal });
		if (fail) throw new RangeError(fail);
		return { log: [`${name} worked`] };
	})
	.addNode("third", ({ name }) => ({ log: [`${name} done`] }))
	.addEdge(START, "first")
	.addEdge("first", "second")
	.addEdge("second", "third")
	.addEdge("third", END)
	.compile();
