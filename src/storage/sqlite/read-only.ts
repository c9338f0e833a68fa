import {
	chmodSync,
	closeSync,
	constants,
	copyFileSync,
	existsSync,
	mkdtempSync,
	openSync,
	rmSync,
	statSync,
	writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckpointError, quote } from "../../errors.ts";
import { openDatabase, type SqliteDatabase } from "./driver.ts";
import type { SqliteSource } from "./source.ts";
import { inspectWal, readFrames } from "./wal.ts";
import { WalCheck } from "./wal-check.ts";

/** How often a copy is begun again because the file was written to meanwhile. */
const MOST_ATTEMPTS = 10;

/**
 * A file that is never written to, nor the folder that it is in.
 *
 * SQLite itself makes a log beside every database in WAL mode, even to read it. So while nobody has the file open for
 * writing, what is read is a copy among the temporary files, made anew when the file has changed. While somebody has, the
 * log is there, and the file is read where it is.
 */
export function readOnlySource(path: string): SqliteSource {
	const walCheck = new WalCheck(path);
	let copied: string | undefined;
	const open = (): SqliteDatabase => {
		if (!existsSync(path))
			throw new CheckpointError("CANT_OPEN", `${quote(path)} is not there, and is to be read only: check the path.`);
		walCheck.check();
		const live = isInUse(path) ? tryOpen(path) : undefined;
		copied = live === undefined ? versionOf(path) : undefined;
		return live ?? openCopy(path);
	};
	const isStale = () => copied !== undefined && copied !== versionOf(path);
	return { name: path, isShared: false, isReadOnly: true, waitsForDisk: false, open, isStale };
}

function isInUse(path: string): boolean {
	return existsSync(`${path}-shm`) && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Where the file's log is. Whoever left it may be gone, and its index not readable without writing to it. */
function tryOpen(path: string): SqliteDatabase | undefined {
	const db = openDatabase(path, { readonly: true, fileMustExist: true });
	try {
		db.pragma("schema_version");
		return db;
	} catch (error) {
		db.close();
		if (/^SQLITE_(CANTOPEN|READONLY|IOERR)/.test(String((error as { code?: unknown }).code))) return undefined;
		throw error;
	}
}

/** Changes with everything that is written. */
function versionOf(path: string): string {
	const describe = (file: string) => {
		const found = statSync(file, { throwIfNoEntry: false });
		return found && found.size > 0 ? `${found.ino} ${found.size} ${found.mtimeMs}` : "";
	};
	return `${describe(path)}, ${describe(`${path}-wal`)}`;
}

function openCopy(path: string): SqliteDatabase {
	const folder = mkdtempSync(join(tmpdir(), "langgraph-checkpoint-delta-"));
	try {
		const copy = join(folder, "copy.db");
		for (let attempt = 1, version = ""; version !== versionOf(path); attempt++) {
			if (attempt > MOST_ATTEMPTS)
				throw new CheckpointError("BUSY", `${quote(path)} is being written to all the time: try again.`);
			version = versionOf(path);
			makeCopy(path, copy);
		}
		const db = openDatabase(copy, { readonly: true, fileMustExist: true });
		// From here on SQLite holds the file, which needs no name any more.
		db.pragma("schema_version");
		return db;
	} finally {
		// Where open files can't be removed, the system will do so one day.
		try {
			rmSync(folder, { recursive: true, force: true });
		} catch {}
	}
}

/** Copies a database with what its log has committed, and without its being in WAL mode. */
function makeCopy(path: string, copy: string): void {
	copyFileSync(path, copy, constants.COPYFILE_FICLONE);
	chmodSync(copy, 0o600);
	const log = `${path}-wal`;
	const file = openSync(copy, "r+");
	try {
		for (const { page, data } of readFrames(log, inspectWal(log).committed))
			writeSync(file, data, 0, data.length, (page - 1) * data.length);
		// The format's versions for writing and reading, in the header of the file.
		if (statSync(copy).size > 0) writeSync(file, Uint8Array.of(1, 1), 0, 2, 18);
	} finally {
		closeSync(file);
	}
}
