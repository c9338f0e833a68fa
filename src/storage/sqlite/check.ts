import { CheckpointError } from "../../errors.ts";
import type { StorageDamage } from "../storage.ts";
import type { SqliteSession } from "./driver.ts";
import { addThread } from "./put.ts";

/** What is wrong with a database. */
export interface Damage {
	/** With its pages, indexes and tables: rows may be lost, or hidden. */
	readonly structure: readonly StorageDamage[];
	/** With what rows say of other rows. */
	readonly counts: readonly StorageDamage[];
}

const SAME_KEY = `r.thread_id = k.thread_id AND r.ns = k.ns AND r.checkpoint_id = k.checkpoint_id
	AND r.parent_id IS k.parent_id`;
/** Rows are searched for once more, by all that they are indexed by: a page out of order hides them from a search. */
const HIDDEN = {
	"The index over keys lacks a checkpoint.": `SELECT DISTINCT thread_id AS threadId FROM delta_checkpoints r NOT INDEXED
		WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints k INDEXED BY delta_checkpoints_key
			WHERE ${SAME_KEY} AND k.pk = r.pk)`,
	"The row of a checkpoint is missing.": `SELECT DISTINCT thread_id AS threadId
		FROM delta_checkpoints k INDEXED BY delta_checkpoints_key
		WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints r NOT INDEXED
			WHERE r.pk = k.pk AND ${SAME_KEY})`,
	"The row of the thread is not found.": `SELECT thread_id AS threadId FROM delta_threads i INDEXED BY delta_threads_family
		WHERE NOT EXISTS (SELECT 1 FROM delta_threads t NOT INDEXED WHERE t.thread_id = i.thread_id)`,
	"A write is not found.": `SELECT DISTINCT thread_id AS threadId FROM delta_writes w NOT INDEXED
		LEFT JOIN delta_checkpoints ON pk = checkpoint_pk WHERE NOT EXISTS (SELECT 1 FROM delta_writes f NOT INDEXED
			WHERE f.checkpoint_pk = w.checkpoint_pk AND f.task_id = w.task_id AND f.generation = w.generation AND f.idx = w.idx)`,
};

const COUNT = `SELECT count(*) FROM delta_checkpoints c WHERE c.thread_id = delta_threads.thread_id AND head IS NOT NULL`;
const NEWEST = `SELECT max(checkpoint_id) FROM delta_checkpoints c
	WHERE c.thread_id = delta_threads.thread_id AND ns = '' AND head IS NOT NULL`;
const FIND_THREADLESS = `SELECT DISTINCT thread_id AS threadId FROM delta_checkpoints c
	WHERE NOT EXISTS (SELECT 1 FROM delta_threads t WHERE t.thread_id = c.thread_id)`;
const COUNTS = {
	"The thread says another number of checkpoints, newest one or time than it has.": `SELECT thread_id AS threadId
		FROM delta_threads
		WHERE checkpoints <> (${COUNT}) OR newest IS NOT (${NEWEST}) OR updated_minute <> updated_at / 60000`,
	"Checkpoints belong to no thread.": FIND_THREADLESS,
	"A checkpoint is there twice.": `SELECT DISTINCT thread_id AS threadId FROM delta_checkpoints
		GROUP BY thread_id, ns, checkpoint_id HAVING count(*) > 1`,
	"Writes or delta bases belong to no checkpoint.": `SELECT NULL AS threadId WHERE EXISTS (
			SELECT 1 FROM delta_writes WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints WHERE pk = checkpoint_pk)
		) OR EXISTS (SELECT 1 FROM delta_bases WHERE NOT EXISTS (SELECT 1 FROM delta_checkpoints WHERE pk = checkpoint_pk))`,
};

const FIND_FAMILY = `SELECT family FROM delta_checkpoints, json_each(iif(json_valid(blobs), blobs, '[]')) named
	CROSS JOIN delta_blobs b ON b.id = named.value WHERE thread_id = ? LIMIT 1`;
const REMOVE_TWINS = `DELETE FROM delta_checkpoints
	WHERE pk NOT IN (SELECT max(pk) FROM delta_checkpoints GROUP BY thread_id, ns, checkpoint_id)`;
const RECOUNT = `UPDATE delta_threads
	SET stamp = ?, checkpoints = (${COUNT}), newest = (${NEWEST}), updated_minute = updated_at / 60000`;
/** Processes hand out numbers that they reserved long ago: those of a while are left out. */
const SKIP_IDS = `UPDATE delta_format SET next_id = 1000000 + max(next_id,
	(SELECT ifnull(max(id), 0) FROM delta_blobs), (SELECT ifnull(max(family), 0) FROM delta_blobs),
	(SELECT ifnull(max(family), 0) FROM delta_threads), (SELECT ifnull(max(stamp), 0) FROM delta_threads))
	RETURNING next_id AS next`;

/** Looks for damage with SQLite's own means, and by comparing rows with each other. */
export function findDamage(session: SqliteSession): Damage {
	const structure = collect(() => checkIntegrity(session));
	return {
		structure: structure.length === 0 ? [] : [...structure, ...ask(session, HIDDEN)],
		counts: ask(session, COUNTS),
	};
}

function checkIntegrity({ db }: SqliteSession): StorageDamage[] {
	const answers = db.pragma("integrity_check") as { integrity_check: string }[];
	const roots = db.prepare("SELECT rootpage, tbl_name FROM sqlite_schema").all() as {
		rootpage: number;
		tbl_name: string;
	}[];
	return answers.flatMap(({ integrity_check: text }) => {
		if (text === "ok") return [];
		const tree = Number(/\bTree (\d+)/.exec(text)?.[1]);
		const table = roots.find(({ rootpage }) => Number(rootpage) === tree)?.tbl_name;
		return { problem: table === undefined ? text : `${text} (${table})` };
	});
}

function ask(session: SqliteSession, questions: Record<string, string>): StorageDamage[] {
	return Object.entries(questions).flatMap(([problem, sql]) =>
		collect(() => session.all<{ threadId: string | undefined }>(sql).map(({ threadId }) => ({ threadId, problem }))),
	);
}

/** What a check answers, or that it can't be made. */
function collect(check: () => StorageDamage[]): StorageDamage[] {
	try {
		return check();
	} catch (error) {
		if (!isCorrupt(error)) throw error;
		return [{ problem: (error as Error).message }];
	}
}

/** Whether SQLite, or this package, could not read what is stored. */
export function isCorrupt(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return error instanceof CheckpointError ? code === "CORRUPT" : String(code).startsWith("SQLITE_CORRUPT");
}

/** Makes right what rows say of others. Whatever builds on rows that were read before is refused afterwards. */
export function recount(session: SqliteSession): void {
	session.run(REMOVE_TWINS);
	for (const table of ["delta_writes", "delta_bases"])
		session.run(`DELETE FROM ${table} WHERE checkpoint_pk NOT IN (SELECT pk FROM delta_checkpoints)`);
	let { next } = session.get(SKIP_IDS) as { next: number };
	for (const { threadId } of session.all<{ threadId: string }>(FIND_THREADLESS)) {
		const { family = next } = session.get<{ family: number }>(FIND_FAMILY, threadId) ?? {};
		addThread(session, threadId, family, next++, Date.now());
	}
	session.run(RECOUNT, next++);
	session.run("UPDATE delta_format SET next_id = ?", next);
}
