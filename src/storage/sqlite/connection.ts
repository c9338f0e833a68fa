import { statSync } from "node:fs";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { CheckpointError, quote } from "../../errors.ts";
import { isBusy, type SqliteDatabase, translateError } from "./driver.ts";
import { LogSync } from "./log-sync.ts";
import { migrate } from "./schema.ts";
import { Outdated, SqliteSession } from "./session.ts";
import type { SqliteSource } from "./source.ts";

/** What is done with an open database, all at once. */
export type Work<T> = (session: SqliteSession) => T;

/** A change that waits for its commit. */
interface Change {
	readonly work: Work<unknown>;
	readonly alone: Work<unknown> | undefined;
	/** When it first had to. */
	since: number | undefined;
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
/** Milliseconds between two looks at whether the file is still there: in a busy time a look at every commit would show. */
const CHECK_EVERY = 10;
/** Once the present code is done. `queueMicrotask` takes longer, as it keeps account of who asked. */
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
	readonly #cacheBytes: number | undefined;
	#db: SqliteDatabase | undefined;
	#session: SqliteSession | undefined;
	#file: FileIdentity | undefined;
	#log: LogSync | undefined;
	#waiting: Change[] = [];
	#flushing: Promise<void> | undefined;
	/** How many changes in a row could wait. */
	#patient = 0;
	/** Whether all that waits will be committed at the end of this tick. */
	#isDue = false;
	#isClosed = false;
	#isOver = false;

	constructor(source: SqliteSource, busyTimeout: number, cacheBytes?: number) {
		this.#source = source;
		this.#busyTimeout = busyTimeout;
		this.#cacheBytes = cacheBytes;
	}

