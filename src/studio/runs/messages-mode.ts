import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { RunEvent, TracedEvent } from "./stream-modes.ts";

/** Makes the mode `messages`: each message of a chat model as it grows, and every message of the state once. */
export class MessageAssembler {
	readonly #growing = new Map<string, AIMessageChunk>();
	readonly #completed = new Set<string>();

	/** The messages that a state has and no state before had. */
	*completed({ event, data }: RunEvent): Generator<RunEvent> {
		if (event !== "values") return;
		const { messages } = (data ?? {}) as { messages?: BaseMessage | BaseMessage[] };
		const list = Array.isArray(messages) ? messages : messages === undefined ? [] : [messages];
		const fresh = list.filter(({ id }) => id !== undefined && !this.#completed.has(id));
		for (const { id } of fresh) this.#completed.add(id as string);
		if (fresh.length > 0) yield { event: "messages/complete", data: fresh };
	}

	/** All that a chat model has said of a message so far. */
	*streamed({ event, tags, metadata, data }: TracedEvent): Generator<RunEvent> {
		if (event !== "on_chat_model_stream" || tags?.includes("nostream")) return;
		const chunk = data.chunk as AIMessageChunk;
		if (!chunk.id) return;
		const before = this.#growing.get(chunk.id);
		if (before === undefined) yield { event: "messages/metadata", data: { [chunk.id]: { metadata } } };
		const whole = before?.concat(chunk) ?? chunk;
		this.#growing.set(chunk.id, whole);
		yield { event: "messages/partial", data: [whole] };
	}
}
