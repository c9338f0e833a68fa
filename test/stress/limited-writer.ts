import { createInterface } from "node:readline";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "../../src/sqlite.ts";

/** Puts until a put fails, says so, waits for a line, and puts once more. */
const [path = ""] = process.argv.slice(2);
const saver = new SqliteSaver(path);
let stored = 0;

async function put(): Promise<void> {
	const text = `${stored} ${"x".repeat(5000)}`;
	const checkpoint = {
		...emptyCheckpoint(),
		id: uuid6(stored),
		channel_values: { text },
		channel_versions: { text: 1 },
	};
	const config = { configurable: { thread_id: `thread ${stored % 3}` } };
	await saver.put(config, checkpoint, { source: "input", step: -1, parents: {} }, { text: 1 });
	stored++;
}

async function putUntilItFails(): Promise<{ code?: string }> {
	try {
		for (;;) await put();
	} catch (error) {
		return error as { code?: string };
	}
}

const { code } = await putUntilItFails();
const again = await put().catch((error) => error.code);
console.log(JSON.stringify({ code, again, stored }));
for await (const _ of createInterface({ input: process.stdin })) break;
await put();
const { damage, checkpoints } = await saver.verify();
await saver.close();
console.log(JSON.stringify({ stored, checkpoints, damage }));