	/** Runs a read. Several statements see the same snapshot, with all changes that were asked for before. */
	async read<T>(work: Work<T>): Promise<T> {
		this.#checkOpen();
		if (!this.#source.isShared) this.#commitWaiting();
		const since = performance.now();
		for (let attempt = 0; ; attempt++) {
			try {
				return this.#inTransaction(work, "beginRead");
			} catch (error) {
				await this.#waitFor(error, since, attempt);
			}
		}
	}

	/**
	 * Runs a change as one transaction, or as part of the one that the application has open on its own database. It is
	 * committed with all others of the same tick.
	 *
	 * @param canWait whether the turn of the event loop may end first, once many such changes came one after the other,
	 * unless another change or a read comes before
	 * @param alone does the same by a single statement, which needs no transaction if there are no others; or does nothing
	 * at all, and answers nothing
	 */
	change<T>(work: Work<T>, canWait = false, alone?: Work<T | undefined>): Promise<T> {
		if (this.#isInTheirs()) return this.read(work);
		return new Promise<T>((resolve, reject) => {
			this.checkWritable();
			const done = resolve as (result: unknown) => void;
			this.#waiting.push({ work, alone, since: undefined, resolve: done, reject });
			this.#patient = canWait ? this.#patient + 1 : 0;
			const { isShared, waitsForDisk } = this.#source;
			// By the end of a turn the application may be in a transaction of its own.
			if ((this.#patient > MOST_PATIENT || waitsForDisk) && !isShared) this.#flushing ??= this.#flush();
			else if (!this.#isDue) {
				this.#isDue = true;
				void SOON.then(() => this.#commitAtOnce());
			}
		});
	}

	/** Runs a single statement, or what can't be part of a transaction. */
	async alone<T>(work: Work<T | Promise<T>>): Promise<T> {
		this.#checkOpen();
		if (!this.#source.isShared) this.#commitWaiting();
		const since = performance.now();
		for (let attempt = 0; ; attempt++) {
			try {
				return await work(this.#ready());
			} catch (error) {
				await this.#waitFor(error, since, attempt);
			}
		}
	}

	/** Runs what puts another file in the place of this one, while it is not open. */
	async replace<T>(work: () => T): Promise<T> {
		this.checkWritable();
		this.#commitAtOnce();
		await this.#flushing;
		this.#letGo();
		this.#file = undefined;
		try {
			return work();
		} catch (error) {
			throw translateError(error, this.#source.name);
		}
	}

	/** Waits for changes that were accepted. Idempotent. */
	async close(): Promise<void> {
		this.#isClosed = true;
		this.#commitAtOnce();
		await this.#flushing;
		this.#isOver = true;
		this.#letGo();
	}

	#letGo(): void {
		const db = this.#db;
		this.#db = undefined;
		this.#session = undefined;
		this.#log?.close();
		this.#log = undefined;
		if (!this.#source.isShared) db?.close();
	}

	async #flush(): Promise<void> {
		await nextTurn();
		for (let attempt = 0; this.#waiting.length > 0; attempt++) {
			const before = this.#waiting.length;
			const busy = this.#commitWaiting();
			if (busy === undefined) break;
			if (this.#waiting.length < before) attempt = 0;
			this.#waiting = this.#waiting.filter((change) => !this.#giveUp(change, busy));
			await pause(attempt);
		}
		this.#flushing = undefined;
	}

	#commitAtOnce(): void {
		this.#isDue = false;
		if (this.#commitWaiting() !== undefined) this.#flushing ??= this.#flush();
	}

	/** Answers why some of the changes still have to wait, if they do. */
	#commitWaiting(): unknown {
		while (this.#waiting.length > 0) {
			const left = this.#commit(this.#waiting.splice(0, MOST_TOGETHER));
			if (left === undefined) continue;
			this.#waiting.unshift(...left.changes);
			return left.error;
		}
		return undefined;
	}

	/** Answers the changes that have to wait, and why. */
	#commit(group: readonly Change[], isAgain = false): { changes: readonly Change[]; error: unknown } | undefined {
		try {
			const results =
				this.#alone(group) ?? this.#inTransaction((session) => group.map(({ work }) => work(session)), "begin");
			this.#checkFile();
			this.#log?.noteCommit();
			for (let i = 0; i < group.length; i++) group[i]?.resolve(results[i]);
			return undefined;
		} catch (error) {
			if (isBusy(error)) return { changes: group, error };
			// What it was about is forgotten by now.
			if (error instanceof Outdated && !isAgain) return this.#commit(group, true);
			if (group.length === 1) return void group[0]?.reject(translateError(error, this.#source.name));
		}
		// One of them failed, and everything was undone: each on its own, then.
		for (const [i, change] of group.entries()) {
			const left = this.#commit([change]);
			if (left !== undefined) return { changes: group.slice(i), error: left.error };
		}
		return undefined;
	}

	/** The result of a change that is alone and needs no transaction. */
	#alone(group: readonly Change[]): unknown[] | undefined {
		const [change] = group;
		if (change?.alone === undefined || group.length > 1) return undefined;
		const session = this.#ready();
		const result = this.#isInTheirs() ? undefined : change.alone(session);
		return result === undefined ? undefined : [result];
	}

	/** Whether a change has waited for too long, and was told so. */
	#giveUp(change: Change, error: unknown): boolean {
		const now = performance.now();
		change.since ??= now;
		if (now - change.since < this.#busyTimeout) return false;
		change.reject(translateError(error, this.#source.name));
		return true;
	}

	#inTransaction<T>(work: Work<T>, begin: "begin" | "beginRead"): T {
		const session = this.#ready();
		const { sql, db } = session;
		if (this.#isInTheirs()) return db.transaction(() => work(session))();
		sql[begin].run();
		try {
			const result = work(session);
			sql.commit.run();
			return result;
		} catch (error) {
			session.forget();
			// SQLite has already rolled back after some errors, a full disk for one.
			if (db.open && db.inTransaction) sql.rollback.run();
			throw error;
		}
	}

	/** Whether the application has a transaction open, on a database that it shares with us: ours never outlast a call. */
	#isInTheirs(): boolean {
		return this.#source.isShared && this.#db?.inTransaction === true;
	}

	async #waitFor(error: unknown, since: number, attempt: number): Promise<void> {
		if (!isBusy(error) || performance.now() - since >= this.#busyTimeout)
			throw translateError(error, this.#source.name);
		await pause(attempt);
	}

	#ready(): SqliteSession {
		const { name, path, isShared, isReadOnly, waitsForDisk } = this.#source;
		if (this.#isOver) throw closed();
		if (this.#source.isStale?.()) this.#letGo();
		if (this.#session !== undefined) return this.#session;
		if (this.#file !== undefined && !this.#file.isThere()) throw this.#gone();
		const before = path === undefined ? undefined : new FileIdentity(path);
		this.#db ??= this.#source.open();
		migrate(this.#db, name, isShared);
		if (before?.isKnown && !before.isSame()) {
			this.#letGo();
			throw Object.assign(new Error("The file was replaced while it was opened"), { code: "SQLITE_BUSY" });
		}
		this.#file = path === undefined ? undefined : new FileIdentity(path);
		if (path !== undefined && !isReadOnly && !waitsForDisk) this.#log = new LogSync(path);
		this.#session = new SqliteSession(this.#db, isShared, this.#cacheBytes);
		return this.#session;
	}

	#checkOpen(): void {
		if (this.#isClosed) throw closed();
	}

	/** Throws unless something can be stored. */
	checkWritable(): void {
		this.#checkOpen();
		if (this.#source.isReadOnly)
			throw new CheckpointError(
				"READ_ONLY",
				`${quote(this.#source.name)} was opened with \`readOnly\`: nothing can be stored.`,
			);
	}

	/** A file can be removed while it is open, and SQLite goes on writing to what nobody will ever read. */
	#checkFile(): void {
		if (this.#file === undefined || this.#file.isFresh() || this.#file.isSame()) return;
		// Another file in its place will be opened by the next call.
		if (this.#file.isThere()) this.#letGo();
		throw this.#gone();
	}

	#gone(): CheckpointError {
		return new CheckpointError(
			"FILE_GONE",
			`${quote(this.#source.name)} was removed or replaced while it was open: put it back.`,
		);
	}
}

function closed(): CheckpointError {
	return new CheckpointError("CLOSED", "The saver was closed: make a new one.");
}

/** Which file a path named when it was opened. */
class FileIdentity {
	readonly #path: string;
	readonly #device: number | undefined;
	readonly #inode: number | undefined;
	#checked = 0;

	constructor(path: string) {
		const found = statSync(path, { throwIfNoEntry: false });
		this.#path = path;
		this.#device = found?.dev;
		this.#inode = found?.ino;
	}

	/** Whether there was a file. */
	get isKnown(): boolean {
		return this.#inode !== undefined;
	}

	/** Whether it was looked at just now. */
	isFresh(): boolean {
		const now = performance.now();
		if (now - this.#checked < CHECK_EVERY) return true;
		this.#checked = now;
		return false;
	}

	isSame(): boolean {
		const found = statSync(this.#path, { throwIfNoEntry: false });
		return found !== undefined && found.ino === this.#inode && found.dev === this.#device;
	}

	isThere(): boolean {
		return statSync(this.#path, { throwIfNoEntry: false }) !== undefined;
	}
}

/** Longer each time, and never the same for two processes. */
async function pause(attempt: number): Promise<void> {
	if (attempt < QUICK_RETRIES) return nextTurn();
	const most = Math.min(2 ** (attempt - QUICK_RETRIES), LONGEST_PAUSE);
	return sleep(1 + Math.random() * most);
}
