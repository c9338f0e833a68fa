import fc from "fast-check";
import { histories, runHistory } from "./support/histories.ts";
import { historyBackends } from "./support/history-backends.ts";

describe.each(Object.entries(historyBackends))("any history on %s", (_, setup) => {
	it("reads as a naive full copy would, and leaves nothing behind", async () => {
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
			{
				numRuns: 200,
				seed: 20261116,
			},
		);
	});
});
