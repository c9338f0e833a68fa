import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		// The official validation suite uses describe, it and expect as globals.
		globals: true,
		include: ["test/**/*.test.ts"],
		testTimeout: 60_000,
	},
});
