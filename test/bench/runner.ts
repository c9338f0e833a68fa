import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { build } from "esbuild";
import { CLOCK_VARIABLE } from "./clock.ts";
import type { Job } from "./job.ts";
import type { Backend, Measures, Side, Stage, Workload } from "./workload.ts";

export interface RunOptions {
	readonly quick: boolean;
	readonly full: boolean;
	/** Processor time is counted. */
	readonly cpu: boolean;
	/** Of a PostgreSQL server, if that is what is measured on. */
	readonly url?: string | undefined;
	/** Where to write what the processor did, for each process. */
	readonly profiles?: string | undefined;
}

/** What one process measured. */
export interface Sample {
	readonly workload: string;
	readonly side: Side;
	readonly backend: Backend;
	readonly round: number;
	/** How long the process took, with all that is not measured. */
	readonly seconds: number;
	readonly measures: Measures;
}

/**
 * Starts one process per measurement, on sources that were bundled once: to compile them is not what is measured, nor to
 * look for hundreds of files.
 */
export class Runner {
	readonly #options: RunOptions;
	readonly #folder = makeCacheFolder();
	#count = 0;

	constructor(options: RunOptions) {
		this.#options = options;
	}

	async bundle(): Promise<void> {
		await build({
			entryPoints: [join(import.meta.dirname, "worker.ts")],
			outfile: this.#worker,
			bundle: true,
			external: ["better-sqlite3", "pg"],
			// Some packages still ask for others in the older way.
			banner: {
				js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
			},
			platform: "node",
			format: "esm",
			target: "node20",
			// For whoever looks at the profiles.
			sourcemap: this.#options.profiles === undefined ? false : "inline",
			logLevel: "error",
		});
	}

	get #worker(): string {
		return join(this.#folder, "worker.mjs");
	}

	async measure(workload: Workload, side: Side, backend: Backend, round: number): Promise<Sample> {
		const folder = mkdtempSync(join(tmpdir(), "langgraph-checkpoint-delta-bench-"));
		const { quick, full, url } = this.#options;
		const stage: Stage = { side, backend, folder, shared: this.#folder, url, quick, full };
		const start = performance.now();
		try {
			if (workload.prepare !== undefined) await this.#start({ workload: workload.name, phase: "prepare", stage });
			const output = await this.#start({ workload: workload.name, phase: "run", stage });
			const seconds = Math.round((performance.now() - start) / 100) / 10;
			return { workload: workload.name, side, backend, round, seconds, measures: JSON.parse(output) as Measures };
		} finally {
			rmSync(folder, { recursive: true, force: true });
		}
	}

	async #start(job: Job): Promise<string> {
		// A look at memory collects all garbage, and compiled code with it that was warmed up just before.
		const flags = ["--expose-gc", "--no-warnings", "--no-flush-bytecode", ...this.#profilingFlags(job)];
		// The time of helper threads would count as well.
		if (this.#options.cpu) flags.push("--single-threaded");
		const worker = spawn(process.execPath, [...flags, this.#worker, JSON.stringify(job)], {
			stdio: ["ignore", "pipe", "inherit"],
			env: { ...process.env, [CLOCK_VARIABLE]: this.#options.cpu ? "cpu" : "wall" },
		});
		const [output, [code]] = await Promise.all([text(worker.stdout), once(worker, "exit")]);
		const { side, backend } = job.stage;
		if (code !== 0) throw new Error(`${job.workload} failed on the ${side} ${backend} saver.`);
		return output;
	}

	#profilingFlags({ workload, phase, stage: { side, backend } }: Job): string[] {
		const { profiles } = this.#options;
		if (profiles === undefined || phase !== "run") return [];
		const name = `${workload}.${side}.${backend}.${this.#count++}.cpuprofile`;
		return ["--cpu-prof", `--cpu-prof-dir=${resolve(profiles)}`, `--cpu-prof-name=${name}`];
	}

	close(): void {
		rmSync(this.#folder, { recursive: true, force: true });
	}
}

/** Inside `node_modules`, so that the bundle finds the packages that are not in it. */
function makeCacheFolder(): string {
	const cache = resolve(import.meta.dirname, "../../node_modules/.cache");
	mkdirSync(cache, { recursive: true });
	return mkdtempSync(join(cache, "bench-"));
}
