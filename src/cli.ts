#!/usr/bin/env node
import { studio } from "./cli/studio-command.ts";
import { CheckpointError } from "./errors.ts";

const USAGE = `Usage: langgraph-checkpoint-delta <command>

  studio [graph] [options]   serve graphs to LangGraph Studio and other LangGraph clients

      graph                  a file and what it exports, as ./agent.ts:graph, or a langgraph.json;
                             default: the langgraph.json of this folder
      --db <file>            keep threads in this SQLite file
      --postgres <url>       keep threads in this PostgreSQL database
                             default: in the checkpointer that the graph was compiled with
      --port <number>        listen on this port of 127.0.0.1, default 2024

  Each may be called with --help.`;

async function main([command, ...args]: string[]): Promise<void> {
	if (command === undefined || command === "help" || [command, ...args].includes("--help")) return console.log(USAGE);
	if (command === "studio") return studio(args);
	throw new CheckpointError("INVALID_OPTION", `There is no command "${command}".\n\n${USAGE}`);
}

try {
	await main(process.argv.slice(2));
} catch (error) {
	// What is wrong with a command is for people; where it was noticed is for us.
	console.error(isMistake(error) ? error.message : error);
	process.exitCode = 1;
}

/** Something that the person at the keyboard can change: an option, a file, a port that is taken. */
function isMistake(error: unknown): error is Error {
	if (error instanceof CheckpointError) return true;
	const { code = "", syscall } = error as { code?: string; syscall?: string };
	return code.startsWith("ERR_PARSE_ARGS") || syscall === "listen";
}
