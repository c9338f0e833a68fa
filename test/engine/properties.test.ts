import fc from "fast-check";
import { histories, runHistory } from "../support/histories.ts";
import { historyBackends } from "../support/history-backends.ts";

describe.each(Object.entries(historyBackends))("any history on %s", (_, setup) => {
	it("reads as a naive full copy would, and leaves nothing behind", async () => {
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
			{
				numRuns: 120,
				seed: 20261116,
			},
		);
	});

	it("keeps the history of a channel that has writes and no version when a run is deleted", async () => {
		const put = { do: "put", thread: 1, ns: 0, edits: [], run: 0 };
		const operations = [
			{ ...put, parent: 0, kind: 3 },
			{ ...put, parent: 1, kind: 1 },
			{ do: "writes", thread: 1, ns: 0, at: 1, kind: 0, size: 0, run: 3 },
			{ do: "runs", run: 2 },
		];
		await runHistory(operations as never, setup);
	});
});
