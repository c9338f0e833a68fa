import { PostgresSaver } from "../../src/postgres.ts";
import type { Candidate } from "../support/graph-comparison.ts";
import { both, memory } from "../support/graph-savers.ts";
import { describeGraphs } from "../support/graph-suite.ts";
import { emptySchema } from "../support/postgres.ts";

const postgres: Candidate = {
	name: "PostgresSaver",
	async open() {
		const { pool, schema, leave } = await emptySchema();
		const opened: PostgresSaver[] = [];
		const open = async () => {
			const saver = new PostgresSaver(pool, { schema });
			opened.push(saver);
			return saver;
		};
		const close = async () => {
			for (const saver of opened) await saver.close();
			await leave();
		};
		return { saver: await open(), reopen: open, close };
	},
};

describeGraphs({ candidate: both(memory, postgres), by: { async: ["calls"] }, share: [2, 1] });
