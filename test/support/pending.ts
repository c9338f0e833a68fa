import type Database from "better-sqlite3";
import { packId } from "../../src/storage/sqlite/ids.ts";
import { packWrites, unpackWrites } from "../../src/storage/sqlite/pending.ts";
import { addSums, sumOfThread } from "../../src/storage/sqlite/sums.ts";
import { sumOfWrite } from "../../src/storage/sqlite/writes.ts";
import type { WriteRow } from "../../src/storage/storage.ts";

/** A checkpoint whose writes stand in its row. */
export interface PendingCheckpoint {
	readonly pk: number;
	readonly thread: number;
	readonly ns: string;
	readonly id: string;
	readonly run_id: string | null;
	readonly writes: WriteRow[];
}

export function pendingCheckpoints(db: Database.Database): PendingCheckpoint[] {
	const rows = db
		.prepare("SELECT pk, thread, ns, id, run_id, pending FROM delta_checkpoint WHERE pending IS NOT NULL")
		.all();
	return (rows as (PendingCheckpoint & { pending: Buffer })[]).map(({ pending, ...row }) => {
		const { ns, id, run_id } = row;
		const found = [...unpackWrites(pending, { threadId: "", ns, id }, run_id ?? undefined)];
		return { ...row, writes: found.map((write) => write.row) };
	});
}

/** Puts other writes into the row of a checkpoint, with the right sums but not the right total. */
export function setPendingWrites(db: Database.Database, { pk, run_id, writes }: PendingCheckpoint): void {
	const summed = writes.map((row) => ({ row, sum: sumOfWrite(row) }));
	const packed = packWrites(summed, run_id ?? undefined);
	if (packed === undefined) throw new Error("They do not fit in a row.");
	db.prepare("UPDATE delta_checkpoint SET pending = ? WHERE pk = ?").run(packed, pk);
}

/** Gives all writes rows of their own, as they have them where there are many. */
export function spreadWrites(db: Database.Database): void {
	const insert = db.prepare("INSERT INTO delta_write VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	for (const { thread, ns, id, writes } of pendingCheckpoints(db))
		for (const row of writes) {
			const { taskId, generation, idx, taskPath = null, channel, runId = null, actor = null, type = null, value } = row;
			const sum = addSums(sumOfWrite(row), sumOfThread(thread));
			const stored = typeof value === "number" ? BigInt(value) : value;
			const place = [thread, ns, packId(id), packId(taskId), generation, idx];
			insert.run(...place, taskPath, channel, runId, actor, type, sum, stored);
		}
	db.exec("UPDATE delta_checkpoint SET pending = NULL");
}
