import { openDatabase, type SqliteDatabase } from "./driver.ts";
import { checkFormat } from "./schema.ts";

/**
 * What a commit survives: `"process"` the death of the process, at any moment; `"power"` also that of the machine, for
 * which every commit waits until the disk has it.
 */
export type Durability = "process" | "power";

/** Where a connection gets its database from. */
export interface SqliteSource {
	/** For error messages. */
	readonly name: string;
	/** The file, if there is one that might be removed. */
	readonly path?: string | undefined;
	/** It belongs to the application, which has its own settings and will also close it. */
	readonly isShared: boolean;
	readonly isReadOnly: boolean;
	/** Whether a commit takes so long that others are worth waiting for. */
	readonly waitsForDisk: boolean;
	open(): Promise<SqliteDatabase>;
	/** Whether the database must be opened anew. */
	isStale?(): boolean;
}

/** A file, or `":memory:"`. */
export function fileSource(path: string, durability: Durability = "process"): SqliteSource {
	const isFile = path !== ":memory:" && path !== "";
	const waitsForDisk = durability === "power";
	return {
		name: path,
		path: isFile ? path : undefined,
		isShared: false,
		isReadOnly: false,
		waitsForDisk,
		open: async () => configure(openDatabase(path), path, waitsForDisk),
	};
}

/** Readers and a writer beside each other. */
function configure(db: SqliteDatabase, name: string, waitsForDisk: boolean): SqliteDatabase {
	try {
		// What is not ours stays as it is.
		checkFormat(db, name, false);
		// Only a database without tables takes this: room of deleted rows can then be given back bit by bit.
		db.pragma("auto_vacuum = INCREMENTAL");
		db.pragma("journal_mode = WAL");
		db.pragma(`synchronous = ${waitsForDisk ? "FULL" : "NORMAL"}`);
		// On macOS an fsync alone does not reach the disk.
		if (waitsForDisk) db.pragma("fullfsync = ON");
		limitLog(db);
		return db;
	} catch (error) {
		db.close();
		throw error;
	}
}

/** SQLite's own limit of the log, 4 MB, and 32 MB. */
const LEAST_LOG_PAGES = 1000;
const MOST_LOG_PAGES = 8000;

/**
 * Lets the log become half as large as the file before its pages are moved there, within limits. Each page is moved once,
 * however often it has changed meanwhile: the longer the log, the less a step costs.
 */
export function limitLog(db: SqliteDatabase): void {
	const half = Number(db.pragma("page_count", { simple: true })) / 2;
	const pages = Math.min(Math.max(LEAST_LOG_PAGES, Math.floor(half)), MOST_LOG_PAGES);
	db.pragma(`wal_autocheckpoint = ${pages}`);
}

/** An open database of the application. It keeps the settings that it has. */
export function sharedSource(db: SqliteDatabase): SqliteSource {
	return { name: db.name, isShared: true, isReadOnly: false, waitsForDisk: false, open: async () => db };
}
