import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";
import { removeFolder, root } from "./run-node.ts";

/** A program that processes can be started with at once, until it is disposed of. */
export interface Bundle extends AsyncDisposable {
	readonly path: string;
}

/**
 * Bundles a program, so that a process that runs it starts quickly. It lies inside `node_modules`, so that it finds what
 * is not in it.
 *
 * @param program its path in this repository
 * @param withPackages whether it has everything in it that can be, as one that is killed at once should; some packages
 * do not bear it
 */
export async function bundle(program: string, { withPackages = true } = {}): Promise<Bundle> {
	// A program that compares its own path sees the real one, also if `node_modules` is a link.
	const cache = join(realpathSync(join(root, "node_modules")), ".cache");
	mkdirSync(cache, { recursive: true });
	const path = join(mkdtempSync(join(cache, "bundle-")), basename(program).replace(/\.tsx?$/, ".mjs"));
	await build({
		entryPoints: [join(root, program)],
		outfile: path,
		bundle: true,
		packages: withPackages ? "bundle" : "external",
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
