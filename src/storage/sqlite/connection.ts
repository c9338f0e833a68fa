import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { CheckpointError, quote } from "../../errors.ts";
import { busyError, identify, isBusy, SqliteSession, translateError } from "./driver.ts";
import { setUp } from "./schema.ts";
import { limitLog, type SqliteSource } from "./source.ts";

/** What is done with an open database, all at once. */
export type Work<T> = (session: SqliteSession) => T;

/** A change that waits for its commit. */
interface Change {
	readonly work: Work<unknown>;
	readonly since: number;
	readonly resolve: (result: unknown) => void;
	readonly reject: (error: unknown) => void;
}

/** Changes in one transaction. More would make other processes wait longer than they gain. */
const MOST_TOGETHER = 64;
/** Changes in a row that are committed at once, although they could wait: the next checkpoint can then refer to them. */
const MOST_PATIENT = 8;
/** How often a busy database is asked again at once: most commits of others are over within the time that takes. */
const QUICK_RETRIES = 3;
/** Afterwards the pauses grow up to this many milliseconds. */
const LONGEST_PAUSE = 50;
/** Milliseconds between two looks at the file: in a busy time a look at every commit would show. */
const LOOK_EVERY = 10;
/** A resolved promise is cheaper than queueMicrotask. */
const SOON = Promise.resolve();

/**
 * An SQLite database that is opened when it is needed, and waited for when other processes hold it, without ever
 * stopping this one.
 *
 * Changes of the same moment are committed together: one write to the file for all of them. Each is still all or nothing,
 * and one that fails takes nothing from the others.
 */
export class SqliteConnection {
	readonly #source: SqliteSource;
	readonly #busyTimeout: number;
	#session: SqliteSession | undefined;
	#opening: Promise<SqliteSession> | undefined;
	/** Which file was opened, and when it was last seen in its place. */
	#file: string | undefined;
	#fileSeen = 0;
	#waiting: Change[] = [];
	#flushing: Promise<void> | undefined;
	/** How many changes in a row could wait. */
	#patient = 0;
	/** Whether all that waits will be committed at the end of this tick. */
	#isDue = false;
	#isClosed = false;

	constructor(source: SqliteSource, busyTimeout: number) {
		this.#source = source;
		this.#busyTimeout = busyTimeout;
	}

