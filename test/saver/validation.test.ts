import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
	type CheckpointSaverTestInitializer,
	deltaChannelHistoryTests,
	validate,
} from "@langchain/langgraph-checkpoint-validation";
import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

/** Names of our own, so that none of the suite's lists of tests to skip applies. */
const initializers: CheckpointSaverTestInitializer<DeltaSaver>[] = [
	{ checkpointerName: "langgraph-checkpoint-delta memory", createCheckpointer: () => new MemorySaver() },
	{
		checkpointerName: "langgraph-checkpoint-delta sqlite in memory",
		createCheckpointer: () => new SqliteSaver(":memory:"),
		destroyCheckpointer: (saver) => saver.close(),
	},
	onFile(),
];

function onFile(): CheckpointSaverTestInitializer<DeltaSaver> {
	let folder = "";
	let count = 0;
	return {
		checkpointerName: "langgraph-checkpoint-delta sqlite on a file",
		beforeAll: async () => {
			folder = await mkdtemp(join(tmpdir(), "validation-"));
		},
		createCheckpointer: () => new SqliteSaver(join(folder, `${count++}.db`)),
		destroyCheckpointer: (saver) => saver.close(),
		afterAll: () => rm(folder, { recursive: true }),
	};
}

for (const initializer of initializers) {
	validate(initializer);
	deltaChannelHistoryTests(initializer);
}
