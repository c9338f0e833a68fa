import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { MemoryStorage } from "../storage/memory/storage.ts";
import { DeltaSaver, type SaverOptions } from "./delta-saver.ts";

/**
 * Keeps checkpoints in memory, each step's changes only.
 *
 * @example
 * ```ts
 * const graph = builder.compile({ checkpointer: new MemorySaver() });
 * ```
 */
export class MemorySaver extends DeltaSaver {
	/** @param options a serializer, as LangGraph's own MemorySaver takes it, or options */
	constructor(options?: SerializerProtocol | SaverOptions) {
		super(new MemoryStorage(), isSerializer(options) ? { serde: options } : options);
	}
}

function isSerializer(value: SerializerProtocol | SaverOptions | undefined): value is SerializerProtocol {
	return value !== undefined && "dumpsTyped" in value;
}
