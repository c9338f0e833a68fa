import { mkdirSync, mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { removeFolder, root } from "../support/run-node.ts";

/** A program that processes can be started with at once, until it is disposed of. */
export interface Bundle extends AsyncDisposable {
	readonly path: string;
}

/** Bundles a program of this folder, inside `node_modules`, so that it finds the packages that are not in it. */
export async function bundle(program: string): Promise<Bundle> {
	const cache = join(root, "node_modules", ".cache");
	mkdirSync(cache, { recursive: true });
	const path = join(mkdtempSync(join(cache, "safety-")), program.replace(/\.ts$/, ".mjs"));
	await build({
		entryPoints: [join(import.meta.dirname, program)],
		outfile: path,
		bundle: true,
		packages: "external",
		platform: "node",
		format: "esm",
		target: "node20",
		logLevel: "error",
	});
	return { path, [Symbol.asyncDispose]: async () => removeFolder(dirname(path)) };
}
