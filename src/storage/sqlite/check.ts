import { CheckpointError } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import { checkBlob, type SqlBlob } from "./blobs.ts";
import { checkCheckpoint } from "./checkpoints.ts";
import { proveCounts, proveForks, proveKeys, proveThreads } from "./proofs.ts";
import { getNextNumber } from "./sequence.ts";
import type { SqliteSession } from "./session.ts";
import { checkThread, type SqlThread } from "./threads.ts";
import { findBases, findThreadBases, findThreadWrites, findWrites } from "./writes.ts";

/** What a part of a check has found, and where the next part begins. */
export interface CheckedPart {
	readonly damage: StorageDamage[];
	/** The last row that was looked at; `undefined` if there are no more. */
	readonly last: number | undefined;
}

/** Threads and blobs that are looked at in one go: some milliseconds, unless a thread is very long. */
const THREADS_AT_ONCE = 20;
const BLOBS_AT_ONCE = 2000;

/** What is wrong with a database as a whole, below its envelopes: what SQLite finds, and indexes that lack something. */
export function checkFile(session: SqliteSession): StorageDamage[] {
	const damage = new DamageList();
	session.wholeIndexes.clear();
	session.areAllProven = false;
	damage.collect(undefined, () => {
		const found = session.db.pragma("integrity_check") as { integrity_check: string }[];
		for (const { integrity_check: problem } of found) if (problem !== "ok") damage.add(problem);
	});
	damage.collect(undefined, () => getNextNumber(session));
	damage.collect(undefined, () => proveThreads(session, "era"));
	damage.collect(undefined, () => proveThreads(session, "family"));
	damage.collect(undefined, () => proveCounts(session, session.sql.getAllThreads.iterate() as Iterable<SqlThread>));
	return damage.list;
}

/** What is wrong with the next rows of blobs. */
export function checkBlobs(session: SqliteSession, after: number): CheckedPart {
	return checkPart(
		() => session.sql.listBlobsAfter.all(after, BLOBS_AT_ONCE) as (SqlBlob & { id: number })[],
		(row, damage) => damage.collect(undefined, () => checkBlob(row)),
		({ id }) => id,
	);
}

/** What sums and totals of the next threads tell. */
export function checkThreads(session: SqliteSession, after: number): CheckedPart {
	return checkPart(
		() => session.sql.listThreadsByPk.all(after, THREADS_AT_ONCE) as SqlThread[],
		(row, damage) => damage.collect(row.thread_id, () => checkRows(session, checkThread(row), damage)),
		({ pk }) => pk,
	);
}

function checkPart<R>(
	read: () => R[],
	check: (row: R, damage: DamageList) => void,
	place: (row: R) => number,
): CheckedPart {
	const damage = new DamageList();
	let last: number | undefined;
	damage.collect(undefined, () => {
		for (const row of read()) {
			check(row, damage);
			last = place(row);
		}
	});
	return { damage: damage.list, last };
}

function checkRows(session: SqliteSession, thread: SqlThread, damage: DamageList): void {
	const { thread_id: threadId } = thread;
	session.keys.delete(thread.pk);
	session.rows.delete(thread.pk);
	session.forks.delete(thread.pk);
	for (const check of [proveKeys, proveForks, findThreadWrites, findThreadBases])
		damage.collect(threadId, () => check(session, thread));
	for (const { ns, id } of session.sql.listKeys.all(thread.pk) as { ns: string | Uint8Array; id: string }[]) {
		if (typeof ns !== "string") continue;
		damage.collect(threadId, () => {
			checkCheckpoint(session.sql.getCheckpoint.get(thread.pk, ns, id), thread);
			findWrites(session, thread, ns, id);
			findBases(session, thread, ns, id);
		});
	}
}

class DamageList {
	readonly list: StorageDamage[] = [];

	add(problem: string, threadId?: string): void {
		this.list.push({ threadId, problem });
	}

	/** Takes down what a check throws. */
	collect(threadId: string | undefined, check: () => unknown): void {
		try {
			check();
		} catch (error) {
			if (!(error instanceof CheckpointError) && !isCorrupt(error)) throw error;
			this.add((error as Error).message, threadId);
		}
	}
}

function isCorrupt(error: unknown): boolean {
	return String((error as { code?: unknown }).code).startsWith("SQLITE_CORRUPT");
}
