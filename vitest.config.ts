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
	setupFiles: ["test/support/each-file.ts"],
	env: { TMPDIR: chooseTemporaryFolder() },
	pool: "forks" as const,
	testTimeout: 120_000,
	hookTimeout: 120_000,
};

/** For processes that load LangGraph 1.7: every other one starts a third of a second sooner without it. */
const withNext = { ...shared, execArgv: ["--import", "./test/langgraph-next/register.mjs"] };

/** What loads both in one process. */
const BOTH_AT_ONCE = ["test/graphs/core.test.ts", "test/graphs/delta-forks.test.ts"];

/** What measures the memory of its process, or gives it a browser's globals. */
const IN_OWN_PROCESS = ["test/studio/**/{load,use-stream}.test.ts"];

/** What depends on the LangGraph that calls the savers, or streams events, and so runs on both. */
const ON_BOTH_CORES = ["graphs/*", "saver/drop-in", "saver/guard", "studio/protocol/client", "studio/protocol/options"];

export default defineConfig({
	test: {
		globalSetup: "test/support/postgres-setup.ts",
		// One more than there are cores, since many tests wait for servers and other processes.
		maxWorkers: availableParallelism() + 1,
		sequence: { sequencer: LongestFirst },
		projects: [
			{
				test: {
					...shared,
					name: "LangGraph 1.4",
					include: ["test/**/*.test.ts"],
					exclude: [...BOTH_AT_ONCE, ...IN_OWN_PROCESS],
					// A process takes file after file: to load LangGraph takes longer than most files.
					isolate: false,
				},
			},
			{ test: { ...shared, name: "LangGraph 1.4, alone", include: IN_OWN_PROCESS } },
			{ test: { ...withNext, name: "LangGraph 1.4 beside 1.7", include: BOTH_AT_ONCE } },
			{
				test: {
					...withNext,
					name: "LangGraph 1.7",
					include: ON_BOTH_CORES.map((name) => `test/${name}.test.ts`),
					env: { ...shared.env, LANGGRAPH: "next" },
					isolate: false,
				},
			},
		],
	},
});
