import { createRequire } from "node:module";
import { CheckpointError, quote } from "../errors.ts";

/** The part of a better-sqlite3 statement that is used here. */
export interface SqliteStatement {
	run(...parameters: unknown[]): { changes: number };
	get(...parameters: unknown[]): unknown;
	all(...parameters: unknown[]): unknown[];
	pluck(): SqliteStatement;
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
	transaction<R>(run: () => R): { immediate(): R };
	close(): unknown;
}

/** Opens a file with better-sqlite3, which is loaded only now: the package can be installed without it. */
export function openDatabase(path: string, timeout: number): SqliteDatabase {
	try {
		const Database = createRequire(import.meta.url)("better-sqlite3") as DatabaseConstructor;
		return new Database(path, { timeout });
	} catch (cause) {
		// The native part is loaded by the constructor, so that is where an unfinished installation shows.
		if (cause instanceof TypeError || String((cause as { code?: unknown }).code).startsWith("SQLITE_"))
			throw new CheckpointError("STORAGE", `Can't open ${quote(path)}: ${(cause as Error).message}.`, { cause });
		throw new CheckpointError(
			"MISSING_DRIVER",
			"SqliteSaver needs better-sqlite3, which is not installed or was not built: run `npm install better-sqlite3`, or `npm rebuild better-sqlite3` if its install script was blocked.",
			{ cause },
		);
	}
}

type DatabaseConstructor = new (path: string, options: { timeout: number }) => SqliteDatabase;

/** The error a user gets for one of SQLite's. */
export function translateError(error: unknown, name: string): unknown {
	if (error instanceof CheckpointError || !(error instanceof Error)) return error;
	const code = (error as { code?: unknown }).code;
	const fail = (kind: ConstructorParameters<typeof CheckpointError>[0], advice: string) =>
		new CheckpointError(kind, `${quote(name)}: ${error.message}: ${advice}.`, { cause: error });
	if (error.message === "The database connection is not open") return fail("CLOSED", "open a new one");
	if (typeof code !== "string") return fail("STORAGE", "see the cause");
	if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"))
		return fail("BUSY", "another process held it longer than the busy timeout, try again or raise `busyTimeout`");
	if (code.startsWith("SQLITE_READONLY"))
		return fail("READ_ONLY", "the file can't be written to, check its permissions");
	if (code === "SQLITE_NOTADB") return fail("FOREIGN_DATABASE", "choose another file");
	if (code.startsWith("SQLITE_CORRUPT")) return fail("CORRUPT", "the file is damaged, restore a backup");
	return fail("STORAGE", `SQLite reported ${code}`);
}
