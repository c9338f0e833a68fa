import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeltaSaver } from "../../src/index.ts";
import { SqliteSaver, type SqliteSaverOptions } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";

type HistoryQuery = Parameters<DeltaSaver["getDeltaChannelHistory"]>[0];

/** Compares each history that it answers with what a saver answers that remembers nothing. */
export class CheckedSaver extends DeltaSaver {
	readonly #storage: MemoryStorage;

	constructor(storage = new MemoryStorage()) {
		super(storage);
		this.#storage = storage;
	}

	override async getDeltaChannelHistory(query: HistoryQuery) {
		const answer = await super.getDeltaChannelHistory(query);
		assert.deepEqual(answer, await new DeltaSaver(this.#storage).getDeltaChannelHistory(query));
		return answer;
	}
}

/** Asks another saver, on a connection of its own, for all histories. */
export class ReadingElsewhereSaver extends SqliteSaver {
	readonly #folder: string;
	readonly #reader: SqliteSaver;

	constructor(options?: SqliteSaverOptions) {
		const folder = mkdtempSync(join(tmpdir(), "checkpoint-delta-"));
		super(join(folder, "checkpoints.db"), options);
		this.#folder = folder;
		this.#reader = new SqliteSaver(join(folder, "checkpoints.db"), options);
	}

	override getDeltaChannelHistory(query: HistoryQuery) {
		return this.#reader.getDeltaChannelHistory(query);
	}

	override async close(): Promise<void> {
		await this.#reader.close();
		await super.close();
		rmSync(this.#folder, { recursive: true });
	}
}
