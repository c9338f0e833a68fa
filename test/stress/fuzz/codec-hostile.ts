import { assertHarmless, HostileBytes, watchPrototypes } from "../../codec/hostile.ts";

/** Usage: tsx test/stress/fuzz/codec-hostile.ts [byte strings] [seed] */
const runs = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

// LangChain warns of old forms of tool calls.
console.warn = () => {};

const started = Date.now();
const hostile = new HostileBytes(seed);
const assertUnchanged = await watchPrototypes();
let values = 0;
let slowest = 0;
let peak = 0;
for (let i = 0; i < runs; i++) {
	const bytes = hostile.make();
	const before = performance.now();
	try {
		if (await assertHarmless(bytes)) values++;
	} catch (error) {
		console.error(`Number ${i} of seed ${seed}: ${Buffer.from(bytes).toString("hex")}`);
		throw error;
	}
	slowest = Math.max(slowest, performance.now() - before);
	if (i % 1000 === 0) {
		assertUnchanged();
		peak = Math.max(peak, process.memoryUsage().heapUsed);
	}
}
assertUnchanged();
console.log(
	`${runs} hostile byte strings, seed ${seed}: ${values} were values of the closed set, ${runs - values} were refused; ` +
		`no prototype changed, slowest ${slowest.toFixed(1)} ms, heap at most ${Math.round(peak / 2 ** 20)} MiB ` +
		`(${Math.round((Date.now() - started) / 1000)} s)`,
);
