import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { CheckpointError, quote } from "../../errors.ts";
import { identify, type SqliteDatabase, translateError } from "./driver.ts";

/** Pages that are copied in one go: some milliseconds. */
const BATCH_PAGES = 500;
/** SQLite starts again when another process writes. After so many times everything left is copied in one go. */
const MOST_RESTARTS = 3;
const ALL_PAGES = 0x7fff_ffff;

/**
 * Copies an open database to a file, which is there once it is complete, while writing goes on.
 *
 * @param check throws if it is to stop
 */
export async function backupTo(db: SqliteDatabase, path: string, check: () => void): Promise<void> {
	checkTarget(db, path);
	const unfinished = `${path}.unfinished`;
	for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(unfinished + end, { force: true });
	try {
		let left = Number.POSITIVE_INFINITY;
		let restarts = 0;
		const progress = ({ remainingPages }: { remainingPages: number }) => {
			check();
			if (remainingPages > left) restarts++;
			left = remainingPages;
			return restarts < MOST_RESTARTS ? BATCH_PAGES : ALL_PAGES;
		};
		await db.backup(unfinished, { progress });
		renameSync(unfinished, path);
	} catch (error) {
		rmSync(unfinished, { force: true });
		throw translateError(error, path);
	}
}

/** An older backup may be replaced, a database that somebody works with may not. */
function checkTarget({ name }: SqliteDatabase, path: string): void {
	const isInUse = existsSync(`${path}-wal`) || (existsSync(path) && identify(name) === identify(path));
	if (typeof path !== "string" || path === "" || path === ":memory:" || isInUse)
		throw new CheckpointError(
			"INVALID_OPTION",
			`backup needs the path of a file of its own, got ${quote(path)}${isInUse ? ", which is in use" : ""}.`,
		);
	if (!existsSync(dirname(path)))
		throw new CheckpointError("CANT_OPEN", `The folder of ${quote(path)} is not there: make it first.`);
}
