import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { PostgresSaver } from "../src/postgres.ts";
import { emptySchema } from "./support/postgres.ts";

const initializer = {
	/** A name of our own, so that none of the suite's lists of tests to skip applies. */
	checkpointerName: "langgraph-checkpoint-delta postgres",
	createCheckpointer: async () => {
		const { pool, schema, leave } = await emptySchema();
		const saver = new PostgresSaver(pool, { schema });
		leaving.set(saver, leave);
		return saver;
	},
	destroyCheckpointer: async (saver: PostgresSaver) => {
		await saver.close();
		await leaving.get(saver)?.();
	},
};
const leaving = new WeakMap<PostgresSaver, () => Promise<void>>();

validate(initializer);
deltaChannelHistoryTests(initializer);
