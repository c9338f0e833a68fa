import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Job } from "./job.ts";
import { readBriefly } from "./measure.ts";
import { type Message, startTakingTurns } from "./turns.ts";
import type { Measures, Workload } from "./workload.ts";
import { workloads } from "./workloads/index.ts";

const job = JSON.parse(process.argv[2] as string) as Job;
const workload = workloads.find(({ name }) => name === job.workload) as Workload;

if (job.stage.quick) readBriefly();
if (job.phase === "part") await workload.part?.(job.stage, job.part as number);
else if (job.phase === "prepare") await workload.prepare?.(job.stage);
else {
	if (!workload.isCold) {
		await warmUp();
		await startTakingTurns();
	}
	process.send?.({ measures: await measure(job.stage) } satisfies Message);
	process.disconnect();
}

function measure(stage: Job["stage"]): Promise<Measures> {
	if (stage.side !== "limit") return workload.run(stage);
	if (workload.limit === undefined) throw new Error(`${workload.name} has no limit.`);
	return workload.limit(stage);
}

/** Small sizes first, so that what is measured is what a server does all day and not how a process gets going. */
async function warmUp(): Promise<void> {
	const folder = join(job.stage.folder, "warm-up");
	const end = Date.now() + (job.stage.quick ? 0 : (workload.warmUpMs ?? 0));
	do {
		mkdirSync(folder);
		await measure({ ...job.stage, folder, quick: true, isWarmUp: true });
		rmSync(folder, { recursive: true });
	} while (Date.now() < end);
}
