import { parseArgs } from "node:util";
import { soak } from "./soak-run.ts";

/** Four processes on one file for five minutes. */
const { values } = parseArgs({
	options: {
		processes: { type: "string", default: "4" },
		seconds: { type: "string", default: "300" },
		seed: { type: "string", default: "1" },
	},
});
const { operations, shared, reads, bytes, problems } = await soak(
	Number(values.processes),
	Number(values.seconds),
	Number(values.seed),
);
console.log(
	`${values.processes} processes for ${values.seconds} s: ${operations} operations, ${shared} checkpoints in one thread of all, ` +
		`${reads} checkpoints of others read; ${bytes} bytes after compaction, ${problems.length} problems`,
);
for (const problem of problems.slice(0, 20)) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
