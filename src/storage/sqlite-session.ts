import type { SqliteDatabase, SqliteStatement } from "./sqlite-driver.ts";
import { prepare, type Statements, statementsOn } from "./sqlite-statements.ts";
import type { SqlThread } from "./sqlite-threads.ts";

/** An open database, with what was found out about it since it was opened. */
export class SqliteSession {
	readonly db: SqliteDatabase;
	readonly sql: Statements;
	readonly #statements = new Map<string, SqliteStatement>();
	readonly recent = new RecentCheckpoints();
	/** The totals of threads, by number, that their indexes were found to have; see `sqlite-proofs.ts`. */
	readonly keys = new Map<number, number>();
	readonly forks = new Map<number, number>();
	/** Indexes of all threads that were found to be whole. */
	readonly wholeIndexes = new Set<string>();

	constructor(db: SqliteDatabase) {
		this.db = db;
		this.sql = statementsOn(db);
	}

	/** A statement whose text depends on the call. */
	prepare(text: string): SqliteStatement {
		const known = this.#statements.get(text);
		if (known !== undefined) return known;
		const statement = prepare(this.db, text);
		this.#statements.set(text, statement);
		return statement;
	}
}

/**
 * Checkpoints that were read last, with the totals of their writes: whoever reads one asks for its writes next, and
 * neither its thread nor its row need be read again for that.
 */
class RecentCheckpoints {
	#thread: SqlThread | undefined;
	readonly #writes = new Map<string, number>();

	set(thread: SqlThread, ns: string, id: string, writes: number): void {
		if (thread !== this.#thread) this.#writes.clear();
		this.#thread = thread;
		this.#writes.set(`${id} ${ns}`, writes);
	}

	get(threadId: string, ns: string, id: string): { thread: SqlThread; writes: number } | undefined {
		const thread = this.#thread?.thread_id === threadId ? this.#thread : undefined;
		const writes = this.#writes.get(`${id} ${ns}`);
		return thread === undefined || writes === undefined ? undefined : { thread, writes };
	}
}
