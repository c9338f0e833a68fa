import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { bundle, makeApplication, makeCacheFolder } from "./application.ts";
import { CLOCK_VARIABLE } from "./clock.ts";
import type { Job } from "./job.ts";
import { middleMean } from "./measure.ts";
import type { Message } from "./turns.ts";
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

/** What one side measured in one round. */
export interface Sample {
	readonly workload: string;
	readonly side: Side;
	readonly backend: Backend;
	readonly round: number;
	/** How long the processes ran, with all that is not measured. */
	readonly seconds: number;
	readonly measures: Measures;
}

/**
 * Starts one process per saver and workload, on sources that were bundled once: to compile them is not what is measured, nor to
 * look for hundreds of files.
 */
export class Runner {
	readonly #options: RunOptions;
	readonly #folder = makeCacheFolder();
	#count = 0;

	constructor(options: RunOptions) {
		this.#options = options;
	}

	/** To be called once, with all that will be measured. */
	async prepare(workloads: readonly Workload[]): Promise<void> {
		await this.#bundle();
		if (workloads.some(({ needsApplication }) => needsApplication))
			await makeApplication(this.#application, ["first-checkpoint.ts"], bundle);
	}

	async #bundle(): Promise<void> {
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

	get #application(): string {
		return join(this.#folder, "application");
	}

	get #worker(): string {
		return join(this.#folder, "worker.mjs");
	}

	/** Measures one round: a process on each side, or several on each in turn, which count as one sample. */
	async measure(workload: Workload, sides: readonly Side[], backend: Backend, round: number): Promise<Sample[]> {
		const repetitions = this.#options.quick ? 1 : (workload.repetitions ?? 1);
		const samples: Sample[] = [];
		for (let i = 0; i < repetitions; i++) samples.push(...(await this.#measureOnce(workload, sides, backend, round)));
		return sides.map((side) => combine(samples.filter((sample) => sample.side === side)));
	}

	/** Measures all sides at the same time, in processes that take turns: whatever else the machine does falls on all. */
	async #measureOnce(workload: Workload, sides: readonly Side[], backend: Backend, round: number): Promise<Sample[]> {
		const runs = sides.map((side) => new Run(this.#makeJob(workload, side, backend), (job) => this.#start(job)));
		try {
			if (workload.prepare !== undefined) for (const run of runs) await run.prepare();
			while (runs.some(({ measures }) => measures === undefined))
				for (const run of runs) if (run.measures === undefined) await run.takeTurn();
		} finally {
			for (const run of runs) run.end();
		}
		return runs.map(({ job: { stage }, seconds, measures }) => ({
			workload: workload.name,
			side: stage.side,
			backend,
			round,
			seconds,
			measures: measures as Measures,
		}));
	}

	#makeJob({ name }: Workload, side: Side, backend: Backend): Job {
		const folder = mkdtempSync(join(tmpdir(), "langgraph-checkpoint-delta-bench-"));
		const { quick, full, url } = this.#options;
		const application = this.#application;
		const stage: Stage = { side, backend, folder, shared: this.#folder, application, url, quick, full };
		return { workload: name, phase: "run", stage };
	}

	#start(job: Job): ChildProcess {
		// A look at memory collects all garbage, and compiled code with it that was warmed up just before.
		const flags = ["--expose-gc", "--no-warnings", "--no-flush-bytecode", ...this.#profilingFlags(job)];
		// The time of helper threads would count as well.
		if (this.#options.cpu) flags.push("--single-threaded");
		return fork(this.#worker, [JSON.stringify(job)], {
			execArgv: flags,
			env: { ...process.env, [CLOCK_VARIABLE]: this.#options.cpu ? "cpu" : "wall" },
		});
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

/** Several samples of one side as one: the mean of the middle half, as a single process may start badly. */
function combine(samples: readonly Sample[]): Sample {
	const [first] = samples as [Sample];
	const combined = Object.keys(first.measures).map((name) => {
		return [name, middleMean(samples.map(({ measures }) => measures[name] as number))];
	});
	const seconds = samples.reduce((sum, sample) => sum + sample.seconds, 0);
	return { ...first, seconds: Math.round(seconds * 10) / 10, measures: Object.fromEntries(combined) };
}

/** One side of a workload. */
class Run {
	readonly job: Job;
	readonly #start: (job: Job) => ChildProcess;
	#process: ChildProcess | undefined;
	#exit: Promise<number | null> | undefined;
	seconds = 0;
	measures: Measures | undefined;

	constructor(job: Job, start: (job: Job) => ChildProcess) {
		this.job = job;
		this.#start = start;
	}

	async prepare(): Promise<void> {
		const process = this.#start({ ...this.job, phase: "prepare" });
		const [code] = await once(process, "exit");
		if (code !== 0) throw this.#failed();
	}

	/** Lets the process run until it passes or is done. */
	async takeTurn(): Promise<void> {
		const start = performance.now();
		if (this.#process === undefined) {
			this.#process = this.#start(this.job);
			this.#exit = once(this.#process, "exit").then(([code]) => code as number | null);
		} else this.#process.send("go");
		const message = await Promise.race([once(this.#process, "message"), this.#exit]);
		if (!Array.isArray(message)) throw this.#failed();
		const said = message[0] as Message;
		if ("measures" in said) {
			await this.#exit;
			this.measures = said.measures;
		}
		this.seconds += (performance.now() - start) / 1000;
	}

	#failed(): Error {
		const { workload, stage } = this.job;
		return new Error(`${workload} failed on the ${stage.side} ${stage.backend} saver.`);
	}

	/** To be called at the end, also after an error. */
	end(): void {
		this.#process?.kill();
		rmSync(this.job.stage.folder, { recursive: true, force: true });
	}
}
