import { mkdirSync, mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { removeFolder, root } from "../support/run-node.ts";

/** A program that processes can be started with at once, until it is disposed of. */
export interface Bundle extends AsyncDisposable {
	readonly path: string;
}

/**
 * Bundles a program of this folder with all that it imports, as a process that is killed at once should start quickly. It
 * lies inside `node_modules`, so that it finds what can't be bundled.
 */
export async function bundle(program: string): Promise<Bundle> {
	const cache = join(root, "node_modules", ".cache");
	mkdirSync(cache, { recursive: true });
	const path = join(mkdtempSync(join(cache, "safety-")), program.replace(/\.ts$/, ".mjs"));
	await build({
		entryPoints: [join(import.meta.dirname, program)],
		outfile: path,
		bundle: true,
		external: ["better-sqlite3"],
		// Some packages still call it.
		banner: {
			js: 'import { createRequire as __require } from "node:module"; const require = __require(import.meta.url);',
		},
		platform: "node",
		format: "esm",
		target: "node20",
		logLevel: "error",
	});
	return { path, [Symbol.asyncDispose]: async () => removeFolder(dirname(path)) };
}
