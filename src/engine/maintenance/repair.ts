import { CheckpointError, quote } from "../../errors.ts";
import { allThreads } from "../../storage/all-threads.ts";
import type { CheckpointKey, RemoveBatch } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey } from "../rows.ts";
import { planRetention } from "./retention.ts";
import { type Survey, surveyThread } from "./survey.ts";
import type { Damage, RepairReport } from "./types.ts";
import type { Progress } from "./verify.ts";

/** A thread is looked at again after something was removed from it: that may show what was hidden, or break a history. */
const MOST_ROUNDS = 100;

/**
 * Removes what can't be read, so that all the rest can: checkpoints of which anything is lost, and writes. First the
 * storage puts its own structures in order. If no checkpoint at all can be read, nothing is removed: most likely it is
 * not they that are wrong.
 */
export async function repair(
	engine: Engine,
	onProgress: (done: Progress) => void,
	pause: Pause,
): Promise<RepairReport> {
	engine.clearCaches();
	const report: RepairReport = { damage: await engine.storage.check(true), removed: [] };
	engine.clearCaches();
	const done = { threads: 0, checkpoints: 0 };
	for await (const { threadId } of allThreads(engine.storage)) {
		done.checkpoints += await repairThread(engine, threadId, report, pause);
		done.threads++;
		onProgress({ ...done });
	}
	return report;
}

/** Returns how many checkpoints it has afterwards. */
async function repairThread(engine: Engine, threadId: string, report: RepairReport, pause: Pause): Promise<number> {
	const { storage, blobs } = engine;
	const faults = new Map<string, Damage>();
	// Also those of earlier rounds: without a row that could not be opened, a history that it was part of looks whole.
	const lost = new Map<string, CheckpointKey>();
	for (let round = 1; ; round++) {
		const survey = await surveyThread(engine, threadId, pause);
		for (const [name, fault] of survey.faults) faults.set(name, fault);
		for (const [name, key] of survey.lost) lost.set(name, key);
		const { stamp, rows, isDamaged } = survey;
		if (!isDamaged && !rows.some((row) => lost.has(cacheKey(row)))) {
			report.damage.push(...faults.values());
			return rows.length;
		}
		const batch = await plan(engine, survey, lost);
		const isNothing = batch.checkpoints.length + batch.writes.length === 0;
		if (stamp === undefined || isNothing || round > MOST_ROUNDS)
			throw new CheckpointError("CORRUPT", `Thread ${quote(threadId)} can't be repaired: restore a backup.`, {
				place: { threadId },
			});
		if (rows.length === 0) await checkReadable(engine, pause);
		const newStamp = await blobs.nextId();
		const removed = await storage.remove({ threadId, stamp, newStamp, orphans: [], ...batch });
		engine.clearCaches();
		// Somebody else has deleted something meanwhile.
		if (removed === undefined) continue;
		for (const { ns, id } of batch.checkpoints) report.removed.push({ threadId, ns, checkpointId: id });
		for (const { ns, id, taskId } of batch.writes) report.removed.push({ threadId, ns, checkpointId: id, taskId });
	}
}

/** Throws if no checkpoint can be read, in no thread. */
async function checkReadable(engine: Engine, pause: Pause): Promise<void> {
	for await (const { threadId } of allThreads(engine.storage))
		if ((await surveyThread(engine, threadId, pause)).rows.length > 0) return;
	throw new CheckpointError(
		"CORRUPT",
		"No checkpoint can be read, so none was removed: look at the saver's options, restore a backup, or call `clear`.",
	);
}

/** What can't be opened goes first. Then all else that is lost can, in such a way that the rest reads as before. */
async function plan(
	engine: Engine,
	{ rows, written, ...found }: Survey,
	lost: ReadonlyMap<string, CheckpointKey>,
): Promise<Pick<RemoveBatch, "checkpoints" | "writes" | "relinked" | "deltaBases">> {
	const unopened = [...found.lost.values()].filter(({ loss }) => loss === "row");
	const writes = [...found.lostWrites.values()];
	const unopenedWrites = writes.filter(({ loss }) => loss === "row");
	if (unopened.length + unopenedWrites.length > 0)
		return { checkpoints: unopened, writes: unopenedWrites, relinked: [], deltaBases: [] };
	const isLost = (row: CheckpointKey) => lost.has(cacheKey(row));
	const kept = rows.filter((row) => !isLost(row));
	const retention = await planRetention(engine, { checkpoints: rows, written }, kept, writes);
	return { checkpoints: rows.filter(isLost), writes, ...retention };
}
