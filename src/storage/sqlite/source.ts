import { constants, existsSync, statSync } from "node:fs";
import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckpointError, quote } from "../../errors.ts";
import { codeOf, limitLog, openDatabase, type SqliteDatabase } from "./driver.ts";

/** What a commit survives: the death of the process, or also that of the machine. */
export type Durability = "process" | "power";

/** Where a connection gets its database from. */
export interface SqliteSource {
	/** For error messages. */
	readonly name: string;
	/** The file, if there is one that might be removed. */
	readonly path?: string | undefined;
	/** It belongs to the application, which has its own settings and will also close it. */
	readonly isShared?: true;
	readonly isReadOnly?: true;
	/** Whether a commit takes so long that others are worth waiting for. */
	readonly waitsForDisk?: boolean;
	open(): Promise<SqliteDatabase>;
	/** Settings for a database that is empty or ours. */
	configure?(db: SqliteDatabase): void;
	/** Whether the database must be opened anew. */
	isStale?(): boolean;
}

/** A file, or `":memory:"`. */
export function fileSource(path: string, durability: Durability = "process"): SqliteSource {
	const waitsForDisk = durability === "power";
	const configure = (db: SqliteDatabase) => {
		if (db.pragma("page_count", { simple: true }) === 0) {
			// Room of deleted rows can then be given back bit by bit. The next change of the file waits for the disk for both.
			db.exec("PRAGMA synchronous = OFF; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = FULL");
		}
		// Readers and a writer beside each other.
		db.pragma("journal_mode = WAL");
		db.pragma(`synchronous = ${waitsForDisk ? "FULL" : "NORMAL"}`);
		// On macOS an fsync alone does not reach the disk.
		if (waitsForDisk) db.pragma("fullfsync = ON");
		limitLog(db);
	};
	const file = path === ":memory:" || path === "" ? undefined : path;
	return { name: path, path: file, waitsForDisk, open: async () => openDatabase(path), configure };
}

/** An open database of the application. It keeps the settings that it has. */
export function sharedSource(db: SqliteDatabase): SqliteSource {
	return { name: db.name, isShared: true, open: async () => db };
}

/**
 * A file that is never written to, nor its folder. SQLite makes a log beside every database in WAL mode, even to read it:
 * only where a writer's log is there the file is read in place, otherwise a copy, made anew when the file has changed.
 */
export function readOnlySource(path: string): SqliteSource {
	let version = "";
	let isCopy = false;
	const isStale = () => version !== versionOf(path, isCopy);
	const open = async (): Promise<SqliteDatabase> => {
		if (!existsSync(path))
			throw new CheckpointError("CANT_OPEN", `${quote(path)} is not there, and is to be read only: check the path.`);
		const inPlace = openInPlace(path);
		isCopy = inPlace === undefined;
		version = versionOf(path, isCopy);
		if (inPlace !== undefined) return inPlace;
		const copy = await openCopy(path).catch((error: unknown) => {
			if (!isStale()) throw error;
		});
		if (copy !== undefined && !isStale()) return copy;
		copy?.close();
		// The next attempt finds the log of the process that has changed the file.
		throw Object.assign(new Error("The file was changed while it was copied"), { code: "SQLITE_BUSY" });
	};
	return { name: path, isReadOnly: true, open, isStale };
}

/** Opens a file whose log is there; SQLite may refuse if whoever left the log is gone. */
function openInPlace(path: string): SqliteDatabase | undefined {
	if (!existsSync(`${path}-wal`) || !existsSync(`${path}-shm`)) return undefined;
	const db = openDatabase(path, true);
	try {
		db.pragma("schema_version");
		return db;
	} catch (error) {
		db.close();
		if (/^SQLITE_(CANTOPEN|READONLY|IOERR)/.test(codeOf(error))) return undefined;
		throw error;
	}
}

/** Changes when another file is put in place and, of a file that was copied, with everything that is written. */
function versionOf(path: string, isCopy: boolean): string {
	const [file, log] = [path, `${path}-wal`].map((name) => statSync(name, { throwIfNoEntry: false }));
	return isCopy ? [file, log].map((found) => [found?.ino, found?.size, found?.mtimeMs]).join() : `${file?.ino}`;
}

/** Copies a file with its log, which SQLite then applies to the copy. */
async function openCopy(path: string): Promise<SqliteDatabase> {
	const folder = await mkdtemp(join(tmpdir(), "langgraph-checkpoint-delta-"));
	try {
		const copy = join(folder, "copy.db");
		for (const end of ["-wal", ""]) {
			if (!existsSync(path + end)) continue;
			await copyFile(path + end, copy + end, constants.COPYFILE_FICLONE);
			await chmod(copy + end, 0o600);
		}
		const db = openDatabase(copy);
		// Without a log SQLite needs no files but this one, which it holds from here on.
		db.pragma("journal_mode = DELETE");
		return db;
	} finally {
		// Where open files can't be removed, the system will do so one day.
		await rm(folder, { recursive: true, force: true }).catch(() => undefined);
	}
}
