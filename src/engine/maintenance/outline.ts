import type { FoundCheckpoint, ListedCheckpoint, ThreadOutline } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { Head } from "../head.ts";
import { cacheKey, unpackRow } from "../rows.ts";

/** So many heads are read one by one; more of them, with all others of their thread. */
const FEW_HEADS = 64;

/** What a thread consists of, with as much more as it took to learn that. */
export interface Outline {
	readonly checkpoints: readonly (ListedCheckpoint | FoundCheckpoint)[];
	readonly written?: ThreadOutline["written"];
}

export async function readOutline(engine: Engine, threadId: string): Promise<Outline> {
	if (engine.storage.getOutline !== undefined) return engine.storage.getOutline(threadId);
	const checkpoints: FoundCheckpoint[] = [];
	for await (const row of engine.scanAll({ threadId })) checkpoints.push(row);
	return { checkpoints };
}

/** The channels that writes of each namespace are for. */
export async function writtenChannels(engine: Engine, threadId: string): Promise<ThreadOutline["written"]> {
	const written = new Map<string, Set<string>>();
	for (const { ns, channel } of await engine.storage.getThreadWrites(threadId))
		written.set(ns, (written.get(ns) ?? new Set()).add(channel));
	return written;
}

/** The heads of a thread's checkpoints, read as they are asked for. */
export class Heads {
	readonly #engine: Engine;
	readonly #rows = new Map<string, FoundCheckpoint>();

	constructor(engine: Engine) {
		this.#engine = engine;
	}

	/** To be called with those that will be asked for, if many may be. */
	async prepare(rows: readonly (ListedCheckpoint | FoundCheckpoint)[]): Promise<void> {
		const [first] = rows;
		if (first === undefined || "head" in first || rows.length <= FEW_HEADS) return;
		const { threadId } = first;
		for await (const row of this.#engine.scanAll({ threadId })) this.#rows.set(cacheKey(row), row);
	}

	/** Nothing if it is gone meanwhile. */
	async get(row: ListedCheckpoint | FoundCheckpoint): Promise<Head | undefined> {
		if ("head" in row) return unpackRow(row);
		const key = cacheKey(row);
		const found = this.#rows.get(key) ?? (await this.#engine.storage.getCheckpoint(row));
		if (found === undefined) return undefined;
		this.#rows.set(key, found);
		return unpackRow(found);
	}
}
