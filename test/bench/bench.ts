import { writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drawGrowth } from "./plot.ts";
import { formatReport, makeReport } from "./report.ts";
import { Runner, type Sample } from "./runner.ts";
import type { Backend, Side, Workload } from "./workload.ts";
import { workloads } from "./workloads/index.ts";

/** Further rounds are left out that would end later: ten minutes are enough on a slow day, too. */
const MOST_SECONDS = 560;

const HELP = `Measures our savers beside the official ones, and prints how many times smaller and faster they are.

  npm run bench -- [options]

  --only <name>     only this workload, or all whose names begin so; may be repeated
  --postgres        the savers for PostgreSQL, on a server that is started for it, or that TEST_POSTGRES_URL names
  --quick           small sizes and one round: shows that everything runs, not how fast
  --rounds <n>      that many rounds of each workload
  --full            official savers take every step of the longest threads, not a sample
  --cpu             counts processor time, for a machine that is busy with other things
  --json <path>     where to write all figures (default: in the temporary folder)
  --plot            draws the growth of a thread to test/bench/growth.svg
  --profile <dir>   writes a CPU profile of each process

  workloads: ${workloads.map(({ name }) => name).join(", ")}
`;

const { values: options } = parseArgs({
	options: {
		only: { type: "string", multiple: true },
		postgres: { type: "boolean", default: false },
		quick: { type: "boolean", default: false },
		rounds: { type: "string" },
		full: { type: "boolean", default: false },
		cpu: { type: "boolean", default: false },
		json: { type: "string", default: join(tmpdir(), "langgraph-checkpoint-delta-bench.json") },
		plot: { type: "boolean", default: false },
		profile: { type: "string" },
		help: { type: "boolean", default: false },
	},
});

/** Growth is for the plot alone. */
function chooseWorkloads(): Workload[] {
	const { only, plot } = options;
	const possible = workloads.filter((workload) => backendsOf(workload).length > 0);
	if (only === undefined) return possible.filter(({ name }) => plot || name !== "growth");
	const chosen = possible.filter(({ name }) => only.some((prefix) => name.startsWith(prefix)));
	if (chosen.length === 0) throw new Error(`No workload is called ${only.join(" or ")}.`);
	return chosen;
}

/** PostgreSQL is measured by itself: its server would take time from the others. */
function backendsOf({ backends }: Workload): Backend[] {
	return backends.filter((backend) => (backend === "postgres") === options.postgres);
}

function countRounds({ rounds = 1 }: Workload, backend: Backend): number {
	if (options.rounds !== undefined) return Number(options.rounds);
	if (options.quick) return 1;
	return typeof rounds === "number" ? rounds : (rounds[backend] ?? 1);
}

/** One workload on one backend, once. */
interface Turn {
	readonly workload: Workload;
	readonly backend: Backend;
	readonly round: number;
	readonly rounds: number;
}

/** Everything once, then once more as often as it varies: what the machine does for a while falls on one round of a workload. */
function listTurns(chosen: readonly Workload[]): Turn[] {
	const all = chosen.flatMap((workload) =>
		backendsOf(workload).flatMap((backend) => {
			const rounds = countRounds(workload, backend);
			return Array.from({ length: rounds }, (_, n) => ({ workload, backend, round: n + 1, rounds }));
		}),
	);
	return all.sort((a, b) => a.round - b.round || (a.round > 1 ? b.rounds - a.rounds : 0));
}

async function measureAll(chosen: readonly Workload[]): Promise<Sample[]> {
	const server = options.postgres ? await startServer() : undefined;
	const runner = new Runner({ ...options, profiles: options.profile, url: server?.url });
	const start = Date.now();
	const samples: Sample[] = [];
	const turns = listTurns(chosen);
	let leftOut = 0;
	try {
		await runner.prepare(chosen);
		for (const [i, { workload, backend, round, rounds }] of turns.entries()) {
			if (round > 1 && !hasTime(start, samples, workload, backend)) {
				leftOut++;
				continue;
			}
			const measure = async (sides: readonly Side[]) => {
				const what = `${workload.name} ${round}/${rounds} ${backend}, ${sides.join(" and ")}`;
				showProgress(start, `${i + 1}/${turns.length} ${what}`);
				samples.push(...(await runner.measure(workload, sides, backend, round)));
			};
			await measure(["official", "ours"]);
			// The limit is no competitor: that it was once as good is enough.
			if (workload.limit !== undefined && backend !== "postgres" && round === 1) await measure(["limit"]);
		}
	} finally {
		runner.close();
		await server?.stop();
		showProgress(start, leftOut > 0 ? `done, without ${leftOut} rounds for want of time\n` : "done\n");
	}
	return samples;
}

/** Whether one more round of a workload ends in time, if it takes as long as the first. One that was asked for does. */
function hasTime(start: number, samples: readonly Sample[], { name }: Workload, backend: Backend): boolean {
	if (options.rounds !== undefined) return true;
	const first = samples.filter((one) => one.workload === name && one.backend === backend && one.round === 1);
	const seconds = first.reduce((sum, one) => sum + (one.side === "limit" ? 0 : one.seconds), 0);
	return (Date.now() - start) / 1000 + seconds < MOST_SECONDS;
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
	const { TEST_POSTGRES_URL: url } = process.env;
	if (url) return { url, stop: async () => {} };
	const { PostgresServer } = await import("../support/postgres-server.ts");
	return PostgresServer.start();
}

/** One line that changes; where it can't, a line each time. */
function showProgress(start: number, what: string): void {
	const seconds = Math.round((Date.now() - start) / 1000);
	const line = `${String(seconds).padStart(4)} s  ${what}`;
	if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`);
	else process.stderr.write(line.endsWith("\n") ? line : `${line}\n`);
}

if (options.help) process.stdout.write(HELP);
else {
	const chosen = chooseWorkloads();
	const samples = await measureAll(chosen);
	const report = makeReport(chosen, samples);
	process.stdout.write(`\n${formatReport(chosen, report)}`);
	const machine = { date: new Date().toISOString(), node: process.version, cpus: cpus().map(({ model }) => model) };
	writeFileSync(options.json, `${JSON.stringify({ machine, ...report, samples }, undefined, "\t")}\n`);
	process.stdout.write(`\nAll figures: ${options.json}\n`);
	if (options.plot) {
		const path = join(import.meta.dirname, "growth.svg");
		writeFileSync(path, drawGrowth(samples));
		process.stdout.write(`Plot: ${path}\n`);
	}
}
