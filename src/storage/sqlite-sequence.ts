import { CheckpointError } from "../errors.ts";
import type { SqliteSession } from "./sqlite-session.ts";
import { sumOf } from "./sqlite-sums.ts";

/** The first number that was never handed out. */
export function getNextNumber({ sql }: SqliteSession): number {
	const found = sql.getSequence.get() as { next: number; sum: number } | undefined;
	if (found === undefined || found.sum !== sumOf("sequence", found.next))
		throw new CheckpointError("CORRUPT", "The counter of numbers is damaged: call repair().");
	return found.next;
}

export function setNextNumber({ sql }: SqliteSession, next: number): void {
	sql.setSequence.run(next, sumOf("sequence", next));
}
