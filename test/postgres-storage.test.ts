import { describe, it } from "vitest";
import { runStorageContract } from "../src/contract/storage-contract.ts";
import { emptySchema, openStorage } from "./support/postgres.ts";

runStorageContract({
	name: "PostgresStorage",
	test: { describe, it },
	setup: async () => {
		const { pool, schema, leave } = await emptySchema();
		const open = () => openStorage(pool, schema);
		return { storage: open(), reopen: async () => open(), teardown: leave };
	},
});
