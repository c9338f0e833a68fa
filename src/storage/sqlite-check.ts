import { CheckpointError } from "../errors.ts";
import { checkBlob } from "./sqlite-blobs.ts";
import { checkCheckpoint } from "./sqlite-checkpoints.ts";
import { proveForks, proveKeys, proveThreads } from "./sqlite-proofs.ts";
import { getNextNumber } from "./sqlite-sequence.ts";
import type { SqliteSession } from "./sqlite-session.ts";
import { checkThread, type SqlThread } from "./sqlite-threads.ts";
import { findBases, findThreadBases, findThreadWrites, findWrites } from "./sqlite-writes.ts";
import type { StorageDamage } from "./storage.ts";

/** Everything that is wrong with a database below its envelopes: what SQLite finds, and what sums and totals tell. */
export function checkDatabase(session: SqliteSession): StorageDamage[] {
	const damage = new DamageList();
	damage.collect(undefined, () => {
		const found = session.db.pragma("integrity_check") as { integrity_check: string }[];
		for (const { integrity_check: problem } of found) if (problem !== "ok") damage.add(problem);
	});
	damage.collect(undefined, () => getNextNumber(session));
	damage.collect(undefined, () => proveThreads(session, "era"));
	damage.collect(undefined, () => proveThreads(session, "family"));
	damage.collect(undefined, () => {
		for (const row of session.sql.listAllBlobs.iterate()) damage.collect(undefined, () => checkBlob(row));
	});
	damage.collect(undefined, () => {
		for (const row of session.sql.getAllThreads.all()) {
			const threadId = (row as SqlThread).thread_id;
			damage.collect(threadId, () => checkRows(session, checkThread(row), damage));
		}
	});
	return damage.list;
}

function checkRows(session: SqliteSession, thread: SqlThread, damage: DamageList): void {
	const { thread_id: threadId } = thread;
	session.keys.delete(thread.pk);
	session.forks.delete(thread.pk);
	for (const check of [proveKeys, proveForks, findThreadWrites, findThreadBases])
		damage.collect(threadId, () => check(session, thread));
	for (const { ns, id } of session.sql.listKeys.all(thread.pk) as { ns: string; id: string }[]) {
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
