import { killUnderLoad } from "./kills.ts";

const KILLS = 100;
const seed = Number(process.argv[2] ?? 1);
const started = performance.now();
const report = await killUnderLoad(KILLS, seed, (done) => {
	if (done % 10 === 0) console.log(`${done} kills`);
});
const { kills, checkpoints, writes, longestGap, faults } = report;
console.log(
	`${kills} kills in ${((performance.now() - started) / 1000).toFixed(0)} s: ${checkpoints} checkpoints and ${writes} calls of putWrites ` +
		`acknowledged, ${faults.length} lost or doubled; longest pause ${longestGap.toFixed(0)} ms`,
);
for (const fault of faults.slice(0, 20)) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
