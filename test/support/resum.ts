import type Database from "better-sqlite3";
import { type SqlBlob, sumOfBlob } from "../../src/storage/sqlite-blobs.ts";
import { type SqlCheckpoint, sumOfCheckpoint } from "../../src/storage/sqlite-checkpoints.ts";
import { unpackId } from "../../src/storage/sqlite-ids.ts";
import { addSums, NO_WRITES, sumOfFork, sumOfKey, sumOfThread } from "../../src/storage/sqlite-sums.ts";
import { eraOf, type SqlThread, sumOfThreadRow } from "../../src/storage/sqlite-threads.ts";
import { sumOfBase, sumOfWrite } from "../../src/storage/sqlite-writes.ts";
import { pendingCheckpoints, setPendingWrites } from "./pending.ts";

/**
 * Makes every sum and total of a database right for what is in it now, as somebody does who changes rows and knows how
 * sums are made: anybody can.
 */
export function resum(db: Database.Database): void {
	const threads = db.prepare("SELECT * FROM delta_thread").all() as SqlThread[];
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
		const own = sumOfWrite({ ...row, id: unpackId(checkpoint), taskId: unpackId(task), runId: row.run_id });
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
	db.prepare(
		"UPDATE delta_thread SET checkpoints = ?, head = ?, keys = ?, forks = ?, loose = ?, sum = ? WHERE pk = ?",
	).run(checkpoints, head, keys, forks, loose, sumOfThreadRow(thread), pk);
}

/** Gives a thread another time, as a put at that time would. */
export function touch(db: Database.Database, threadId: string, time: number): void {
	const thread = db.prepare("SELECT * FROM delta_thread WHERE thread_id = ?").get(threadId) as SqlThread;
	const set = db.prepare("UPDATE delta_thread SET updated_at = ?, era = ?, sum = ? WHERE pk = ?");
	set.run(time, eraOf(time), sumOfThreadRow({ ...thread, updated_at: time }), thread.pk);
}
