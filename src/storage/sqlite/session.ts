import { Lru } from "../../lru.ts";
import type { KeptBytes } from "../memory/kept-bytes.ts";
import type { CheckpointKey, CheckpointRow } from "../storage.ts";
import type { SqliteDatabase, SqliteStatement } from "./driver.ts";
import type { SummedWrite } from "./pending.ts";
import { prepare, type Statements, statementsOn } from "./statements.ts";
import { NO_WRITES } from "./sums.ts";
import type { SqlThread } from "./threads.ts";

/** How much is remembered of threads and checkpoints, if nothing else is asked for. */
const DEFAULT_BYTES = 8 * 1024 * 1024;
/** What a thread takes at the most, about, with its newest checkpoint and that of a subgraph: larger ones are not remembered. */
const REMEMBERED_BYTES = 6144;
const MOST_HEAD_BYTES = 2048;
/** Rows of the largest page. */
const MOST_RECENT = 1024;

/** An open database, with what was found out about it since it was opened. */
export class SqliteSession {
	readonly db: SqliteDatabase;
	readonly sql: Statements;
	readonly #statements = new Map<string, SqliteStatement>();
	readonly recent = new RecentCheckpoints();
	readonly #isShared: boolean;
	/** What this connection stored last, and nobody else has changed since. */
	readonly #threads: Lru<string, KnownThread>;
	#version: unknown;
	/** The totals of threads, by number, that their indexes were found to have; see `sqlite-proofs.ts`. */
	readonly keys = new Map<number, number>();
	readonly forks = new Map<number, number>();
	/** The totals of threads whose keys were found to lead to their own rows. */
	readonly rows = new Map<number, number>();
	/** Indexes of all threads that were found to be whole. */
	readonly wholeIndexes = new Set<string>();
	/** Whether all threads and all of their keys were found to be there, and nobody else has changed anything since. */
	areAllProven = false;

	/**
	 * @param isShared whether the application may change rows through this connection as well
	 * @param bytes how much it may remember
	 */
	constructor(db: SqliteDatabase, isShared: boolean, bytes = DEFAULT_BYTES) {
		this.db = db;
		this.sql = statementsOn(db);
		this.#isShared = isShared;
		this.#threads = new Lru(bytes);
		// As a number, not as a row.
		this.sql.getDataVersion.pluck();
		this.#version = this.#readVersion();
	}

	/** A thread that this connection has stored last, if nobody else has changed anything since. For use in a transaction. */
	findKnown(threadId: string): SqlThread | undefined {
		if (this.#threads.weight === 0) return undefined;
		this.refresh();
		return this.peekKnown(threadId);
	}

	/** The same, though somebody may have: for use where that shows. */
	peekKnown(threadId: string): SqlThread | undefined {
		return this.#threads.peek(threadId)?.thread;
	}

	/** Forgets what was stored or read, if somebody else has changed anything since. */
	refresh(): void {
		const version = this.#readVersion();
		if (version !== this.#version) this.forget();
		this.#version = version;
	}

	#readVersion(): unknown {
		if (!this.#isShared) return this.sql.getDataVersion.get();
		// What others change through a connection that they share with us is not told from what we do.
		return JSON.stringify(this.sql.getVersion.get());
	}

	remember(thread: SqlThread, checkpoint: FreshCheckpoint | undefined): void {
		this.recent.clear();
		if (this.#isShared) return;
		let known = this.#threads.peek(thread.thread_id);
		if (known?.thread !== thread) {
			known = new KnownThread(thread);
			this.#threads.set(thread.thread_id, known, REMEMBERED_BYTES);
		}
		if (checkpoint?.writes === NO_WRITES && checkpoint.head.length <= MOST_HEAD_BYTES) known.add(checkpoint);
	}

	/** To be called when a checkpoint was put in the place of another. */
	forgetCheckpoint({ thread_id }: SqlThread, ns: string, id: string): void {
		this.#threads.peek(thread_id)?.drop(ns, id);
	}

	/** The checkpoint with this key, if this connection has added it. For use with a thread of {@link findKnown}. */
	findFresh(thread: SqlThread, ns: string, id: string): FreshCheckpoint | undefined {
		const known = this.#threads.peek(thread.thread_id);
		return known?.thread === thread ? known.find(ns, id) : undefined;
	}

	/** To be called when threads or writes are changed in another way than by adding to them, or changes are undone. */
	forget(): void {
		this.#threads.clear();
		this.recent.clear();
		this.areAllProven = false;
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

/** A thread, and the checkpoints that were added to it last. */
class KnownThread {
	readonly thread: SqlThread;
	#root: FreshCheckpoint | undefined;
	/** Of a subgraph, one of which runs at a time as a rule. */
	#inner: FreshCheckpoint | undefined;

	constructor(thread: SqlThread) {
		this.thread = thread;
	}

	/** Nobody is likely to ask for the one that was the newest before. */
	add(checkpoint: FreshCheckpoint): void {
		if (checkpoint.row.ns === "") this.#root = checkpoint;
		else this.#inner = checkpoint;
	}

	find(ns: string, id: string): FreshCheckpoint | undefined {
		const found = ns === "" ? this.#root : this.#inner;
		return found?.row.id === id && found.row.ns === ns ? found : undefined;
	}

	drop(ns: string, id: string): void {
		if (this.find(ns, id) === undefined) return;
		if (ns === "") this.#root = undefined;
		else this.#inner = undefined;
	}
}

/** Thrown where something turns out not to be as it was remembered. It is forgotten, and the same done again. */
export class Outdated extends Error {
	constructor(options: ErrorOptions = {}) {
		super("The database is not as it was known to be", options);
	}
}

/** A checkpoint that this connection has added, with all writes that it has. */
export interface FreshCheckpoint {
	readonly pk: number;
	readonly row: Omit<CheckpointRow, "head">;
	/** As text, which holds on to no more memory than it needs. */
	readonly head: KeptBytes;
	readonly runId: string | undefined;
	/** That of its row. */
	readonly sum: number;
	/** The total in its row. */
	writes: number;
	/** Its writes, as long as they stand in its row. */
	pending: readonly SummedWrite[] | undefined;
	/** What it has of each task, once they have rows of their own; unknown if it was not asked for. */
	tasks: Map<string, readonly TaskWrite[]> | undefined;
}

/** What the next writes of a task have to do with those that it has. */
export interface TaskWrite {
	readonly generation: number;
	readonly idx: number;
	/** What it adds to the total. */
	readonly sum: number;
}

/** A checkpoint that was read, as far as its writes are concerned. */
interface RecentCheckpoint {
	readonly thread: SqlThread;
	readonly ns: string;
	/** The total in its row. */
	readonly writes: number;
	readonly runId: string | undefined;
	/** Those that stand in its row, or nothing if they have rows of their own. */
	readonly pending: Uint8Array | readonly SummedWrite[] | null;
}

/**
 * Checkpoints that were read last: whoever reads one asks for its writes next, and neither its thread nor its row need be
 * read again for that.
 */
class RecentCheckpoints {
	/** By id alone, which hardly ever is that of two checkpoints: then the one read last is known. */
	readonly #found = new Map<string, RecentCheckpoint>();

	set(id: string, found: RecentCheckpoint): void {
		if (this.#found.size >= MOST_RECENT) this.#found.clear();
		this.#found.set(id, found);
	}

	get({ threadId, ns, id }: CheckpointKey): RecentCheckpoint | undefined {
		const found = this.#found.get(id);
		return found?.thread.thread_id === threadId && found.ns === ns ? found : undefined;
	}

	clear(): void {
		if (this.#found.size > 0) this.#found.clear();
	}
}
