import { openDatabase, type SqliteDatabase } from "./driver.ts";
import { finishRepair } from "./rebuild.ts";
import { checkFormat } from "./schema.ts";
import { WalCheck } from "./wal-check.ts";

/**
 * What a commit survives: `"process"` the death of the process, at any moment; `"power"` also that of the machine, for
 * which every commit waits until the disk has it.
 */
export type Durability = "process" | "power";

/**
 * How long SQLite's log may become before its pages are moved into the file: 32 MB, eight times what is usual. Each page is
 * moved once, however often it changed meanwhile, so that a step costs less the longer the log is.
 */
const LOG_PAGES = 8000;

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
	open(): SqliteDatabase;
	/** Whether the database should be opened anew. */
	isStale?(): boolean;
}

/** A file, or `":memory:"`. */
export function fileSource(path: string, durability: Durability = "process"): SqliteSource {
	const isFile = path !== ":memory:" && path !== "";
	const waitsForDisk = durability === "power";
	const walCheck = isFile ? new WalCheck(path) : undefined;
	const open = () => {
		if (isFile) finishRepair(path);
		walCheck?.check();
		return configure(openDatabase(path), path, waitsForDisk);
	};
	return {
		name: path,
		path: isFile ? path : undefined,
		isShared: false,
		isReadOnly: false,
		waitsForDisk,
		open,
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
		db.pragma(`wal_autocheckpoint = ${LOG_PAGES}`);
		// On macOS an fsync alone does not reach the disk.
		if (waitsForDisk) db.pragma("fullfsync = ON");
		return db;
	} catch (error) {
		db.close();
		throw error;
	}
}

/** An open database of the application. It keeps the settings that it has. */
export function sharedSource(db: SqliteDatabase): SqliteSource {
	return { name: db.name, isShared: true, isReadOnly: false, waitsForDisk: false, open: () => db };
}
