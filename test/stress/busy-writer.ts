import { setImmediate as nextTurn } from "node:timers/promises";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "../../src/sqlite.ts";

/** Puts until it is killed, and tells of each number that is stored. */
const [path = "", first = "0"] = process.argv.slice(2);
const saver = new SqliteSaver(path);
for (let n = Number(first); ; n++) {
	const values = { n, text: `${n} ${"x".repeat(2000)}` };
	const checkpoint = { ...emptyCheckpoint(), id: uuid6(n), channel_values: values, channel_versions: { n, text: n } };
	const metadata = { source: "loop", step: n, parents: {} } as const;
	await saver.put({ configurable: { thread_id: "t" } }, checkpoint, metadata, { n, text: n });
	process.send?.(n);
	if (n % 10 === 0) await nextTurn();
}
