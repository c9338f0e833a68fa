import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { percentile } from "../../bench/measure.ts";
import { openPostgres, takePostgresBytes } from "../../bench/postgres.ts";
import type { Side, Stage } from "../../bench/workload.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import type { LoadJob } from "./throughput-worker.ts";

const WORKERS = 4;
const [seconds = "15"] = process.argv.slice(2);
const DURATION = Number(seconds) * 1000;
const WARM_UP = Math.min(3_000, DURATION);

interface Figures {
	readonly side: Side;
	readonly stepsPerSecond: number;
	readonly p50: number;
	readonly p99: number;
	readonly bytesPerStep: number;
}

/** Puts load on one saver: four servers of an application, each with connections of its own. */
async function measure(side: Side, url: string): Promise<Figures> {
	const stage: Stage = { side, backend: "postgres", folder: `load ${side}`, url, quick: false, full: false };
	// The official saver's setup fails if several call it at once.
	await (await openPostgres(stage)).close();
	const workers = Array.from({ length: WORKERS }, async (_, index) => {
		const job: LoadJob = { stage, index, warmUp: WARM_UP, duration: DURATION };
		const worker = fork(join(import.meta.dirname, "throughput-worker.ts"), [JSON.stringify(job)]);
		const exited = once(worker, "exit").then(([code]) => {
			if (code !== 0) throw new Error(`A worker failed on the ${side} saver.`);
		});
		const [times] = await Promise.race([once(worker, "message"), exited.then(() => [[]])]);
		await exited;
		return times as number[];
	});
	const times = (await Promise.all(workers)).flat();
	// What was stored while warming up is about as much for each second.
	const steps = (times.length * (DURATION + WARM_UP)) / DURATION;
	return {
		side,
		stepsPerSecond: times.length / (DURATION / 1000),
		p50: percentile(times, 50),
		p99: percentile(times, 99),
		bytesPerStep: (await takePostgresBytes(stage)) / steps,
	};
}

const { TEST_POSTGRES_URL } = process.env;
const server = TEST_POSTGRES_URL ? undefined : await PostgresServer.start({ max_connections: "100" });
const url = TEST_POSTGRES_URL ?? (server?.url as string);
try {
	const all = [await measure("official", url), await measure("ours", url)];
	const titles = { official: "official PostgresSaver", ours: "PostgresSaver", limit: "" };
	console.log(
		`Four worker processes, ${seconds} s each. A step is put and putWrites, three of them a turn with one getTuple.\n`,
	);
	console.log("|  | steps per second | p50 | p99 | bytes per step |\n|---|---:|---:|---:|---:|");
	for (const { side, stepsPerSecond, p50, p99, bytesPerStep } of all)
		console.log(
			`| ${titles[side]} | ${stepsPerSecond.toFixed(0)} | ${p50.toFixed(1)} ms | ${p99.toFixed(1)} ms | ${bytesPerStep.toFixed(0)} |`,
		);
} finally {
	await server?.stop();
}
