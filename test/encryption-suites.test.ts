import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import fc from "fast-check";
import { describe, it } from "vitest";
import { runSaverContract } from "../src/contract.ts";
import type { EncryptionOptions } from "../src/seal/keyring.ts";
import { Sealer } from "../src/seal/sealer.ts";
import { SqliteSaver } from "../src/sqlite.ts";
import { SealedStorage } from "../src/storage/sealed-storage.ts";
import { histories, runHistory } from "./support/histories.ts";
import { historyBackends } from "./support/history-backends.ts";

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
	name: "SqliteSaver with encryption",
	test: { describe, it },
	setup: async ({ serde }) => ({ saver: new SqliteSaver(":memory:", { serde, encryption }) }),
});

/** The envelopes that a history is stored in: each time the storage is opened, the next of these. */
const keyrings: Record<string, readonly (EncryptionOptions | undefined)[]> = {
	"in checked envelopes": [undefined],
	"in encrypted envelopes": [encryption],
	"in plain, then encrypted, then rotated envelopes": [
		undefined,
		{ key: k1, migrate: true },
		{ ...encryption, migrate: true },
	],
};

describe.each(Object.entries(historyBackends))("any history on %s", (_, setup) => {
	it.each(Object.entries(keyrings))("%s reads as a naive full copy would", async (_, options) => {
		const setupSealed = async () => {
			const backend = await setup();
			let opened = 0;
			const seal = (storage: typeof backend.storage) => {
				const encryption = options[Math.min(opened++, options.length - 1)];
				return new SealedStorage(storage, new Sealer({ encryption, compression: true }));
			};
			const { reopen, teardown } = backend;
			return {
				storage: seal(backend.storage),
				...(reopen && { reopen: async () => seal(await reopen.call(backend)) }),
				...(teardown && { teardown: teardown.bind(backend) }),
			};
		};
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setupSealed)),
			{ numRuns: 25, seed: 20261117 },
		);
	});
});
