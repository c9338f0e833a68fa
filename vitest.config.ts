import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
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

export default defineConfig({
	test: {
		// The official validation suite uses describe, it and expect as globals.
		globals: true,
		include: ["test/**/*.test.ts"],
		globalSetup: "test/support/postgres-setup.ts",
		env: { TMPDIR: chooseTemporaryFolder() },
		// A process per file: native handles and child processes of one file can't reach another.
		pool: "forks",
		// The default leaves one core idle, which is half of a small machine.
		maxWorkers: "100%",
		sequence: { sequencer: LongestFirst },
		testTimeout: 120_000,
		hookTimeout: 120_000,
	},
});
