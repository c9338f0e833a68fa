import fc from "fast-check";
import { histories, runHistory } from "../../support/histories.ts";
import { historyBackends } from "../../support/history-backends.ts";

/** Usage: tsx test/stress/fuzz/histories.ts [runs per backend] [seed] */
const runs = Number(process.argv[2] ?? 10_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

for (const [name, setup] of Object.entries(historyBackends)) {
	const started = Date.now();
	await fc.assert(
		fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
		{ numRuns: runs, seed },
	);
	console.log(
		`${name}: ${runs} random histories, seed ${seed}, no difference (${Math.round((Date.now() - started) / 1000)} s)`,
	);
}
