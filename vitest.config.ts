import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => ({
	test: {
		// The official validation suite uses describe, it and expect as globals.
		globals: true,
		// `npm run fuzz`: the same properties as the tests, for as long as they are told to run.
		include: mode === "fuzz" ? ["test/fuzz/*.ts"] : ["test/**/*.test.ts"],
		// A process per file: native handles and child processes of one file can't reach another.
		pool: "forks",
		// The default leaves one core idle, which is half of a small machine.
		maxWorkers: "100%",
		testTimeout: mode === "fuzz" ? 3_600_000 : 120_000,
		hookTimeout: 120_000,
	},
}));
