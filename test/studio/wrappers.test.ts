import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { MemorySaver } from "../../src/index.ts";
import { useSaverInDev as replaceDevSaver } from "../../src/langgraph-dev.ts";
import { RunSaver } from "../../src/studio/runs/run-saver.ts";

const cli = createRequire(import.meta.url).resolve("@langchain/langgraph-cli/package.json");
const server = join(dirname(createRequire(cli).resolve("@langchain/langgraph-api/package.json")), "dist");

interface PathSaver {
	putWrites(config: object, writes: PendingWrite[], taskId: string, ...taskPath: string[]): Promise<void>;
}

/** The saver of `langgraphjs dev`, made to use ours, as in that server's process. */
async function devSaver(saver: MemorySaver): Promise<PathSaver> {
	const { argv } = process;
	process.argv = [...argv, join(server, "cli/entrypoint.mjs")];
	expect(await replaceDevSaver(saver)).toBe(true);
	process.argv = argv;
	return (await import(pathToFileURL(join(server, "storage/checkpoint.mjs")).href)).checkpointer;
}

const wrappers: [string, (saver: MemorySaver) => Promise<PathSaver>][] = [
	["a run of the Studio server", async (saver) => new RunSaver(saver, () => {}) as PathSaver],
	["langgraphjs dev", devSaver],
];

it.each(wrappers)("the saver of %s hands on task paths, and that there is none", async (_, wrap) => {
	const saver = new MemorySaver();
	const calls: unknown[][] = [];
	const { putWrites } = saver;
	saver.putWrites = (...call) => {
		calls.push(call.slice(2));
		return putWrites.apply(saver, call);
	};
	const wrapped = await wrap(saver);
	const config = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: "c" } };
	await wrapped.putWrites(config, [["a", 1]], "task 1", "~__pregel_pull, b");
	await wrapped.putWrites(config, [["a", 2]], "task 2", "");
	await wrapped.putWrites(config, [["a", 3]], "task 3");
	expect(calls).toEqual([["task 1", "~__pregel_pull, b"], ["task 2", ""], ["task 3"]]);
});
