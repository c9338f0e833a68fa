import type { RowCount } from "./storage.ts";

/** Counts what RETURNING answered. */
export class Tally {
	readonly count: RowCount = { checkpoints: 0, writes: 0, bytes: 0 };

	checkpoints(rows: unknown[]): void {
		this.count.checkpoints += rows.length;
		this.#bytes(rows);
	}

	writes(rows: unknown[]): void {
		this.count.writes += rows.length;
		this.#bytes(rows);
	}

	#bytes(rows: unknown[]): void {
		for (const row of rows as { bytes: number }[]) this.count.bytes += row.bytes;
	}
}
