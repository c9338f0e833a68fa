import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { makeTemporaryFolder, removeFolder, root, run, runNode } from "../support/run-node.ts";

const name = "langgraph-checkpoint-delta";
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

const folder = makeTemporaryFolder();
const app = join(folder, "app");
const appWithoutDriver = join(folder, "app-without-driver");
const appWithUnbuiltDriver = join(folder, "app-with-unbuilt-driver");
let tarball: string;

/** A project in which the packed package is installed, beside links to packages that this repository has. */
function install(project: string, neighbours: string[]): void {
	const modules = join(project, "node_modules");
	mkdirSync(modules, { recursive: true });
	cpSync(join(folder, "package"), join(modules, name), { recursive: true });
	for (const neighbour of ["msgpackr", ...neighbours])
		symlinkSync(join(root, "node_modules", neighbour), join(modules, neighbour));
}

/** Runs a script inside a project and answers what it printed. */
function runIn(project: string, file: string, code: string): Promise<string> {
	writeFileSync(join(project, file), code);
	return runNode([file], { cwd: project });
}

beforeAll(async () => {
	await run(npm, ["pack", "--pack-destination", folder]);
	tarball = join(folder, `${name}-${manifest.version}.tgz`);
	await run("tar", ["-xzf", tarball, "-C", folder]);
	install(app, ["@langchain", "@types", "better-sqlite3"]);
	install(appWithoutDriver, ["@langchain"]);
	install(appWithUnbuiltDriver, ["@langchain", "bindings", "file-uri-to-path"]);
	for (const part of ["lib", "package.json"]) {
		const path = join("node_modules/better-sqlite3", part);
		cpSync(join(root, path), join(appWithUnbuiltDriver, path), { recursive: true });
	}
});

afterAll(() => removeFolder(folder));

const graph = `
	import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
	const State = Annotation.Root({ log: Annotation({ reducer: (log, more) => log.concat(more), default: () => [] }) });
	async function runOn(checkpointer) {
		const graph = new StateGraph(State)
			.addNode("step", ({ log }) => ({ log: ["step " + log.length] }))
			.addEdge(START, "step")
			.addEdge("step", END)
			.compile({ checkpointer });
		const config = { configurable: { thread_id: "1" } };
		await graph.invoke({ log: ["a"] }, config);
		await graph.invoke({ log: ["b"] }, config);
		console.log((await graph.getState(config)).values.log.join(", "));
	}
`;

