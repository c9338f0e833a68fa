/**
 * Calls `put` and `getTuple` some hundred times, then each of them once under precise coverage. Prints V8's counts as JSON.
 *
 * Usage: node way-run.mjs sqlite|memory <folder for the database>
 */
import { type Profiler, Session } from "node:inspector";
import { join } from "node:path";
import { HumanMessage } from "@langchain/core/messages";
import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import { MemorySaver } from "langgraph-checkpoint-delta";
import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";

/** Enough for tables, statements and caches to exist. */
const WARM_UP_THREADS = 60;
const STEPS = 5;

/** A thread whose state has three channels. */
class SmallThread {
	readonly #saver: MemorySaver | SqliteSaver;
	readonly #number: number;
	readonly #config: { configurable: Record<string, string> };
	#messages: HumanMessage[] = [];

	constructor(saver: MemorySaver | SqliteSaver, number: number) {
		this.#saver = saver;
		this.#number = number;
		this.#config = { configurable: { thread_id: `thread-${number}`, checkpoint_ns: "" } };
	}

	/** Appends a message; the other two channels stay as they were. */
	async put(): Promise<void> {
		const step = this.#messages.length;
		this.#messages = [...this.#messages, new HumanMessage({ id: `message-${step}`, content: "Where is my parcel?" })];
		const versions = { messages: step + 2, topic: 2, attempts: 2 };
		const checkpoint: Checkpoint = {
			v: 4,
			id: `1f000000-0000-6000-8${String(step).padStart(3, "0")}-${String(this.#number).padStart(12, "0")}`,
			ts: "2026-01-01T00:00:00.000Z",
			channel_values: { messages: this.#messages, topic: "delivery", attempts: 1 },
			channel_versions: versions,
			versions_seen: { model: { messages: step + 1 } },
		};
		const metadata: CheckpointMetadata = { source: "loop", step, parents: {} };
		const newVersions = step === 0 ? versions : { messages: versions.messages };
		await this.#saver.put(this.#config, checkpoint, metadata, newVersions);
		this.#config.configurable.checkpoint_id = checkpoint.id;
	}

	async getTuple(): Promise<void> {
		const { thread_id } = this.#config.configurable;
		const tuple = await this.#saver.getTuple({ configurable: { thread_id } });
		const found = tuple?.checkpoint.channel_values.messages as HumanMessage[] | undefined;
		if (found?.length !== this.#messages.length) throw new Error("The checkpoint is not there.");
	}
}

const session = new Session();

/** Inside one process the inspector answers at once. */
function ask<T>(method: string, parameters: object = {}): T {
	let answer: { error: Error | null; result?: T } | undefined;
	session.post(method, parameters, (error, result) => {
		answer = { error, result: result as T };
	});
	if (answer === undefined || answer.error) throw new Error(`${method} failed`, { cause: answer?.error });
	return answer.result as T;
}

function takeCounts(): Profiler.ScriptCoverage[] {
	return ask<Profiler.TakePreciseCoverageReturnType>("Profiler.takePreciseCoverage").result;
}

/** What ran during one call, and nothing that ran before. */
async function cover(call: () => Promise<void>): Promise<Profiler.ScriptCoverage[]> {
	takeCounts();
	await call();
	return takeCounts();
}

const [backend, folder] = process.argv.slice(2) as [string, string];
const saver = backend === "memory" ? new MemorySaver() : new SqliteSaver(join(folder, "checkpoints.db"));

async function startThread(number: number, steps: number): Promise<SmallThread> {
	const thread = new SmallThread(saver, number);
	for (let step = 0; step < steps; step++) {
		await thread.put();
		await thread.getTuple();
	}
	return thread;
}

for (let number = 0; number < WARM_UP_THREADS; number++) await startThread(number, STEPS);
session.connect();
ask("Profiler.enable");
ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const thread = await startThread(WARM_UP_THREADS, STEPS - 1);
const put = await cover(() => thread.put());
const getTuple = await cover(() => thread.getTuple());
session.disconnect();
await saver.close();
console.log(JSON.stringify({ put, getTuple }));
