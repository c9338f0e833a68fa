import fc from "fast-check";
import { histories, runHistory } from "./support/histories.ts";
import { emptySchema, openStorage } from "./support/postgres.ts";

describe("any history on postgres", () => {
	it("reads as a naive full copy would, and leaves nothing behind", async () => {
		const setup = async () => {
			const { pool, schema, leave } = await emptySchema();
			const open = () => openStorage(pool, schema);
			return { storage: open(), reopen: async () => open(), teardown: leave };
		};
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
			{ numRuns: 200, seed: 20261116 },
		);
	});
});
