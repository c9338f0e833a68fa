import { type BaseCheckpointSaver, MemorySaver as OfficialMemorySaver } from "@langchain/langgraph-checkpoint";
import { MemorySaver } from "../../src/index.ts";
import { PostgresSaver } from "../../src/postgres.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { core } from "../support/core.ts";
import { deltaStories, tellStory } from "../support/delta-stories.ts";
import type { Durability } from "../support/graph-bench.ts";
import { emptySchema } from "../support/postgres.ts";
import { share } from "../support/share.ts";

type Closing = BaseCheckpointSaver & { close(): Promise<void> };

const encryption = { key: new Uint8Array(32).fill(1) };

const ALL = ["sync", "async", "exit"] as const;
/** How checkpoints are written is nothing to envelopes: with encryption each story is told once. */
const ONCE = ["async"] as const;

const savers: [string, readonly Durability[], (use: (saver: Closing) => Promise<void>) => Promise<void>][] = [
	["MemorySaver", ALL, (use) => use(new MemorySaver())],
	["SqliteSaver", ALL, (use) => use(new SqliteSaver(":memory:"))],
	["SqliteSaver with encryption", ONCE, (use) => use(new SqliteSaver(":memory:", { encryption }))],
	[
		"PostgresSaver",
		ALL,
		async (use) => {
			const { pool, schema, leave } = await emptySchema();
			await use(new PostgresSaver(pool, { schema }));
			await leave();
		},
	],
	[
		"PostgresSaver with encryption",
		ONCE,
		async (use) => {
			const { pool, schema, leave } = await emptySchema();
			await use(new PostgresSaver(pool, { schema, encryption }));
			await leave();
		},
	],
];

describe.each(savers)(
	"on %s a delta channel has what a reducer beside it has, in order, after",
	(name, durabilities, withSaver) => {
		const told = deltaStories.flatMap((story) => durabilities.map((durability) => ({ story, durability })));
		const every = name === "MemorySaver" ? 1 : name.startsWith("SqliteSaver") ? 2 : 3;
		for (const { story, durability } of share(told, every)) {
			const { impossible } = story;
			const isImpossible = impossible?.core === core && impossible.durabilities.includes(durability);
			it(`${isImpossible ? `(not quite: ${impossible.reason}) ` : ""}${story.name} (${durability})`, () =>
				withSaver(async (saver) => {
					const differences = await tellStory(story, saver, durability);
					if (isImpossible) expect(differences).not.toEqual([]);
					else expect(differences).toEqual([]);
					await saver.close();
				}));
		}
	},
);

it("tells a saver that orders writes by task id alone, as LangGraph 1.4 did", async () => {
	const found = await Promise.all(
		deltaStories.map(async (story) => (await tellStory(story, new OfficialMemorySaver(), "sync")).length > 0),
	);
	expect(found.filter(Boolean).length).toBeGreaterThan(3);
});
