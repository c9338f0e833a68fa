import { raceOnGuard } from "./guard-race.ts";

const [processes = 8, rounds = 1000] = process.argv.slice(2).map(Number);
const { taken, refused } = await raceOnGuard(processes, rounds);
console.log(
	`${processes} processes raced on one thread: ${taken} puts were taken, one for each parent, and ${refused} refused.`,
);
