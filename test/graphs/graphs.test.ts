import { core } from "../support/core.ts";
import { brokenSavers } from "../support/graph-broken.ts";
import { compare, inMemory } from "../support/graph-comparison.ts";
import { corrections, Reference } from "../support/graph-reference.ts";
import { both, memory, sqliteFile, sqliteInMemory } from "../support/graph-savers.ts";
import type { Scenario } from "../support/graph-scenario.ts";
import { describeGraphs, type Plan } from "../support/graph-suite.ts";
import { OfficialSaver } from "../support/official-saver.ts";
import { stories } from "./index.ts";

const PLANS: readonly Plan[] = [
	{ candidate: both(sqliteInMemory, memory), by: { exit: ["calls"] }, share: [2, 0] },
	{ candidate: sqliteFile, by: { sync: ["runs"], async: ["runs"] }, once: true, share: [2, 0] },
];

const ALL_STORIES = Object.values(stories).flat();

function mustGetStory(name: string): Scenario {
	const found = ALL_STORIES.find((story) => story.name === name);
	if (found === undefined) throw new Error(`there is no story "${name}"`);
	return found;
}

for (const plan of PLANS) describeGraphs(plan);

describe("the comparison itself", () => {
	const plain = ALL_STORIES.filter(({ differences }) => differences.length === 0);
	const sample = plain.filter((_, at) => at % 20 === 0);

	it.each(sample.map((story) => [story.name, story] as const))(
		"finds nothing between equal savers: %s",
		async (_, story) => {
			for (const way of ["calls", "runs"] as const) {
				const equal = inMemory("the reference again", () => new Reference());
				const { differences, compared } = await compare(way, story, story.durabilities[0] ?? "async", equal);
				expect(differences).toEqual([]);
				expect(compared).toBeGreaterThan(0);
			}
		},
	);

	const shown = corrections.filter((correction) => (correction.core ?? core) === core);

	it.each(shown)("knows that the official saver $fault", async ({ where, shownBy: { story, durability } }) => {
		const official = inMemory("the official MemorySaver", () => new OfficialSaver());
		const { differences } = await compare("calls", mustGetStory(story), durability, official);
		expect(differences.filter((one) => where.test(one.where))).not.toEqual([]);
		expect(differences.filter((one) => !where.test(one.where))).toEqual([]);
	});

	it.each(Object.entries(brokenSavers).filter(([, broken]) => (broken.core ?? core) === core))(
		"finds a saver that %s",
		async (name, { Saver, story, durability, way = "calls" }) => {
			const told = mustGetStory(story);
			const broken = inMemory(name, () => new Saver());
			const { differences } = await compare(way, told, durability ?? told.durabilities[0] ?? "async", broken);
			expect(differences).not.toEqual([]);
		},
	);
});
