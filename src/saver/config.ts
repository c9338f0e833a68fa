import type { RunnableConfig } from "@langchain/core/runnables";
import { CheckpointError, quote } from "../errors.ts";
import type { CheckpointKey } from "../storage/storage.ts";

/** The thread, namespace and checkpoint that a config names. Absent and undefined are the same. */
export interface Address {
	readonly threadId: string | undefined;
	readonly ns: string | undefined;
	readonly id: string | undefined;
}

/** Reads arguments of a call. An object that throws when it is looked into, as a revoked proxy does, is refused. */
export function readArguments<T>(call: string, read: () => T): T {
	try {
		return read();
	} catch (cause) {
		if (cause instanceof CheckpointError) throw cause;
		const reason = cause instanceof Error ? cause.message : "something in it threw a value that is no error";
		throw new CheckpointError("INVALID_CONFIG", `The arguments of ${call} can't be read: ${reason}.`, { cause });
	}
}

export function readAddress(config: RunnableConfig | undefined): Address {
	const configurable: Record<string, unknown> = config?.configurable ?? {};
	return {
		threadId: readThreadId(configurable.thread_id),
		ns: readText("checkpoint_ns", configurable.checkpoint_ns),
		// `thread_ts` is the old name.
		id: readCheckpointId(configurable.checkpoint_id || configurable.thread_ts),
	};
}

/** An empty id is how LangGraph's own helpers say that there is none. */
export function readCheckpointId(value: unknown): string | undefined {
	return readText("checkpoint_id", value) || undefined;
}

/** An address for a write, which needs to know its thread. */
export function readWritableAddress(config: RunnableConfig | undefined, call: string): Address & { threadId: string } {
	const address = readAddress(config);
	if (address.threadId === undefined)
		throw new CheckpointError(
			"INVALID_CONFIG",
			`${call} needs \`configurable.thread_id\`: pass { configurable: { thread_id: "..." } }.`,
		);
	return address as Address & { threadId: string };
}

/** A thread id as it is stored: numbers are taken for the text they print as. */
function readThreadId(value: unknown): string | undefined {
	if (value === undefined) return undefined;
	if (typeof value === "number" || typeof value === "bigint") return String(value);
	return readText("thread_id", value);
}

/** A thread id given by itself. */
export function mustReadThreadId(value: unknown, call: string): string {
	const threadId = readThreadId(value);
	if (threadId === undefined) throw new CheckpointError("INVALID_CONFIG", `${call} needs a thread id, got undefined.`);
	return threadId;
}

function readText(name: string, value: unknown): string | undefined {
	if (value === undefined) return undefined;
	if (typeof value !== "string")
		throw new CheckpointError("INVALID_CONFIG", `\`${name}\` must be a string, got ${quote(value)}.`);
	// Two ids that differ only in broken characters would become one id in a database.
	if (!value.isWellFormed())
		throw new CheckpointError("INVALID_CONFIG", `\`${name}\` has half of a surrogate pair: ${quote(value)}.`);
	return value;
}

/**
 * The run a config belongs to. It is kept beside the metadata, never in it: LangGraph takes an input for a resume when
 * it finds its own run id in the stored metadata.
 */
export function readRunId(config: RunnableConfig, metadata?: { run_id?: unknown }): string | undefined {
	const runId = metadata?.run_id ?? config.metadata?.run_id ?? config.configurable?.run_id;
	return runId === undefined || runId === null ? undefined : String(runId);
}

/** The config that names one checkpoint, and nothing else. */
export function writeConfig({ threadId, ns, id }: CheckpointKey): RunnableConfig {
	return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
}
