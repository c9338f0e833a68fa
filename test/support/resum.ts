import type Database from "better-sqlite3";
import { type SqlBlob, sumOfBlob } from "../../src/storage/sqlite/blobs.ts";
import { type SqlCheckpoint, sumOfCheckpoint } from "../../src/storage/sqlite/checkpoints.ts";
import { unpackId } from "../../src/storage/sqlite/ids.ts";
import { addSums, NO_WRITES, sumOfFork, sumOfKey, sumOfThread } from "../../src/storage/sqlite/sums.ts";
import { eraOf, type SqlThread, sumOfName, sumOfTotals } from "../../src/storage/sqlite/threads.ts";
import { sumOfBase, sumOfWrite } from "../../src/storage/sqlite/writes.ts";
import { pendingCheckpoints, setPendingWrites } from "./pending.ts";

const THREAD = "SELECT * FROM delta_thread JOIN delta_key ON thread_pk = pk AND row_pk = 0";

/**
 * Makes every sum and total of a database right for what is in it now, as somebody does who changes rows and knows how
 * sums are made: anybody can.
 */
export function resum(db: Database.Database): void {
	const threads = db.prepare(THREAD).all() as SqlThread[];
	for (const thread of threads) resumThread(db, thread);
	const setBlob = db.prepare("UPDATE delta_blob SET sum = ? WHERE id = ?");
	const blobs = db.prepare("SELECT id, family, base, source, type, sum FROM delta_blob").all() as SqlBlob[];
	for (const blob of blobs) setBlob.run(sumOfBlob(blob), blob.id);
}

function resumThread(db: Database.Database, thread: SqlThread): void {
	const { pk } = thread;
	const totals = new Map<string, { writes: number; bases: number }>();
	const count = (kind: "writes" | "bases", ns: string, id: string, sum: number) => {
		const key = JSON.stringify([ns, id]);
		const total = totals.get(key) ?? { writes: 0, bases: 0 };
		totals.set(key, { ...total, [kind]: addSums(total[kind], sum) });
	};
	const setWrite = db.prepare(
		"UPDATE delta_write SET sum = ? WHERE thread = ? AND ns = ? AND checkpoint = ? AND task = ? AND generation = ? AND idx = ?",
	);
	for (const row of db.prepare("SELECT * FROM delta_write WHERE thread = ?").all(pk) as any[]) {
		const { ns, checkpoint, task, generation, idx } = row;
		const own = sumOfWrite({
			...row,
			id: unpackId(checkpoint),
			taskId: unpackId(task),
			taskPath: row.task_path,
			runId: row.run_id,
		});
		setWrite.run(addSums(own, sumOfThread(pk)), pk, ns, checkpoint, task, generation, idx);
		count("writes", ns, unpackId(checkpoint), own);
	}
	for (const checkpoint of pendingCheckpoints(db)) {
		if (checkpoint.thread !== pk) continue;
		setPendingWrites(db, checkpoint);
		for (const row of checkpoint.writes) count("writes", checkpoint.ns, checkpoint.id, sumOfWrite(row));
	}
	const setBase = db.prepare(
		"UPDATE delta_base SET sum = ? WHERE thread = ? AND ns = ? AND checkpoint = ? AND channel = ?",
	);
	for (const { ns, checkpoint, channel } of db.prepare("SELECT * FROM delta_base WHERE thread = ?").all(pk) as any[]) {
		const own = sumOfBase(ns, unpackId(checkpoint), channel);
		setBase.run(addSums(own, sumOfThread(pk)), pk, ns, checkpoint, channel);
		count("bases", ns, unpackId(checkpoint), own);
	}
	thread.checkpoints = 0;
	thread.keys = 0;
	thread.forks = 0;
	thread.head = null;
	const setRow = db.prepare("UPDATE delta_checkpoint SET sum = ?, writes = ?, bases = ? WHERE pk = ?");
	const rows = db.prepare("SELECT * FROM delta_checkpoint WHERE thread = ? ORDER BY id").all(pk) as SqlCheckpoint[];
	for (const row of rows) {
		const key = JSON.stringify([row.ns, row.id]);
		const { writes, bases } = totals.get(key) ?? { writes: 0, bases: 0 };
		totals.delete(key);
		setRow.run(sumOfCheckpoint(row), addSums(NO_WRITES, writes), bases, row.pk);
		thread.checkpoints++;
		thread.keys = addSums(thread.keys, sumOfKey(row.ns, row.id));
		thread.forks = addSums(thread.forks, sumOfFork(row));
		if (row.ns === "") thread.head = row.id;
	}
	thread.loose = 0;
	for (const { writes, bases } of totals.values()) thread.loose = addSums(addSums(thread.loose, writes), bases);
	const { checkpoints, head, keys, forks, loose } = thread;
	db.prepare("DELETE FROM delta_key WHERE thread_pk = ? AND row_pk > 0").run(pk);
	const setKey = db.prepare("INSERT INTO delta_key (thread_pk, key_ns, key_id, row_pk) VALUES (?, ?, ?, ?)");
	for (const row of rows) setKey.run(pk, row.ns, row.id, row.pk);
	db.prepare(
		"UPDATE delta_key SET checkpoints = ?, newest = ?, keys = ?, forks = ?, loose = ?, totals_sum = ? WHERE thread_pk = ? AND row_pk = 0",
	).run(checkpoints, head, keys, forks, loose, sumOfTotals(thread), pk);
	db.prepare("UPDATE delta_thread SET sum = ? WHERE pk = ?").run(sumOfName(thread), pk);
}

/** Gives a thread another time, as a put at that time would. */
export function touch(db: Database.Database, threadId: string, time: number): void {
	const found = db.prepare(`${THREAD} WHERE thread_id = ?`).get(threadId) as SqlThread & { newest: string | null };
	const thread = { ...found, head: found.newest, updated_at: time };
	db.prepare("UPDATE delta_thread SET era = ? WHERE pk = ?").run(eraOf(time), thread.pk);
	const set = db.prepare("UPDATE delta_key SET updated_at = ?, totals_sum = ? WHERE thread_pk = ? AND row_pk = 0");
	set.run(time, sumOfTotals(thread), thread.pk);
}
