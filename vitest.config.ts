import { statfsSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

/** In memory where there is room: hundreds of new databases would mostly wait for the disk. */
function chooseTemporaryFolder(): string {
	try {
		const { bavail, bsize } = statfsSync("/dev/shm");
		if (bavail * bsize > 2 ** 31) return "/dev/shm";
	} catch {
		// There is no such thing on other systems.
	}
	return tmpdir();
}

const shared = {
	// The official validation suite uses describe, it and expect as globals.
	globals: true,
	env: { TMPDIR: chooseTemporaryFolder() },
	// A process per file: native handles and child processes of one file can't reach another.
	pool: "forks" as const,
	execArgv: ["--import", "./test/langgraph-next/register.mjs"],
	testTimeout: 120_000,
	hookTimeout: 120_000,
};

/** What depends on the LangGraph that calls the savers, or streams events, and so runs on both. */
const ON_BOTH_CORES = ["graphs/*", "saver/drop-in", "saver/guard", "studio/protocol/client", "studio/protocol/options"];

export default defineConfig({
	test: {
		globalSetup: "test/support/postgres-setup.ts",
		// One more than there are cores, since many tests wait for servers and other processes.
		maxWorkers: availableParallelism() + 1,
		sequence: { sequencer: LongestFirst },
		projects: [
			{ test: { ...shared, name: "LangGraph 1.4", include: ["test/**/*.test.ts"] } },
			{
				test: {
					...shared,
					name: "LangGraph 1.7",
					include: ON_BOTH_CORES.map((name) => `test/${name}.test.ts`),
					env: { ...shared.env, LANGGRAPH: "next" },
				},
			},
		],
	},
});
