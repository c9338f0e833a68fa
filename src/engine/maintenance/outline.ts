import type { FoundCheckpoint, ListedCheckpoint, WriteRow } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import { cacheKey } from "../rows.ts";

/** Rows that are read at once. */
const ROWS_AT_ONCE = 256;

/** The channels that writes of each namespace are for. */
export function writtenChannels(writes: readonly WriteRow[]): Map<string, Set<string>> {
	const written = new Map<string, Set<string>>();
	for (const { ns, channel } of writes) written.set(ns, (written.get(ns) ?? new Set()).add(channel));
	return written;
}

/** The rows of a thread's checkpoints, read as they are asked for. */
export class Rows {
	readonly #engine: Engine;
	readonly #rows = new Map<string, FoundCheckpoint>();

	constructor(engine: Engine) {
		this.#engine = engine;
	}

	/** To be called with those that will be asked for, if many may be. */
	async prepare(listed: readonly ListedCheckpoint[]): Promise<void> {
		for (let i = 0; i < listed.length; i += ROWS_AT_ONCE) {
			const { checkpoints } = await this.#engine.storage.read(listed.slice(i, i + ROWS_AT_ONCE), "rows");
			for (const row of checkpoints) this.#rows.set(cacheKey(row), row);
		}
	}

	/** Nothing if it is gone meanwhile. */
	async get(listed: ListedCheckpoint): Promise<FoundCheckpoint | undefined> {
		const key = cacheKey(listed);
		if (!this.#rows.has(key)) await this.prepare([listed]);
		return this.#rows.get(key);
	}
}
