import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUps } from "../../support/clean-ups.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";

/** Something that the graph `work` waits for, in whatever process it runs. */
export interface Gate {
	/** Its `until`. */
	readonly path: string;
	open(): void;
}

let folder: string | undefined;
let gates = 0;

export function makeGate(): Gate {
	folder ??= makeFolder();
	const path = join(folder, String(++gates));
	return { path, open: () => writeFileSync(path, "") };
}

function makeFolder(): string {
	const made = makeTemporaryFolder();
	cleanUps.push(() => {
		removeFolder(made);
		folder = undefined;
	});
	return made;
}
