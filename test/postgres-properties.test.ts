import fc from "fast-check";
import { histories, runHistory } from "./support/histories.ts";
import { emptySchema, openStorage } from "./support/postgres.ts";
import { sealed } from "./support/sealed-histories.ts";

async function setup() {
	const { pool, schema, leave } = await emptySchema();
	const open = () => openStorage(pool, schema);
	return { storage: open(), reopen: async () => open(), teardown: leave };
}

const key = (n: number) => new Uint8Array(32).fill(n);

describe("any history on postgres", () => {
	it.each([
		["as it is", setup, 60],
		[
			"in envelopes that are first plain, then encrypted, then encrypted with another key",
			sealed(setup, [
				undefined,
				{ key: key(1), migrate: true },
				{ keys: { default: key(1), k2: key(2) }, current: "k2", migrate: true },
			]),
			25,
		],
	])("%s reads as a naive full copy would, and leaves nothing behind", async (_, open, numRuns) => {
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, open)),
			{ numRuns, seed: 20261116 },
		);
	});
});
