import { describe, it } from "vitest";
import { runSaverContract } from "../src/contract.ts";
import { PostgresSaver } from "../src/postgres.ts";
import { emptySchema } from "./support/postgres.ts";

runSaverContract({
	name: "PostgresSaver",
	test: { describe, it },
	setup: async ({ serde }) => {
		const { pool, schema, leave } = await emptySchema();
		const open = () => new PostgresSaver(pool, { schema, serde });
		return { saver: open(), reopen: async () => open(), teardown: leave };
	},
});
