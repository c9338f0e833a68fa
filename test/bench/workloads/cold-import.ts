import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { middleMean } from "../measure.ts";
import { pass } from "../turns.ts";
import type { Stage, Workload } from "../workload.ts";

const REPETITIONS = 11;

/** The packages as an application imports them. */
const PACKAGES: Record<string, string> = {
	"ours sqlite": "langgraph-checkpoint-delta/sqlite",
	"ours memory": "langgraph-checkpoint-delta",
	"official sqlite": "@langchain/langgraph-checkpoint-sqlite",
	"official memory": "@langchain/langgraph-checkpoint",
};

/** The milliseconds from the start of a process to its first checkpoint. */
async function startOnce({ side, backend, folder, application }: Stage, index: number): Promise<number> {
	const script = join(application as string, "first-checkpoint.mjs");
	const flags = process.execArgv.filter((flag) => flag === "--single-threaded");
	const file = backend === "sqlite" ? [join(folder, `first-${index}.db`)] : [];
	const args = [...flags, script, PACKAGES[`${side} ${backend}`] as string, ...file];
	const { stdout } = await promisify(execFile)(process.execPath, args);
	return Number(stdout);
}

/** A script that imports the saver, stores a checkpoint and reads it. Both packages are imported file by file, not bundled. */
export const coldImport: Workload = {
	name: "cold-import",
	title: "cold, from the start of the process",
	backends: ["sqlite", "memory"],
	measures: { first: { title: "first checkpoint stored and read" } },
	needsApplication: true,
	async run(stage) {
		const times: number[] = [];
		for (let i = 0; i < (stage.quick ? 1 : REPETITIONS); i++) {
			times.push(await startOnce(stage, i));
			await pass();
		}
		return { first: middleMean(times) };
	},
};
