import { parseArgs } from "node:util";
import { Random } from "../bench/random.ts";
import { inTemporaryFolder } from "../support/run-node.ts";
import { makeFixtures } from "./flip-rounds.ts";

/** Changes bytes of databases at random, one at a time, and looks what comes of it. */
const { values } = parseArgs({
	options: {
		flips: { type: "string", default: "10000" },
		seed: { type: "string", default: "1" },
		/** Number of the first flip: to see one again, `--first 123 --flips 1`. */
		first: { type: "string", default: "0" },
	},
});
const seed = Number(values.seed);
const first = Number(values.first);
const end = first + Number(values.flips);

await inTemporaryFolder(async (folder) => {
	const fixtures = await makeFixtures(folder);
	const count = { flips: 0, reported: 0, "silently wrong": 0, repaired: 0, "without loss": 0, "not repaired": 0 };
	const places = new Map<string, number>();
	const losses: number[] = [];
	for (let n = first; n < end; n++) {
		const random = new Random(seed * 1_000_003 + n);
		const fixture = random.pick(fixtures);
		const { flip, isReported, repaired, wrong, unrepaired } = await fixture.try(fixture.choose(random));
		places.set(flip.where, (places.get(flip.where) ?? 0) + 1);
		count.flips++;
		if (isReported) count.reported++;
		if (wrong.length > 0) count["silently wrong"]++;
		if (repaired !== undefined) {
			count[unrepaired.length > 0 ? "not repaired" : "repaired"]++;
			if (repaired.size > 0) losses.push(repaired.size);
			else count["without loss"]++;
		}
		for (const what of [...wrong, ...unrepaired].slice(0, 3))
			console.log(`flip ${n} of seed ${seed}, ${fixture.name}, ${flip.where} at ${flip.offset}: ${what}`);
		if (count.flips % 500 === 0) console.log(JSON.stringify(count));
	}
	console.log(`${JSON.stringify(count)}\nflips by place: ${JSON.stringify(Object.fromEntries(places))}`);
	const named = losses.reduce((sum, one) => sum + one, 0);
	console.log(`threads named by a repair with losses: ${(named / losses.length || 0).toFixed(2)} of 20 on average`);
	if (count["silently wrong"] + count["not repaired"] > 0) process.exitCode = 1;
});
