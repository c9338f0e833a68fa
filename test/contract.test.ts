import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { runSaverContract } from "../src/contract.ts";
import { MemorySaver } from "../src/index.ts";
import { SqliteSaver } from "../src/sqlite.ts";

const test = { describe, it };

/** In memory where that is possible: hundreds of new databases would mostly wait for the disk. */
const temporary = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

runSaverContract({
	name: "MemorySaver",
	test,
	setup: async ({ serde }) => ({ saver: new MemorySaver(serde) }),
});

runSaverContract({
	name: 'SqliteSaver on ":memory:"',
	test,
	setup: async ({ serde }) => ({ saver: new SqliteSaver(":memory:", { serde }) }),
});

runSaverContract({
	name: "SqliteSaver on a file",
	test,
	setup: async ({ serde }) => {
		const directory = await mkdtemp(join(temporary, "contract-"));
		const open = () => new SqliteSaver(join(directory, "checkpoints.db"), { serde });
		return {
			saver: open(),
			reopen: async () => open(),
			teardown: () => rm(directory, { recursive: true }),
		};
	},
});
