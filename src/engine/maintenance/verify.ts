import { isCorrupt } from "../../errors.ts";
import { allFamilies, allThreads } from "../../storage/all-threads.ts";
import type { Engine } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { unreachedBlobs } from "./collect.ts";
import { surveyThread } from "./survey.ts";
import type { Damage, VerifyReport } from "./types.ts";

/** How far a verification or a repair is. */
export type Progress = Pick<VerifyReport, "threads" | "checkpoints">;

/** Reads everything that is stored, as it is stored: nothing that is remembered counts. */
export async function verify(
	engine: Engine,
	onProgress: (done: Progress) => void,
	pause: Pause,
): Promise<VerifyReport> {
	engine.clearCaches();
	const damage: Damage[] = await engine.storage.check().catch((error: unknown) => {
		if (isCorrupt(error)) return [{ problem: error.message }];
		throw error;
	});
	const done = { threads: 0, checkpoints: 0, writes: 0 };
	try {
		for await (const { threadId } of allThreads(engine.storage)) {
			const { rows, faults, writes } = await surveyThread(engine, threadId, pause);
			damage.push(...faults.values());
			done.threads++;
			done.checkpoints += rows.length;
			done.writes += writes;
			onProgress({ threads: done.threads, checkpoints: done.checkpoints });
		}
	} catch (error) {
		// That there are threads which can't be listed was found by the storage itself.
		if (damage.length === 0 || !isCorrupt(error)) throw error;
	}
	if (damage.length > 0) return { ...done, unreachable: undefined, damage };
	let unreachable = 0;
	for await (const family of allFamilies(engine.storage)) unreachable += (await unreachedBlobs(engine, family)).length;
	return { ...done, unreachable, damage };
}
