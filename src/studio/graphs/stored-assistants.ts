import { type CheckpointTuple, uuid6 } from "@langchain/langgraph-checkpoint";
import { Turns } from "../../engine/turns.ts";
import type { DeltaSaver } from "../../saver/delta-saver.ts";
import type { Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { ASSISTANTS_THREAD, recordIn, writeRecord } from "../threads/records.ts";
import type { Graphs } from "./graphs.ts";

/** How many versions there may be of all assistants: a search reads them all. */
const MOST_VERSIONS = 10_000;

/** A graph with a config of its own, in one of its versions. */
export interface Assistant {
	readonly assistant_id: string;
	readonly version: number;
	readonly graph_id: string;
	readonly config: Json;
	readonly context: Json;
	readonly metadata: Json;
	readonly name: string;
	readonly description: string | null;
	readonly created_at: string;
	readonly updated_at: string;
}

/**
 * The assistants that clients made. Each version is a record in the thread that is theirs, in a namespace for each
 * assistant; the newest record is what the assistant is now. They are stored as runs are, with the assistant's id for that of
 * the run, since what a run stored can be deleted alone.
 */
export class StoredAssistants {
	readonly #graphs: Graphs;
	/** A version follows from those that are there. */
	readonly #turns = new Turns();

	constructor(graphs: Graphs) {
		this.#graphs = graphs;
	}

	async find(assistantId: string): Promise<Assistant | undefined> {
		const configurable = { thread_id: ASSISTANTS_THREAD, checkpoint_ns: nsOf(assistantId) };
		for (const saver of await this.#graphs.savers()) {
			const tuple = await saver.getTuple({ configurable });
			const assistant = tuple && recordIn<Assistant>(tuple);
			if (assistant !== undefined) return assistant;
		}
		return undefined;
	}

	async all(): Promise<Assistant[]> {
		const newest = new Map<string, CheckpointTuple>();
		for (const saver of await this.#graphs.savers())
			for await (const tuple of saver.list({ configurable: { thread_id: ASSISTANTS_THREAD } })) {
				const ns = tuple.config.configurable?.checkpoint_ns as string;
				if (tuple.checkpoint.id > (newest.get(ns)?.checkpoint.id ?? "")) newest.set(ns, tuple);
			}
		return [...newest.values()].map((tuple) => recordIn<Assistant>(tuple)).filter((one) => one !== undefined);
	}

	/** All versions, the last one first. */
	async versions(assistantId: string): Promise<Assistant[]> {
		const versions = new Map<number, Assistant>();
		const configurable = { thread_id: ASSISTANTS_THREAD, checkpoint_ns: nsOf(assistantId) };
		for (const saver of await this.#graphs.savers())
			for await (const tuple of saver.list({ configurable })) {
				const version = recordIn<Assistant>(tuple);
				if (version !== undefined) versions.set(version.version, version);
			}
		return [...versions.values()].sort((a, b) => b.version - a.version);
	}

	/** Changes what an assistant is. No other change to it comes between. */
	change<T>(assistantId: string, work: () => Promise<T>): Promise<T> {
		return this.#turns.take(assistantId, work);
	}

	async write(assistant: Assistant): Promise<Assistant> {
		const saver = await this.#graphs.saverOf(assistant.graph_id);
		if (((await saver.getThread(ASSISTANTS_THREAD))?.checkpoints ?? 0) >= MOST_VERSIONS)
			throw new HttpError(422, `There may be ${MOST_VERSIONS} versions of assistants in all: delete some.`);
		const id = assistant.assistant_id;
		const configurable = { thread_id: ASSISTANTS_THREAD, checkpoint_ns: nsOf(id), run_id: id };
		for (const other of await this.#graphs.savers()) if (other !== saver) await remove(other, id);
		await writeRecord(saver, configurable, uuid6(0), assistant);
		return assistant;
	}

	async delete(assistantId: string): Promise<void> {
		for (const saver of await this.#graphs.savers()) await remove(saver, assistantId);
	}
}

function nsOf(assistantId: string): string {
	return `|studio|${assistantId}`;
}

async function remove(saver: DeltaSaver, assistantId: string): Promise<void> {
	await saver.deleteForRuns([assistantId], { threadIds: [ASSISTANTS_THREAD] });
}
