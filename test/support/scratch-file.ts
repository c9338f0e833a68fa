import { join } from "node:path";
import { checkpointId } from "../../src/contract/scene.ts";
import { Thread } from "../../src/contract/thread.ts";
import type { DeltaSaver } from "../../src/index.ts";
import { makeTemporaryFolder, removeFolder } from "./run-node.ts";

/** Larger than what stands in a row. */
export const LONG = "a value that is long enough for a blob of its own ".repeat(80);

/** For each test of a file that imports this, a folder of its own, and a path in it where nothing is yet. */
export let folder = "";
export let path = "";
let lastId = 0;

beforeEach(() => {
	folder = makeTemporaryFolder();
	path = join(folder, "test.db");
	lastId = 0;
});
afterEach(() => removeFolder(folder));

export const nextId = () => checkpointId(++lastId);

export function thread(saver: DeltaSaver, threadId = "thread"): Thread {
	return new Thread(saver, threadId, "", nextId);
}
