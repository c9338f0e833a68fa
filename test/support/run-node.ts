import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

/** The root of this repository. */
export const root = resolve(import.meta.dirname, "../..");

/** Makes Node run TypeScript, with the package's own name standing for its sources. */
export const typescript = ["--import", import.meta.resolve("tsx")];

/** Runs a program and answers what it printed; rejects, with all that it printed, when it fails. */
export async function run(program: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
	try {
		const { stdout } = await promisify(execFile)(program, args, { cwd: root, maxBuffer: 1e8, ...options });
		return stdout;
	} catch (error) {
		const { stdout, stderr } = error as { stdout: string; stderr: string };
		throw new Error(`${program} ${args.join(" ")} failed\n${stdout}\n${stderr}`, { cause: error });
	}
}

export function runNode(args: string[], options?: { cwd?: string; env?: NodeJS.ProcessEnv }) {
	return run(process.execPath, args, options);
}

/** Calls back with the path of a new, empty folder, which is gone afterwards. */
export async function inTemporaryFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
	const folder = makeTemporaryFolder();
	try {
		return await use(folder);
	} finally {
		removeFolder(folder);
	}
}

export function makeTemporaryFolder(): string {
	return mkdtempSync(join(tmpdir(), "test-"));
}

export function removeFolder(folder: string): void {
	// A process that is about to end may still write there.
	rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}
