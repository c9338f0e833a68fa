import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { runStorageContract } from "../../src/contract/storage-contract.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { Sealer } from "../../src/storage/sealed/sealer.ts";
import { SealedStorage } from "../../src/storage/sealed/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { shareOfTests } from "../support/share.ts";

const test = { describe, it };

function open(path: string): SqliteStorage {
	return new SqliteStorage(fileSource(path));
}

runStorageContract({
	name: "MemoryStorage",
	test,
	setup: async () => ({ storage: new MemoryStorage() }),
});

runStorageContract({
	name: 'SqliteStorage on ":memory:"',
	test: shareOfTests(test, 2),
	setup: async () => ({ storage: open(":memory:") }),
});

runStorageContract({
	name: "SqliteStorage on a file",
	test,
	setup: async () => {
		const directory = await mkdtemp(join(tmpdir(), "storage-"));
		const path = join(directory, "checkpoints.db");
		return {
			storage: open(path),
			reopen: async () => open(path),
			teardown: () => rm(directory, { recursive: true }),
		};
	},
});

const key = new Uint8Array(32).fill(7);
const reason = "It hands the bytes on as they are, and they are to be envelopes.";

for (const [name, encryption] of [
	["checked and compressed", undefined],
	["encrypted", { key }],
] as const)
	runStorageContract({
		name: `SealedStorage, ${name},`,
		test,
		setup: async () => ({
			storage: new SealedStorage(new MemoryStorage(), new Sealer({ compression: true, encryption })),
		}),
		countsBytes: false,
		skip: ["REPLACE-ROW", "REPLACE-SEEN", "REPLACE-LABELS"].map((rule) => ({ rule, reason })),
	});
