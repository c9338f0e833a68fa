import { stories } from "../graphs/index.ts";
import type { Durability } from "./graph-bench.ts";
import { type Candidate, compare } from "./graph-comparison.ts";
import type { Comparison } from "./graph-scenario.ts";
import { share } from "./share.ts";

/** A kind of saver to compare with the official MemorySaver, and how. */
export interface Plan {
	candidate: Candidate;
	/** How to compare in runs of each durability. What async and sync ask of a saver differs in time only. */
	by: Partial<Record<Durability, readonly Comparison[]>>;
	/** Tells each story once, in the first of these durabilities that it has. */
	once?: boolean;
	/** Tells one of so many stories, beginning with this one; each core tells others. */
	share?: readonly [every: number, offset: number];
}

/** Tells every story on the saver, and compares what it shows. */
export function describeGraphs({ candidate, by, once = false, share: part = [1, 0] }: Plan): void {
	describe(`graphs on ${candidate.name} look as on the official MemorySaver`, () => {
		const asked = Object.keys(by) as Durability[];
		const all = Object.entries(stories).flatMap(([about, list]) => list.map((story) => ({ about, story })));
		const told = share(all, ...part);
		const cases = told.flatMap(({ about, story }) =>
			asked
				.filter((durability) => story.durabilities.includes(durability))
				.slice(0, once ? 1 : undefined)
				.flatMap((durability) => (by[durability] ?? []).map((way) => ({ about, story, durability, way }))),
		);
		for (const { about, story, durability, way } of cases) {
			it(`${about}: ${story.name} (${durability}, compared by ${way})`, async () => {
				const { unexpected, unmet, faults, compared } = await compare(way, story, durability, candidate);
				expect(unexpected.slice(0, 5)).toEqual([]);
				expect(unmet).toEqual([]);
				expect(faults.slice(0, 5)).toEqual([]);
				expect(compared).toBeGreaterThan(0);
			});
		}
	});
}
