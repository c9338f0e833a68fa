import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
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
		/** Processes. */
		lanes: { type: "string", default: String(availableParallelism()) },
	},
});
const seed = Number(values.seed);
const first = Number(values.first);
const flips = Number(values.flips);

interface Count {
	flips: number;
	/** Answered with an error. */
	reported: number;
	/** Answered without something that was stored. */
	hidden: number;
	/** Answered with something that was never stored. */
	"other values": number;
	/** Answered without something, and a verification did not say so. */
	unnamed: number;
	repaired: number;
	/** Of those: without the loss of anything. */
	"without loss": number;
	/** Not repaired because SQLite could read nothing. */
	refused: number;
	"not repaired": number;
	/** Threads that repairs with losses named. */
	"threads hurt": number;
	places: Record<string, number>;
}

const nothing = (): Count => ({
	flips: 0,
	reported: 0,
	hidden: 0,
	"other values": 0,
	unnamed: 0,
	repaired: 0,
	"without loss": 0,
	refused: 0,
	"not repaired": 0,
	"threads hurt": 0,
	places: {},
});

async function flip(from: number, to: number): Promise<Count> {
	return inTemporaryFolder(async (folder) => {
		const fixtures = await makeFixtures(folder);
		const count = nothing();
		for (let n = from; n < to; n++) {
			const random = new Random(seed * 1_000_003 + n);
			const fixture = random.pick(fixtures);
			const result = await fixture.try(fixture.choose(random));
			const { flip, repaired, wrong, unnamed, unrepaired } = result;
			count.flips++;
			count.places[flip.where] = (count.places[flip.where] ?? 0) + 1;
			if (result.isReported) count.reported++;
			if (result.isHidden) count.hidden++;
			if (wrong.length > 0) count["other values"]++;
			if (unnamed.length > 0) count.unnamed++;
			if (result.refused !== undefined) count.refused++;
			if (unrepaired.length > 0) count["not repaired"]++;
			else if (repaired !== undefined) count.repaired++;
			if (repaired?.size === 0) count["without loss"]++;
			count["threads hurt"] += repaired?.size ?? 0;
			const place = `flip ${n} of seed ${seed}, ${fixture.name}, ${flip.where} at ${flip.offset}`;
			for (const name of wrong.slice(0, 3)) console.log(`${place}: ${name} has another value`);
			for (const name of unnamed.slice(0, 3)) console.log(`${place}: ${name} lacks something that is not named`);
			for (const problem of unrepaired.slice(0, 3)) console.log(`${place}: ${problem}`);
			if (count.flips % 500 === 0)
				console.log(`flips ${from} to ${n}: ${JSON.stringify({ ...count, places: undefined })}`);
		}
		return count;
	});
}

/** A part of the flips, in a process of its own. */
function flipElsewhere(from: number, to: number): Promise<Count> {
	const args = ["--seed", String(seed), "--first", String(from), "--flips", String(to - from)];
	const child = fork(import.meta.filename, args);
	return new Promise((resolve, reject) => {
		child.on("message", (count) => resolve(count as Count));
		child.on("exit", (code) => reject(new Error(`A process ended with ${code} before it was done.`)));
	});
}

function add(sum: Count, part: Count): Count {
	const places = { ...sum.places };
	for (const [where, count] of Object.entries(part.places)) places[where] = (places[where] ?? 0) + count;
	const keys = Object.keys(nothing()) as (keyof Count)[];
	const numbers = keys.filter((key) => key !== "places").map((key) => [key, Number(sum[key]) + Number(part[key])]);
	return { ...(Object.fromEntries(numbers) as unknown as Count), places };
}

if (process.send !== undefined) process.send(await flip(first, first + flips), () => process.disconnect());
else {
	const lanes = Math.min(Number(values.lanes), flips);
	const bounds = Array.from({ length: lanes + 1 }, (_, n) => first + Math.round((flips * n) / lanes));
	const parts = bounds.slice(1).map((to, n) => flipElsewhere(bounds[n] as number, to));
	const { places, ...count } = (await Promise.all(parts)).reduce(add, nothing());
	console.log(`${JSON.stringify(count)}\nflips by place: ${JSON.stringify(places)}`);
	if (count["other values"] + count.unnamed + count["not repaired"] > 0) process.exitCode = 1;
}
