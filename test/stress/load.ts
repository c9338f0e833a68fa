import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Checkpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";
import { inTemporaryFolder } from "../support/run-node.ts";

/** One process, very many threads and checkpoints: what a call takes, and what the process keeps, from first to last. */
const { values } = parseArgs({
	options: {
		threads: { type: "string", default: "10000" },
		checkpoints: { type: "string", default: "1000000" },
	},
});
const threads = Number(values.threads);
const checkpoints = Number(values.checkpoints);
/** A conversation of which the oldest messages are dropped. */
const MOST_MESSAGES = 20;
const REPORTS = 20;

interface Row {
	checkpoints: number;
	"checkpoints/s": number;
	"getTuple median ms": string;
	"getTuple p99 ms": string;
	"put median ms": string;
	"put p99 ms": string;
	"heap MB": number;
	"resident MB": number;
	"file MB": number;
}

await inTemporaryFolder(async (folder) => {
	const path = join(folder, "load.db");
	const saver = new SqliteSaver(path);
	const random = new Random(1);
	const rows: Row[] = [];
	const times = { get: [] as number[], put: [] as number[] };
	let since = performance.now();
	for (let n = 1; n <= checkpoints; n++) {
		await step(saver, `thread ${random.below(threads)}`, n, random, times);
		if (n % Math.ceil(checkpoints / REPORTS) !== 0) continue;
		const seconds = (performance.now() - since) / 1000;
		rows.push(report(path, n, times.put.length / seconds, times));
		console.log(JSON.stringify(rows.at(-1)));
		times.get = [];
		times.put = [];
		since = performance.now();
	}
	console.table(rows);
	const { damage, ...counts } = await saver.verify();
	console.log(`verified: ${JSON.stringify(counts)}, ${damage.length} damaged`);
	await saver.close();
	if (damage.length > 0) process.exitCode = 1;
});

/** What LangGraph does for a message: reads the newest state, and stores one with a message more. */
async function step(
	saver: SqliteSaver,
	threadId: string,
	n: number,
	random: Random,
	times: { get: number[]; put: number[] },
): Promise<void> {
	const config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
	const start = performance.now();
	const head = await saver.getTuple(config);
	times.get.push(performance.now() - start);
	const before = (head?.checkpoint.channel_values.messages as string[] | undefined) ?? [];
	const version = Number(head?.checkpoint.channel_versions.messages ?? 0) + 1;
	const checkpoint: Checkpoint = {
		v: 4,
		id: uuid6(version),
		ts: new Date().toISOString(),
		channel_values: { messages: [...before.slice(1 - MOST_MESSAGES), `${n} ${random.hex(100)}`] },
		channel_versions: { messages: version },
		versions_seen: {},
	};
	const parent = { configurable: { ...config.configurable, checkpoint_id: head?.checkpoint.id } };
	const middle = performance.now();
	await saver.put(parent, checkpoint, { source: "loop", step: version, parents: {} }, { messages: version });
	times.put.push(performance.now() - middle);
}

function report(path: string, n: number, rate: number, times: { get: number[]; put: number[] }): Row {
	const at = (all: number[], share: number) =>
		([...all].sort((a, b) => a - b)[Math.floor(all.length * share)] ?? Number.NaN).toFixed(3);
	const { heapUsed, rss } = process.memoryUsage();
	const megabytes = (bytes: number) => Math.round(bytes / 1e6);
	return {
		checkpoints: n,
		"checkpoints/s": Math.round(rate),
		"getTuple median ms": at(times.get, 0.5),
		"getTuple p99 ms": at(times.get, 0.99),
		"put median ms": at(times.put, 0.5),
		"put p99 ms": at(times.put, 0.99),
		"heap MB": megabytes(heapUsed),
		"resident MB": megabytes(rss),
		"file MB": megabytes(statSync(path).size),
	};
}
