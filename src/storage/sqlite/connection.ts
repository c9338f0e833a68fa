import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { CheckpointError, quote } from "../../errors.ts";
import { identify, isBusy, limitLog, SqliteSession, translateError } from "./driver.ts";
import { setUp } from "./schema.ts";
import type { SqliteSource } from "./source.ts";

/** What is done with an open database, all at once. */
export type Work<T> = (session: SqliteSession) => T;

/** A change that waits for its commit. */
interface Change {
	readonly work: Work<unknown>;
	readonly resolve: (result: unknown) => void;
	readonly reject: (error: unknown) => void;
}

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
 * stopping this one. Of changes that are committed together each is all or nothing.
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
	/** How many changes in a row could wait. */
	#patient = 0;
	/** Calls that were accepted and are not done. */
	#running = 0;
	/** Shared by all calls that met a busy database, so that they go on in their order. */
	#pausing: Promise<void> | undefined;
	#isClosed = false;

	constructor(source: SqliteSource, busyTimeout: number) {
		this.#source = source;
		this.#busyTimeout = busyTimeout;
	}

	/** Runs a read. Several statements see the same snapshot, with all changes that were asked for before. */
	read<T>(work: Work<T>): Promise<T> {
		return this.alone((session) => session.transaction(() => work(session)) as T);
	}

	/**
	 * Runs a change in one transaction with all others of the same tick, or in the one that the application has open.
	 *
	 * @param canWait whether, after many such changes in a row, the turn of the event loop may end before the commit
	 */
	change<T>(work: Work<T>, canWait = false): Promise<T> {
		return this.#run(async () => {
			if (this.#pausing !== undefined) await this.#pausing;
			const session = this.#session ?? (await this.#open());
			return new Promise<T>((resolve, reject) => {
				this.#waiting.push({ work, resolve: resolve as Change["resolve"], reject });
				this.#patient = canWait ? this.#patient + 1 : 0;
				const { isShared, waitsForDisk } = this.#source;
				// By the end of a turn the application may be in a transaction of its own.
				const isLater = (this.#patient > MOST_PATIENT || waitsForDisk) && !isShared;
				if (isLater) setImmediate(() => this.#commit(session));
				else void SOON.then(() => this.#commit(session));
			});
		}, true);
	}

	/** Runs what can't be part of a transaction. */
	alone<T>(work: Work<T | Promise<T>>, isChange = false): Promise<T> {
		return this.#run(async () => {
			if (this.#source.isStale?.()) this.#letGo();
			this.#commit(this.#session ?? (await this.#open()));
			// A commit may have found another file in its place.
			return work(this.#session ?? (await this.#open()));
		}, isChange);
	}

	/** Runs what puts another file in the place of this one, while it is not open. */
	replace<T>(work: () => T): Promise<T> {
		return this.#run(async () => {
			if (this.#session !== undefined) this.#commit(this.#session);
			this.#letGo();
			this.#file = undefined;
			return work();
		}, true);
	}

	/** Waits for calls that were accepted. Idempotent. */
	async close(): Promise<void> {
		this.#isClosed = true;
		for (let attempt = 0; this.#running > 0; attempt++) await pause(attempt);
		this.#letGo();
	}

	/** Works again as long as the database is busy. */
	async #run<T>(work: () => Promise<T>, isChange = false): Promise<T> {
		const { name, isReadOnly } = this.#source;
		if (this.#isClosed) throw new CheckpointError("CLOSED", "The saver was closed: make a new one.");
		if (isChange && isReadOnly)
			throw new CheckpointError("READ_ONLY", `${quote(name)} was opened with \`readOnly\`: nothing can be stored.`);
		const since = performance.now();
		this.#running++;
		try {
			for (let attempt = 0; ; attempt++) {
				try {
					return await work();
				} catch (error) {
					if (!isBusy(error) || performance.now() - since >= this.#busyTimeout) throw translateError(error, name);
				}
				this.#pausing ??= pause(attempt).finally(() => {
					this.#pausing = undefined;
				});
				await this.#pausing;
			}
		} finally {
			this.#running--;
		}
	}

	#commit(session: SqliteSession, group: readonly Change[] = this.#waiting.splice(0)): void {
		if (group.length === 0) return;
		try {
			const results = session.transaction.immediate(() => group.map(({ work }) => work(session))) as unknown[];
			const gone = this.#lookAtFile(session);
			for (const [i, change] of group.entries()) {
				if (gone === undefined) change.resolve(results[i]);
				else change.reject(gone);
			}
		} catch (error) {
			if (group.length === 1 || isBusy(error)) for (const { reject } of group) reject(error);
			// One of them failed, and everything was undone: each on its own, then.
			else for (const change of group) this.#commit(session, [change]);
		}
	}

	#open(): Promise<SqliteSession> {
		this.#opening ??= this.#openOnce().finally(() => {
			this.#opening = undefined;
		});
		return this.#opening;
	}

	async #openOnce(): Promise<SqliteSession> {
		const { path, isShared } = this.#source;
		const before = identify(path);
		if (this.#file !== undefined && before === undefined) throw this.#gone();
		const session = new SqliteSession(await this.#source.open());
		try {
			setUp(session, this.#source);
		} catch (error) {
			if (!isShared) session.db.close();
			throw error;
		}
		// If it was replaced meanwhile, the next commit finds another in its place.
		this.#file = before ?? identify(path);
		this.#session = session;
		return session;
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
	return sleep(1 + Math.random() * Math.min(2 ** (attempt - QUICK_RETRIES), LONGEST_PAUSE));
}
