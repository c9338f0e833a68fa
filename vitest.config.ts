import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		// The official validation suite uses describe, it and expect as globals.
		globals: true,
		include: ["test/**/*.test.ts"],
		globalSetup: "test/support/postgres-setup.ts",
		// A process per file: native handles and child processes of one file can't reach another.
		pool: "forks",
		// The default leaves one core idle, which is half of a small machine.
		maxWorkers: "100%",
		testTimeout: 120_000,
		hookTimeout: 120_000,
	},
});
