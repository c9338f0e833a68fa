/**
 * Moving from the official SqliteSaver: change the import, and copy the threads that exist.
 *
 *     - import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
 *     + import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";
 *
 *     npx tsx examples/move-from-official.ts
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver, PendingWrite } from "@langchain/langgraph-checkpoint";
import { SqliteSaver as OfficialSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";

/** Copies all threads, oldest checkpoint first, so that each one finds its parent. Works between any two savers. */
async function copyAll(from: BaseCheckpointSaver, to: BaseCheckpointSaver) {
	const configs: RunnableConfig[] = [];
	for await (const { config } of from.list({ configurable: {} })) configs.push(config);
	const idOf = (config?: RunnableConfig): string | undefined => config?.configurable?.checkpoint_id;
	configs.sort((a, b) => (String(idOf(a)) < String(idOf(b)) ? -1 : 1));

	for (const config of configs) {
		const tuple = await from.getTuple(config);
		if (tuple?.metadata === undefined) continue;
		const { checkpoint, metadata, parentConfig, pendingWrites = [] } = tuple;
		const parent = { configurable: { ...config.configurable, checkpoint_id: idOf(parentConfig) } };
		const stored = await to.put(parent, checkpoint, metadata, checkpoint.channel_versions);

		const writesByTask = new Map<string, PendingWrite[]>();
		for (const [task, channel, value] of pendingWrites) {
			writesByTask.set(task, [...(writesByTask.get(task) ?? []), [channel, value]]);
		}
		for (const [task, writes] of writesByTask) await to.putWrites(stored, writes, task);
	}
	return configs.length;
}

const State = Annotation.Root({
	notes: Annotation<string[]>({ reducer: (notes, more) => notes.concat(more), default: () => [] }),
});
const compile = (checkpointer: BaseCheckpointSaver) =>
	new StateGraph(State)
		.addNode("note", ({ notes }) => ({ notes: [`note ${notes.length + 1}: ${"something to remember ".repeat(20)}`] }))
		.addNode("sign", () => ({ notes: [`signed by ${interrupt("Who signs?")}`] }))
		.addEdge(START, "note")
		.addConditionalEdges("note", ({ notes }) => (notes.length < 100 ? "note" : "sign"))
		.addEdge("sign", END)
		.compile({ checkpointer });

const folder = mkdtempSync(join(tmpdir(), "move-from-official-"));
const size = (file: string) => `${(statSync(file).size / 1e6).toFixed(2)} MB`;
const config = { configurable: { thread_id: "notebook" }, recursionLimit: 200 };

// Until today: a thread on the official saver, which now waits for a person.
const official = OfficialSaver.fromConnString(join(folder, "official.db"));
await compile(official).invoke({ notes: [] }, config);

// The move.
const checkpointer = new SqliteSaver(join(folder, "delta.db"));
console.log(`${await copyAll(official, checkpointer)} checkpoints copied`);

// From now on: the interrupt is still there, and the thread goes on.
const graph = compile(checkpointer);
const [task] = (await graph.getState(config)).tasks;
console.log(`"${task?.name}" still asks: ${task?.interrupts[0]?.value}`);
const { notes } = await graph.invoke(new Command({ resume: "Ada" }), config);
console.log(`${notes.length} notes, the last one: ${notes.at(-1)}`);

official.db.close();
await checkpointer.close();
console.log(`official: ${size(join(folder, "official.db"))}, delta: ${size(join(folder, "delta.db"))}`);
rmSync(folder, { recursive: true });
