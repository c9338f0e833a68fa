import { closeSync, fdatasync, openSync, realpathSync } from "node:fs";

/** Commits between two times, an eighth of a full log or so. More often, the two threads get in each other's way. */
const COMMITS = 300;
/** While the event loop stands still nobody hears that the disk is done. */
const MOST_IN_A_TURN = 1000;

type Sync = (fd: number, done: () => void) => void;

/**
 * Brings SQLite's log to the disk from another thread, bit by bit. Before SQLite moves the pages of a full log into the
 * file it waits for the disk to have all of the log, and the process waits with it: most of it is there by then.
 *
 * Nothing depends on it: whatever goes wrong here, SQLite does it again.
 */
export class LogSync {
	readonly #path: string;
	readonly #sync: Sync;
	#fd: number | undefined;
	#commits = 0;
	#underWay = 0;
	#isSameTurn = false;
	#isClosed = false;

	/** @param path the database's */
	constructor(path: string, sync: Sync = fdatasync) {
		this.#path = path;
		this.#sync = sync;
	}

	noteCommit(): void {
		if (++this.#commits < COMMITS) return;
		// One at a time, so that other files find threads as well.
		if (this.#underWay >= (this.#isSameTurn ? MOST_IN_A_TURN : 1)) return;
		this.#commits = 0;
		this.#fd ??= openLog(this.#path);
		if (this.#fd === undefined) return;
		this.#underWay++;
		this.#sync(this.#fd, () => {
			this.#underWay--;
			this.#closeIfIdle();
		});
		if (this.#isSameTurn) return;
		this.#isSameTurn = true;
		setImmediate(() => {
			this.#isSameTurn = false;
		});
	}

	close(): void {
		this.#isClosed = true;
		this.#closeIfIdle();
	}

	/** Not while a thread has it, which might find another file under the same number. */
	#closeIfIdle(): void {
		if (!this.#isClosed || this.#underWay > 0 || this.#fd === undefined) return;
		closeSync(this.#fd);
		this.#fd = undefined;
	}
}

/** SQLite puts the log beside the file that a link leads to. */
function openLog(path: string): number | undefined {
	try {
		return openSync(`${realpathSync(path)}-wal`, "r+");
	} catch {
		return undefined;
	}
}
