import { type CheckpointListOptions, type CheckpointTuple, SCHEDULED, uuid6 } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../saver/delta-saver.ts";
import type { Json } from "../http/fields.ts";
import { readPages } from "./read-pages.ts";

/**
 * What the server knows of threads and runs is kept with the thread itself, in namespaces of its own. So it is there
 * after a restart and for every other server on the same database, it is encrypted if the thread is, and it is copied,
 * pruned and deleted along with it. LangGraph never looks there: the path of a subgraph does not start with a bar.
 *
 * A record stands in the metadata of a checkpoint without values. A thread's record is written anew when it changes,
 * and the newest counts. A run's is written when it is made, with the run's id as that of the checkpoint, and how the
 * run ended is a write on it.
 */
const THREAD_NS = "|studio";
const RUNS_NS = "|studio|runs";

/** A thread that is none: what is kept of assistants. */
export const ASSISTANTS_THREAD = "|studio|assistants";

/** What clients said of a thread. */
export interface ThreadRecord {
	readonly metadata: Json;
	/** The config of its runs so far, which later ones start from. */
	readonly config: Json;
}

/** A run, as it was asked for. */
export interface RunRecord {
	readonly run_id: string;
	readonly assistant_id: string;
	readonly metadata: Json;
	readonly kwargs: Json;
	readonly multitask_strategy: string;
	/** As in an ISO date. */
	readonly created_at: string;
}

export type FinalStatus = "success" | "error" | "timeout" | "interrupted";

/** How a run ended. */
export interface RunEnd {
	readonly status: FinalStatus;
	readonly updated_at: string;
	readonly error?: { readonly error: string; readonly message: string } | undefined;
	/** What the client that stopped it said of it. */
	readonly cancel_reason?: string | undefined;
	/** The thread's newest checkpoint at that time. */
	readonly head?: string | undefined;
}

export interface StoredRun {
	readonly record: RunRecord;
	/** Undefined while it runs; and for good, if the server died. */
	readonly end: RunEnd | undefined;
}

/** Whether a namespace is the server's own. */
export function isReserved(ns: string): boolean {
	return ns.startsWith("|");
}

export async function readThreadRecord(saver: DeltaSaver, threadId: string): Promise<ThreadRecord> {
	const tuple = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: THREAD_NS } });
	return (tuple && recordIn<ThreadRecord>(tuple)) ?? { metadata: {}, config: {} };
}

export async function writeThreadRecord(saver: DeltaSaver, threadId: string, record: ThreadRecord): Promise<void> {
	await writeRecord(saver, { thread_id: threadId, checkpoint_ns: THREAD_NS }, uuid6(0), record);
}

/** A run that is deleted by its id takes its record along. */
export async function writeRunRecord(saver: DeltaSaver, threadId: string, record: RunRecord): Promise<void> {
	const { run_id } = record;
	await writeRecord(saver, { thread_id: threadId, checkpoint_ns: RUNS_NS, run_id }, run_id, record);
}

export async function writeRunEnd(saver: DeltaSaver, threadId: string, runId: string, end: RunEnd): Promise<void> {
	const configurable = { thread_id: threadId, checkpoint_ns: RUNS_NS, checkpoint_id: runId, run_id: runId };
	// Writes to this channel replace each other.
	await saver.putWrites({ configurable }, [[SCHEDULED, end]], runId);
}

export async function readRun(saver: DeltaSaver, threadId: string, runId: string): Promise<StoredRun | undefined> {
	const configurable = { thread_id: threadId, checkpoint_ns: RUNS_NS, checkpoint_id: runId };
	const tuple = await saver.getTuple({ configurable });
	return tuple && runIn(tuple);
}

/** The runs of a thread, the newest first. */
export async function* listRuns(saver: DeltaSaver, threadId: string, limit?: number): AsyncGenerator<StoredRun> {
	const configurable = { thread_id: threadId, checkpoint_ns: RUNS_NS };
	const list = (page: CheckpointListOptions) => saver.list({ configurable }, page);
	for await (const tuple of readPages(list, limit === undefined ? {} : { limit })) {
		const run = runIn(tuple);
		if (run !== undefined) yield run;
	}
}

function runIn(tuple: CheckpointTuple): StoredRun | undefined {
	const record = recordIn<RunRecord>(tuple);
	const end = tuple.pendingWrites?.find(([, channel]) => channel === SCHEDULED)?.[2];
	return record && { record, end: end as RunEnd | undefined };
}

export function recordIn<T>(tuple: CheckpointTuple): T | undefined {
	return (tuple.metadata as { studio?: T } | undefined)?.studio;
}

export async function writeRecord(saver: DeltaSaver, configurable: Json, id: string, studio: object): Promise<void> {
	const checkpoint = {
		v: 4,
		id,
		ts: new Date().toISOString(),
		channel_values: {},
		channel_versions: {},
		versions_seen: {},
	};
	// A record follows no other: to a saver that guards against branches, it is one that is meant.
	const metadata = { source: "fork" as const, step: -1, parents: {}, studio };
	await saver.put({ configurable }, checkpoint, metadata, {});
}
