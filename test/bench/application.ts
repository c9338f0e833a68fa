import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";

export const root = resolve(import.meta.dirname, "../..");
const PACKAGE = "langgraph-checkpoint-delta";

/** A new folder inside `node_modules`, so that code in it finds the packages that are installed there. */
export function makeCacheFolder(): string {
	const cache = join(root, "node_modules/.cache");
	mkdirSync(cache, { recursive: true });
	return realpathSync(mkdtempSync(join(cache, "bench-")));
}

/**
 * Makes an application that has this package installed, from the present sources, and scripts of `test/bench` beside it,
 * which import it by its name. Does not touch `dist`, which may be old or in use.
 *
 * @param compile {@link bundle} or {@link compileFiles}
 * @returns the folder of the compiled package
 */
export async function makeApplication(
	folder: string,
	scripts: readonly string[],
	compile: (outDir: string) => Promise<unknown>,
): Promise<string> {
	const installed = join(folder, "node_modules", PACKAGE);
	mkdirSync(installed, { recursive: true });
	copyFileSync(join(root, "package.json"), join(installed, "package.json"));
	await compile(join(installed, "dist"));
	await build({
		entryPoints: scripts.map((script) => join(import.meta.dirname, script)),
		outdir: folder,
		outExtension: { ".js": ".mjs" },
		bundle: true,
		packages: "external",
		// That of the repository lets the package's name stand for its sources.
		tsconfigRaw: {},
		platform: "node",
		format: "esm",
		target: "node20",
		logLevel: "error",
	});
	return installed;
}

/** As the package is published. */
export async function bundle(outDir: string): Promise<void> {
	await run("npm", ["run", "bundle", "--", `--outdir=${outDir}`]);
}

/** File by file, with maps to the sources. */
export async function compileFiles(outDir: string): Promise<void> {
	const tsc = [join(root, "node_modules/typescript/bin/tsc"), "-p", join(root, "tsconfig.build.json")];
	await run(process.execPath, [...tsc, "--emitDeclarationOnly", "false", "--sourceMap", "--outDir", outDir]);
}

async function run(program: string, args: string[]): Promise<void> {
	try {
		await promisify(execFile)(program, args, { cwd: root });
	} catch (error) {
		throw new Error(`The sources do not compile:\n${(error as { stdout: string }).stdout}`, { cause: error });
	}
}
