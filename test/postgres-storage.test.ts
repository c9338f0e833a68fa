import { describe, it } from "vitest";
import { runStorageContract } from "../src/contract/storage-contract.ts";
import { PostgresSession } from "../src/storage/postgres-session.ts";
import { PostgresStorage } from "../src/storage/postgres-storage.ts";
import { emptySchema } from "./support/postgres.ts";

runStorageContract({
	name: "PostgresStorage",
	test: { describe, it },
	setup: async () => {
		const { pool, schema, leave } = await emptySchema();
		const options = { retryTimeout: 10_000, prepare: true, isShared: true };
		const open = () => new PostgresStorage(new PostgresSession(() => pool, options), schema);
		return { storage: open(), reopen: async () => open(), teardown: leave };
	},
});
