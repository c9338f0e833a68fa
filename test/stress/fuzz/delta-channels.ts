import { execFileSync } from "node:child_process";
import * as current from "@langchain/langgraph";
import * as next from "langgraph-next";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { core } from "../../support/core.ts";
import { randomScenario } from "../../support/delta-random.ts";
import { differences, type LangGraph } from "../../support/delta-world.ts";
import { CheckedSaver, ReadingElsewhereSaver } from "../../support/history-readers.ts";

/**
 * Random histories of delta channels on LangGraph 1.4, on 1.7, and on both in turns, compared with a plain reducer.
 *
 * Usage: node --import ./test/langgraph-next/register.mjs --import tsx test/stress/fuzz/delta-channels.ts [runs per core and
 * durability] [first seed]
 */
const runs = Number(process.argv[2] ?? 1000);
const first = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

/** They take turns. */
const savers = [() => new CheckedSaver(), () => new SqliteSaver(":memory:"), () => new ReadingElsewhereSaver()];

async function fuzz(name: string, cores?: readonly LangGraph[]): Promise<void> {
	for (const durability of ["sync", "async", "exit", undefined] as const) {
		const started = Date.now();
		for (let seed = first; seed < first + runs; seed++) {
			const saver = (savers[seed % savers.length] as () => CheckedSaver)();
			const [difference] = await differences(randomScenario(seed, 3 + (seed % 8), durability, cores), saver);
			if (difference !== undefined)
				throw new Error(`LangGraph ${name}, ${durability}, seed ${seed}: ${JSON.stringify(difference)}`);
			await saver.close();
		}
		const seconds = Math.round((Date.now() - started) / 1000);
		console.log(
			`LangGraph ${name}, durability ${durability ?? "mixed"}: ${runs} random histories of delta channels from seed ${first} on, no difference (${seconds} s)`,
		);
	}
}

await fuzz(core);
if (core === "1.4") {
	await fuzz("1.4 and 1.7 in turns", [current, next as unknown as LangGraph]);
	const again = [...process.execArgv, ...process.argv.slice(1, 2), String(runs), String(first)];
	execFileSync(process.execPath, again, { env: { ...process.env, LANGGRAPH: "next" }, stdio: "inherit" });
}
