import { CheckpointError } from "../../errors.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { SqliteSession } from "./session.ts";
import { sumOf } from "./sums.ts";

/** The first number that was never handed out. */
export function getNextNumber({ sql }: SqliteSession): number {
	const found = sql.getSequence.get() as { next: number; sum: number } | undefined;
	if (found === undefined || found.sum !== sumOf("sequence", found.next))
		throw new CheckpointError("CORRUPT", "The counter of numbers is damaged: call repair().");
	return found.next;
}

/** Numbers that were never handed out, and never will be again. Answers the first of them. */
export function reserveNumbers(session: SqliteSession, count: number): number {
	const { db } = session;
	const next = Math.max(getNextNumber(session), reserved.get(db) ?? 0);
	setNextNumber(session, next + count);
	reserved.set(db, next + count);
	return next;
}

/** Where they end by database, which may belong to the application: it may undo what says so there. */
const reserved = new WeakMap<SqliteDatabase, number>();

export function setNextNumber({ sql }: SqliteSession, next: number): void {
	sql.setSequence.run(next, sumOf("sequence", next));
}
