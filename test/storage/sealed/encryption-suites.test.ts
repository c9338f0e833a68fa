import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import fc from "fast-check";
import { runSaverContract } from "../../../src/contract.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import type { EncryptionOptions } from "../../../src/storage/sealed/keyring.ts";
import { type HistoryBackend, histories, runHistory } from "../../support/histories.ts";
import { historyBackends } from "../../support/history-backends.ts";
import { sealed } from "../../support/sealed-histories.ts";
import { shareOfTests } from "../../support/share.ts";

const k1 = new Uint8Array(32).fill(1);
const k2 = new Uint8Array(32).fill(2);
const encryption: EncryptionOptions = { keys: { k1, k2 }, current: "k2" };

const validated = {
	checkpointerName: "langgraph-checkpoint-delta sqlite encrypted",
	createCheckpointer: () => new SqliteSaver(":memory:", { encryption }),
	destroyCheckpointer: (saver: SqliteSaver) => saver.close(),
};
validate(validated);
deltaChannelHistoryTests(validated);

runSaverContract({
	name: 'SqliteSaver on ":memory:", with encryption,',
	test: shareOfTests({ describe, it }, 3),
	setup: async ({ serde }) => ({ saver: new SqliteSaver(":memory:", { serde, encryption }) }),
});

const { memory, sqlite } = historyBackends as Record<"memory" | "sqlite", () => Promise<HistoryBackend>>;

describe("any history", () => {
	it.each([
		["in checked envelopes", sealed(memory, [undefined])],
		["in encrypted envelopes", sealed(memory, [encryption])],
		["in encrypted envelopes on SQLite", sealed(sqlite, [encryption])],
		[
			"in envelopes that are first plain, then encrypted, then encrypted with another key",
			sealed(sqlite, [undefined, { key: k1, migrate: true }, { ...encryption, migrate: true }]),
		],
	])("%s reads as a naive full copy would", async (_, setup) => {
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
			{ numRuns: 25, seed: 20261117 },
		);
	});
});
