import { constants, existsSync, statSync } from "node:fs";
import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckpointError, quote } from "../../errors.ts";
import { busyError, openDatabase, type SqliteDatabase } from "./driver.ts";
import type { SqliteSource } from "./source.ts";

/**
 * A file that is never written to, nor the folder that it is in.
 *
 * SQLite makes a log beside every database in WAL mode, even to read it. While somebody has the file open for writing, the
 * log is there, and the file is read where it is. Otherwise a copy among the temporary files is read, which is made anew
 * when the file has changed.
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
		try {
			const copy = await openCopy(path);
			if (!isStale()) return copy;
			copy.close();
		} catch (error) {
			if (!isStale()) throw error;
		}
		// The next attempt finds the log of the process that has changed the file.
		throw busyError("The file was changed while it was copied");
	};
	return { name: path, isShared: false, isReadOnly: true, waitsForDisk: false, open, isStale };
}

/** Opens a file whose log is there; SQLite may refuse if whoever left the log is gone. */
function openInPlace(path: string): SqliteDatabase | undefined {
	if (!existsSync(`${path}-wal`) || !existsSync(`${path}-shm`)) return undefined;
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

/** Changes when another file is put in place and, of a file that was copied, with everything that is written. */
function versionOf(path: string, isCopy: boolean): string {
	const describe = (file: string) => {
		const found = statSync(file, { throwIfNoEntry: false });
		if (found === undefined) return "none";
		return isCopy ? `${found.ino} ${found.size} ${found.mtimeMs}` : `${found.ino}`;
	};
	return isCopy ? `${describe(path)}, ${describe(`${path}-wal`)}` : describe(path);
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
		const db = openDatabase(copy, { fileMustExist: true });
		// Without a log SQLite needs no files but this one, which it holds from here on.
		db.pragma("journal_mode = DELETE");
		return db;
	} finally {
		// Where open files can't be removed, the system will do so one day.
		await rm(folder, { recursive: true, force: true }).catch(() => undefined);
	}
}
