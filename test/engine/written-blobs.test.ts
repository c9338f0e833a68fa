import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { LONG, path, scratchFolderForEach, thread } from "../support/scratch-file.ts";

scratchFolderForEach();

const SAVERS: Record<string, () => DeltaSaver> = {
	MemorySaver: () => new MemorySaver(),
	SqliteSaver: () => new SqliteSaver(path),
};

/** Another run's. */
const OTHER = { configurable: { run_id: "other" } };

describe.each(Object.entries(SAVERS))("a value that a task wrote, with %s,", (_, open) => {
	it.each([
		["is all that the state holds", (_: string[], written: string) => written],
		["is a part of the state", (before: string[], written: string) => [...before, written]],
	])("and that was deleted since is stored once more where it %s", async (_, next) => {
		const saver = open();
		const main = thread(saver, "main");
		const before = [LONG, `${LONG} again`];
		const written = LONG.split("").reverse().join("");
		const parent = await main.put({ values: { text: before }, metadata: { run_id: "own" } });
		await main.write(parent, [["text", written]], undefined, OTHER);
		await saver.deleteForRuns(["other"]);
		expect(await main.pending(parent)).toEqual([]);

		const text = next(before, written);
		await main.put({ parent, values: { text }, metadata: { run_id: "own" } });
		expect((await saver.verify()).damage).toEqual([]);
		expect(await main.values()).toEqual({ text });
		await saver.close();
	});
});
