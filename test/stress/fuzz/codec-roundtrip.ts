import fc from "fast-check";
import { leavesOlderBytesAlone, remembersNothingOld, remembersWhatWasRead } from "../../codec/mutations.ts";
import { comesBack } from "../../codec/properties.ts";

/** Usage: tsx test/stress/fuzz/codec-roundtrip.ts [values] [seed] */
const runs = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

const properties = {
	"values came back as they were, with the same bytes": [comesBack, runs],
	"histories of changes in place gave the bytes of what was there": [remembersNothingOld, Math.ceil(runs / 10)],
	"histories of lists that were read gave the bytes of what was there": [remembersWhatWasRead, Math.ceil(runs / 10)],
	"conversations that went on left older bytes alone": [leavesOlderBytesAlone, Math.ceil(runs / 10)],
} as const;

for (const [what, [property, numRuns]] of Object.entries(properties)) {
	const started = Date.now();
	fc.assert(property as fc.IProperty<unknown>, { numRuns, seed });
	console.log(`${numRuns} ${what}: seed ${seed}, no difference (${Math.round((Date.now() - started) / 1000)} s)`);
}
