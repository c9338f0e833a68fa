import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import type { SqliteDatabase } from "../../src/storage/sqlite/driver.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import type { HistoryBackend } from "./histories.ts";

export const historyBackends: Record<string, () => Promise<HistoryBackend>> = {
	memory: async () => ({ storage: new MemoryStorage() }),
	sqlite: async () => {
		const folder = await mkdtemp(join(tmpdir(), "history-"));
		const source = { ...fileSource(join(folder, "test.db")), configure: fast };
		const open = () => new SqliteStorage(source);
		return { storage: open(), reopen: async () => open(), teardown: () => rm(folder, { recursive: true }) };
	},
};

/** Thousands of databases are made: none needs to survive the machine. */
function fast(db: SqliteDatabase): void {
	db.pragma("journal_mode = MEMORY");
	db.pragma("synchronous = OFF");
}
