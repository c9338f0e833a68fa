import { CheckpointError, isCorrupt } from "../../errors.ts";
import { allThreads } from "../../storage/all-threads.ts";
import type { RemoveBatch, ThreadRow, WriteKey } from "../../storage/storage.ts";
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
	let isReadable = false;
	const checkReadable = async () => {
		isReadable ||= await isAnyReadable(engine, pause);
		if (!isReadable)
			throw new CheckpointError(
				"CORRUPT",
				"No checkpoint can be read, so none was removed: look at the saver's options, restore a backup, or call `clear`.",
			);
	};
	const done = { threads: 0, checkpoints: 0 };
	for await (const thread of allThreads(engine.storage)) {
		done.checkpoints += await repairThread(engine, thread, report, pause, checkReadable);
		done.threads++;
		onProgress({ ...done });
	}
	return report;
}

async function isAnyReadable(engine: Engine, pause: Pause): Promise<boolean> {
	for await (const { threadId } of allThreads(engine.storage))
		if ((await surveyThread(engine, threadId, pause)).rows.length > 0) return true;
	return false;
}

/**
 * Answers how many checkpoints it has afterwards.
 *
 * @param checkReadable throws if nothing can be read, in no thread
 */
async function repairThread(
	engine: Engine,
	{ threadId }: ThreadRow,
	report: RepairReport,
	pause: Pause,
	checkReadable: () => Promise<void>,
): Promise<number> {
	for (let round = 1; ; round++) {
		const survey = await surveyThread(engine, threadId, pause);
		report.damage.push(...survey.faults.filter((one) => !includes(report.damage, one)));
		if (!survey.isDamaged) return survey.rows.length;
		const isNothing = survey.broken.size + survey.brokenWrites.size === 0;
		if (survey.stamp === undefined || isNothing || round > MOST_ROUNDS)
			throw new CheckpointError("CORRUPT", `Thread ${JSON.stringify(threadId)} can't be repaired: restore a backup.`, {
				place: { threadId },
			});
		if (survey.rows.length === 0) await checkReadable();
		report.removed.push(...(await removeBroken(engine, threadId, survey, survey.stamp)));
	}
}

function includes(known: readonly Damage[], one: Damage): boolean {
	return known.some(({ problem, threadId }) => problem === one.problem && threadId === one.threadId);
}

/** Answers what it has removed: nothing if somebody else has deleted something meanwhile, so that it has to look again. */
async function removeBroken(
	engine: Engine,
	threadId: string,
	survey: Survey,
	stamp: number,
): Promise<RepairReport["removed"]> {
	const { storage, blobs } = engine;
	const newStamp = await blobs.nextId();
	const writes = [...survey.brokenWrites.values()];
	const batch = { threadId, stamp, newStamp, writes, orphans: [], ...(await plan(engine, survey, writes)) };
	const removed = await storage.remove(batch);
	engine.clearCaches();
	if (removed === undefined) return [];
	return [
		...batch.checkpoints.map(({ ns, id }) => ({ threadId, ns, checkpointId: id })),
		...writes.map(({ ns, id, taskId }) => ({ threadId, ns, checkpointId: id, taskId })),
	];
}

/** What can go now so that the rest reads as before. */
async function plan(
	engine: Engine,
	{ rows, written, broken }: Survey,
	writes: readonly WriteKey[],
): Promise<Pick<RemoveBatch, "checkpoints" | "relinked" | "deltaBases">> {
	const kept = rows.filter((row) => !broken.has(cacheKey(row)));
	const checkpoints = [...broken.values()];
	try {
		return { checkpoints, ...(await planRetention(engine, { checkpoints: rows, written }, kept, writes)) };
	} catch (error) {
		if (!isCorrupt(error)) throw error;
		// What could not be read goes first; what others are told by, once it does not disturb any more.
		const unreadable = checkpoints.filter((one) => !one.isReadable);
		const isAll = unreadable.length + writes.length === 0;
		return { checkpoints: isAll ? checkpoints : unreadable, relinked: [], deltaBases: [] };
	}
}
