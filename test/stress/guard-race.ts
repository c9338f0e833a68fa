import assert from "node:assert/strict";
import { join } from "node:path";
import { SqliteSaver } from "../../src/sqlite.ts";
import { bundle } from "../support/bundle.ts";
import { inTemporaryFolder, runNode } from "../support/run-node.ts";
import type { Attempt } from "./guard-racer.ts";

/**
 * Lets processes race on one thread with `onConflict: "reject"`, until it has so many checkpoints, and checks that each
 * has exactly one child: the one whose put was taken.
 */
export async function raceOnGuard(processes: number, rounds: number): Promise<{ taken: number; refused: number }> {
	return inTemporaryFolder(async (folder) => {
		await using program = await bundle("test/stress/guard-racer.ts");
		const path = join(folder, "race.db");
		const args = [program.path, path, String(rounds), String(processes)];
		const racers = Array.from({ length: processes }, () => runNode(args));
		const attempts = (await Promise.all(racers)).flatMap((printed) => JSON.parse(printed) as Attempt[]);
		const taken = attempts.filter(({ refusedFor }) => refusedFor === undefined);
		const saver = new SqliteSaver(path);
		const stored: Attempt[] = [];
		for await (const { config, parentConfig } of saver.list({ configurable: { thread_id: "race" } }))
			stored.push({
				id: config.configurable?.checkpoint_id,
				parentId: parentConfig?.configurable?.checkpoint_id ?? null,
			});
		await saver.close();
		const byId = (a: Attempt, b: Attempt) => (a.id < b.id ? 1 : -1);
		assert.deepEqual(stored, [...taken].sort(byId), "what is stored is not what was taken");
		for (const [i, { id, parentId }] of stored.entries())
			assert.equal(parentId, stored[i + 1]?.id ?? null, `checkpoint ${id} does not follow the one before it`);
		return { taken: taken.length, refused: attempts.length - taken.length };
	});
}
