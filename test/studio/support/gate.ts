import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";

/** Something that the graph `work` waits for, in whatever process it runs. */
export interface Gate {
	/** Its `until`. */
	readonly path: string;
	open(): void;
}

const folder = makeTemporaryFolder();
afterAll(() => removeFolder(folder));
let gates = 0;

export function makeGate(): Gate {
	const path = join(folder, String(++gates));
	return { path, open: () => writeFileSync(path, "") };
}
