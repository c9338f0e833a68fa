import { SqliteSaver } from "../../src/sqlite.ts";
import { randomScenario } from "../support/delta-random.ts";
import { differences } from "../support/delta-world.ts";
import { CheckedSaver, ReadingElsewhereSaver } from "../support/history-readers.ts";

/** Usage: tsx test/fuzz/delta-channels.ts [runs per saver] [first seed] */
const runs = Number(process.argv[2] ?? 500);
const first = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

const savers = {
	"in memory": () => new CheckedSaver(),
	SQLite: () => new SqliteSaver(":memory:"),
	"SQLite, read through another connection": () => new ReadingElsewhereSaver(),
};

for (const [name, create] of Object.entries(savers)) {
	const started = Date.now();
	for (let seed = first; seed < first + runs; seed++) {
		const saver = create();
		const [difference] = await differences(randomScenario(seed, 3 + (seed % 8)), saver);
		if (difference !== undefined) throw new Error(`Seed ${seed}, ${name}: ${JSON.stringify(difference)}`);
		await saver.close();
	}
	const seconds = Math.round((Date.now() - started) / 1000);
	console.log(
		`${name}: ${runs} random histories of delta channels from seed ${first} on, no difference (${seconds} s)`,
	);
}
