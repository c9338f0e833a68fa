import { join } from "node:path";
import { type DeltaSaver, MemorySaver } from "../../../src/index.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { emptySchema } from "../../support/postgres.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";

/** Storage of its own for one test. */
export interface OpenBackend {
	readonly saver: DeltaSaver;
	/** Another saver on the same storage, as after a restart; in memory it can only be the same. */
	reopen(): Promise<DeltaSaver>;
	close(): Promise<void>;
}

export interface Backend {
	readonly name: string;
	open(): Promise<OpenBackend>;
}

export const memory: Backend = {
	name: "MemorySaver",
	open: async () => {
		const saver = new MemorySaver();
		return { saver, reopen: async () => saver, close: () => saver.close() };
	},
};

export const sqlite: Backend = {
	name: "SqliteSaver",
	open: async () => {
		const folder = makeTemporaryFolder();
		const path = join(folder, "checkpoints.db");
		return open(
			() => new SqliteSaver(path),
			async () => removeFolder(folder),
		);
	},
};

export const postgres: Backend = {
	name: "PostgresSaver",
	open: async () => {
		const { pool, schema, leave } = await emptySchema();
		return open(() => new PostgresSaver(pool, { schema }), leave);
	},
};

/** Everything that a server does with a saver is tested on these. */
export const backends = [memory, sqlite, postgres];

function open(make: () => DeltaSaver, leave: () => Promise<void>): OpenBackend {
	const savers: DeltaSaver[] = [];
	const reopen = async () => {
		const saver = make();
		savers.push(saver);
		return saver;
	};
	const saver = make();
	savers.push(saver);
	return {
		saver,
		reopen,
		close: async () => {
			for (const one of savers) await one.close();
			await leave();
		},
	};
}
