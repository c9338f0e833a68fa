import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { crash } from "./crash-rounds.ts";

/** Kills processes while they write, and checks what is left. */
const { values } = parseArgs({
	options: {
		kills: { type: "string", default: "2000" },
		seed: { type: "string", default: "1" },
		/** Files at a time. With one, the same seed gives the same faults. */
		lanes: { type: "string", default: String(availableParallelism()) },
	},
});
const kills = Number(values.kills);
const started = performance.now();
let shown = 0;
const report = await crash({
	kills,
	seed: Number(values.seed),
	lanes: Number(values.lanes),
	onProgress: ({ kills: { random, fault } }) => {
		if (random + fault < shown + 100) return;
		shown = random + fault;
		console.log(`${shown} kills, ${((performance.now() - started) / 1000).toFixed(0)} s`);
	},
});
const { random, fault } = report.kills;
const sum = Object.values(report.acknowledged).reduce((total, count) => total + count, 0);
console.log(`${random + fault} kills: ${random} at random moments, ${fault} at faults before and after statements`);
for (const [kind, { kills, statements }] of Object.entries(report.faults))
	console.log(`  in ${kind}: ${kills} kills, at up to ${statements} statements`);
console.log(`${sum} operations acknowledged: ${JSON.stringify(report.acknowledged)}`);
console.log(`${report.doneUnsaid} were done and had not been acknowledged; ${report.problems.length} problems`);
for (const problem of report.problems) console.error(problem);
if (report.problems.length > 0) process.exitCode = 1;
