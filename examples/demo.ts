/**
 * The point of this package, in the terminal: an agent on SQLite, killed in the middle, resumed, forked, its history as
 * a tree, and its size on disk next to that of the same run on the official saver.
 *
 *     npm run demo
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HumanMessage } from "@langchain/core/messages";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { SqliteSaver as OfficialSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { SqliteSaver } from "langgraph-checkpoint-delta/sqlite";
import { type Agent, compileAgent, question } from "./demo/agent.ts";
import { bold, drawTree, green, red, say } from "./demo/terminal.ts";

const questions = 80;
const killedIn = 41;
const forkedAfter = [20, 60];
const config = { configurable: { thread_id: "journey" }, durability: "sync" as const };

async function ask(agent: Agent, from: number, to: number) {
	for (let day = from; day <= to; day++) {
		await agent.graph.invoke({ messages: [new HumanMessage(question(day))] }, config);
	}
}

/** Goes back to the end of some questions, and on from there with another one. */
async function makeForks(agent: Agent) {
	for (const day of forkedAfter) {
		// Each question makes five checkpoints; the first of all has step -1.
		const end = { filter: { step: 5 * day - 2 }, limit: 1 };
		for await (const state of agent.graph.getStateHistory(config, end)) {
			const messages = [new HumanMessage(`What if I am in Oslo on day ${day + 1}?`)];
			await agent.graph.invoke({ messages }, { ...state.config, durability: "sync" });
		}
	}
}

/** The process that gets killed: in one of the questions, its tool takes too long. */
async function runUntilKilled(database: string) {
	const agent = compileAgent(new SqliteSaver(database), async (day) => {
		if (day < killedIn) return;
		process.send?.(agent.calls.model);
		await setTimeout(60_000);
	});
	await ask(agent, 1, questions);
}

async function startAndKill(database: string): Promise<number> {
	const child = fork(fileURLToPath(import.meta.url), [database]);
	const [modelCalls] = (await once(child, "message")) as [number];
	child.kill("SIGKILL");
	await once(child, "exit");
	say(`${red("✗")} Process ${child.pid} got SIGKILL in question ${killedIn}, while its tool was running.`);
	return modelCalls;
}

/** Answers the id of the checkpoint that was the last one when the first process was killed. */
async function resume(agent: Agent, callsBefore: number): Promise<string> {
	const found = await agent.graph.getState(config);
	say(`Found ${found.values.messages.length} messages. Next is "${found.next}".`);
	await agent.graph.invoke(null, config);
	await ask(agent, killedIn + 1, questions);
	say(`${green("✓")} Finished question ${killedIn}, answered ${killedIn + 1} to ${questions}.`);
	const [calls, all] = [agent.calls.model, callsBefore + agent.calls.model];
	say(`Model calls: ${callsBefore} before, ${calls} after: ${all} in all, ${all / questions} for each question.`);
	return found.config.configurable?.checkpoint_id;
}

async function showHistory(checkpointer: SqliteSaver, killedAt: string): Promise<number> {
	const tuples: CheckpointTuple[] = [];
	for await (const tuple of checkpointer.list(config)) tuples.push(tuple);
	const marks = new Map([[killedAt, red("✗ killed here")]]);
	if (tuples[0]) marks.set(tuples[0].checkpoint.id, green("← head"));
	for (const line of drawTree(tuples, marks)) say(line);
	return tuples.length;
}

async function runOfficially(database: string) {
	const checkpointer = OfficialSaver.fromConnString(database);
	const agent = compileAgent(checkpointer);
	await ask(agent, 1, questions);
	await makeForks(agent);
	checkpointer.db.close();
}

function compareSizes(folder: string) {
	const sizeOf = (database: string) => {
		const files = readdirSync(folder).filter((file) => file.startsWith(database));
		return files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
	};
	const [official, delta] = [sizeOf("official.db"), sizeOf("delta.db")];
	const bar = (size: number) => "█".repeat(Math.max(1, Math.round((50 * size) / official)));
	const megabytes = (size: number) => `${(size / 1e6).toFixed(2).padStart(5)} MB`;
	say(`official ${megabytes(official)} ${red(bar(official))}`);
	say(`delta    ${megabytes(delta)} ${green(bar(delta))} ${bold(`${(official / delta).toFixed(0)} times smaller`)}\n`);
}

async function tellTheStory(folder: string) {
	const database = join(folder, "delta.db");
	console.log(bold(`\nAn agent answers ${questions} questions, with a tool call each, on SQLite.`));
	const callsBefore = await startAndKill(database);

	console.log(bold("\nAnother process opens the database and goes on."));
	const checkpointer = new SqliteSaver(database);
	const agent = compileAgent(checkpointer);
	const killedAt = await resume(agent, callsBefore);

	console.log(bold(`\nTwo forks: from the end of question ${forkedAfter.join(" and ")}, on with another one.`));
	await makeForks(agent);
	const checkpoints = await showHistory(checkpointer, killedAt);
	await checkpointer.close();

	console.log(bold(`\nAll ${checkpoints} checkpoints on disk, beside the same run on the official SqliteSaver.`));
	await runOfficially(join(folder, "official.db"));
	compareSizes(folder);
}

const [database] = process.argv.slice(2);
if (database) {
	await runUntilKilled(database);
} else {
	const folder = mkdtempSync(join(tmpdir(), "langgraph-checkpoint-delta-demo-"));
	await tellTheStory(folder).finally(() => rmSync(folder, { recursive: true }));
}
