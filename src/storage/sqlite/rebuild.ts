import { copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { CheckpointError, quote } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import { type Entry, relinkCheckpoint, type SqlCheckpoint } from "./checkpoints.ts";
import { isBusy, openDatabase, type SqliteDatabase } from "./driver.ts";
import { HEAD } from "./heads.ts";
import { type PackedId, packId, unpackId, unpackOptional } from "./ids.ts";
import { SqlitePages, type Value } from "./pages.ts";
import { spreadPending } from "./put-writes.ts";
import { type FoundThread, findGone, findRows, findThreadNames } from "./salvage.ts";
import { migrate } from "./schema.ts";
import { setNextNumber } from "./sequence.ts";
import { SqliteSession } from "./session.ts";
import { addSums, NO_WRITES, subtractSums, sumOfFork, sumOfKey, sumOfThread } from "./sums.ts";
import { emptyThread, insertThread, type SqlThread, saveThread, type ThreadTotals } from "./threads.ts";
import { inspectWal } from "./wal.ts";
import { openPending, type Pending, totalOfPending } from "./writes.ts";

const TABLES = { delta_checkpoint: 14, delta_write: 13, delta_base: 6, delta_blob: 7 } as const;

/**
 * Makes a new file of everything in a damaged one that is sound, and puts it in its place. The damaged file stays beside
 * it, under another name.
 *
 * @returns what is missing now, and where the damaged file is
 */
export function rebuildFile(path: string): { lost: StorageDamage[]; damagedFile: string } {
	const unfinished = `${path}.repairing`;
	for (const end of ["", "-wal", "-shm"]) rmSync(unfinished + end, { force: true });
	const lock = lockAlone(path);
	// To close a file takes away all locks that the process has on it, so it stays open until everything is in place.
	const pages = new SqlitePages(path);
	try {
		const lost = writeSound(pages, path, unfinished);
		const damagedFile = keepFile(path);
		renameSync(unfinished, repairedFile(path));
		finishRepair(path);
		return { lost, damagedFile };
	} finally {
		pages.close();
		lock?.close();
	}
}

/** Whether an error is about a file that may be one of ours, and damaged. */
export function isDamage(error: unknown): error is CheckpointError {
	return error instanceof CheckpointError && ["CORRUPT", "FOREIGN_DATABASE", "STORAGE"].includes(error.code);
}

/**
 * Keeps others from the file until it is closed. Throws if they have it open. A damaged log is not to be opened, since
 * SQLite would cut it off.
 */
function lockAlone(path: string): SqliteDatabase | undefined {
	if (inspectWal(`${path}-wal`).lost > 0) return undefined;
	const db = openDatabase(path);
	try {
		db.pragma("locking_mode = EXCLUSIVE");
		db.exec("BEGIN IMMEDIATE");
	} catch (error) {
		if (!isBusy(error)) return db;
		db.close();
		throw error;
	}
	return db;
}

/** A repair that was interrupted once the new file was complete is finished by whoever opens the old one. */
export function finishRepair(path: string): void {
	if (!existsSync(repairedFile(path))) return;
	// The log is of the old file, and would be applied to the new one.
	for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
	renameSync(repairedFile(path), path);
}

function repairedFile(path: string): string {
	return `${path}.repaired`;
}

/** Gives a file and its log a second name. */
function keepFile(path: string): string {
	let kept = `${path}.damaged`;
	for (let n = 2; existsSync(kept); n++) kept = `${path}.damaged-${n}`;
	for (const end of ["", "-wal"]) {
		if ((statSync(path + end, { throwIfNoEntry: false })?.size ?? 0) === 0) continue;
		try {
			linkSync(path + end, kept + end);
		} catch {
			copyFileSync(path + end, kept + end);
		}
	}
	return kept;
}

function writeSound(pages: SqlitePages, path: string, target: string): StorageDamage[] {
	const db = openDatabase(target);
	try {
		db.pragma("auto_vacuum = INCREMENTAL");
		migrate(db, target, false);
		const rebuild = new Rebuild(db);
		db.transaction(() => rebuild.run(pages, path)).immediate();
		db.pragma("journal_mode = WAL");
		return rebuild.lost;
	} finally {
		db.close();
	}
}

/** Writes sound rows to a new database, and everything that is derived from them. */
class Rebuild {
	readonly #session: SqliteSession;
	readonly #threads = new Map<number, SqlThread>();
	readonly #found = new Map<number, FoundThread>();
	readonly #saved = new Map<number, ThreadTotals>();
	readonly lost: StorageDamage[] = [];

	constructor(db: SqliteDatabase) {
		this.#session = new SqliteSession(db, false);
	}

	run(pages: SqlitePages, path: string): void {
		const { db } = this.#session;
		db.exec("CREATE UNIQUE INDEX rebuilding ON delta_checkpoint (thread, ns, id)");
		if (this.#addRows(pages) === 0)
			throw new CheckpointError(
				"CORRUPT",
				`There is nothing in ${quote(path)} that can be read: restore a backup, or choose another file.`,
			);
		this.#settleHeads();
		this.#nameThreads(pages);
		db.exec(`INSERT INTO delta_key (thread_pk, key_ns, key_id, row_pk)
			SELECT thread, ns, id, pk FROM delta_checkpoint ORDER BY thread, ns, id`);
		for (const thread of this.#threads.values()) this.#settle(thread);
		db.exec("DROP INDEX rebuilding");
		this.#setSequence();
	}

	/** Those of pages that are surely in use come first, and nothing takes their place. */
	#addRows(pages: SqlitePages): number {
		let count = 0;
		const threadIds = new Set<string>();
		for (const found of findRows(pages)) {
			count++;
			if (found.table === "delta_key") {
				if (!this.#saved.has(found.row.pk)) this.#saved.set(found.row.pk, found.row);
			} else if (found.table !== "delta_thread") this.#insert(found.table, found.values);
			else if (!this.#found.has(found.row.pk) && !threadIds.has(found.row.thread_id)) {
				threadIds.add(found.row.thread_id);
				this.#found.set(found.row.pk, found.row);
			}
		}
		return count;
	}

	#insert(table: keyof typeof TABLES, values: readonly Value[]): void {
		const places = Array.from({ length: TABLES[table] }, () => "?").join(", ");
		const statement = this.#session.prepare(`INSERT OR IGNORE INTO ${table} VALUES (${places})`);
		// Numbers are bound as floats otherwise.
		statement.run(...values.map((value) => (typeof value === "number" ? BigInt(value) : value)));
	}

	/** Copies get heads of their own; without one a row is lost, and will be missed by its thread. */
	#settleHeads(): void {
		this.#session.prepare(`DELETE FROM delta_checkpoint WHERE typeof(${HEAD}) <> 'blob'`).run();
		this.#session.prepare(`UPDATE delta_checkpoint SET head = ${HEAD} WHERE typeof(head) = 'integer'`).run();
	}

	/** Threads whose own rows are lost are known to indexes, and what indexes don't know has no name any more. */
	#nameThreads(pages: SqlitePages): void {
		for (const row of this.#found.values()) this.#addThread(row.pk, row.thread_id, row.family, row);
		const names = findThreadNames(pages);
		const gone = findGone(pages);
		const all = "SELECT thread FROM delta_checkpoint UNION SELECT thread FROM delta_write";
		for (const { thread: pk } of this.#session.prepare(all).all() as { thread: number }[]) {
			if (this.#threads.has(pk)) continue;
			const name = names.get(pk);
			if (name !== undefined && !gone.has(pk)) {
				this.#addThread(pk, name.threadId, name.family ?? pk, undefined);
				continue;
			}
			const { checkpoints, writes } = this.#removeRows(pk);
			if (!gone.has(pk))
				this.lost.push({
					problem: `A thread with ${checkpoints} checkpoints and ${writes} writes has lost its name, and was left out.`,
				});
		}
	}

	/** @param found its own row, unless that is lost */
	#addThread(pk: number, threadId: string, family: number, found: FoundThread | undefined): void {
		const saved = this.#saved.get(pk);
		this.#threads.set(pk, { ...emptyThread(pk, threadId, family, Date.now()), ...saved, ...found });
		if (found === undefined || saved === undefined)
			this.lost.push({ threadId, problem: "The row of the thread was damaged." });
	}

	#removeRows(pk: number): { checkpoints: number; writes: number } {
		const [checkpoints, writes] = ["delta_checkpoint", "delta_write", "delta_base"].map(
			(table) => this.#session.prepare(`DELETE FROM ${table} WHERE thread = ?`).run(pk).changes,
		) as [number, number];
		return { checkpoints, writes };
	}

	/** Makes the totals of a thread those of the rows that it has, and notes where they were others. */
	#settle(thread: SqlThread): void {
		const { pk, thread_id: threadId, keys, checkpoints } = thread;
		const totals = this.#totals(thread);
		Object.assign(thread, { checkpoints: 0, head: null, keys: 0, forks: 0, loose: 0 });
		const rows = this.#session.prepare(
			"SELECT pk, ns, id, parent, fork, writes, bases FROM delta_checkpoint WHERE thread = ? ORDER BY id",
		);
		const setTotals = this.#session.prepare("UPDATE delta_checkpoint SET writes = ?, bases = ? WHERE pk = ?");
		const newest = new Map<string, string>();
		const parted: { ns: string; id: string; parentId: string | undefined }[] = [];
		for (const row of rows.all(pk) as (Entry & SqlCheckpoint)[]) {
			const parentId = unpackOptional(row.parent);
			if (row.fork === 0 && parentId !== newest.get(row.ns)) parted.push({ ...row, parentId });
			newest.set(row.ns, row.id);
			const key = keyOf(row.ns, row.id);
			const { writes, bases } = totals.get(key) ?? { writes: 0, bases: 0 };
			totals.delete(key);
			thread.checkpoints++;
			thread.keys = addSums(thread.keys, sumOfKey(row.ns, row.id));
			thread.forks = addSums(thread.forks, sumOfFork(row));
			if (row.ns === "") thread.head = row.id;
			if (row.writes === addSums(NO_WRITES, writes) && row.bases === bases) continue;
			setTotals.run(addSums(NO_WRITES, writes), bases, row.pk);
			this.lost.push({ threadId, problem: `Writes at checkpoint ${quote(row.id)} are missing.` });
		}
		for (const { ns, id, parentId } of parted) relinkCheckpoint(this.#session, thread, ns, id, parentId);
		for (const { writes, bases } of totals.values()) thread.loose = addSums(addSums(thread.loose, writes), bases);
		const missing = checkpoints - thread.checkpoints;
		if (this.#saved.has(pk) && thread.keys !== keys && missing !== 0)
			this.lost.push({ threadId, problem: `${missing > 0 ? missing : "Some"} checkpoints are missing.` });
		insertThread(this.#session, thread);
		saveThread(this.#session, thread);
	}

	/** Totals over the writes and bases of a thread, by checkpoint. */
	#totals(thread: SqlThread): Map<string, { writes: number; bases: number }> {
		const { pk } = thread;
		const { sql } = this.#session;
		const totals = new Map<string, { writes: number; bases: number }>();
		// While a key was lost, writes may have been added beside those that stand in its row.
		for (const { ns, id } of sql.getThreadPending.all(pk) as Pending[])
			if (sql.getWrites.get(pk, ns, packId(id)) !== undefined) spreadPending(this.#session, thread, ns, id);
		for (const row of sql.getThreadPending.all(pk) as Pending[]) {
			const writes = subtractSums(totalOfPending(openPending(thread, row)), NO_WRITES);
			totals.set(keyOf(row.ns, row.id), { writes, bases: 0 });
		}
		for (const kind of ["write", "base"] as const) {
			const rows = this.#session.prepare(`SELECT ns, checkpoint, sum FROM delta_${kind} WHERE thread = ?`).iterate(pk);
			for (const { ns, checkpoint, sum } of rows as Iterable<{ ns: string; checkpoint: PackedId; sum: number }>) {
				const key = keyOf(ns, unpackId(checkpoint));
				const { writes, bases } = totals.get(key) ?? { writes: 0, bases: 0 };
				const own = subtractSums(sum, sumOfThread(pk));
				totals.set(
					key,
					kind === "write" ? { writes: addSums(writes, own), bases } : { writes, bases: addSums(bases, own) },
				);
			}
		}
		return totals;
	}

	/** No number that was ever handed out may be handed out again. */
	#setSequence(): void {
		const greatest = this.#session
			.prepare(
				`SELECT max(coalesce((SELECT max(id) FROM delta_blob), 0), coalesce((SELECT max(family) FROM delta_blob), 0),
					coalesce((SELECT max(pk) FROM delta_thread), 0), coalesce((SELECT max(stamp) FROM delta_key), 0)) AS id`,
			)
			.get() as { id: number };
		setNextNumber(this.#session, greatest.id + SKIPPED);
	}
}

/** Processes hand out numbers that they reserved long ago. */
const SKIPPED = 1_000_000;

function keyOf(ns: string, id: string): string {
	return JSON.stringify([ns, id]);
}
