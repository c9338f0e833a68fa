import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CheckpointError, quote } from "../errors.ts";
import type { Graph, GraphFactory } from "../studio/graphs/graph.ts";

type Graphs = Record<string, Graph | GraphFactory>;

/** The graphs of a `langgraph.json`, or the one that a file exports: `./agent.ts:graph`. */
export async function loadGraphs(spec: string): Promise<Graphs> {
	const places = findGraphs(spec);
	const typescript = places.find(({ path }) => /\.[mc]?tsx?$/.test(path));
	if (typescript !== undefined) await enableTypeScript(typescript.path);
	// A graph may have any name, also that of a property of all objects.
	const graphs: Graphs = Object.create(null);
	for (const place of places) graphs[place.id] = await loadGraph(place);
	return graphs;
}

/** Where a graph is. */
interface Place {
	readonly id: string;
	readonly path: string;
	/** What the file exports it as. */
	readonly name: string;
}

function findGraphs(spec: string): Place[] {
	const path = resolve(spec);
	if (existsSync(path) && statSync(path).isDirectory()) return findInProject(join(path, "langgraph.json"));
	if (extname(spec) === ".json") return findInProject(path);
	const place = readSpec(spec, process.cwd());
	return [{ id: place.name === "default" ? "agent" : place.name, ...place }];
}

function findInProject(path: string): Place[] {
	const { graphs, env } = readProject(path);
	const folder = dirname(path);
	setEnvironment(env, folder);
	return Object.entries(graphs).map(([id, entry]) => {
		const spec = typeof entry === "string" ? entry : entry?.path;
		if (typeof spec === "string") return { id, ...readSpec(spec, folder) };
		throw new CheckpointError("INVALID_OPTION", `${path} has no path for graph ${quote(id)}.`);
	});
}

/** A file, and what it exports. A Windows path has a colon of its own. */
function readSpec(spec: string, folder: string): { path: string; name: string } {
	const at = spec.lastIndexOf(":");
	if (at <= 1) return { path: resolve(folder, spec), name: "default" };
	return { path: resolve(folder, spec.slice(0, at)), name: spec.slice(at + 1) };
}

interface Project {
	graphs: Record<string, string | { path?: string }>;
	env?: string | Record<string, string>;
}

function readProject(path: string): Project {
	if (!existsSync(path))
		throw new CheckpointError("INVALID_OPTION", `There is no ${path}: name a graph, as ./agent.ts:graph.`);
	try {
		const project = JSON.parse(readFileSync(path, "utf8")) as Project;
		if (typeof project.graphs === "object" && project.graphs !== null) return project;
	} catch (cause) {
		throw new CheckpointError("INVALID_OPTION", `${path} is not JSON: ${(cause as Error).message}`, { cause });
	}
	throw new CheckpointError("INVALID_OPTION", `${path} has no \`graphs\`.`);
}

/** What is set already stays. */
function setEnvironment(env: Project["env"], folder: string): void {
	if (typeof env === "string") {
		const file = resolve(folder, env);
		if (existsSync(file)) loadEnvironment(file);
	} else for (const [name, value] of Object.entries(env ?? {})) process.env[name] ??= value;
}

function loadEnvironment(file: string): void {
	try {
		process.loadEnvFile(file);
	} catch (cause) {
		const message = `\`env\` names ${quote(file)}, which can't be read: ${(cause as Error).message}`;
		throw new CheckpointError("INVALID_OPTION", message, { cause });
	}
}

async function loadGraph({ path, name }: Place): Promise<Graph | GraphFactory> {
	if (!existsSync(path)) throw new CheckpointError("INVALID_OPTION", `There is no file ${quote(path)}.`);
	const exports = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
	if (!Object.hasOwn(exports, name))
		throw new CheckpointError(
			"INVALID_OPTION",
			`${path} exports no ${quote(name)}: it has ${Object.keys(exports).join(", ") || "nothing"}.`,
		);
	return toGraph(await exports[name], `${path}:${name}`);
}

/** A graph, a graph that is not compiled yet, or a function that makes one. */
function toGraph(value: unknown, spec: string): Graph | GraphFactory {
	if (typeof value === "function") return async (config) => toGraph(await value(config), spec) as Graph;
	if (typeof (value as Graph | undefined)?.getStateHistory === "function") return value as Graph;
	const { compile } = (value ?? {}) as { compile?: unknown };
	if (typeof compile === "function") return compile.call(value) as Graph;
	throw new CheckpointError("INVALID_OPTION", `${spec} is no graph, but ${quote(value)}.`);
}

/** Lets Node import TypeScript: with tsx, if the project has it, or as Node does it by itself from 22.18 on. */
async function enableTypeScript(path: string): Promise<void> {
	try {
		await import(pathToFileURL(createRequire(path).resolve("tsx")).href);
	} catch (cause) {
		if ("typescript" in process.features && process.features.typescript) return;
		const message = "This Node can't run TypeScript by itself: `npm install --save-dev tsx`.";
		throw new CheckpointError("MISSING_DRIVER", message, { cause });
	}
}
