import type { SqliteSession } from "./session.ts";

/**
 * The heads of copies.
 *
 * A row that was copied has no head of its own but the number of the row that holds it: one with the same id in another
 * thread of the family, which has bytes. Before that one is removed or gets another head, one of those that name it takes
 * the bytes over.
 */

/** SQL for the head of a row: null if the row that holds it is lost. */
export const HEAD = `iif(typeof(delta_checkpoint.head) = 'integer',
	(SELECT holder.head FROM delta_checkpoint AS holder WHERE holder.pk = delta_checkpoint.head), delta_checkpoint.head)`;

/** SQL for what is true of the head of a row. Most rows have heads of their own, for which it is asked once. */
export function sqlOfHead(condition: (head: string) => string): string {
	const own = "delta_checkpoint.head";
	const isCopy = `typeof(${own}) = 'integer'`;
	return `(${condition(own)} OR ${isCopy}) AND (NOT ${isCopy} OR ${condition(HEAD)})`;
}

/** SQL for the number of the row that holds the head of this one. */
export function sqlHolder(row: string): string {
	return `iif(typeof(${row}.head) = 'integer', ${row}.head, ${row}.pk)`;
}

/** Lets other threads have the heads of rows that will be without them. */
export function handOn({ sql }: SqliteSession, thread: { pk: number; family: number }, rows: readonly number[]): void {
	const { pk, family } = thread;
	if (rows.length === 0 || sql.getRelative.get(family, pk) === undefined) return;
	const found = sql.findHeirs.all({ thread: pk, family, rows: JSON.stringify(rows) }) as Inheritance[];
	const heirs = new Map<number, number>();
	for (const { holder, row } of found) {
		const heir = heirs.get(holder);
		if (heir === undefined) sql.takeHead.run(row);
		// A column of type ANY would keep a number as a float.
		else sql.setHead.run(BigInt(heir), row);
		if (heir === undefined) heirs.set(holder, row);
	}
}

interface Inheritance {
	/** The row that has the bytes. */
	readonly holder: number;
	/** One that names it. */
	readonly row: number;
}