describe("The packed package", () => {
	it("has nothing that publint complains about", async () => {
		const { messages } = await publint({ pkgDir: join(folder, "package"), pack: false, strict: true });
		expect(messages.map((message) => formatMessage(message, manifest))).toEqual([]);
	});

	it("has types that resolve at every entry point", async () => {
		const attw = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
		const args = ["--profile", "esm-only", "--no-definitely-typed", "--format", "json"];
		const { analysis, problems } = JSON.parse(await runNode([attw, tarball, ...args]));
		expect(Object.keys(analysis.entrypoints).sort()).toEqual(Object.keys(manifest.exports).sort());
		// The rest of what it looks at are old ways to resolve, which know no exports map or no ESM.
		const reported = Object.values<{ resolutionKind?: string }[]>(problems).flat();
		const ignored = ["node10", "node16-cjs"];
		expect(reported.filter(({ resolutionKind = "any" }) => !ignored.includes(resolutionKind))).toEqual([]);
	});

	it("holds only what is meant for users", () => {
		const files = readdirSync(join(folder, "package"));
		expect(files.sort()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"]);
	});

	it("names every package that its code imports", () => {
		const dist = join(folder, "package/dist");
		const scripts = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
		const imported = scripts.flatMap((file) => {
			const code = readFileSync(join(dist, file), "utf8");
			const specifiers = [...code.matchAll(/^(?:import|export)\b(?:[^"=]*\bfrom)? "([^"]+)"/gm)].map(
				(match) => match[1]!,
			);
			return specifiers.filter((specifier) => !specifier.startsWith("."));
		});
		const { dependencies, peerDependencies, optionalDependencies } = manifest;
		const declared = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });
		const packages = imported
			.filter((specifier) => !specifier.startsWith("node:"))
			.map((specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/"));
		expect(packages).toContain("@langchain/langgraph-checkpoint");
		expect([...new Set(packages)].filter((imported) => !declared.includes(imported))).toEqual([]);
	});

	it("has at most 400 kB, and each file once", () => {
		const dist = readdirSync(join(folder, "package/dist"), { recursive: true, encoding: "utf8" });
		expect(dist.filter((file) => file.endsWith(".map"))).toEqual([]);
		expect(statSync(tarball).size).toBeLessThan(400_000);
	});
});

describe("An application in plain JavaScript", () => {
	it("runs a graph on MemorySaver and SqliteSaver", async () => {
		const output = await runIn(
			app,
			"app.mjs",
			`${graph}
			import { MemorySaver } from "${name}";
			import { SqliteSaver } from "${name}/sqlite";
			await runOn(new MemorySaver());
			const sqlite = new SqliteSaver("app.db");
			await runOn(sqlite);
			await sqlite.close();`,
		);
		expect(output).toBe("a, step 1, b, step 3\na, step 1, b, step 3\n");
	});

	it("finds in the database file what an earlier process left there", async () => {
		const code = `${graph}
			import { SqliteSaver } from "${name}/sqlite";
			const sqlite = SqliteSaver.fromConnString("kept.db");
			await runOn(sqlite);
			await sqlite.close();`;
		expect(await runIn(app, "first.mjs", code)).toBe("a, step 1, b, step 3\n");
		expect(await runIn(app, "second.mjs", code)).toBe("a, step 1, b, step 3, a, step 5, b, step 7\n");
	});

	it("may be written in TypeScript, with any way to resolve that knows exports", async () => {
		writeFileSync(
			join(app, "app.mts"),
			`import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
			import { CheckpointError, type CheckpointErrorCode, MemorySaver } from "${name}";
			import { SqliteSaver } from "${name}/sqlite";
			import Database from "better-sqlite3";
			const savers: BaseCheckpointSaver[] = [new MemorySaver(), new SqliteSaver(new Database(":memory:"))];
			const code: CheckpointErrorCode = new CheckpointError("BUSY", "").code;
			const removed = await new MemorySaver().prune(["1"], { keepLast: 2 });
			const count: number = removed.checkpoints;
			// @ts-expect-error: no such strategy
			await new SqliteSaver(":memory:").prune(["1"], { strategy: "keep_all" });
			console.log(savers, code, count);`,
		);
		const tsc = join(root, "node_modules/typescript/bin/tsc");
		const common = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--types", "node", "app.mts"];
		const nodenext = ["--module", "nodenext", "--moduleResolution", "nodenext"];
		const bundler = ["--module", "esnext", "--moduleResolution", "bundler"];
		for (const resolution of [nodenext, bundler]) await runNode([tsc, ...resolution, ...common], { cwd: app });
	});

	it("may require() every entry point", async () => {
		const entries = Object.keys(manifest.exports);
		const output = await runIn(
			app,
			"app.cjs",
			`for (const entry of ${JSON.stringify(entries)}) require("${name}" + entry.slice(1));
			const { MemorySaver, CheckpointError } = require("${name}");
			const { SqliteSaver } = require("${name}/sqlite");
			console.log(MemorySaver.name, SqliteSaver.name, CheckpointError.name);`,
		);
		expect(output).toBe("MemorySaver SqliteSaver CheckpointError\n");
	});

	it("gets MemorySaver where better-sqlite3 is not installed", async () => {
		const output = await runIn(
			appWithoutDriver,
			"app.mjs",
			`${graph}
			import { MemorySaver } from "${name}";
			await runOn(new MemorySaver());`,
		);
		expect(output).toBe("a, step 1, b, step 3\n");
	});

	it.each([
		["is not installed", appWithoutDriver],
		["is installed but was not built", appWithUnbuiltDriver],
	])("is told what is missing when it uses a SqliteSaver where better-sqlite3 %s", async (_, project) => {
		const output = await runIn(
			project,
			"sqlite.mjs",
			`import { CheckpointError } from "${name}";
			import { SqliteSaver } from "${name}/sqlite";
			try {
				await new SqliteSaver("app.db").setup();
			} catch (error) {
				console.log(error instanceof CheckpointError, error.code, error.message.includes("better-sqlite3"));
			}`,
		);
		expect(output).toBe("true MISSING_DRIVER true\n");
	});
});

describe("A browser bundle", () => {
	it("holds no native code and stores and reads a checkpoint with nothing but web globals", async () => {
		const code = `
			import { MemorySaver } from "${name}";
			import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
			import { HumanMessage } from "@langchain/core/messages";
			export async function putAndGet() {
				const saver = new MemorySaver();
				const checkpoint = { ...emptyCheckpoint(), channel_values: { messages: [new HumanMessage("héllo")] }, channel_versions: { messages: 1 } };
				const metadata = { source: "input", step: -1, parents: {} };
				await saver.put({ configurable: { thread_id: "1" } }, checkpoint, metadata, { messages: 1 });
				const tuple = await saver.getTuple({ configurable: { thread_id: "1" } });
				return tuple.checkpoint.channel_values.messages[0].text;
			}`;
		const { outputFiles, metafile } = await build({
			stdin: { contents: code, resolveDir: app },
			bundle: true,
			platform: "browser",
			format: "iife",
			globalName: "bundle",
			metafile: true,
			write: false,
			logLevel: "silent",
		});

		const inputs = Object.keys(metafile.inputs);
		expect(inputs.some((input) => input.includes(`${name}/dist/index.js`))).toBe(true);
		expect(
			inputs.filter((input) => /better-sqlite3|msgpackr-extract|dist\/(?:studio|cli)\/|\.node$/.test(input)),
		).toEqual([]);
		const imports = Object.values(metafile.inputs).flatMap((input) => input.imports.map(({ path }) => path));
		expect(imports.filter((path) => path.startsWith("node:") || builtinModules.includes(path))).toEqual([]);

		const page = createContext({
			...{ AbortController, AbortSignal, ReadableStream, TextDecoder, TextEncoder, TransformStream, URL },
			...{ clearTimeout, console, crypto, performance, queueMicrotask, setTimeout, structuredClone },
		});
		runInContext(outputFiles[0]!.text, page);
		expect(await runInContext("bundle.putAndGet()", page)).toBe("héllo");
	});
});
