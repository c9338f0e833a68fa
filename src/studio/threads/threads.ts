import type { ThreadInfo } from "../../engine/maintenance/types.ts";
import { Turns } from "../../engine/turns.ts";
import type { DeltaSaver } from "../../saver/delta-saver.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { ASSISTANTS_THREAD, readThreadRecord, type ThreadRecord, writeThreadRecord } from "./records.ts";

/** A thread that is there. */
export interface FoundThread {
	readonly threadId: string;
	readonly saver: DeltaSaver;
	readonly info: ThreadInfo;
}

/** The threads of all savers. What there is to know of them is in the savers, never here. */
export class Threads {
	readonly #graphs: Graphs;
	/** A record is read, changed and written: two changes at once would lose one. */
	readonly #turns = new Turns();

	constructor(graphs: Graphs) {
		this.#graphs = graphs;
	}

	async find(threadId: string): Promise<FoundThread | undefined> {
		if (threadId === ASSISTANTS_THREAD) return undefined;
		for (const saver of await this.#graphs.savers()) {
			const info = await saver.getThread(threadId);
			if (info !== undefined) return { threadId, saver, info };
		}
		return undefined;
	}

	async mustFind(threadId: string): Promise<FoundThread> {
		const thread = await this.find(threadId);
		if (thread === undefined) throw new HttpError(404, `Thread with ID ${threadId} not found`);
		return thread;
	}

	/** Every thread, without reading any state, the most recently updated of each saver first. */
	async *all(): AsyncGenerator<FoundThread> {
		for (const saver of await this.#graphs.savers()) {
			let after: string | undefined;
			do {
				const page = await saver.listThreads({ limit: 200, ...(after !== undefined && { after }) });
				for (const info of page.threads)
					if (info.threadId !== ASSISTANTS_THREAD) yield { threadId: info.threadId, saver, info };
				after = page.next;
			} while (after !== undefined);
		}
	}

	/** Makes a thread that holds nothing but its record. */
	async create(threadId: string, metadata: Json): Promise<FoundThread> {
		if (threadId === ASSISTANTS_THREAD) throw new HttpError(409, "This thread id is the server's own.");
		const graphId = metadata.graph_id;
		const isServed = typeof graphId === "string" && this.#graphs.ids.includes(graphId);
		const saver = await this.#graphs.saverOf(isServed ? graphId : (this.#graphs.ids[0] as string));
		await writeThreadRecord(saver, threadId, { metadata, config: {} });
		return this.mustFind(threadId);
	}

	/** Changes the record of a thread. One that stays as it is is not written. */
	async update(thread: FoundThread, change: (record: ThreadRecord) => ThreadRecord): Promise<ThreadRecord> {
		const { saver, threadId } = thread;
		return this.#turns.take(threadId, async () => {
			const before = await readThreadRecord(saver, threadId);
			const after = change(before);
			if (JSON.stringify(after) !== JSON.stringify(before)) await writeThreadRecord(saver, threadId, after);
			return after;
		});
	}

	/** Brings a thread to where a graph keeps its own. One that has run elsewhere can't go there. */
	async settle(thread: FoundThread, graphId: string): Promise<FoundThread> {
		const saver = await this.#graphs.saverOf(graphId);
		if (saver === thread.saver) return thread;
		if (thread.info.head !== undefined)
			throw new HttpError(409, `Thread ${thread.threadId} belongs to another graph, whose state is kept elsewhere.`);
		await writeThreadRecord(saver, thread.threadId, await readThreadRecord(thread.saver, thread.threadId));
		await thread.saver.deleteThread(thread.threadId);
		return this.mustFind(thread.threadId);
	}

	/** The graph that a thread is of: the one that ran on it, or that fits what is stored. */
	async graphOf(thread: FoundThread, record: ThreadRecord): Promise<string> {
		const { graph_id } = record.metadata;
		if (typeof graph_id === "string" && this.#graphs.ids.includes(graph_id)) return graph_id;
		return this.#guessGraph(thread);
	}

	/** A thread that was made elsewhere has no record. Its channels tell which of our graphs it can be of. */
	async #guessGraph({ saver, threadId }: FoundThread): Promise<string> {
		const candidates: string[] = [];
		for (const id of this.#graphs.ids) if ((await this.#graphs.saverOf(id)) === saver) candidates.push(id);
		const tuple = candidates.length > 1 ? await saver.getTuple({ configurable: { thread_id: threadId } }) : undefined;
		const channels = Object.keys(tuple?.checkpoint.channel_versions ?? {});
		for (const id of candidates) {
			const graph = await this.#graphs.get(id);
			if (channels.every((channel) => Object.hasOwn(graph.channels, channel))) return id;
		}
		return candidates[0] as string;
	}
}
