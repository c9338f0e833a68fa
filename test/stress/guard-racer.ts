import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { ConcurrencyError } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

/** What a racer says of each attempt: the checkpoint that it tried to put, and the one that it was to follow. */
export interface Attempt {
	readonly id: string;
	readonly parentId: string | null;
	/** Named by the refusal; absent if the put was taken. */
	readonly refusedFor?: string;
}

const [path = "", rounds = "0", processes = "1"] = process.argv.slice(2);
const saver = new SqliteSaver(path, { onConflict: "reject" });
const config = { configurable: { thread_id: "race", checkpoint_ns: "" } };
const attempts: Attempt[] = [];

/** On a busy machine one could be done before the next has begun. */
async function waitForAll(): Promise<void> {
	const READY = "ready-";
	writeFileSync(join(dirname(path), `${READY}${process.pid}`), "");
	const count = () => readdirSync(dirname(path)).filter((name) => name.startsWith(READY)).length;
	while (count() < Number(processes)) await setTimeout(2);
}

await waitForAll();
/** Goes on from the newest checkpoint, as all the others do, until the thread is long enough. */
for (let step = 0; step < Number(rounds); ) {
	const head = await saver.getTuple(config);
	const parentId: string | null = head?.config.configurable?.checkpoint_id ?? null;
	step = (head?.metadata?.step ?? -1) + 1;
	const id = uuid6(step);
	const checkpoint = {
		...emptyCheckpoint(),
		id,
		channel_values: { by: process.pid },
		channel_versions: { by: step + 1 },
	};
	const parent = { configurable: { ...config.configurable, checkpoint_id: parentId ?? undefined } };
	try {
		await saver.put(parent, checkpoint, { source: "loop", step, parents: {} }, { by: step + 1 });
		attempts.push({ id, parentId });
	} catch (error) {
		if (!(error instanceof ConcurrencyError)) throw error;
		attempts.push({ id, parentId, refusedFor: error.headId });
	}
}
await saver.close();
process.stdout.write(JSON.stringify(attempts));
