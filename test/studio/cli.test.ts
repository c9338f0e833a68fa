import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadGraphs } from "../../src/cli/load-graphs.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { type Bundle, bundle } from "../support/bundle.ts";
import { inTemporaryFolder, makeTemporaryFolder, removeFolder, root, typescript } from "../support/run-node.ts";
import { clientFor } from "./support/server.ts";

const folder = makeTemporaryFolder();
let program: Bundle;
beforeAll(async () => {
	program = await bundle("src/cli.ts", { withPackages: false });
});
afterAll(async () => {
	removeFolder(folder);
	await program[Symbol.asyncDispose]();
});

interface Command {
	readonly process: ChildProcess;
	/** All that it has printed. */
	readonly output: () => string;
	/** Waits until it has printed something. */
	readonly printed: (text: RegExp) => Promise<RegExpExecArray>;
	readonly exited: Promise<number>;
}

function run(...args: string[]): Command {
	return start([program.path, ...args]);
}

/** For graphs that import the package themselves: they and the command must have the same. */
function runFromSources(...args: string[]): Command {
	return start([...typescript, join(root, "src/cli.ts"), ...args]);
}

function start(args: string[]): Command {
	const cli = spawn(process.execPath, args, {
		cwd: folder,
		env: { ...process.env, TSX_TSCONFIG_PATH: join(root, "tsconfig.json") },
	});
	let output = "";
	for (const stream of [cli.stdout, cli.stderr]) stream.on("data", (data) => (output += data));
	const exited = once(cli, "close").then(([code]) => code as number);
	return {
		process: cli,
		output: () => output,
		exited,
		printed: async (text) => {
			for (;;) {
				const found = text.exec(output);
				if (found !== null) return found;
				if (cli.exitCode !== null) throw new Error(`It ended before it said ${text}: ${output}`);
				await Promise.race([once(cli.stdout, "data"), exited]);
			}
		},
	};
}

describe("The command studio", () => {
	it("serves a graph from a TypeScript file on an SQLite file until it is stopped", async () => {
		const graph = `${join(root, "test/studio/project/graphs.ts")}:work`;
		const command = runFromSources("studio", graph, "--db", "checkpoints.db", "--port", "0");
		const [, url] = await command.printed(/API: +(\S+)/);
		expect(command.output()).toContain(`https://smith.langchain.com/studio/?baseUrl=${url}`);
		await command.printed(/Graphs: work/);
		const client = clientFor(url!);
		const { thread_id } = await client.threads.create();
		expect(await client.runs.wait(thread_id, "work", { input: { name: "w" } })).toMatchObject({ name: "w" });
		command.process.kill("SIGTERM");
		expect(await command.exited).toBe(0);
		const saver = new SqliteSaver(join(folder, "checkpoints.db"));
		expect(await saver.getThread(thread_id)).toBeDefined();
		await saver.close();
	});

	it("serves the graphs of a langgraph.json on their own savers", async () => {
		const project = join(folder, "project");
		mkdirSync(project);
		symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
		writeFileSync(join(project, "package.json"), '{ "type": "module" }');
		writeFileSync(join(project, ".env"), "STUDIO_TEST_COLOR=green\n");
		writeFileSync(
			join(project, "graphs.mjs"),
			`import { Annotation, StateGraph } from "@langchain/langgraph";
			const State = Annotation.Root({ color: Annotation() });
			const builder = new StateGraph(State).addNode("look", () => ({ color: process.env.STUDIO_TEST_COLOR })).addEdge("__start__", "look");
			export default builder;
			export const made = async () => builder.compile();`,
		);
		const graphs = { agent: "./graphs.mjs", made: { path: "./graphs.mjs:made" } };
		writeFileSync(join(project, "langgraph.json"), JSON.stringify({ graphs, env: ".env" }));
		const command = run("studio", project, "--port", "0");
		const [, url] = await command.printed(/API: +(\S+)/);
		const client = clientFor(url!);
		for (const graph of ["agent", "made"])
			expect(await client.runs.wait(null, graph, { input: {} })).toEqual({ color: "green" });
		command.process.kill("SIGINT");
		expect(await command.exited).toBe(0);
	});

	it("says what is wrong in one line", async () => {
		const commands = [
			[["studio", "--db", "a", "--postgres", "b"], "pass --db or --postgres, not both"],
			[["studio", "--colour"], "Unknown option '--colour'"],
			[["draw"], 'There is no command "draw"'],
		] as const;
		await Promise.all(
			commands.map(async ([args, message]) => {
				const command = run(...args);
				expect(await command.exited).toBe(1);
				expect(command.output()).toContain(message);
				expect(command.output()).not.toMatch(/^ +at /m);
			}),
		);
	});
});

describe("Graphs are loaded", () => {
	it("or it is said why not", async () => {
		await inTemporaryFolder(async (folder) => {
			const write = (name: string, text: string) => {
				writeFileSync(join(folder, name), text);
				return join(folder, name);
			};
			const cases: [string, string][] = [
				[join(folder, "none.mjs"), "There is no file"],
				[`${write("empty.mjs", "")}:graph`, 'exports no "graph": it has nothing'],
				[`${write("number.mjs", "export const graph = 1")}:graph`, "is no graph, but 1"],
				[folder, "langgraph.json: name a graph"],
				[write("wrong.json", "{"), "is not JSON"],
				[write("none.json", "{}"), "has no `graphs`"],
				[write("path.json", '{ "graphs": { "a": 1 } }'), 'has no path for graph "a"'],
				[write("env.json", '{ "graphs": {}, "env": "." }'), "which can't be read"],
			];
			for (const [spec, message] of cases)
				await expect(loadGraphs(spec), spec).rejects.toMatchObject({
					code: "INVALID_OPTION",
					message: expect.stringContaining(message),
				});
		});
	});

	it("takes any name for a graph", async () => {
		await inTemporaryFolder(async (folder) => {
			writeFileSync(join(folder, "graph.mjs"), "export default { getStateHistory() {} };");
			const project = join(folder, "langgraph.json");
			writeFileSync(project, '{ "graphs": { "__proto__": "./graph.mjs", "constructor": "./graph.mjs" } }');
			expect(Object.keys(await loadGraphs(project))).toEqual(["__proto__", "constructor"]);
		});
	});
});
