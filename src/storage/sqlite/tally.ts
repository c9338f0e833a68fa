import type { RowCount } from "../storage.ts";

/** What checkpoints have in their own rows, as SQLite has counted it. */
export interface InRows {
	readonly bytes: number;
	readonly pendingWrites: number;
}

/** Counts rows that SQLite has answered. */
export class Tally {
	readonly count: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };

	checkpoints(rows: readonly unknown[]): void {
		this.count.checkpoints += rows.length;
		for (const row of rows as InRows[]) this.inRows(row);
	}

	inRows({ bytes, pendingWrites }: InRows): void {
		this.count.writes += pendingWrites;
		this.count.bytes += bytes;
	}

	writes(rows: readonly unknown[]): void {
		this.count.writes += rows.length;
		for (const { bytes } of rows as { bytes: number }[]) this.count.bytes += bytes;
	}
}
