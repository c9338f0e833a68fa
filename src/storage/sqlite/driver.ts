import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { CheckpointError, type CheckpointErrorCode, quote } from "../../errors.ts";

/** The part of a better-sqlite3 statement that is used here. */
export interface SqliteStatement {
	run(...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint };
	get(...parameters: unknown[]): unknown;
	all(...parameters: unknown[]): unknown[];
	iterate(...parameters: unknown[]): Iterable<unknown>;
	safeIntegers(isOn: boolean): SqliteStatement;
}

/** The part of a better-sqlite3 `Database` that is used here; any 12.x or 13.x fits. */
export interface SqliteDatabase {
	readonly name: string;
	readonly open: boolean;
	readonly readonly: boolean;
	readonly inTransaction: boolean;
	prepare(sql: string): SqliteStatement;
	exec(sql: string): unknown;
	pragma(text: string, options?: { simple?: boolean }): unknown;
	/** Runs work in a transaction, or in a savepoint of the one that is open. */
	transaction(run: Transaction): Transaction & { immediate: Transaction };
	/** @param progress returns how many pages to copy next */
	backup(path: string, options: { progress: (left: { remainingPages: number }) => number }): Promise<unknown>;
	/** Allows to open what is damaged. */
	unsafeMode(isOn: boolean): unknown;
	close(): unknown;
}

type Transaction = (work: () => unknown) => unknown;

/**
 * Opens a file with better-sqlite3, which is loaded only now: the package can be installed without it.
 *
 * SQLite itself does not wait for other processes, which would stop this one: whoever calls it tries again.
 */
export function openDatabase(path: string, isReadOnly = false): SqliteDatabase {
	try {
		const Database = createRequire(import.meta.url)("better-sqlite3");
		return new Database(path, { readonly: isReadOnly, timeout: 0 });
	} catch (cause) {
		// The native part is loaded by the constructor, so that is where an unfinished installation shows.
		if (cause instanceof TypeError || codeOf(cause).startsWith("SQLITE_"))
			throw new CheckpointError("CANT_OPEN", `Can't open ${quote(path)}: ${(cause as Error).message}.`, { cause });
		throw new CheckpointError(
			"MISSING_DRIVER",
			"SqliteSaver needs better-sqlite3, which is not installed or was not built: run `npm install better-sqlite3`, or `npm rebuild better-sqlite3` if its install script was blocked.",
			{ cause },
		);
	}
}

/** An open database with its prepared statements. Remembers nothing of rows, whose NULLs it returns as `undefined`. */
export class SqliteSession {
	/** No other session has it. */
	readonly name = randomUUID();
	readonly db: SqliteDatabase;
	readonly transaction: ReturnType<SqliteDatabase["transaction"]>;
	readonly #statements = new Map<string, SqliteStatement>();

	constructor(db: SqliteDatabase) {
		this.db = db;
		this.transaction = db.transaction((work) => work());
	}

	run(sql: string, ...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint } {
		return this.#prepare(sql).run(...parameters);
	}

	get<Row extends object>(sql: string, ...parameters: unknown[]): Row | undefined {
		const row = this.#prepare(sql).get(...parameters) as Row | undefined;
		return row && withoutNulls(row);
	}

	all<Row extends object>(sql: string, ...parameters: unknown[]): Row[] {
		return (this.#prepare(sql).all(...parameters) as Row[]).map(withoutNulls);
	}

	#prepare(sql: string): SqliteStatement {
		let statement = this.#statements.get(sql);
		if (statement === undefined) {
			// The application may have chosen BigInt for the database that it shares.
			statement = this.db.prepare(sql).safeIntegers(false);
			this.#statements.set(sql, statement);
		}
		return statement;
	}
}

function withoutNulls<Row extends object>(row: Row): Row {
	for (const key in row) if (row[key] === null) row[key] = undefined as Row[typeof key];
	return row;
}

/**
 * Lets the log become half as large as the file, from 1,000 pages, 4 MB, to 8,000, before its pages are moved there: once
 * each, however often they have changed meanwhile.
 */
export function limitLog(db: SqliteDatabase): void {
	const half = Math.floor(Number(db.pragma("page_count", { simple: true })) / 2);
	db.pragma(`wal_autocheckpoint = ${Math.min(Math.max(half, 1000), 8000)}`);
}

/** Tells the file at a path from all others, if there is one. */
export function identify(path: string | undefined): string | undefined {
	const found = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
	return found && `${found.dev} ${found.ino}`;
}

/** SQLite's own name of an error, if it has one. */
export function codeOf(error: unknown): string {
	return String((error as { code?: unknown } | undefined)?.code);
}

/** Whether another connection is in the way, for a moment or for long. */
export function isBusy(error: unknown): boolean {
	return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error));
}

/** What SQLite's errors mean to a user, by how they begin. */
const MEANINGS: readonly [beginning: RegExp, code: CheckpointErrorCode, advice: string][] = [
	[/^undefined The database connection is not open/, "CLOSED", "open a new one"],
	[/^SQLITE_(BUSY|LOCKED)/, "BUSY", "held for longer than the busy timeout, try again or raise `busyTimeout`"],
	[/^SQLITE_READONLY/, "READ_ONLY", "the file can't be written to, check its permissions"],
	[/^SQLITE_FULL/, "DISK_FULL", "nothing was stored, make room and call again"],
	[/^SQLITE_IOERR/, "IO_ERROR", "nothing was stored, see the code of the cause"],
	[/^SQLITE_(CANTOPEN|PERM|AUTH)/, "CANT_OPEN", "check that its folder is there, and permissions"],
	[/^SQLITE_NOMEM/, "OUT_OF_MEMORY", "nothing was stored"],
	[/^SQLITE_NOTADB/, "FOREIGN_DATABASE", "choose another file"],
	[/^SQLITE_CORRUPT/, "CORRUPT", "the file is damaged, call repair()"],
	[/^/, "STORAGE", "see the cause"],
];

/** The error a user gets for one of SQLite's. */
export function translateError(error: unknown, name: string): unknown {
	if (error instanceof CheckpointError || !(error instanceof Error)) return error;
	const text = `${codeOf(error)} ${error.message}`;
	const [, code, advice] = MEANINGS.find(([beginning]) => beginning.test(text)) as (typeof MEANINGS)[number];
	return new CheckpointError(code, `${quote(name)}: ${error.message}: ${advice}.`, { cause: error });
}