	/** Runs a read. Several statements see the same snapshot, with all changes that were asked for before. */
	read<T>(work: Work<T>): Promise<T> {
		return this.alone((session) => this.#inTransaction(session, "BEGIN", work));
	}

	/**
	 * Runs a change as one transaction, or as part of the one that the application has open on its own database. It is
	 * committed with all others of the same tick.
	 *
	 * @param canWait whether the turn of the event loop may end first, once many such changes came one after the other,
	 * unless another change or a read comes before
	 */
	change<T>(work: Work<T>, canWait = false): Promise<T> {
		if (this.#isInTheirs()) return this.read(work);
		return new Promise<T>((resolve, reject) => {
			this.checkWritable();
			this.#waiting.push({ work, since: performance.now(), resolve: resolve as Change["resolve"], reject });
			this.#patient = canWait ? this.#patient + 1 : 0;
			const { isShared, waitsForDisk } = this.#source;
			// By the end of a turn the application may be in a transaction of its own.
			if ((this.#patient > MOST_PATIENT || waitsForDisk) && !isShared) this.#flushing ??= this.#flush(nextTurn());
			else if (!this.#isDue) {
				this.#isDue = true;
				void SOON.then(() => this.#commitAtOnce());
			}
		});
	}

	/** Runs what can't be part of a transaction. */
	async alone<T>(work: Work<T | Promise<T>>): Promise<T> {
		this.#checkOpen();
		return this.#retry(async () => {
			const session = this.#findSession() ?? (await this.#open());
			if (!this.#source.isShared) this.#commitWaiting(session);
			if (session !== this.#session) throw busyError("Another file was found in its place");
			return work(session);
		});
	}

	/** Runs what puts another file in the place of this one, while it is not open. */
	async replace<T>(work: () => T): Promise<T> {
		this.checkWritable();
		this.#commitAtOnce();
		await this.#flushing;
		this.#letGo();
		this.#file = undefined;
		return this.#retry(async () => work());
	}

	/** Waits for changes that were accepted. Idempotent. */
	async close(): Promise<void> {
		this.#isClosed = true;
		this.#commitAtOnce();
		await this.#flushing;
		await this.#opening?.catch(() => undefined);
		this.#letGo();
	}

	/** Throws unless something can be stored. */
	checkWritable(): void {
		this.#checkOpen();
		const { name, isReadOnly } = this.#source;
		if (isReadOnly)
			throw new CheckpointError("READ_ONLY", `${quote(name)} was opened with \`readOnly\`: nothing can be stored.`);
	}

	#checkOpen(): void {
		if (this.#isClosed) throw new CheckpointError("CLOSED", "The saver was closed: make a new one.");
	}

	/** Works again as long as the database is busy. */
	async #retry<T>(work: () => Promise<T>): Promise<T> {
		const since = performance.now();
		for (let attempt = 0; ; attempt++) {
			try {
				return await work();
			} catch (error) {
				if (!isBusy(error) || performance.now() - since >= this.#busyTimeout)
					throw translateError(error, this.#source.name);
				await pause(attempt);
			}
		}
	}

	#commitAtOnce(): void {
		this.#isDue = false;
		if (this.#waiting.length === 0) return;
		const isDone = this.#session !== undefined && this.#commitWaiting(this.#session) === undefined;
		if (!isDone) this.#flushing ??= this.#flush(SOON);
	}

	async #flush(start: Promise<unknown>): Promise<void> {
		await start;
		for (let attempt = 0; this.#waiting.length > 0; attempt++) {
			const before = this.#waiting.length;
			const failure = await this.#tryToCommit().catch((error: unknown) => error);
			if (failure === undefined) continue;
			if (this.#waiting.length < before) attempt = 0;
			this.#waiting = this.#waiting.filter((change) => !this.#giveUp(change, failure));
			await pause(attempt);
		}
		this.#flushing = undefined;
	}

	async #tryToCommit(): Promise<unknown> {
		return this.#commitWaiting(this.#findSession() ?? (await this.#open()));
	}

	/** Answers why some of the changes still have to wait, if they do. */
	#commitWaiting(session: SqliteSession): unknown {
		while (this.#waiting.length > 0) {
			const left = this.#commit(session, this.#waiting.splice(0, MOST_TOGETHER));
			if (left === undefined) continue;
			this.#waiting.unshift(...left.changes);
			return left.error;
		}
		return undefined;
	}

	/** Answers the changes that have to wait, and why. */
	#commit(
		session: SqliteSession,
		group: readonly Change[],
	): { changes: readonly Change[]; error: unknown } | undefined {
		try {
			const results = this.#inTransaction(session, "BEGIN IMMEDIATE", () => group.map(({ work }) => work(session)));
			const gone = this.#lookAtFile(session);
			for (const [i, change] of group.entries()) {
				if (gone === undefined) change.resolve(results[i]);
				else change.reject(gone);
			}
			return undefined;
		} catch (error) {
			if (isBusy(error)) return { changes: group, error };
			if (group.length === 1) return void group[0]?.reject(translateError(error, this.#source.name));
		}
		// One of them failed, and everything was undone: each on its own, then.
		for (const [i, change] of group.entries()) {
			const left = this.#commit(session, [change]);
			if (left !== undefined) return { changes: group.slice(i), error: left.error };
		}
		return undefined;
	}

	/** Whether a change can't be committed, or has waited for too long, and was told so. */
	#giveUp(change: Change, error: unknown): boolean {
		if (isBusy(error) && performance.now() - change.since < this.#busyTimeout) return false;
		change.reject(translateError(error, this.#source.name));
		return true;
	}

	#inTransaction<T>(session: SqliteSession, begin: "BEGIN" | "BEGIN IMMEDIATE", work: Work<T>): T {
		const { db } = session;
		if (this.#isInTheirs()) return db.transaction(() => work(session))();
		session.run(begin);
		try {
			const result = work(session);
			session.run("COMMIT");
			return result;
		} catch (error) {
			// SQLite has already rolled back after some errors, a full disk for one.
			if (db.open && db.inTransaction) session.run("ROLLBACK");
			throw error;
		}
	}

	/** Whether the application has a transaction open, on a database that it shares with us: ours never outlast a call. */
	#isInTheirs(): boolean {
		return this.#source.isShared && this.#session?.db.inTransaction === true;
	}

	/** Nothing if the database has to be opened first. */
	#findSession(): SqliteSession | undefined {
		if (this.#source.isStale?.()) this.#letGo();
		return this.#session;
	}

	#open(): Promise<SqliteSession> {
		// Changes that were accepted are still committed.
		if (this.#waiting.length === 0) this.#checkOpen();
		this.#opening ??= this.#openOnce().finally(() => {
			this.#opening = undefined;
		});
		return this.#opening;
	}

	async #openOnce(): Promise<SqliteSession> {
		const { path, isShared } = this.#source;
		const before = identify(path);
		if (this.#file !== undefined && before === undefined) throw this.#gone();
		const db = await this.#source.open();
		try {
			setUp(db, this.#source);
		} catch (error) {
			if (!isShared) db.close();
			throw error;
		}
		// If it was replaced meanwhile, the next commit finds another in its place.
		this.#file = before ?? identify(path);
		this.#session = new SqliteSession(db);
		return this.#session;
	}

	#letGo(): void {
		const db = this.#session?.db;
		this.#session = undefined;
		if (!this.#source.isShared) db?.close();
	}

	/** A file may have been removed while it is open: SQLite goes on writing to what nobody will ever read. */
	#lookAtFile({ db }: SqliteSession): CheckpointError | undefined {
		const now = performance.now();
		if (this.#file === undefined || now - this.#fileSeen < LOOK_EVERY) return undefined;
		this.#fileSeen = now;
		limitLog(db);
		const file = identify(this.#source.path);
		if (file === this.#file) return undefined;
		// Another file in its place will be opened by the next call.
		if (file !== undefined) this.#letGo();
		return this.#gone();
	}

	#gone(): CheckpointError {
		const name = quote(this.#source.name);
		return new CheckpointError("FILE_GONE", `${name} was removed or replaced while it was open: put it back.`);
	}
}

/** Longer each time, and never the same for two processes. */
async function pause(attempt: number): Promise<void> {
	if (attempt < QUICK_RETRIES) return nextTurn();
	const most = Math.min(2 ** (attempt - QUICK_RETRIES), LONGEST_PAUSE);
	return sleep(1 + Math.random() * most);
}
