/**
 * Prints the way of a call: the files under `src` and the functions in them that one `put` and one `getTuple` run through, on
 * SQLite and in memory, in a warm process.
 *
 * Usage: npm run way [-- --lines]
 *   --lines   instead, the lines of each room of `src` and the number of methods of the storage interface
 *
 * The sources run as `tsc` compiles them, file by file, so that a function that runs is one in `src`. Three kinds are left
 * out, since nobody wrote them: the bodies of modules, V8's initializers of class fields (`<instance_members_initializer>`),
 * and helpers that `tsc` adds for newer syntax (`__addDisposableResource`). The count of a function that awaits includes each
 * time it goes on after an `await`.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { Profiler } from "node:inspector";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { compileFiles, makeApplication, makeCacheFolder } from "./application.ts";
import { formatLines } from "./lines.ts";

interface CalledFunction {
	readonly name: string;
	/** In the source. */
	readonly line: number;
	readonly count: number;
}

/** The functions that ran, by file under `src`. */
type Way = ReadonlyMap<string, readonly CalledFunction[]>;

const BACKENDS = { sqlite: "SQLite", memory: "memory" };

/** Runs `way-run.ts` in a process of its own. */
async function cover(application: string, backend: string): Promise<Record<string, Profiler.ScriptCoverage[]>> {
	const folder = mkdtempSync(join(tmpdir(), "langgraph-checkpoint-delta-way-"));
	try {
		const args = [join(application, "way-run.mjs"), backend, folder];
		const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e9 });
		return JSON.parse(stdout);
	} finally {
		rmSync(folder, { recursive: true });
	}
}

function findWay(scripts: readonly Profiler.ScriptCoverage[], dist: string): Way {
	const way = new Map<string, CalledFunction[]>();
	for (const { url, functions } of scripts) {
		if (!url.startsWith("file:")) continue;
		const file = relative(dist, fileURLToPath(url));
		if (file.startsWith("..")) continue;
		const called = listCalled(fileURLToPath(url), functions);
		if (called.length > 0) way.set(`src/${file.replace(/\.js$/, ".ts")}`, called);
	}
	return new Map([...way].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function listCalled(path: string, functions: readonly Profiler.FunctionCoverage[]): CalledFunction[] {
	const findLine = makeLineFinder(path);
	return functions
		.map(({ functionName, ranges }) => ({ name: functionName, ...(ranges[0] as Profiler.CoverageRange) }))
		.filter(({ name, startOffset, count }) => count > 0 && startOffset > 0 && !/^(<|__)/.test(name))
		.map(({ name, startOffset, count }) => ({ name: name || "(anonymous)", line: findLine(startOffset), count }))
		.sort((a, b) => a.line - b.line);
}

/** Finds the line in the source for an offset in the compiled file. */
function makeLineFinder(path: string): (offset: number) => number {
	const code = readFileSync(path, "utf8");
	const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")));
	return (offset) => {
		const before = code.slice(0, offset).split("\n");
		const entry = map.findEntry(before.length - 1, before.at(-1)?.length ?? 0);
		return "originalLine" in entry ? entry.originalLine + 1 : 0;
	};
}

function formatWay(way: Way): string {
	return [...way]
		.map(([file, called]) => {
			const lines = called.map(({ name, line, count }) => `    ${String(count).padStart(4)}×  ${name}, line ${line}`);
			return [`  ${file}`, ...lines].join("\n");
		})
		.join("\n");
}

function formatTotal(title: string, way: Way): string {
	const functions = [...way.values()].reduce((sum, called) => sum + called.length, 0);
	return `${title}: ${way.size} files, ${functions} functions`;
}

async function printWays(): Promise<void> {
	const application = makeCacheFolder();
	try {
		const dist = join(await makeApplication(application, ["way-run.ts"], compileFiles), "dist");
		const totals: string[] = [];
		for (const [backend, title] of Object.entries(BACKENDS)) {
			for (const [call, scripts] of Object.entries(await cover(application, backend))) {
				const way = findWay(scripts, dist);
				console.log(`${call} on ${title}\n${formatWay(way)}\n`);
				totals.push(formatTotal(`${call} on ${title}`, way));
			}
		}
		console.log(totals.join("\n"));
	} finally {
		rmSync(application, { recursive: true });
	}
}

const { values: options } = parseArgs({ options: { lines: { type: "boolean", default: false } } });
if (options.lines) console.log(formatLines());
else await printWays();
