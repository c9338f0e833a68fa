import { join } from "node:path";
import { parseArgs } from "node:util";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";
import { type Connect, cutConnections } from "../studio/support/cuts.ts";
import { inTemporaryFolder } from "../support/run-node.ts";

/** Streams of the thread protocol that are cut at random: every event arrives once and in order. */
const { values } = parseArgs({
	options: { cuts: { type: "string", default: "1000" }, seed: { type: "string", default: "1" } },
});

await inTemporaryFolder(async (folder) => {
	const savers = { memory: new MemorySaver(), SQLite: new SqliteSaver(join(folder, "cuts.db")) };
	for (const [name, saver] of Object.entries(savers))
		for (const connect of ["since", "websocket"] as Connect[]) {
			const random = new Random(Number(values.seed));
			const { cuts, events } = await cutConnections(saver, random, connect, Number(values.cuts));
			console.log(`${name}, ${connect}: ${cuts} cuts, ${events} events, each once and in order.`);
		}
	for (const saver of Object.values(savers)) await saver.close();
});
