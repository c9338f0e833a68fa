import { CheckpointError } from "../errors.ts";
import type { Damage, RepairReport } from "../saver/types.ts";
import { allThreads } from "../storage/all-threads.ts";
import type { RemoveBatch, ThreadRow } from "../storage/storage.ts";
import type { Engine } from "./engine.ts";
import type { Pause } from "./pause.ts";
import { planRetention, type RetentionPlan } from "./retention.ts";
import { cacheKey } from "./rows.ts";
import { type Survey, surveyThread } from "./survey.ts";
import { describe, type Progress } from "./verify.ts";

/** A thread is looked at again after something was removed from it: each time at least one thing goes. */
const MOST_ROUNDS = 10_000;

/**
 * Removes what can't be read, so that all the rest can: checkpoints of which anything is lost, and writes. First the
 * storage puts its own structures in order.
 */
export async function repair(
	engine: Engine,
	onProgress: (done: Progress) => void,
	pause: Pause,
): Promise<RepairReport> {
	engine.clearCaches();
	const report: RepairReport = { damage: [...((await engine.storage.repair?.()) ?? [])], removed: [] };
	engine.clearCaches();
	const done = { threads: 0, checkpoints: 0 };
	for await (const thread of allThreads(engine.storage)) {
		done.checkpoints += await repairThread(engine, thread, report, pause);
		done.threads++;
		onProgress({ ...done });
	}
	return report;
}

/** Answers how many checkpoints it has afterwards. */
async function repairThread(
	engine: Engine,
	{ threadId }: ThreadRow,
	report: RepairReport,
	pause: Pause,
): Promise<number> {
	for (let round = 1; ; round++) {
		const survey = await surveyThread(engine, threadId, pause);
		report.damage.push(...survey.faults.map(describe).filter((one) => !includes(report.damage, one)));
		if (survey.faults.every(({ isUndecodable }) => isUndecodable)) return survey.rows.length;
		if (survey.isUnknown || round > MOST_ROUNDS)
			throw new CheckpointError("CORRUPT", `Thread ${JSON.stringify(threadId)} can't be repaired: restore a backup.`, {
				place: { threadId },
			});
		await removeBroken(engine, threadId, survey);
		for (const { ns, id } of survey.broken.values()) report.removed.push({ threadId, ns, checkpointId: id });
		for (const { ns, id, taskId } of survey.brokenWrites)
			report.removed.push({ threadId, ns, checkpointId: id, taskId });
	}
}

function includes(known: readonly Damage[], one: Damage): boolean {
	return known.some(({ problem, threadId }) => problem === one.problem && threadId === one.threadId);
}

async function removeBroken(engine: Engine, threadId: string, survey: Survey): Promise<void> {
	const { storage, blobs, links } = engine;
	if (survey.stamp === undefined) return;
	const { relink, deltaBases } = await plan(engine, survey);
	const batch: RemoveBatch = {
		threadId,
		stamp: survey.stamp,
		newStamp: await blobs.nextId(),
		checkpoints: [...survey.broken.values()],
		writes: survey.brokenWrites,
		relink,
		deltaBases,
	};
	// If somebody else has deleted something meanwhile, the next round sees what is left.
	await storage.remove(batch);
	links.forget(threadId);
	engine.clearCaches();
}

/** What stays reads as before, as far as that can still be found out. */
async function plan(engine: Engine, { rows, broken, brokenWrites }: Survey): Promise<Omit<RetentionPlan, "removed">> {
	const kept = rows.filter((row) => !broken.has(cacheKey(row)));
	try {
		return await planRetention(engine, rows, kept, brokenWrites);
	} catch (error) {
		if (!(error instanceof CheckpointError) || error.code !== "CORRUPT") throw error;
		return { relink: [], deltaBases: [] };
	}
}
