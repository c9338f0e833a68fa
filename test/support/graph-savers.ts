import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import type { Candidate } from "./graph-comparison.ts";
import { TeeSaver } from "./graph-tee.ts";

/** Our saver in memory. */
export const memory: Candidate = {
	name: "MemorySaver",
	open: async () => only(new MemorySaver()),
};

/** Our saver on a database that is never written to disk. */
export const sqliteInMemory: Candidate = {
	name: 'SqliteSaver(":memory:")',
	open: async () => only(new SqliteSaver(":memory:")),
};

/** Our saver on a file; opened again, it is a second connection to the same file. */
export const sqliteFile: Candidate = {
	name: "SqliteSaver on a file",
	async open() {
		const folder = await mkdtemp(join(tmpdir(), "graphs-"));
		const opened: SqliteSaver[] = [];
		const open = async () => {
			const saver = new SqliteSaver(join(folder, "checkpoints.db"));
			opened.push(saver);
			return saver;
		};
		const close = async () => {
			for (const saver of opened) await saver.close();
			await rm(folder, { recursive: true });
		};
		return { saver: await open(), reopen: open, close };
	},
};

/** Two savers of ours that get the same calls and have to give the same answers. A graph gets those of the second. */
export const both = (first: Candidate, second: Candidate): Candidate => ({
	name: `${first.name} and ${second.name}`,
	async open() {
		const [one, other] = [await first.open(), await second.open()];
		const tee = new TeeSaver(one.saver, other.saver);
		const reopen = async () => {
			await tee.replaceCandidate(other.reopen);
			return tee;
		};
		const close = async () => {
			await one.close();
			await other.close();
			assert.deepEqual([...tee.differences, ...tee.faults], []);
		};
		return { saver: tee, reopen, close };
	},
});

const only = (saver: BaseCheckpointSaver & { close(): Promise<void> }) => ({
	saver,
	reopen: async () => saver,
	close: () => saver.close(),
});
