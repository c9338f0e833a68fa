import { CheckpointError } from "../errors.ts";
import type { Damage, VerifyReport } from "../saver/types.ts";
import { allThreads } from "../storage/all-threads.ts";
import { unreachedBlobs } from "./collect.ts";
import type { Engine } from "./engine.ts";
import { type Fault, surveyThread } from "./survey.ts";

/** How far a verification or a repair is. */
export interface Progress {
	threads: number;
	checkpoints: number;
}

/** Reads everything that is stored, as it is stored: nothing that is remembered counts. */
export async function verify(engine: Engine, onProgress: (done: Progress) => void): Promise<VerifyReport> {
	engine.clearCaches();
	const damage: Damage[] = await engine.storage.check().then(
		(found) => [...found],
		(error: unknown) => {
			if (error instanceof CheckpointError && error.code === "CORRUPT") return [{ problem: error.message }];
			throw error;
		},
	);
	const done = { threads: 0, checkpoints: 0, writes: 0 };
	try {
		for await (const { threadId } of allThreads(engine.storage)) {
			const { rows, faults, writes } = await surveyThread(engine, threadId);
			damage.push(...faults.map(describe));
			done.threads++;
			done.checkpoints += rows.length;
			done.writes += writes;
			onProgress({ threads: done.threads, checkpoints: done.checkpoints });
		}
	} catch (error) {
		// That there are threads which can't be listed was found by the storage itself.
		if (damage.length === 0) throw error;
	}
	const unreachable = damage.length > 0 ? undefined : await countUnreachable(engine);
	return { ...done, unreachable, damage };
}

const FAMILIES_AT_ONCE = 200;

async function countUnreachable(engine: Engine): Promise<number> {
	let unreachable = 0;
	let after: number | undefined;
	for (;;) {
		const families = await engine.storage.listFamilies(FAMILIES_AT_ONCE, after);
		for (const family of families) unreachable += (await unreachedBlobs(engine, family)).length;
		after = families.at(-1);
		if (after === undefined) return unreachable;
	}
}

export function describe({ threadId, ns, checkpointId, channel, taskId, problem }: Fault): Damage {
	return { threadId, ns, checkpointId, channel, taskId, problem };
}
