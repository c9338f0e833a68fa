import { join } from "node:path";
import { checkpointId } from "../../src/contract/scene.ts";
import { Thread } from "../../src/contract/thread.ts";
import type { DeltaSaver } from "../../src/index.ts";
import { makeTemporaryFolder, removeFolder } from "./run-node.ts";

/** Larger than what stands in a row. */
export const LONG = "a value that is long enough for a blob of its own ".repeat(80);

export let folder = "";
export let path = "";
let lastId = 0;

/** Gives each test of the file that calls this a folder of its own, and a path in it where nothing is yet. */
export function scratchFolderForEach(): void {
	beforeEach(() => {
		folder = makeTemporaryFolder();
		path = join(folder, "test.db");
		lastId = 0;
	});
	afterEach(() => removeFolder(folder));
}

export const nextId = () => checkpointId(++lastId);

export function thread(saver: DeltaSaver, threadId = "thread"): Thread {
	return new Thread(saver, threadId, "", nextId);
}
