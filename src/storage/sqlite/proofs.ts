import { CheckpointError, quote } from "../../errors.ts";
import type { PackedId } from "./ids.ts";
import type { SqliteSession } from "./session.ts";
import { addSums, sumOfFork, sumOfKey } from "./sums.ts";
import { checkThread, type SqlThread } from "./threads.ts";

/**
 * Proofs that nothing is missing. A row that is found shows by its sum whether it is sound; one that a damaged index
 * hides does not show at all. So before something is taken for missing, or for all there is, the index is compared with
 * the total that the thread has of it: once, and again only if somebody else has changed the thread.
 */

/** More threads than this are not remembered: to look again is quick. */
const MOST_PROVEN = 10_000;

/**
 * Proves that the index of a thread's checkpoint ids is whole. An entry of another thread that is out of order misleads a
 * search for one of these only if it misleads this one too, or that for the thread's totals, which stand behind them.
 */
export function proveKeys(session: SqliteSession, thread: SqlThread): void {
	prove(session.keys, thread, thread.keys, () => {
		let total = 0;
		for (const row of session.sql.listKeys.iterate(thread.pk)) {
			const { thread: owner, ns, id, pk } = row as { thread: number; ns: unknown; id: unknown; pk: number };
			// An entry out of order comes along, and others are not found because of it.
			if (owner !== thread.pk) return undefined;
			// What leads to no row is left out of lists.
			if (typeof ns === "string" && typeof id === "string" && pk > 0) total = addSums(total, sumOfKey(ns, id));
		}
		return total;
	});
}

/** Whether every key of a thread leads to its own row. To be called once {@link proveKeys} was. */
export function hasAllRows({ sql, rows }: SqliteSession, thread: SqlThread): boolean {
	if (rows.get(thread.pk) === thread.keys) return true;
	if (sql.getLost.get(thread.pk) !== undefined) return false;
	remember(rows, thread, thread.keys);
	return true;
}

/** Proves that the index of a thread's forks is whole, and that each is found by a search for it alone. */
export function proveForks(session: SqliteSession, thread: SqlThread): void {
	prove(session.forks, thread, thread.forks, () => {
		let total = 0;
		for (const row of session.sql.listForks.iterate(thread.pk)) {
			const { thread: owner, isFound, ...fork } = row as FoundFork;
			if (owner !== thread.pk || isFound === 0) return undefined;
			total = addSums(total, sumOfFork({ ...fork, fork: 1 }));
		}
		return total;
	});
}

interface FoundFork {
	readonly thread: number;
	readonly ns: string;
	readonly parent: PackedId | null;
	readonly pk: number;
	readonly isFound: number;
}

function prove(
	proven: Map<number, number>,
	thread: SqlThread,
	expected: number,
	count: () => number | undefined,
): void {
	if (proven.get(thread.pk) === expected) return;
	if (count() !== expected) throw incomplete(thread);
	remember(proven, thread, expected);
}

export function incomplete({ thread_id: threadId }: SqlThread): CheckpointError {
	return new CheckpointError(
		"CORRUPT",
		`Checkpoints of thread ${quote(threadId)} are missing, or an index of them is damaged: call repair().`,
		{ place: { threadId } },
	);
}

function remember(proven: Map<number, number>, { pk }: SqlThread, total: number): void {
	if (proven.size >= MOST_PROVEN) proven.clear();
	proven.set(pk, total);
}

/** What has no rows has no index that could lack one. */
export function startProofs({ keys, rows, forks }: SqliteSession, thread: SqlThread): void {
	remember(keys, thread, 0);
	remember(rows, thread, 0);
	remember(forks, thread, 0);
}

/** A change of ours leaves an index whole that was whole before. */
export function keepProof(proven: Map<number, number>, thread: SqlThread, before: number, after: number): void {
	if (proven.get(thread.pk) === before) proven.set(thread.pk, after);
}

/**
 * Proves, once, that an index of all threads has every one of them, and the table too.
 *
 * @param all the rows of the table, if they were looked at just now
 */
export function proveThreads(session: SqliteSession, column: "era" | "family", all?: readonly SqlThread[]): void {
	if (session.wholeIndexes.has(column)) return;
	const [table, index] = ["NOT INDEXED", `INDEXED BY delta_thread_${column}`].map((way) =>
		session
			.prepare(
				`SELECT count(*) AS threads, total((${column} * 2654435761 + pk * 40503) % 4294967291) AS total FROM delta_thread ${way}`,
			)
			.get(),
	) as [ThreadCount, ThreadCount];
	// The table itself may have lost threads that another index still has.
	const hashes = session.prepare("SELECT count(*) AS threads FROM delta_thread INDEXED BY delta_thread_hash").get();
	const { threads } = hashes as ThreadCount;
	if (table.threads !== threads || index.threads !== threads || table.total !== index.total)
		throw new CheckpointError("CORRUPT", "Threads are missing, or an index of them is damaged: call repair().");
	// One whose time is damaged would be on another page of the list, and nobody would look at it.
	if (column === "era" && all === undefined) for (const row of session.sql.getAllThreads.iterate()) checkThread(row);
	session.wholeIndexes.add(column);
}

/**
 * Proves that all threads are there, with all of their keys and rows: once, and again only if somebody else has changed
 * anything.
 */
export function proveAll(session: SqliteSession): void {
	session.refresh();
	if (session.areAllProven) return;
	const threads = session.sql.getAllThreads.all().map(checkThread);
	proveThreads(session, "era", threads);
	for (const thread of threads) proveKeys(session, thread);
	proveCounts(session, threads);
	session.areAllProven = true;
}

/** Proves that there are as many keys and rows as threads say, and none of anything else. */
export function proveCounts({ sql }: SqliteSession, threads: Iterable<Pick<SqlThread, "checkpoints">>): void {
	let expected = 0;
	for (const { checkpoints } of threads) expected += checkpoints;
	const { keys, rows } = sql.countAll.get() as { keys: number; rows: number };
	if (keys === expected && rows === expected) return;
	throw new CheckpointError("CORRUPT", "Checkpoints are missing, or belong to no thread: call repair().");
}

interface ThreadCount {
	threads: number;
	total: number;
}
