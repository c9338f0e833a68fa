import { parseArgs } from "node:util";
import { CheckpointError, quote } from "../errors.ts";
import type { DeltaSaver } from "../saver/delta-saver.ts";
import { createStudioHandler } from "../studio/handler.ts";
import { serveStudio } from "../studio/serve.ts";
import { loadGraphs } from "./load-graphs.ts";

/** `studio`: serves graphs from files until it is told to stop. */
export async function studio(args: string[]): Promise<void> {
	const { values, positionals } = parseArgs({
		args,
		allowPositionals: true,
		options: { db: { type: "string" }, postgres: { type: "string" }, port: { type: "string" } },
	});
	if (positionals.length > 1)
		throw new CheckpointError(
			"INVALID_OPTION",
			`studio takes one graph, or a langgraph.json, got ${positionals.length}.`,
		);
	const checkpointer = await openSaver(values);
	const graphs = await loadGraphs(positionals[0] ?? "langgraph.json");
	const handler = createStudioHandler({ graphs, ...(checkpointer && { checkpointer }) });
	const server = await serveStudio(handler, { port: readPort(values.port) });
	console.log(`Graphs: ${Object.keys(graphs).join(", ")}`);
	await stopSignal();
	await server.close();
	await checkpointer?.close();
	// A graph's own saver may hold the process open.
	process.exit();
}

/** Drivers are loaded only if they are asked for. */
async function openSaver(options: { db?: string; postgres?: string }): Promise<DeltaSaver | undefined> {
	if (options.db !== undefined && options.postgres !== undefined)
		throw new CheckpointError("INVALID_OPTION", "Threads are kept in one place: pass --db or --postgres, not both.");
	if (options.db !== undefined) return new (await import("../sqlite.ts")).SqliteSaver(options.db);
	if (options.postgres !== undefined) return new (await import("../postgres.ts")).PostgresSaver(options.postgres);
	return undefined;
}

function readPort(text: string | undefined): number | undefined {
	if (text === undefined) return undefined;
	const port = Number(text);
	if (/^\d+$/.test(text) && port < 65_536) return port;
	throw new CheckpointError("INVALID_OPTION", `--port must be a number from 0 to 65535, got ${quote(text)}.`);
}

function stopSignal(): Promise<void> {
	return new Promise((resolve) => {
		for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
	});
}
